"""What brokers are taken to want that do not know yet what may be published here."""

from __future__ import annotations

from tieline.overlay.interests.entries import Entries, Entry, Form, Said, Terms
from tieline.overlay.interests.interests import Interests
from tieline.overlay.interests.marks import declaration, declared, is_mark, knowledge
from tieline.overlay.interests.supplement import Supplement

ONE = Terms(1)
GRID = frozenset({"grid/#"})


class _Routes:
    """What is subscribed for one broker."""

    def __init__(self) -> None:
        self.wanted: set[Entry] = set()

    def learned(self, _broker: int, added: Entries, removed: frozenset[Entry]) -> None:
        self.wanted |= {entry for entry in added if not is_mark(entry)}
        self.wanted -= removed


class _Site:
    def __init__(self) -> None:
        self.interests = Interests(1, 1, {})
        self.routes = _Routes()
        self.supplement = Supplement("a", self.interests, self.routes.learned)
        self.interests.concluded = self._concluded
        self.interests.follow(self.supplement.learned)
        self.version = 1 << 24

    def _concluded(self, broker: int) -> None:
        self.supplement.concluded(broker)

    def hear(self, *entries: Entry) -> set[Entry]:
        """Broker 2 says that it wants these and nothing else; what is subscribed for it."""
        self.version += 1
        self.interests.learn(Said(2, Form.WHOLE, self.version, 0, dict.fromkeys(entries, ONE)))
        return self.routes.wanted


def test_marks_say_what_they_were_made_for() -> None:
    assert declared(declaration(["grid/#", "a"])) == frozenset({"grid/#", "a"})
    assert declared(declaration([])) == frozenset()
    assert declared([*declaration(None), Entry("grid/#")]) is None
    assert knowledge("a", GRID) not in {knowledge("a", None), knowledge("b", GRID), knowledge("a", frozenset())}


def test_who_has_no_marks_is_believed() -> None:
    site = _Site()
    site.supplement.declare(GRID)
    assert site.hear(Entry("site/1")) == {Entry("site/1")}
    assert site.supplement.added == {}


def test_who_goes_by_something_else_gets_all_that_is_published_until_it_knows() -> None:
    site = _Site()
    site.supplement.declare(GRID)
    mark = knowledge("a", frozenset({"site/+"}))
    assert site.hear(mark, Entry("site/1")) == {Entry("site/1"), Entry("grid/#")}
    # what it says of the same in between changes nothing, and it stays what it wants
    assert site.hear(mark, Entry("grid/#")) == {Entry("grid/#")}
    assert site.hear(knowledge("a", GRID), Entry("grid/#")) == {Entry("grid/#")}
    assert site.hear(knowledge("a", GRID)) == set()


def test_a_broker_of_which_nothing_is_said_is_one_that_was_not_known() -> None:
    site = _Site()
    assert site.hear(knowledge("b", GRID)) == {Entry("#")}
    assert site.hear(knowledge("b", GRID), knowledge("a", None)) == set()


def test_what_is_declared_later_is_what_others_have_to_learn() -> None:
    site = _Site()
    assert site.hear(knowledge("a", None), Entry("x")) == {Entry("x")}
    site.supplement.declare(GRID)
    assert site.routes.wanted == {Entry("x"), Entry("grid/#")}
    site.supplement.declare(["a", "b"])
    assert site.routes.wanted == {Entry("x"), Entry("a"), Entry("b")}
    site.supplement.declare(None)
    assert site.routes.wanted == {Entry("x")}


def test_a_broker_that_is_written_off_has_declared_nothing() -> None:
    site = _Site()
    site.hear(*declaration(GRID))
    assert site.supplement.declared == {2: GRID}
    site.interests.write_off(2)
    assert site.supplement.declared == {}
    assert site.routes.wanted == set()

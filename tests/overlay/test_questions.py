"""Questions between brokers: answered in time, or named; and what a peer gets that asks without end, or may not ask."""

from __future__ import annotations

from tests.overlay.test_node import Pair, _hello, _joined, _node
from tieline.overlay.frames.fields import put
from tieline.overlay.frames.frame import Kind, Notice, Topic, frame, numbered
from tieline.overlay.frames.hello import put_names
from tieline.overlay.may import May
from tieline.overlay.node import Node
from tieline.overlay.questions import BURST, LONGEST, MOST_ASKED, MOST_OF_ONE, PATIENCE_S

Heard = list[tuple[dict[int, bytes], frozenset[int]]]


def _echo(asker: int, may: May | None, question: bytes) -> bytes:
    return b"%d asked %s" % (asker, question)


def _ask(pair: Pair, question: bytes = b"who?", *brokers: int) -> Heard:
    heard: Heard = []
    then = lambda answers, silent: heard.append((answers, silent))  # noqa: E731 - as the shell does
    assert pair.nodes[1].questions.ask(question, brokers or (2,), then, pair.now)
    return heard


def test_a_question_is_answered() -> None:
    pair = _joined()
    pair.nodes[2].questions.answerer = _echo
    heard = _ask(pair)
    pair.run(0.2)
    asker = pair.nodes[2].number_of("b1")
    assert heard == [({2: b"%d asked who?" % asker}, frozenset())]
    assert pair.nodes[2].counts.questions_answered == 1


def test_who_does_not_answer_is_named_in_the_end() -> None:
    pair = _joined()
    heard = _ask(pair)
    pair.run(PATIENCE_S - 0.3)
    assert not heard
    pair.run(0.4)
    assert heard == [({}, frozenset({2}))]
    assert pair.nodes[2].counts.questions_refused == 1


def test_who_cannot_be_reached_is_not_waited_for() -> None:
    pair = _joined()
    pair.nodes[2].questions.answerer = _echo
    away = pair.nodes[1].number_of("away")
    heard = _ask(pair, b"who?", 2, away)
    pair.run(0.3)
    assert [(sorted(answers), silent) for answers, silent in heard] == [([2], frozenset({away}))]
    assert _ask(pair, b"who?", away) == []
    pair.run(0.1)
    for node in pair.nodes.values():
        node.closed(pair.handle, pair.now)
    heard = _ask(pair)
    pair.timers[1].fire(pair.now)
    assert heard == [({}, frozenset({2}))]


def test_only_so_many_questions_are_under_way() -> None:
    pair = _joined()
    for _ in range(MOST_ASKED):
        _ask(pair)
    assert not pair.nodes[1].questions.ask(b"", [2], lambda *_: None, pair.now)
    assert not _joined().nodes[1].questions.ask(bytes(LONGEST + 1), [2], lambda *_: None, pair.now)
    pair.run(PATIENCE_S + 0.2)
    _ask(pair)


class Hostile:
    """A node with an answerer, and a peer that has the key and says what it likes."""

    def __init__(self, node: Node | None = None) -> None:
        self.node = node or _node()
        self.asked: list[tuple[int, May | None, bytes]] = []
        self.node.questions.answerer = self._answer
        self.node.opened(7, 100.0)
        self.node.receive(7, _hello() + frame(Kind.RESUME, put(1, 0)), 100.0)
        self.node.membership.heard(self.node.membership.states[2]._replace(sequence=9, neighbours={1: 1}))
        self.number = 0
        self.timers = self.node._timers

    def _answer(self, asker: int, may: May | None, question: bytes) -> bytes:
        self.asked.append((asker, may, question))
        return b"x"

    def say(self, topic: Topic, body: bytes, now: float, *, source: int = 2, target: int = 1) -> None:
        self.number += 1
        notice = Notice(topic, source, target, body, b"\x02")
        self.node.receive(7, b"".join(numbered(self.number, notice, now)), now)

    def pass_time(self, now: float) -> None:
        self.timers.fire(now)
        self.node.fill(7, 1 << 20, now)


def test_a_flood_of_questions_is_answered_at_a_pace() -> None:
    hostile = Hostile()
    for number in range(2_000):
        hostile.say(Topic.QUESTION, put(number) + b"who?", 100.0)
    # no more of one broker wait than that, and each is answered in a turn of its own
    for _ in range(50):
        hostile.pass_time(100.0)
    assert len(hostile.asked) == MOST_OF_ONE
    for step in range(1, 401):
        now = 100 + step / 100
        hostile.say(Topic.QUESTION, put(step) + b"who?", now)
        hostile.pass_time(now)
        hostile.pass_time(now)
    assert len(hostile.asked) <= BURST + 4 * 4 + 1
    assert hostile.node.counts.questions_refused >= 2_400 - len(hostile.asked) - MOST_OF_ONE
    assert hostile.node.doomed == set()


def test_a_flood_in_many_names_is_answered_at_a_pace() -> None:
    hostile = Hostile()
    for number in range(5, 200):
        hostile.node.directory.add(f"x{number}")
    names = sorted(hostile.node.directory.names)
    table = dict(hostile.node.directory.names)
    hostile.node.receive(7, frame(Kind.NAMES, put_names(table)), 100.0)
    for step in range(1_000):
        now = 100 + step / 1000
        hostile.say(Topic.QUESTION, put(step) + b"who?", now, source=names[5 + step % 150])
        hostile.pass_time(now)
    assert len(hostile.asked) <= 20 + 20 + 1


def test_answers_that_nobody_asked_for_are_left_aside() -> None:
    hostile = Hostile()
    heard: Heard = []
    hostile.node.questions.ask(b"who?", [2], lambda *said: heard.append(said), 100.0)
    number = hostile.node.questions._number
    hostile.say(Topic.ANSWER, put(number + 1) + b"me", 100.1)
    hostile.say(Topic.ANSWER, put(number) + b"me", 100.1, source=3)
    hostile.say(Topic.ANSWER, put(number) + bytes(LONGEST + 20), 100.1)
    hostile.pass_time(100.2)
    assert not heard and hostile.node.counts.answers_unasked == 3
    hostile.say(Topic.ANSWER, put(number) + b"me", 100.3)
    hostile.say(Topic.ANSWER, put(number) + b"again", 100.3)
    hostile.pass_time(100.4)
    assert heard == [({2: b"me"}, frozenset())]


def test_bodies_that_are_none_end_the_connection_and_nothing_else() -> None:
    for topic in (Topic.QUESTION, Topic.ANSWER):
        hostile = Hostile()
        hostile.say(topic, b"\x80", 100.0)
        assert hostile.node.doomed == {7} and not hostile.asked


def test_a_peer_with_rights_is_answered_within_them_and_by_nobody_behind() -> None:
    hostile = Hostile()
    may = May(("read grid/#",))
    hostile.node.questions.rights = {2: may}
    hostile.say(Topic.QUESTION, put(1) + b"who?", 100.0)
    hostile.pass_time(100.0)
    assert hostile.asked == [(2, may, b"who?")]
    before = hostile.node.counts.questions_refused
    hostile.say(Topic.QUESTION, put(2) + b"who?", 100.0, target=3)
    assert hostile.node.counts.questions_refused == before + 1
    assert hostile.node.counts.notices_lost == 0


def test_what_is_asked_and_told_goes_behind_what_is_urgent() -> None:
    levels = {topic: Notice(topic, 1, 2, b"").level for topic in Topic}
    assert levels[Topic.QUESTION] == levels[Topic.ANSWER] == 2
    assert levels[Topic.END_ACK] == levels[Topic.ECHO] == 3

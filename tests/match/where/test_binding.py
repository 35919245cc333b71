from __future__ import annotations

import json
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.match.where.event import FakeType, five
from tests.match.where.expressions import Tree, carried, readings, spelled, stateless_trees, trees
from tieline.match.box import ANY, GREATEST, LEAST, Box, above, below, everything
from tieline.match.events import Attribute, AttributeKind, EventType
from tieline.match.where import Bound, bind, parse
from tieline.match.where.normal import MAX_BOXES
from tieline.match.where.terms import Value, leaves

Reading = dict[str, Value | None]
PRESENT = (LEAST, GREATEST)


def one(kind: str = "number") -> FakeType:
    return FakeType(("v", kind))


def intervals(bound: Bound) -> list[tuple[float, float]]:
    return sorted((lo, hi) for (lo,), (hi,) in bound.boxes)


def is_inside(bound: Bound, row: list[float]) -> bool:
    return any(box.contains(row) for box in bound.boxes)


def check(text: str, event: FakeType, sent: Reading, before: Reading | None) -> None:
    """The contract of binding, for one message."""
    bound = bind(parse(text), event)
    now = {name: event.value(name, value) for name, value in sent.items()}
    holds = bound.predicate.holds(now.get, before)
    inside = is_inside(bound, event.row(now))
    assert inside or not holds, "what is asked for lies in a box"
    assert holds or not inside or not bound.is_exact, "exact boxes hold nothing else"
    assert len(bound.boxes) <= MAX_BOXES
    assert not any(box.is_empty for box in bound.boxes)
    assert not any(a.covers(b) for a in bound.boxes for b in bound.boxes if a is not b)


@examples(200)
@given(trees, readings, st.none() | readings, st.data())
def test_boxes_hold_what_is_asked_for(tree: Tree, now: Reading, before: Reading | None, data: st.DataObject) -> None:
    check(data.draw(spelled(tree)), five(), now, before)


@examples(200)
@given(stateless_trees, readings, st.data())
def test_boxes_are_exact_when_everything_is_declared_and_stateless(
    tree: Tree, now: Reading, data: st.DataObject
) -> None:
    text = data.draw(spelled(tree))
    event = five()
    predicate = parse(text)
    assume(all(leaf.name in event.position for leaf in leaves(predicate.term)))
    bound = bind(predicate, event)
    assert bound.is_exact or len(bound.boxes) > MAX_BOXES // 2, "only too many boxes are a reason to give up"
    check(text, event, now, None)


@examples(150)
@given(trees, readings, st.none() | readings, st.data())
def test_boxes_and_predicate_agree_about_real_messages(
    tree: Tree, sent: Reading, before: Reading | None, data: st.DataObject
) -> None:
    kinds: dict[str, AttributeKind] = {"v": "number", "n": "integer", "s": "category", "b": "boolean", "t": "timestamp"}
    event = EventType("five", "#", [Attribute(name, kind) for name, kind in kinds.items()])
    bound = bind(parse(data.draw(spelled(tree))), event)
    carried = {name: value for name, value in sent.items() if not isinstance(value, float) or math.isfinite(value)}
    reading = event.read(json.dumps(carried).encode())
    assert reading is not None
    holds = bound.predicate.holds(reading.get, before)
    inside = is_inside(bound, reading.row)
    assert inside or not holds
    assert holds or not inside or not bound.is_exact


@examples(100)
@given(stateless_trees, readings, st.data())
def test_binding_changes_nothing_but_times(tree: Tree, now: Reading, data: st.DataObject) -> None:
    predicate = parse(data.draw(spelled(tree)))
    event = five()
    seen = {name: event.value(name, value) for name, value in now.items()}
    bound = bind(predicate, event)
    if "t" not in predicate.names:
        assert bound.predicate is predicate
        assert bound.predicate.holds(seen.get) is predicate.holds(seen.get)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v<5", [(LEAST, below(5))]),
        ("v<=5", [(LEAST, 5)]),
        ("v>5", [(above(5), GREATEST)]),
        ("v>=5", [(5, GREATEST)]),
        ("v=5", [(5, 5)]),
        ("v!=5", [(LEAST, below(5)), (above(5), GREATEST)]),
        ("195.5<=v<207", [(195.5, below(207))]),
        ("not 1<v<=2", [(LEAST, 1), (above(2), GREATEST)]),
        ("v in (3,1,2,1)", [(1, 1), (2, 2), (3, 3)]),
        ("v not in (1,2)", [(LEAST, below(1)), (above(1), below(2)), (above(2), GREATEST)]),
        ("v<0", [(LEAST, -5e-324)]),
        ("v<5e-324", [(LEAST, 0)]),
        ("v>-0.0", [(5e-324, GREATEST)]),
        ("v>=-0.0", [(0, GREATEST)]),
        ("v<-1.7976931348623157e308", []),
        ("v>1.7976931348623157e308", []),
        ("v!=1.7976931348623157e308", [(LEAST, below(GREATEST))]),
        ("v!=-1.7976931348623157e308", [(above(LEAST), GREATEST)]),
        ("v<=1.7976931348623157e308", [PRESENT]),
        ("2<v<1", []),
        ("not 2<v<1", [PRESENT]),
        ("v>1 and v<1", []),
        ("v>1 and v>2 and v<9", [(above(2), below(9))]),
        ("v>1 or v>2", [(above(1), GREATEST)]),
        ("v>2 or v>1", [(above(1), GREATEST)]),
        ("v='on'", []),
        ("v!='on'", []),
        ("v=true", []),
        ("v<'on'", []),
        ("not v<'on'", []),
    ],
)
def test_intervals_of_a_number(text: str, expected: list[tuple[float, float]]) -> None:
    bound = bind(parse(text), one())
    assert intervals(bound) == expected
    assert bound.is_exact
    assert not is_inside(bound, [math.inf]), "a missing value is in no condition"


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("category", "v=on", [(0, 0)]),
        ("category", "v!=on", [(LEAST, below(0)), (above(0), GREATEST)]),
        ("category", "v in (on,off)", [(0, 0), (1, 1)]),
        ("category", 'v="it\'s"', []),
        ("category", 'v!="it\'s"', [PRESENT]),
        ("category", 'v in (on,"it\'s")', [(0, 0)]),
        ("category", 'v not in (on,"it\'s")', [(LEAST, below(0)), (above(0), GREATEST)]),
        ("category", "v<'on'", []),
        ("category", "v>=1", []),
        ("category", "v!=1", []),
        ("category", "delta(v)>1", []),
        ("boolean", "v=true", [(1, 1)]),
        ("boolean", "v!=true", [(LEAST, below(1)), (above(1), GREATEST)]),
        ("boolean", "v=1", []),
        ("boolean", "v<1", []),
        ("integer", "v<3.5", [(LEAST, below(3.5))]),
        ("integer", "v!=3.5", [(LEAST, below(3.5)), (above(3.5), GREATEST)]),
        ("timestamp", "v>'2026-01-01T00:00:00Z'", [(above(1), GREATEST)]),
        ("timestamp", "'2026-01-01T00:00:00Z'<=v<'2026-01-02T00:00:00Z'", [(1, below(2))]),
        ("timestamp", "v>1", [(above(1), GREATEST)]),
        ("timestamp", "v='2026-01-01T00:00:00Z' or v=2", [(1, 1), (2, 2)]),
        ("timestamp", "v in ('2026-01-01T00:00:00Z','yesterday')", [(1, 1)]),
        ("timestamp", "v not in ('2026-01-01T00:00:00Z','yesterday')", []),
        ("timestamp", "v>'yesterday'", []),
        ("timestamp", "not v>'yesterday'", []),
        ("timestamp", "v=true", []),
    ],
)
def test_intervals_of_other_kinds(kind: str, text: str, expected: list[tuple[float, float]]) -> None:
    bound = bind(parse(text), one(kind))
    assert intervals(bound) == expected
    assert bound.is_exact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("changed(v)", [PRESENT]),
        ("not changed(v)", [PRESENT]),
        ("delta(v)>1", [PRESENT]),
        ("not delta(v)>1 and v<5", [(LEAST, below(5))]),
        ("changed(elsewhere)", [ANY]),
        ("elsewhere>5", [ANY]),
        ("elsewhere>5 and v<5", [(LEAST, below(5))]),
        ("v>5 or (changed(v) and v>7) or elsewhere=1", [ANY]),
    ],
)
def test_what_no_box_can_say_leaves_a_superset(text: str, expected: list[tuple[float, float]]) -> None:
    bound = bind(parse(text), one())
    assert intervals(bound) == expected
    assert not bound.is_exact


@pytest.mark.parametrize(
    "text",
    [
        "v>5 or (changed(v) and v>7)",
        "(changed(v) and v>7) or v>5",
        "v>5 or (v>5 and x=1)",
        "(v>5 and x=1) or v>5",
    ],
)
def test_boxes_are_exact_again_where_an_exact_one_covers_the_rest(text: str) -> None:
    bound = bind(parse(text), one())
    assert intervals(bound) == [(above(5), GREATEST)]
    assert bound.is_exact


def test_a_box_has_an_interval_for_every_attribute_and_any_value_where_nothing_is_asked() -> None:
    bound = bind(
        parse("voltage<207 and mode=island"), FakeType(("f", "number"), ("voltage", "number"), ("mode", "category"))
    )
    assert bound.boxes == (Box((-math.inf, LEAST, 0.0), (math.inf, below(207), 0.0)),)
    assert bound.is_exact


def test_a_type_without_attributes_leaves_everything_to_the_predicate() -> None:
    bound = bind(parse("v<5"), FakeType())
    assert bound.boxes == (everything(0),)
    assert not bound.is_exact


def test_a_time_is_a_number_for_the_predicate_too() -> None:
    bound = bind(parse("v>'2026-01-01T00:00:00Z' and changed(v)"), one("timestamp"))
    assert not bound.is_exact
    assert bound.predicate.holds({"v": 1.5}.get, None)
    assert not bound.predicate.holds({"v": 0.5}.get, None)
    assert not parse("v>'2026-01-01T00:00:00Z'").holds({"v": 1.5}.get, None)


def test_many_values_become_fewer_intervals_around_neighbours() -> None:
    bound = bind(parse(f"v in ({','.join(map(str, range(40)))})"), one())
    assert not bound.is_exact
    assert MAX_BOXES // 4 < len(bound.boxes) <= MAX_BOXES
    assert all(is_inside(bound, [float(value)]) for value in range(40))
    assert not is_inside(bound, [40.0])


#: Expressions whose normal form would be enormous.
EXPLOSIONS = [
    " and ".join(f"(a{n}>1 or b{n}>1)" for n in range(32)),
    " and ".join(f"a{n}!=1" for n in range(32)),
    "&".join(f"(v>{n}|a{n % 6}!=1&a{(n + 1) % 6}!=2&a{(n + 2) % 6}!=3&a{(n + 3) % 6}!=4)" for n in range(12)),
    "not (" + " or ".join(f"(a{n}=1 and b{n}=2)" for n in range(32)) + ")",
    f"v not in ({','.join(map(str, range(32)))}) and a1 not in ({','.join(map(str, range(32)))})",
]


@pytest.mark.parametrize("text", EXPLOSIONS)
@given(data=st.data())
@examples(8)
def test_a_normal_form_that_would_explode_stays_small_and_loses_nothing(text: str, data: st.DataObject) -> None:
    names = parse(text).names
    event = FakeType(*((name, "number") for name in names))
    values = st.sampled_from((0.0, 1.0, 2.0, 3.0, 11.0, 40.0))
    check(text, event, data.draw(st.fixed_dictionaries(dict.fromkeys(names, values | carried))), None)

"""Rules for topics: the first match decides, the answer says which, and an oracle that tries everything agrees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.access.rules import Rules
from tieline.conf.load import loads
from tieline.conf.overlay import Overlay
from tieline.conf.schema import Action, Actions, Rule, Settings
from tieline.core.ports import Allowed, Login, Refused
from tieline.wire.reason import Reason
from tieline.wire.topics import matches

TEXT = """\
[groups]
operators = ["ann", "bob"]

[[rule]]
deny = ["write"]
filter = "plant/cmd/#"
users = ["bob"]

[[rule]]
allow = ["write"]
filter = "plant/cmd/#"
groups = ["operators"]

[[rule]]
allow = ["read", "subscribe"]
filter = "plant/#"

[[rule]]
allow = "all"
filter = "home/%u/#"

[[rule]]
allow = "all"
filter = "public"
users = ["-"]
"""


@pytest.fixture(name="rules")
def _rules() -> Rules:
    return Rules(loads(TEXT, "conf/broker.toml"))


def may(rules: Rules, action: Action, user: str | None, subject: str, client_id: str = "c") -> bool:
    return rules.decide(action, user, client_id, subject).is_allowed


def test_the_first_match_decides(rules: Rules) -> None:
    assert may(rules, "write", "ann", "plant/cmd/start")
    assert not may(rules, "write", "bob", "plant/cmd/start"), "the rule before says no to bob"
    assert not may(rules, "write", "eve", "plant/cmd/start"), "no group of hers"
    assert may(rules, "read", "eve", "plant/cmd/start")


def test_what_no_rule_allows_is_refused(rules: Rules) -> None:
    decision = rules.decide("write", "ann", "c", "elsewhere")
    assert not decision.is_allowed and decision.rule is None and decision.place == ""
    assert decision.text == "no rule allows to publish to this"
    assert not may(rules, "read", "ann", "$SYS/broker/uptime"), "$SYS is a topic like others once there are rules"


def test_placeholders_follow_the_user(rules: Rules) -> None:
    assert may(rules, "write", "ann", "home/ann/x") and not may(rules, "write", "ann", "home/bob/x")
    assert not may(rules, "write", None, "home//x") and not may(rules, "write", "", "home//x")
    for user in ("+", "#", "bob/+", "a/../bob"):
        assert not may(rules, "write", user, "home/bob/x")
        assert not may(rules, "subscribe", user, "home/bob/#")


def test_nobody_in_particular_is_written_as_a_dash(rules: Rules) -> None:
    assert may(rules, "write", None, "public") and not may(rules, "write", "ann", "public")


def test_without_rules_everything_is_allowed() -> None:
    rules = Rules(Settings())
    assert rules.is_open and may(rules, "subscribe", None, "#") and may(rules, "read", None, "$SYS/x")


@pytest.mark.parametrize(
    ("action", "user", "subject", "text", "line"),
    [
        ("write", "bob", "plant/cmd/x", "broker.toml:4: rule 1: deny write plant/cmd/#", 4),
        ("write", "ann", "plant/cmd/x", "broker.toml:9: rule 2: allow write plant/cmd/#", 9),
        ("subscribe", "eve", "plant/+", "broker.toml:14: rule 3: allow read, subscribe plant/#", 14),
        ("read", "ann", "home/ann/x", "broker.toml:18: rule 4: allow all home/%u/#", 18),
    ],
)
def test_every_answer_names_its_rule_with_file_and_line(
    rules: Rules, action: Action, user: str, subject: str, text: str, line: int
) -> None:
    decision = rules.decide(action, user, "c", subject)
    assert decision.text == text, "the directory of the file is nobody's business"
    assert decision.place == f"conf/broker.toml:{line}"


def test_verdicts_are_those_of_the_broker(rules: Rules) -> None:
    login = Login(client_id="c", username="x", password=None, listener="", peer="", user="bob")
    assert isinstance(rules.subscribe(login, "plant/#"), Allowed)
    refused = rules.publish(login, "plant/cmd/x")
    assert isinstance(refused, Refused) and refused.reason is Reason.NOT_AUTHORIZED and "rule 1" in refused.rule


# --- filters ----------------------------------------------------------------------------------------------------------


def made(*rules: Rule) -> Rules:
    return Rules(Settings(rule=rules))


def test_a_filter_is_granted_only_if_one_rule_covers_it_whole() -> None:
    rules = made(Rule(allow="all", filter="a/#"), Rule(allow="all", filter="b/+"))
    assert may(rules, "subscribe", "u", "a/+/x") and may(rules, "subscribe", "u", "b/1")
    for wide in ("#", "+/1", "b/#", "+/#", "$SYS/#"):
        assert not may(rules, "subscribe", "u", wide), wide


def test_a_denial_of_subscribing_alone_refuses_what_overlaps_it() -> None:
    rules = made(Rule(deny=("subscribe",), filter="secret/#"), Rule(allow="all", filter="#"))
    assert not may(rules, "subscribe", "u", "#")
    assert not may(rules, "subscribe", "u", "+/x")
    assert may(rules, "subscribe", "u", "open/#")


def test_a_refusal_names_no_filter_that_the_asker_has_not_named() -> None:
    """Otherwise a wide wish would be a way to learn what there is."""
    rules = made(Rule(deny=("subscribe",), filter="a/hidden/#"), Rule(allow="all", filter="a/#"))
    said = {wish: rules.decide("subscribe", "u", "c", wish).text for wish in ("a/#", "a/hidden/x", "a/hidden/#")}
    assert said["a/#"] == "rule 1: deny subscribe on a part of this"
    assert said["a/hidden/x"] == said["a/hidden/#"] == "rule 1: deny subscribe a/hidden/#"


def test_a_denial_of_reading_too_lets_the_wider_filter_pass_because_delivery_asks_again() -> None:
    rules = made(Rule(deny="all", filter="secret/#"), Rule(allow="all", filter="#"))
    assert may(rules, "subscribe", "u", "#"), "granted"
    assert not may(rules, "read", "u", "secret/x"), "and withheld"
    assert not may(rules, "subscribe", "u", "secret/+"), "what lies inside it is refused"


# --- an oracle --------------------------------------------------------------------------------------------------------

_USERS = (None, "a", "b", "a/b", "+", "#")
_CLIENTS = ("a", "c", "+")
_LEVELS = ("a", "b", "z")
_TOPICS = [f"{x}" for x in _LEVELS] + [f"{x}/{y}" for x in _LEVELS for y in _LEVELS] + ["$SYS/a", "a/b/z", "a/a/a"]
_FILTERS = ["#", "+", "a", "a/#", "+/b", "a/+", "%u", "%u/#", "a/%c", "+/%u", "$SYS/#", "a/b", "%c/%u", "x%u/#"]
_WANTED = [filter_ for filter_ in _FILTERS if "%" not in filter_] + ["a/b/#", "+/+", "b/#", "z"]
_ACTIONS: tuple[Action, ...] = ("read", "write", "subscribe")


@st.composite
def _some_rule(draw: st.DrawFn) -> Rule:
    actions: Actions = draw(st.sampled_from(["all", ("read",), ("write",), ("subscribe",), ("read", "subscribe")]))
    allow, deny = (actions, None) if draw(st.booleans()) else (None, actions)
    users = draw(st.sampled_from([None, (), ("a",), ("-",), ("*",), ("a/b", "+"), ("nobody",)]))
    groups = draw(st.sampled_from([None, (), ("g",)]))
    return Rule(filter=draw(st.sampled_from(_FILTERS)), users=users, groups=groups, allow=allow, deny=deny)


_GROUPS: dict[str, tuple[str, ...]] = {"g": ("b", "#")}


def _is_about(rule: Rule, user: str | None) -> bool:
    if rule.users is None and rule.groups is None:
        return True
    users, groups = rule.users or (), rule.groups or ()
    return (
        "*" in users
        or (user is None and "-" in users)
        or (user is not None and (user in users or any(user in _GROUPS[name] for name in groups)))
    )


def _fits(rule: Rule, user: str | None, client_id: str, topic: str) -> bool:
    """Level by level, without ever making a filter of a name."""
    spelled: list[str] = []
    for level in rule.filter.split("/"):
        unusable = False
        for mark, name in (("%u", user), ("%c", client_id)):
            if mark in level:
                if not name or any(bad in name for bad in "+#/"):
                    unusable = True
                level = level.replace(mark, name or "")
        if unusable and rule.allow is not None:
            return False
        spelled.append("+" if unusable else level)
    return matches("/".join(spelled), topic)


def _first(rules: list[Rule], action: Action, user: str | None, client_id: str, topic: str) -> Rule | None:
    for rule in rules:
        if action in rule.actions and _is_about(rule, user) and _fits(rule, user, client_id, topic):
            return rule
    return None


@given(st.lists(_some_rule(), min_size=1, max_size=6))
def test_an_oracle_that_tries_every_topic_agrees(written: list[Rule]) -> None:
    rules = Rules(Settings(rule=tuple(written), groups=_GROUPS))
    for user in _USERS:
        for client_id in _CLIENTS:
            for topic in _TOPICS:
                for action in ("read", "write"):
                    first = _first(written, action, user, client_id, topic)
                    wanted = first is not None and first.allow is not None
                    decision = rules.decide(action, user, client_id, topic)
                    assert decision.is_allowed == wanted, (user, client_id, action, topic)
                    assert decision.rule is first or decision.rule == first
            for filter_ in _WANTED:
                if not rules.decide("subscribe", user, client_id, filter_).is_allowed:
                    continue
                for topic in filter(lambda name: matches(filter_, name), _TOPICS):
                    first = _first(written, "subscribe", user, client_id, topic)
                    # either the rules let this topic be subscribed to, or they withhold it at delivery
                    assert first is not None
                    assert first.allow is not None or "read" in first.actions, (user, client_id, filter_, topic)


@given(st.lists(_some_rule(), min_size=1, max_size=6), st.sampled_from(_USERS), st.sampled_from(_WANTED))
def test_a_filter_that_the_first_rule_allows_whole_is_granted(
    written: list[Rule], user: str | None, filter_: str
) -> None:
    rules = Rules(Settings(rule=(Rule(allow=("subscribe",), filter=filter_), *written), groups=_GROUPS))
    assert may(rules, "subscribe", user, filter_)


def test_memory_of_users_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieline.access.rules.MOST_REMEMBERED", 10)
    rules = made(Rule(allow="all", filter="%u/#"))
    for number in range(100):
        assert may(rules, "read", f"u{number}", f"u{number}/x")
    assert len(rules._by_user) <= 10


def test_what_others_were_told_is_not_published_is_refused_before_all_rules() -> None:
    overlay = Overlay(publishes=("grid/#",))
    for settings in (Settings(overlay=overlay), Settings(overlay=overlay, rule=(Rule(allow="all", filter="#"),))):
        rules = Rules(settings)
        assert not rules.is_open
        assert rules.may("write", "ann", "c", "grid/1")
        assert rules.may("read", "ann", "c", "site/1")
        decision = rules.decide("write", "ann", "c", "site/1")
        assert (decision.is_allowed, decision.text) == (False, "no filter of overlay.publishes matches this topic")

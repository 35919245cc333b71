"""What users may do with topics: the ``[[rule]]`` tables, asked.

Theory of operation
-------------------
The first rule that speaks of the user, the action and the topic decides.  Without any rule everything is allowed; with
at least one, what none of them allows is refused.

For a *topic name* (``read``, ``write``) that is all.  A *filter* that somebody subscribes to stands for many topics,
and ``subscribe`` is granted only where no topic among them is reached past a refusal: going through the rules in order,

- one that allows ``subscribe`` and covers the filter whole grants it (several that cover it together do not: that
  would make a grant depend on rules nobody wrote side by side);
- one that denies ``subscribe`` and covers the filter whole refuses it;
- one that denies ``subscribe`` and overlaps the filter in part refuses it, unless it denies ``read`` as well.  Then
  the subscription goes on to the rules behind, and what the rule denies is withheld when it is delivered.

A refusal may be read by whoever was refused.  It names the rule's filter only where that says nothing new: a filter
that covers what was asked for has no level that the asker has not written.  One that overlaps it might.

Delivery asks ``read`` for each topic in any case (:meth:`Rules.may`), also of subscriptions made before the rules
changed.  So a wide subscription never yields more than the rules allow.

Rules are found in a tree, shared by all users of whom the same rules speak.  Those with ``%u`` or ``%c`` stand in it
with wildcards in place of the names; what is found there is compared with the names, in its order, as far as it can
still decide.  What was found for a topic is remembered until the next one: where a message goes to thousands, the same
topic is asked about for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from tieline.access.patterns import Pattern, is_pattern, narrow, wide
from tieline.conf.access_rules import WrittenRule
from tieline.conf.published import published
from tieline.conf.schema import Action, Rule, Settings
from tieline.core.ports import Allowed, Login, Refused
from tieline.match.cover.filters import covers, overlap
from tieline.match.trees import FilterTree

EVERYBODY: Final = "*"
NOBODY: Final = "-"
#: Users whose rules are remembered; more are looked up again.
MOST_REMEMBERED: Final = 100_000
#: Units of a hundred nanoseconds that it takes to hold one filter against one rule.
WORK_PER_RULE: Final = 12
_TOPIC_ACTIONS: Final[tuple[Action, ...]] = ("read", "write")


class Decision(Struct, frozen=True):
    """An answer, and the rule that gave it; None when no rule spoke."""

    is_allowed: bool
    rule: Rule | None
    #: What the answer says of itself; clients may read it.
    text: str

    @property
    def place(self) -> str:
        """The file and line of the rule, as far as it has one."""
        rule = self.rule
        return f"{rule.file}:{rule.line}" if isinstance(rule, WrittenRule) else ""

    def verdict(self) -> Allowed | Refused:
        """The same for the broker."""
        return Allowed(self.text) if self.is_allowed else Refused(self.text)


class _Entry(Struct, frozen=True):
    """One rule: its place in the order, and what both answers of it say."""

    order: int
    rule: Rule
    decision: Decision
    #: The answer where it denies a part of what was asked for: which part is not the asker's business.
    in_part: Decision
    #: The filter, if it holds placeholders.
    pattern: Pattern | None

    @property
    def is_allowed(self) -> bool:
        return self.rule.allow is not None

    def filter_for(self, user: str | None, client_id: str) -> str | None:
        """The filter as it acts for one client; None when it comes to nothing."""
        filter_ = self.rule.filter
        if self.pattern is None:
            return filter_
        return narrow(filter_, user, client_id) if self.is_allowed else wide(filter_, user, client_id)


class _Selection:
    """The rules that speak of some users, ready to be asked."""

    __slots__ = ("_found", "_patterns", "_trees", "subscribe")

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self._trees: dict[Action, FilterTree[_Entry]] = {action: FilterTree() for action in _TOPIC_ACTIONS}
        #: Those with placeholders, behind one level more: a name may begin with $, which a leading wildcard would hide.
        self._patterns: dict[Action, FilterTree[list[_Entry]]] = {action: FilterTree() for action in _TOPIC_ACTIONS}
        #: For each action: the topic that was asked about last, its levels, the first rule without a placeholder, and
        #: those with one that stand before it.
        self._found: dict[Action, tuple[str, list[str], _Entry | None, list[_Entry]]] = {}
        self.subscribe = [entry for entry in entries if "subscribe" in entry.rule.actions]
        for entry in entries:
            for action in _TOPIC_ACTIONS:
                if action not in entry.rule.actions:
                    continue
                tree = self._trees[action]
                if entry.pattern is not None:
                    self._add_pattern(self._patterns[action], entry, entry.pattern)
                elif tree.get(entry.rule.filter) is None:
                    # behind one with the same filter it would never be the first
                    tree.put(entry.rule.filter, entry)

    @staticmethod
    def _add_pattern(tree: FilterTree[list[_Entry]], entry: _Entry, pattern: Pattern) -> None:
        key = f"/{pattern.general}"
        alike = tree.get(key)
        if alike is None:
            tree.put(key, [entry])
        else:
            alike.append(entry)

    def first(self, action: Action, user: str | None, client_id: str, topic: str) -> _Entry | None:
        """The first rule that speaks of the topic."""
        found = self._found.get(action)
        if found is None or found[0] != topic:
            found = self._found[action] = self._find(action, topic)
        _, levels, best, patterns = found
        for entry in patterns:
            pattern = entry.pattern
            if pattern is not None and pattern.matches(levels, user, client_id, is_allowed=entry.is_allowed):
                return entry
        return best

    def _find(self, action: Action, topic: str) -> tuple[str, list[str], _Entry | None, list[_Entry]]:
        best = min(self._trees[action].match(topic), key=_order, default=None)
        patterns = [
            entry
            for alike in self._patterns[action].match(f"/{topic}")
            for entry in alike
            if best is None or entry.order < best.order
        ]
        return topic, topic.split("/"), best, sorted(patterns, key=_order)


class Rules:
    """All rules of one broker."""

    def __init__(self, settings: Settings) -> None:
        self._entries = [_entry(number, rule) for number, rule in enumerate(settings.rule)]
        self._groups = {name: frozenset(members) for name, members in settings.groups.items()}
        #: What may be published at all, if that is not anything.
        self._published = _tree(published(settings))
        #: There is no rule, so everything is allowed.
        self._has_none = not settings.rule
        #: Selections by the orders of their rules, and the one of each user; bounded, and found again when needed.
        self._selections: dict[tuple[int, ...], _Selection] = {}
        self._by_user: dict[str | None, _Selection] = {}

    @property
    def is_open(self) -> bool:
        """Everybody may read and write everything."""
        return self._has_none and self._published is None

    @property
    def effort(self) -> int:
        """What one question costs at most, in the units in which the broker counts work."""
        return WORK_PER_RULE * len(self._entries)

    def decide(self, action: Action, user: str | None, client_id: str, subject: str) -> Decision:
        """The answer to one question; the subject of ``subscribe`` is a filter, without its share and condition."""
        declared = self._published
        if action == "write" and declared is not None and not subject.startswith("$") and not declared.match(subject):
            # before all rules, since other brokers were told that nothing else is published here
            return _NOT_PUBLISHED
        if self._has_none:
            return _OPEN
        selection = self._selection(user)
        if action == "subscribe":
            return self._decide_filter(selection, user, client_id, subject)
        entry = selection.first(action, user, client_id, subject)
        return _REFUSALS[action] if entry is None else entry.decision

    def may(self, action: Action, user: str | None, client_id: str, topic: str) -> bool:
        """The same in one word, for a topic name."""
        return self.decide(action, user, client_id, topic).is_allowed

    def publish(self, login: Login, topic: str) -> Allowed | Refused:
        """As the broker asks it."""
        return self.decide("write", login.user, login.client_id, topic).verdict()

    def subscribe(self, login: Login, filter_: str) -> Allowed | Refused:
        """As the broker asks it."""
        return self.decide("subscribe", login.user, login.client_id, filter_).verdict()

    @staticmethod
    def _decide_filter(selection: _Selection, user: str | None, client_id: str, wanted: str) -> Decision:
        for entry in selection.subscribe:
            filter_ = entry.filter_for(user, client_id)
            if filter_ is None:
                continue
            if covers(filter_, wanted):
                return entry.decision
            if not entry.is_allowed and "read" not in entry.rule.actions and overlap(filter_, wanted):
                return entry.in_part
        return _REFUSALS["subscribe"]

    def _selection(self, user: str | None) -> _Selection:
        selection = self._by_user.get(user)
        if selection is None:
            if len(self._by_user) >= MOST_REMEMBERED:
                self._by_user.clear()
            entries = [entry for entry in self._entries if self._is_about(entry.rule, user)]
            key = tuple(entry.order for entry in entries)
            selection = self._selections.get(key)
            if selection is None:
                if len(self._selections) >= MOST_REMEMBERED:
                    self._selections.clear()
                selection = self._selections[key] = _Selection(entries)
            self._by_user[user] = selection
        return selection

    def _is_about(self, rule: Rule, user: str | None) -> bool:
        if rule.users is None and rule.groups is None:
            return True
        # an empty list is not a missing one: it is about nobody
        users = rule.users or ()
        if EVERYBODY in users or (NOBODY if user is None else user) in users:
            return True
        return user is not None and any(user in self._groups.get(name, ()) for name in rule.groups or ())


def _entry(number: int, rule: Rule) -> _Entry:
    """A rule with its answer; the answer names the file without its directory, which is nobody's business."""
    named = rule.deny if rule.allow is None else rule.allow
    actions = "all" if named == "all" else ", ".join(named or ())
    what = f"{'deny' if rule.allow is None else 'allow'} {actions} {rule.filter}"
    place = f"{PurePath(rule.file).name}:{rule.line}: " if isinstance(rule, WrittenRule) and rule.file else ""
    decision = Decision(rule.allow is not None, rule, f"{place}rule {number + 1}: {what}")
    in_part = Decision(rule.allow is not None, rule, f"{place}rule {number + 1}: deny {actions} on a part of this")
    return _Entry(number, rule, decision, in_part, Pattern(rule.filter) if is_pattern(rule.filter) else None)


def _order(entry: _Entry) -> int:
    return entry.order


def _tree(filters: frozenset[str] | None) -> FilterTree[bool] | None:
    """What matches topics of some filters."""
    if filters is None:
        return None
    tree: FilterTree[bool] = FilterTree()
    for filter_ in filters:
        tree.put(filter_, True)
    return tree


_NOT_PUBLISHED: Final = Decision(is_allowed=False, rule=None, text="no filter of overlay.publishes matches this topic")
_OPEN: Final = Decision(is_allowed=True, rule=None, text="there are no rules")
_REFUSALS: Final[dict[Action, Decision]] = {
    "read": Decision(is_allowed=False, rule=None, text="no rule allows to read this"),
    "write": Decision(is_allowed=False, rule=None, text="no rule allows to publish to this"),
    "subscribe": Decision(is_allowed=False, rule=None, text="no rule that allows to subscribe covers all of this"),
}

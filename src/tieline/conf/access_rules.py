"""Rules of the settings that say who may come in and what they may do; and where each ``[[rule]]`` was written."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tieline.conf.describe import Finding, KeyPath, dotted
from tieline.conf.filters import flaw
from tieline.conf.lines import line_of
from tieline.conf.schema import Rule, Settings

#: What a rule's filter may stand in for: the user's name and the client id.
PLACEHOLDERS = ("%u", "%c")


class WrittenRule(Rule, frozen=True, kw_only=True):
    """A rule as a file has it: every verdict can say where to look."""

    #: The file and line, unknown for rules that a program made.
    file: str = ""
    line: int = 0


def placed(settings: Settings, text: str, name: str) -> Settings:
    """The same settings, whose rules know where they stand in the text."""
    if not settings.rule:
        return settings
    rules = tuple(
        WrittenRule(
            **{field: getattr(rule, field) for field in Rule.__struct_fields__},
            file=name,
            line=line_of(text, ("rule", number)) or 0,
        )
        for number, rule in enumerate(settings.rule)
    )
    return msgspec.structs.replace(settings, rule=rules)


def broken(settings: Settings) -> Iterator[Finding]:
    """Each broken rule: the path of the key to blame and a sentence."""
    if settings.auth.password_file == "":
        yield ("auth", "password_file"), "auth.password_file is empty: name a file, or leave the key out."
    for name, members in settings.groups.items():
        if not name or "" in members:
            yield ("groups", name), f'groups."{name}": neither a group nor a user has an empty name.'
    for number, rule in enumerate(settings.rule):
        yield from _broken_rule(("rule", number), rule, settings)
    yield from _broken_limits(settings)
    for number, listener in enumerate(settings.listener):
        if listener.user_from is not None and listener.client_ca is None:
            yield (
                ("listener", number, "user_from"),
                "user_from takes the user from the client's certificate, which is asked for only with client_ca.",
            )


def _broken_rule(path: KeyPath, rule: Rule, settings: Settings) -> Iterator[Finding]:
    where = dotted(path)
    if (rule.allow is None) == (rule.deny is None):
        yield path, f"{where} says nothing certain: write either allow or deny."
    elif not rule.actions:
        yield path, f'{where} is about no action: name "read", "write" or "subscribe", or write "all".'
    filled = rule.filter
    for placeholder in PLACEHOLDERS:
        filled = filled.replace(placeholder, "x")
    if problem := flaw(filled):
        yield (*path, "filter"), problem.replace(filled, rule.filter)
    elif rule.filter.startswith("$") and any(each in rule.filter.partition("/")[0] for each in PLACEHOLDERS):
        yield (*path, "filter"), f'"{rule.filter}" has a name inside a first level that begins with $.'
    elif rule.filter.startswith(("$share/", "$where/")):
        sentence = "shares and conditions are taken off before rules are asked"
        yield (*path, "filter"), f'"{rule.filter}" would never match: {sentence}. Write the filter alone.'
    if (rule.users is not None or rule.groups is not None) and not rule.users and not rule.groups:
        yield path, f'{where} is about nobody: name users or groups, write users = ["*"], or leave the keys out.'
    for number, name in enumerate(rule.groups or ()):
        if name not in settings.groups:
            known = ", ".join(sorted(settings.groups)) or "none is declared"
            yield (*path, "groups", number), f'{where} speaks of the group "{name}"; known: {known}.'
    if "" in (rule.users or ()):
        yield (*path, "users"), f"{where}.users has an empty name: - stands for clients without one."


def _broken_limits(settings: Settings) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for number, limit in enumerate(settings.limit):
        path = ("limit", number)
        if not limit.user:
            yield (*path, "user"), f"{dotted(path)}.user is empty: - stands for clients without a name."
        earlier = seen.get(limit.user, seen.get("*"))
        if earlier is not None:
            before = dotted(("limit", earlier))
            yield path, f"{dotted(path)} would never apply: {before} comes first and speaks of the same user."
        seen.setdefault(limit.user, number)

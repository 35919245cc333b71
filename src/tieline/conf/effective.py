"""Settings as they will act: in words an operator can check, with a mark on everything that is not the default."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any  # Any: settings have values of every type

import msgspec

from tieline.conf import urls
from tieline.conf.describe import tables
from tieline.conf.paths import management_socket
from tieline.conf.render import toml_value
from tieline.conf.schema import Attribute, Class, Listener, Rule, Settings, UserLimit


def effective(settings: Settings) -> str:
    """The whole configuration as one aligned text; ``*`` marks what differs from the default."""
    rows = list(_rows(settings))
    widths = [max(len(row[column]) for row in rows) for column in (1, 2)]
    return "\n".join(
        f"{mark} {key:<{widths[0]}}  {value:<{widths[1]}}  {meaning}".rstrip() for mark, key, value, meaning in rows
    )


def _rows(settings: Settings) -> Iterator[tuple[str, str, str, str]]:
    default = Settings()
    for table in tables():
        if table.is_repeated:
            continue
        of_table = attrgetter(table.name) if table.name else _itself
        here, there = of_table(settings), of_table(default)
        for key in table.keys:
            value = getattr(here, key.name)
            mark = " " if value == getattr(there, key.name) else "*"
            name = f"{table.name}.{key.name}" if table.name else key.name
            yield mark, name, _shown(value), _meaning(key.name, value)
        if not table.name:
            yield " ", "(management)", str(management_socket(settings.data, settings.name)), "unix socket"
            for number, listener in enumerate(settings.listener, 1):
                mark = " " if settings.listener == default.listener else "*"
                yield mark, f"listener[{number}]", str(urls.parse(listener.url)), ", ".join(_listener(listener))
            for number, rule in enumerate(settings.class_, 1):
                yield "*", f"class[{number}] {rule.name}", rule.filter, ", ".join(_class(rule))
            for number, claim in enumerate(settings.claim, 1):
                limit = "" if claim.per_s == "none" else f", above level 1 {claim.per_s:g} messages per second"
                who = {"*": "everyone", "-": "clients without a user name"}.get(claim.user, f"user {claim.user}")
                yield "*", f"claim[{number}]", claim.filter, f"{who}: up to level {claim.max_level}{limit}"
            for number, written in enumerate(settings.rule, 1):
                yield "*", f"rule[{number}]", written.filter, _rule(written)
            for number, own in enumerate(settings.limit, 1):
                yield "*", f"limit[{number}]", own.user, ", ".join(_limit(own))
            for name, event in settings.event.items():
                says = ", ".join(map(_attribute, event.attributes))
                yield "*", f"event.{name}", event.topic, f"{event.payload}: {says}"


def _itself(settings: Settings) -> Settings:
    return settings


def _listener(listener: Listener) -> Iterator[str]:
    url = urls.parse(listener.url)
    yield "this machine only" if url.is_loopback() else "OPEN to the network"
    if listener.user_from is not None:
        yield f"the certificate's {'common' if listener.user_from == 'cn' else 'alternative'} name is the user"
    if url.port == 0:
        yield "any free port"
    if url.is_tls:
        yield f"certificate {listener.certificate}"
        yield f"key {listener.key}"
        yield f"clients need a certificate from {listener.client_ca}" if listener.client_ca else "any client"
    else:
        yield "not encrypted"
    if url.has_header:
        yield "every packet carries the priority byte"
    if listener.max_level < 3:
        yield f"claims up to level {listener.max_level}"
    if listener.node_level is not None:
        yield f"clients have level {listener.node_level}"
    if listener.connections != "none":
        yield f"at most {listener.connections:,} connections"


def _class(rule: Class) -> Iterator[str]:
    yield f"level {rule.level}" + (", before everything else" if rule.level == 3 else "")
    for name, value in (("weight", rule.weight), ("deadline", rule.deadline), ("timeout", rule.timeout)):
        if value is not None:
            yield f"{name} {value}"
    if rule.max_packet is not None:
        yield f"at most {rule.max_packet:,} bytes"
    if rule.full is not None:
        yield f"when full: {rule.full}"


def _rule(rule: Rule) -> str:
    named = rule.deny if rule.allow is None else rule.allow
    verb = "denies" if rule.allow is None else "allows"
    actions = ", ".join(rule.actions) if named != "all" else "everything"
    special = {"*": "everybody", "-": "clients without a user name"}
    whom = [*(special.get(name, name) for name in rule.users or ()), *(f"group {name}" for name in rule.groups or ())]
    nobody = "everybody" if rule.users is None and rule.groups is None else "nobody"
    return f"{verb} {actions}: {', '.join(whom) or nobody}"


def _limit(limit: UserLimit) -> Iterator[str]:
    yield {"*": "each user", "-": "clients without a user name"}.get(limit.user, f"user {limit.user}")
    for name in limit.__struct_fields__:
        value = getattr(limit, name)
        if name != "user" and value != "none":
            yield f"{name} {value}"


def _attribute(attribute: Attribute) -> str:
    unit = f" {attribute.unit}" if attribute.unit else ""
    bounds = f" {attribute.bounds[0]:g} to {attribute.bounds[1]:g}{unit}" if attribute.bounds else unit
    place = f" at {attribute.place}" if attribute.place != attribute.name else ""
    return f"{attribute.name} ({attribute.kind}{bounds}{place})"


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, msgspec.Struct):
        return repr(value)
    return value if isinstance(value, str) else toml_value(value)


def _meaning(name: str, value: Any) -> str:
    if value == "none":
        return "no limit"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if "bytes" in name:
        return _size(int(value))
    if name.endswith("_s"):
        return _duration(value)
    return ""


def _size(count: int) -> str:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << power:
            return f"{count / (1 << power):.4g} {unit}"
    return f"{count} bytes"


def _duration(seconds: float) -> str:
    for length, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:g} seconds"

"""The normative statements of both specifications, as data."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

Binds = Literal["server", "client", "both", "environment"]

_FOLDER: Final = Path(__file__).parent / "statements"
_FIELDS: Final = {"binds", "summary", "why_not"}

#: Title, file and the prefix of the statement identifiers.
SPECIFICATIONS: Final = (
    ("MQTT 5.0", "mqtt5.toml", "MQTT-"),
    ("MQTT 3.1.1", "mqtt311.toml", "MQTT311-"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One numbered duty."""

    id: str
    binds: Binds
    summary: str
    #: Why a statement that binds a server has no test; empty when it has one or needs none.
    why_not: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether a server has to do something about it."""
        return self.binds in ("server", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    """One standard with all its statements."""

    title: str
    statements: dict[str, Statement]

    @property
    def ours(self) -> list[Statement]:
        """The statements that bind a server, in the order of the standard."""
        return [statement for statement in self.statements.values() if statement.is_ours]


def _statement(id_: str, fields: dict[str, str], prefix: str) -> Statement:
    binds = fields.get("binds", "")
    is_known = id_.startswith(prefix) and binds in get_args(Binds) and not fields.keys() - _FIELDS
    if not is_known or not fields.get("summary"):
        raise ValueError(f"{id_}: not a statement of this list: {fields}")
    return Statement(
        id=id_,
        binds=binds,  # type: ignore[arg-type]  # checked against Binds above
        summary=fields["summary"],
        why_not=fields.get("why_not", ""),
    )


def load() -> list[Specification]:
    """Both specifications."""
    loaded = []
    for title, file, prefix in SPECIFICATIONS:
        rows = tomllib.loads((_FOLDER / file).read_text(encoding="utf-8"))["statements"]
        statements = {id_: _statement(id_, fields, prefix) for id_, fields in rows.items()}
        loaded.append(Specification(title=title, statements=statements))
    return loaded

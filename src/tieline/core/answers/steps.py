"""The shape of an answer about the broker's own state: steps in the order in which the broker itself takes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What a step comes to."""

    YES = "yes"  # it goes on
    NO = "no"  # it ends here
    UNKNOWN = "unknown"  # it depends on what the question does not say
    NOTE = "note"  # it changes nothing, but explains something


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: where, with what outcome, and why."""

    stage: str
    outcome: Outcome
    text: str
    #: What decided, in the words of whoever wrote it: a rule with its file and line, a setting, a clause.
    rule: str = ""


def yes(stage: str, text: str, rule: str = "") -> Step:
    """It goes on."""
    return Step(stage=stage, outcome=Outcome.YES, text=text, rule=rule)


def no(stage: str, text: str, rule: str = "") -> Step:
    """It ends here."""
    return Step(stage=stage, outcome=Outcome.NO, text=text, rule=rule)


def unknown(stage: str, text: str, rule: str = "") -> Step:
    """It depends."""
    return Step(stage=stage, outcome=Outcome.UNKNOWN, text=text, rule=rule)


def note(stage: str, text: str, rule: str = "") -> Step:
    """By the way."""
    return Step(stage=stage, outcome=Outcome.NOTE, text=text, rule=rule)

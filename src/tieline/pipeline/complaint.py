"""What went wrong in Spark, as one sentence: Java and Python traces of many screens hold one line that matters.

What a source or a sink raises in a Python process reaches the driver as a Java exception whose text holds a Python
traceback, often several times, wrapped once by every layer on the way.
"""

from __future__ import annotations

import re
from typing import Final

#: The end of a Python trace: the exception's class with its module, and what it says.
_RAISED: Final = re.compile(r"^\s*(?:[A-Za-z_]\w*\.)*(_?[A-Z]\w*): (.+)$")
_TRACE: Final = "Traceback (most recent call last):"
#: How Spark begins: a class of errors in brackets.
_CLASS: Final = re.compile(r"^(?:[\w.$]+(?:Exception|Error): )*\[[A-Z0-9_.]+\]\s*")
#: How an error of Spark Connect's transport begins, and the line of it that says something.
_TRANSPORT: Final = re.compile(
    r'^<_\w+ of RPC that terminated with:.*?^\s*details = "(.+?)"$', re.DOTALL | re.MULTILINE
)
#: How an error of the JVM begins that has no class of its own in Python.
_CALL: Final = "An error occurred while calling "
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+\s*$")
#: More says nothing more.
_LONGEST: Final = 600


def sentence(text: str) -> str:
    """The line of an error text that says what happened."""
    # where Spark fails while it tells of a failure, ours is not the last of the traces
    ours = our_sentence(text)
    if ours is not None:
        return _short(ours.partition("\n SQLSTATE")[0])
    lines = text.splitlines()
    raised = _last_raised(lines)
    if raised is not None:
        return raised
    lost = _TRANSPORT.match(text)
    if lost is not None:
        return _short(f"the Spark Connect server does not answer: {lost[1]}")
    if lines and lines[0].startswith(_CALL):
        lines = [line.removeprefix(":") for line in lines[1:]] or lines
    first = next((line.strip() for line in lines if line.strip()), "Spark failed and did not say why")
    return _short(_STATE.sub("", _CLASS.sub("", first)))


def _last_raised(lines: list[str]) -> str | None:
    """What the last Python trace ends with: the innermost worker tells the cause, and Spark wraps it."""
    found: str | None = None
    is_inside = False
    for line in lines:
        if _TRACE in line:
            is_inside = True
        elif is_inside and (ended := _RAISED.match(line)) is not None and not line.startswith(("    ", "\t")):
            name, said = ended.groups()
            # Our own errors are sentences; those of libraries make sense with their name only.
            found = _short(said if " " in said else f"{name}: {said}")
            is_inside = False
    return found


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


#: The last line of a traceback that ends in one of our exceptions; sentences may go on over further lines.
_OURS: Final = re.compile(r"^(?:\s*Caused by: )?tieline\.[\w.]+\.[A-Z_]\w*: (?P<text>.+)$", re.MULTILINE)


def our_sentence(error: BaseException | str) -> str | None:
    """What our own code said in a Spark error; None if it said nothing."""
    found = _OURS.search(str(error))
    return found["text"].strip() if found else None

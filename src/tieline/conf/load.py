"""A TOML file becomes Settings, or a ConfError that names the line; there is no third outcome.

A key that is unknown, of the wrong type or out of range stops the start.  A broker that falls back to a default does
something its operator did not write, and usually at the worst time.  Whoever wants to see everything that is wrong at
once calls :func:`inspect`.
"""

from __future__ import annotations

import codecs
import re
import tomllib
from pathlib import Path
from typing import Any  # Any: TOML has values of every type

import msgspec

from tieline.conf import access_rules, rules
from tieline.conf.error import ConfError
from tieline.conf.lines import line_of
from tieline.conf.refusals import endless, refusals
from tieline.conf.schema import Listener, Settings

_SYNTAX_AT = re.compile(r" \(at line (\d+), column (\d+)\)$")


def load(path: str | Path) -> Settings:
    """Read a configuration file.  Relative paths in it are relative to the directory it lies in."""
    path = Path(path)
    return _anchored(loads(_read(path), str(path)), path.parent)


def loads(text: str, name: str = "configuration") -> Settings:
    """Settings from a TOML text; ``name`` stands for the file in error messages."""
    settings, problems = _examined(text, name)
    if problems:
        raise problems[0]
    return settings


def inspect(path: str | Path) -> tuple[Settings | None, list[ConfError]]:
    """The same for somebody who wants to know everything that is wrong with a file, in the order of its lines.

    The settings are those that the file has without what is refused in it; there are none only where it is no TOML.
    """
    path = Path(path)
    try:
        settings, problems = _examined(_read(path), str(path))
    except ConfError as problem:
        return None, [problem]
    problems.sort(key=lambda problem: problem.line or 0)
    return _anchored(settings, path.parent), problems


def _examined(text: str, name: str) -> tuple[Settings, list[ConfError]]:
    """Settings, as far as the text can mean any, and what is wrong with them."""
    data = _parsed(text, name)
    try:
        settings = access_rules.placed(msgspec.convert(data, Settings, strict=True), text, name)
        found = [*endless(data, ()), *rules.broken(settings)]
    except msgspec.ValidationError:
        refused = refusals(data)
        settings = msgspec.convert(refused.rest, Settings, strict=True)
        found = [*refused.findings, *refused.in_the_file([*endless(refused.rest, ()), *rules.broken(settings)])]
    return settings, [ConfError(file=name, line=line_of(text, path), text=sentence) for path, sentence in found]


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as problem:
        text = f"cannot be read: {(problem.strerror or str(problem)).lower()}."
        raise ConfError(file=str(path), line=None, text=text) from None
    return _decoded(data, str(path))


def _decoded(data: bytes, name: str) -> str:
    if data.startswith(codecs.BOM_UTF8):
        text = "begins with a byte order mark: save it as UTF-8 without one."
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:4]:
        text = "is written in UTF-16 or UTF-32: save it as UTF-8."
    else:
        try:
            return data.decode()
        except UnicodeDecodeError as problem:
            line = data.count(b"\n", 0, problem.start) + 1
            text = f"byte 0x{data[problem.start]:02X} is not UTF-8: save the file as UTF-8."
            raise ConfError(file=name, line=line, text=text) from None
    raise ConfError(file=name, line=1, text=text)


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        message = str(problem)
        found = _SYNTAX_AT.search(message)
        if found is None:  # tomllib says "at end of document"
            line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        else:
            line, column = int(found[1]), int(found[2])
        what = re.sub(r" \(at .*\)$", "", message)
        sentence = f"is not TOML: column {column}: {what[:1].lower()}{what[1:]}."
        raise ConfError(file=name, line=line, text=sentence) from None
    except RecursionError:
        raise ConfError(file=name, line=None, text="is nested too deeply.") from None
    except ValueError:  # of Python itself, which stops reading numbers of thousands of digits
        raise ConfError(file=name, line=None, text="has a number of too many digits.") from None


def _anchored(settings: Settings, directory: Path) -> Settings:
    def anchor(name: str | None) -> str | None:
        return None if name is None else str(directory / name)

    def listener(each: Listener) -> Listener:
        return msgspec.structs.replace(
            each, certificate=anchor(each.certificate), key=anchor(each.key), client_ca=anchor(each.client_ca)
        )

    listeners = tuple(listener(each) for each in settings.listener)
    auth = msgspec.structs.replace(settings.auth, password_file=anchor(settings.auth.password_file))
    http = msgspec.structs.replace(
        settings.http, certificate=anchor(settings.http.certificate), key=anchor(settings.http.key)
    )
    overlay = msgspec.structs.replace(
        settings.overlay,
        key_file=anchor(settings.overlay.key_file),
        certificate=anchor(settings.overlay.certificate),
        key=anchor(settings.overlay.key),
        ca=anchor(settings.overlay.ca),
    )
    return msgspec.structs.replace(
        settings, data=anchor(settings.data), listener=listeners, auth=auth, http=http, overlay=overlay
    )

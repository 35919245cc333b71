"""What pages show in a terminal is true: it is typed and compared, or at least every verb and option of it exists."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.kits.terminal import blocks_of, says, steps_of
from tieline.cli import pub, sub
from tieline.cli.main import VERBS
from tieline.cli.verbs import load_app, loaded

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
_TERMINALS = {"console", "sh", "shell", "bash"}
_PLAYED = [page for page in PAGES if any(kind == ["console", "run"] for kind, _body in blocks_of(page))]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_block_of_a_terminal_is_typed_or_says_that_it_is_an_example() -> None:
    for page in PAGES:
        for kind, body in blocks_of(page):
            if kind and kind[0] in _TERMINALS:
                assert kind in (["console", "run"], ["console", "example"]), f"{_name(page)}:\n{body}"
                assert steps_of(body), f"{_name(page)} shows no command that begins with $:\n{body}"


@pytest.mark.parametrize("page", _PLAYED, ids=_name)
def test_what_a_page_shows_is_what_happens(page: Path, need: Callable[[str], str]) -> None:
    """Each page in a network of its own, where the usual ports are free."""
    for tool in ("unshare", "ip", "mosquitto_pub", "openssl"):
        need(tool)
    alone = [shutil.which("unshare") or "unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a network of one's own, so ports would not be free")
    command = [*alone, sys.executable, "-m", "tests.kits.terminal", str(page)]
    played = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert played.returncode == 0, played.stdout + played.stderr


def _typed() -> Iterator[tuple[str, list[str]]]:
    """Every call of the ``tieline`` command on any page."""
    for page in PAGES:
        for kind, body in blocks_of(page):
            for step in steps_of(body) if kind[:1] == ["console"] else ():
                words = shlex.split(step.words.replace("\\\n", " "), comments=True)
                if Path(words[0]).name == "tieline":
                    yield _name(page), [word for word in words[1:] if word != "&"]


@pytest.mark.parametrize("words", {" ".join(words): words for _page, words in _typed()}.values(), ids=" ".join)
def test_every_verb_and_option_that_a_page_shows_exists(words: list[str]) -> None:
    places = {verb: place for verb, place, _help in VERBS}
    verb, rest = words[0], words[1:]
    if verb in ("pub", "sub"):
        flags = {name for _title, rows in (pub if verb == "pub" else sub).GROUPS for row in rows for name in row.names}
        assert {word for word in rest if word.startswith("-") and not word[1:2].isdigit()} <= flags
        return
    _parse(f"tieline {verb}", get_command(load_app("tieline.cli", places[verb])), rest)


def _parse(path: str, command: Any, rest: list[str]) -> None:  # Any: a command of a library within Typer
    while inner := getattr(command, "commands", None):
        if command.invoke_without_command and not (rest and rest[0] in inner):
            break
        assert rest and rest[0] in inner, f"{path} {rest}"
        path, command, rest = f"{path} {rest[0]}", inner[rest[0]], rest[1:]
        if (behind := loaded(path)) is not None:
            command = get_command(behind)
    context = command.context_class(command, info_name=path)
    command.make_parser(context).parse_args(args=list(rest))


def test_an_option_that_there_is_not_is_noticed() -> None:
    with pytest.raises(Exception, match="no-such-option"):
        test_every_verb_and_option_that_a_page_shows_exists(["serve", "--no-such-option", "3"])
    with pytest.raises(AssertionError):
        test_every_verb_and_option_that_a_page_shows_exists(["plan", "no-such-verb"])


def test_what_is_compared_and_what_is_not() -> None:
    assert says("a  1\nb  22\n", ["a 1", "b    22"])
    assert says("a  1\nb  22\nc\n", ["a …", "…", "c"])
    assert says("a\n", ["…", "a", "…"])
    assert not says("a  1\nb  22\n", ["a 1"])
    assert not says("a  1\n", ["a 2"])
    assert not says("", ["a"])
    assert says("", [])


def test_a_command_goes_on_after_a_backslash_and_what_follows_is_what_it_prints() -> None:
    first, second = steps_of("$ one \\\n    --two\nprinted \\\n$ three &\n")
    assert (first.words, first.shown) == ("one \\\n    --two", ["printed \\"])
    assert (second.words, second.shown) == ("three &", [])

"""A shell that has read the script of `tieline completion` knows every verb, option and choice."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Tieline
from tieline.cli.completion import places
from tieline.cli.main import VERBS


@pytest.fixture(name="script", scope="module")
def _script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import contextlib
    import io

    from tieline.cli.completion import completion

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        completion("bash")
    file = tmp_path_factory.mktemp("completion") / "tieline.bash"
    file.write_text(printed.getvalue())
    return file


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    told = f"source {shlex.quote(str(script))}; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}"
    done = subprocess.run(
        ["bash", "--norc", "-c", f'{told}; _tieline; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_verbs_options_and_choices(script: Path) -> None:
    assert completed(script, "tieline", "lo") == ["log"]
    assert {"read", "tail", "offsets"} <= set(completed(script, "tieline", "log", ""))
    assert completed(script, "tieline", "log", "read", "--las") == ["--last"]
    assert completed(script, "tieline", "log", "read", "--data", "d", "--format", "") == ["human", "json"]
    assert completed(script, "tieline", "sub", "--wh") == ["--where"]
    assert completed(script, "tieline", "pipeline", "quality", "--la") == ["--lake"]


def test_where_nothing_is_known_the_shell_may_offer_files(script: Path) -> None:
    assert completed(script, "tieline", "check", "brok") == []


def test_every_verb_is_there() -> None:
    paths = {each.path for each in places([(verb, place) for verb, place, _help in VERBS])}
    assert {f"tieline {verb}" for verb, _place, _help in VERBS} <= paths


def test_zsh_reads_the_same_after_a_preamble(tieline: Tieline) -> None:
    bash, zsh = tieline("completion", "bash").stdout, tieline("completion", "zsh").stdout
    assert "bashcompinit" in zsh
    assert [line for line in zsh.splitlines() if "compinit" not in line] == bash.splitlines()

"""The command line's front door: help, version, and mistakes that end in one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Tieline
from tests.kits.patience import PATIENCE_S
from tieline.cli.main import VERBS
from tieline.version import __version__


def test_help_lists_every_verb(tieline: Tieline) -> None:
    shown = tieline("--help")
    assert shown.returncode == 0
    assert all(verb in shown.stdout for verb, _module, _help in VERBS)


@pytest.mark.parametrize("verb", [verb for verb, _module, _help in VERBS])
def test_every_verb_has_a_help_page(tieline: Tieline, verb: str) -> None:
    shown = tieline(verb, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"Usage: tieline {verb}" in shown.stdout


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("log", "serve"), "[log]"),
        (("sim", "microgrid"), "[sim]"),
        (("bench", "pipeline"), "[pipeline,log,bench]"),
        (("bench", "plan"), "[plan]"),
        (("reproduce", "psp"), "[plan]"),
    ],
)
def test_a_help_page_names_the_extra_in_its_brackets(tieline: Tieline, words: tuple[str, str], extra: str) -> None:
    # brackets are markup for the library that draws the page, unless they are escaped
    assert f"'tieline{extra}'" in " ".join(tieline(*words, "--help").stdout.split())


def test_version(tieline: Tieline) -> None:
    assert tieline("--version").stdout == f"tieline {__version__}\n"
    assert tieline("version").stdout == f"{__version__}\n"


def test_an_unknown_verb_is_answered_with_the_nearest(tieline: Tieline) -> None:
    shown = tieline("serv")
    assert shown.returncode == 2
    assert "Did you mean 'serve'?" in shown.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("check", "absent.toml"), 2, "absent.toml: cannot be read: no such file or directory."),
        (("serve", "--config", "absent.toml"), 2, "absent.toml: cannot be read"),
        (("serve", "--listen", "mqtt://h"), 2, "write tcp://h"),
        (("serve", "--listen", "tls://127.0.0.1:0"), 2, "give --certificate and --key"),
        (("serve", "--certificate", "c", "--key", "k"), 2, "go with --listen"),
        (("serve", "--name", "a b"), 2, "letters, digits"),
        (("pub", "-t", "a"), 2, "exactly one of -m, -f, -l, -n and -s"),
        (("pub", "-t", "a", "-m", "x", "-n"), 2, "exactly one of"),
        (("pub", "-m", "x"), 2, "exactly one topic"),
        (("pub", "-t", "a/+", "-m", "x"), 2, "wildcard"),
        (("pub", "-t", "a", "-f", "absent"), 1, "cannot read absent: no such file"),
        (("pub", "-t", "a", "-m", "x", "--cafile", "absent"), 1, "cannot use absent: no such file"),
        (("sub",), 2, "at least one topic"),
        (("sub", "-t", "a", "-R", "--retained-only"), 2, "exclude each other"),
        (("sub", "-t", "a", "--retain-as-published"), 2, "add -V 5"),
        (("top", "--socket", "absent.sock"), 1, "no broker answers at absent.sock"),
    ],
)
def test_a_mistake_ends_in_one_sentence(tieline: Tieline, words: tuple[str, ...], code: int, said: str) -> None:
    shown = tieline(*words)
    assert shown.returncode == code
    assert said in shown.stderr
    assert shown.stderr.startswith("tieline: ") and shown.stderr.count("\n") == 1


def test_quiet_means_quiet(tieline: Tieline) -> None:
    shown = tieline("pub", "-p", "1", "-t", "a", "-m", "x", "--quiet")
    assert (shown.returncode, shown.stdout, shown.stderr) == (1, "", "")


def test_the_front_door_loads_no_room(tmp_path: Path) -> None:
    # `tieline serve` must start fast: what only other verbs need is not imported for it.
    code = (
        "import sys; import tieline.cli.main, tieline.cli.serve; "
        "print([name for name in ('paho', 'rich', 'matplotlib', 'numpy', 'pydantic') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert shown.stdout.strip() == "[]"


def test_a_missing_extra_is_one_sentence_and_no_traceback(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['scipy'] = None; sys.argv = ['tieline', 'reproduce', 'psp', '--quick'];"
        "from tieline.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert re.search(r"tieline: scipy[a-z.]* is not installed: pip install 'tieline\[plan]'\n$", done.stderr)
    assert "Traceback" not in done.stderr

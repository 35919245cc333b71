"""Types what a page shows into a terminal, and compares what it prints with what the page says.

``python -m tests.kits.terminal PAGE`` plays the blocks of a page that are marked ``console run`` in their order, in one
empty folder, and writes the blocks that are marked ``file=NAME`` into it when it comes to them. It is meant to run in
a network of its own, where every port is free: the test beside the other tests of documents sees to that.

A command that goes on, as a broker or a subscriber does, is left running when everything that the page shows of it has
come; the brokers of one block end when another block starts brokers. ``…`` stands for any text in a line, and alone in
its line for any lines. What a command publishes may be shown as it arrives at a subscriber that runs already: it is
published again until that has happened, because nothing on the screen tells when the subscriber is ready.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Self

from tests.kits.patience import PATIENCE_S

_FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
#: How soon something is published again.
_AGAIN_S = 2.0
#: The first search of the planner on a machine compiles its loops, which takes long on one that is busy.
_ENDS_S = 5 * PATIENCE_S


@dataclass
class Step:
    """One command, and what the page shows below it."""

    words: str
    shown: list[str] = field(default_factory=list)


def steps_of(block: str) -> list[Step]:
    """The commands of a block; one goes on in the next line after a backslash."""
    steps: list[Step] = []
    is_open = False
    for line in block.splitlines():
        if is_open:
            steps[-1].words += "\n" + line
        elif line.startswith("$ "):
            steps.append(Step(line[2:]))
        elif steps:
            steps[-1].shown.append(line)
        is_open = steps != [] and not steps[-1].shown and steps[-1].words.endswith("\\")
    return steps


def says(printed: str, shown: list[str]) -> bool:
    """Whether a text is what a page shows."""
    lines = [r"(?:.*\n)*?" if line.strip() == "…" else _line(line) for line in shown]
    return (
        re.fullmatch("".join(lines), printed if printed.endswith("\n") or not printed else printed + "\n") is not None
    )


def _line(line: str) -> str:
    # spaces in a row line up columns, whose widths follow figures that differ
    words = (".*?".join(re.escape(part) for part in word.split("…")) for word in line.split())
    return r"[ \t]*" + r"[ \t]+".join(words) + r"[ \t]*\n"


def _goes_on(words: str) -> bool:
    """Whether a command ends by Ctrl-C alone."""
    typed = [word for word in shlex.split(words, comments=True) if word != "&"]
    name = " ".join(typed[:2]) if Path(typed[0]).name == "tieline" else typed[0]
    if name.endswith(("mosquitto_sub", " sub")):
        return "-C" not in typed
    return name.endswith(" serve") or typed[1:3] in (["log", "serve"], ["log", "tail"])


class Terminal:
    """A folder, an environment, and what still runs in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        commands = folder / ".venv" / "bin"
        commands.mkdir(parents=True)
        program = commands / "tieline"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tieline "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        runtime = folder / "run"
        runtime.mkdir(mode=0o700)
        self._env = os.environ | {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),  # what is compiled is kept
            "XDG_RUNTIME_DIR": str(runtime),
            "PYTHONUNBUFFERED": "1",  # what is printed is there to be read
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }
        self._running: list[tuple[Step, subprocess.Popen[bytes], Path]] = []
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(everything=True)

    def play(self, block: str) -> None:
        """Every command of a block; an AssertionError says which one did not do what is shown."""
        steps = steps_of(block)
        if any(" serve" in step.words for step in steps):
            self._end(everything=False)
        for step in steps:
            self._step(step)

    def _step(self, step: Step) -> None:
        if _goes_on(step.words):
            process, output = self._start(step.words.rstrip().removesuffix("&"))
            self._running.append((step, process, output))
            self._until(lambda: process.poll() is not None or self._is_there(step, output), step, output)
            assert process.poll() is None, f"$ {step.words}\nended: {output.with_suffix('.err').read_text('utf-8')}"
            return
        before = {output: output.stat().st_size for _step, _process, output in self._running}
        while True:
            process, output = self._start(step.words)
            try:
                process.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"$ {step.words}\ndoes not end: {output.read_text('utf-8')}") from None
            printed, sentences = output.read_text("utf-8"), output.with_suffix(".err").read_text("utf-8")
            # a page shows errors where nothing else is printed, and leaves out how far long work is
            if not step.shown or says(printed, step.shown) or says(printed + sentences, step.shown):
                is_refused = any(line.startswith("tieline: ") for line in step.shown)
                assert is_refused or process.returncode == 0, f"$ {step.words}\n{printed}{sentences}"
                return
            if not printed and "pub" in step.words and self._heard(step, before):
                return
            right = "\n".join(step.shown)
            assert not printed and "pub" in step.words, f"$ {step.words}\n{printed}{sentences}\nand not:\n{right}"

    def _heard(self, step: Step, before: dict[Path, int]) -> bool:
        """Whether a subscriber printed what is shown below what was published."""
        end = monotonic() + _AGAIN_S
        while monotonic() < end:
            for output, size in before.items():
                came = output.read_bytes()[size:].decode()
                if says(came, [*step.shown, "…"]):
                    return True
            sleep(0.05)
        return False

    def _start(self, words: str) -> tuple[subprocess.Popen[bytes], Path]:
        self._count += 1
        output = self._folder / "run" / f"output-{self._count}"
        with output.open("wb") as file, output.with_suffix(".err").open("wb") as errors:
            process = subprocess.Popen(  # what our own pages show
                ["bash", "-c", words],  # the shell that is there
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=errors,
                start_new_session=True,
            )
        return process, output

    def _is_there(self, step: Step, output: Path) -> bool:
        printed = output.read_text("utf-8")
        if " serve" in step.words and " ready" not in printed:
            return False
        return not step.shown or says(printed, [*step.shown, "…"])

    def _until(self, ask: Callable[[], bool], step: Step, output: Path) -> None:
        deadline = monotonic() + PATIENCE_S
        while not ask():
            assert monotonic() < deadline, (
                f"$ {step.words}\n{output.read_text('utf-8')}{output.with_suffix('.err').read_text('utf-8')}"
            )
            sleep(0.05)

    def _end(self, *, everything: bool) -> None:
        for step, process, _output in self._running:
            if everything or " serve" in step.words:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)
                process.wait(PATIENCE_S)
        self._running = [] if everything else [each for each in self._running if each[1].poll() is None]


def blocks_of(page: Path) -> Iterator[tuple[list[str], str]]:
    """What stands behind each fence, as words, and the block."""
    for found in _FENCE.finditer(page.read_text(encoding="utf-8")):
        yield found[1].split(), found[2]


def main(page: Path) -> int:
    """Play one page; zero if it was right."""
    with (
        tempfile.TemporaryDirectory(prefix="tl-", ignore_cleanup_errors=True) as folder,
        Terminal(Path(folder)) as terminal,
    ):
        for kind, body in blocks_of(page):
            files = [word.removeprefix("file=") for word in kind if word.startswith("file=")]
            for name in files:
                (Path(folder) / name).write_text(body, encoding="utf-8")
            if kind == ["console", "run"]:
                try:
                    terminal.play(body)
                except AssertionError as wrong:
                    print(f"{page.name}: {wrong}")
                    return 1
    return 0


if __name__ == "__main__":
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)  # in a network that was made for this
    sys.exit(main(Path(sys.argv[1])))

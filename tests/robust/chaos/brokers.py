"""One ``tieline serve`` on a disk of its own, which is killed, stopped and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.kits.patience import PATIENCE_S

#: Bytes of the disk of one broker.
_DISK: Final = 96 << 20
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_KEEP: Final = 'mount -t tmpfs -o size=%d,mode=0700 disk "$0" && echo mounted && exec cat'
_EVENT: Final = """
[event.plant]
topic = "plant/+/+"
attributes = [{ name = "v", bounds = [0, 100] }]
"""
#: Lines in a log that no broker should ever write.
_BAD: Final = ("internal error", "Traceback")


class Disk:
    """A small file system that only one broker sees, kept by a process of its own; a folder where that is not allowed.

    Whatever happens to the broker, what it has written stays.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        command = ["unshare", "--map-root-user", "--mount", "sh", "-c", _KEEP % _DISK, str(folder)]
        self._keeper: subprocess.Popen[str] | None = None
        try:
            keeper = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            return
        assert keeper.stdout is not None
        if keeper.stdout.readline() == "mounted\n":
            self._keeper = keeper
        else:
            keeper.communicate()

    @property
    def is_small(self) -> bool:
        """It can be filled."""
        return self._keeper is not None

    @property
    def prefix(self) -> list[str]:
        """What a command begins with that sees the disk."""
        if self._keeper is None:
            return []
        return ["nsenter", "--target", str(self._keeper.pid), "--user", "--mount", "--preserve-credentials", "--"]

    @property
    def _ballast(self) -> Path:
        assert self._keeper is not None
        return Path(f"/proc/{self._keeper.pid}/root{self.folder}/ballast")

    def fill(self) -> None:
        """Leave no byte."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
            while file.write(bytes(65_536)):
                pass

    def empty(self) -> None:
        """Give back what was taken."""
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        """It is no more."""
        if self._keeper is not None:
            self._keeper.communicate()


class Broker:
    """A place where a broker runs, again and again."""

    def __init__(self, folder: Path, name: str, port: int, peer_port: int) -> None:
        self.name = name
        self.port = port
        self.peer_port = peer_port
        self.disk = Disk(folder / name)
        self._config = folder / f"{name}.toml"
        self.log = folder / f"{name}.log"
        #: Ports of cables that lead to others, which it dials.
        self.dials: list[int] = []
        self.strategy = "path"
        self._process: subprocess.Popen[bytes] | None = None
        #: It is asked to be down.
        self.is_down = True
        #: What was done to it may end it.
        self.is_doomed = False
        self.is_stopped = False
        #: It will leave, and clients that come to it now would be lost with it.
        self.is_leaving = False
        #: It was there when everything had settled: before that, what it accepts is promised to nobody.
        self.is_settled = False
        #: Verbs of the command line that run.
        self._verbs: list[subprocess.Popen[bytes]] = []
        #: It has left, for ever.
        self.has_left = False
        self.starts = 0
        #: What it held when it was first weighed, and in which start.
        self._weighed = 0, 0

    def __repr__(self) -> str:
        return f"<Broker {self.name}>"

    def write(self) -> None:
        """The configuration, as it is from now on."""
        peers = "".join(f'[[peer]]\nurl = "peer://127.0.0.1:{port}"\n' for port in self.dials)
        self._config.write_text(
            f'name = "{self.name}"\ndata = "{self.disk.folder / "data"}"\n[mqtt]\nsys_interval_s = 0\n'
            f'[overlay]\nstrategy = "{self.strategy}"\n'
            f'[[listener]]\nurl = "tcp://127.0.0.1:{self.port}"\n'
            f'[[listener]]\nurl = "peer://127.0.0.1:{self.peer_port}"\n{peers}{_EVENT}'
        )

    def start(self) -> None:
        """Begin, and do not wait until it is ready."""
        self.write()
        with self.log.open("ab") as log:
            command = [*self.disk.prefix, sys.executable, "-m", "tieline", "serve", "--config", str(self._config)]
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        self.is_down = self.is_doomed = self.is_stopped = False
        self.starts += 1

    @property
    def pid(self) -> int:
        """Of the broker; 0 while there is none."""
        return self._process.pid if self._process is not None else 0

    @property
    def is_running(self) -> bool:
        """There is a process, which may stand still."""
        return self._process is not None and self._process.poll() is None

    @property
    def ended(self) -> int | None:
        """The exit code of a process that has ended since it was started, and was not waited for."""
        return None if self._process is None else self._process.poll()

    @property
    def writer(self) -> int | None:
        """The process that writes its store."""
        with suppress(OSError):
            found = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            return int(found[0]) if found else None
        return None

    def kill(self, how: str) -> None:
        """End the ``broker``, its ``writer`` or ``both``; or ask it to ``stop`` by itself."""
        process, writer = self._process, self.writer
        if process is None:
            return
        if how in ("writer", "both") and writer is not None:
            with suppress(ProcessLookupError):
                os.kill(writer, signal.SIGKILL)
        if how in ("broker", "both") or writer is None:
            process.kill()
        if how == "stop":
            process.terminate()
        self.go_on()
        self.is_doomed = True

    def wait(self) -> int:
        """Until the process that was ended is no more; its exit code."""
        assert self._process is not None
        code = self._process.wait(PATIENCE_S)
        self._process = None
        self.is_down = True
        return code

    def stand_still(self) -> None:
        """SIGSTOP."""
        if self.is_running:
            os.kill(self.pid, signal.SIGSTOP)
            self.is_stopped = True

    def go_on(self) -> None:
        """SIGCONT."""
        if self.is_stopped:
            self.is_stopped = False
            if self.is_running:
                os.kill(self.pid, signal.SIGCONT)

    def reload(self) -> None:
        """Have it read its configuration again."""
        if self.is_running:
            self.write()
            os.kill(self.pid, signal.SIGHUP)

    def ask(self, *words: str) -> subprocess.Popen[bytes] | None:
        """Have a verb of the command line ask it for something; it is not waited for that.  None if it does not run."""
        self._verbs = [verb for verb in self._verbs if verb.poll() is None]
        begun = None
        if self.is_running:
            data = str(self.disk.folder / "data")
            verb = [sys.executable, "-m", "tieline", *words, "--data", data]
            silent = subprocess.DEVNULL
            begun = subprocess.Popen([*self.disk.prefix, *verb], stdin=silent, stdout=silent, stderr=silent)
            self._verbs.append(begun)
        return begun

    @property
    def resident_bytes(self) -> int:
        """What the broker holds in memory, without its writer."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE

    def weigh(self) -> int:
        """How many bytes it holds beyond what it held when it was weighed first in this life."""
        start, held = self._weighed
        now = self.resident_bytes
        if start != self.starts:
            self._weighed = self.starts, now
            return 0
        return now - held

    @property
    def own_bytes(self) -> int:
        """What the broker and its writer hold in memory that is no part of a file."""
        held = 0
        for pid in (self.pid, self.writer):
            if pid is not None:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                held += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))
        return held

    def troubles(self) -> list[str]:
        """Lines of its log that should not be there."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return [f"{self.name}: {line}" for line in lines if any(bad in line for bad in _BAD)]

    def close(self) -> None:
        """Leave nothing behind."""
        for verb in self._verbs:
            verb.kill()
            verb.wait()
        if self._process is not None:
            self.go_on()
            self._process.kill()
            self._process.wait()
        self.disk.close()

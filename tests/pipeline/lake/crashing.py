"""A disk that stops before, during or after any step, as a machine does that loses its power."""

from __future__ import annotations

from pathlib import Path

from tieline.pipeline.lake.disk import CannotExchange, Disk, walk


class Crash(BaseException):
    """Everything ends here; nothing may handle it."""


class CrashingDisk(Disk):
    """Stops at one of its steps; from then on nothing works any more."""

    def __init__(self, *, at: int | None = None, can_exchange: bool = True) -> None:
        self.at = at
        self.steps = 0
        self._can_exchange = can_exchange
        self._inner = Disk()

    def _step(self) -> None:
        self.steps += 1
        if self.at is not None and self.steps >= self.at:
            raise Crash

    def write(self, path: Path, data: bytes) -> None:
        self._step()
        path.with_name(f".{path.name}.new").write_bytes(data[: len(data) // 2])
        self._step()
        self._inner.write(path, data)
        self._step()

    def make(self, path: Path) -> None:
        self._step()
        self._inner.make(path)

    def move(self, source: Path, target: Path) -> None:
        self._step()
        self._inner.move(source, target)
        self._step()

    def exchange(self, one: Path, other: Path) -> None:
        self._step()
        if not self._can_exchange:
            raise CannotExchange
        self._inner.exchange(one, other)
        self._step()

    def link(self, source: Path, target: Path) -> None:
        self._step()
        self._inner.link(source, target)

    def remove(self, path: Path) -> None:
        self._step()
        for found in list(walk(path))[:-1:2] if path.is_dir() else []:
            if found.is_file():
                found.unlink()
        self._step()
        self._inner.remove(path)
        self._step()

    def sync(self, path: Path) -> None:
        self._step()

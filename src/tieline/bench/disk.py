"""The disk below a directory: what kind of file system it is, and how often it was told to keep what it has got."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: File systems that live in memory: whatever a broker writes there, a power cut takes.
VOLATILE = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_MOUNTS = Path("/proc/self/mountinfo")
_DISKS = Path("/proc/diskstats")
#: Where a line of diskstats counts the flush requests that the device has completed (Linux 5.5 and later).
_FLUSHES = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """What a directory is on."""

    #: ``ext4``, ``xfs``, ``tmpfs``, …; "unknown" where the system does not say.
    file_system: str
    #: Major and minor number, with a colon between.
    device: str

    @property
    def is_volatile(self) -> bool:
        """Nothing on it outlives the machine's power."""
        return self.file_system in VOLATILE

    def flushes(self) -> int | None:
        """Flush requests that the device has completed since the machine started, whoever caused them.

        An fsync that is more than a promise ends in one.  None where the device does not count them.
        """
        try:
            lines = _DISKS.read_text().splitlines()
        except OSError:
            return None
        for line in lines:
            fields = line.split()
            if ":".join(fields[:2]) == self.device and len(fields) > _FLUSHES:
                return int(fields[_FLUSHES])
        return None


def disk_of(directory: Path, mounts: str | None = None) -> Disk:
    """The disk of an existing directory; ``mounts`` is the system's own table."""
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text()
        except OSError:
            mounts = ""
    there = directory.resolve()
    found = Disk(file_system="unknown", device="")
    longest = -1
    for line in mounts.splitlines():
        # number, parent, major:minor, root, mount point, options, optional fields, a dash, type, source, options
        head, _, tail = line.partition(" - ")
        fields, kind = head.split(), tail.split()
        if len(fields) < 5 or not kind:
            continue
        point = Path(fields[4].replace("\\040", " "))
        # the last of two at one point hides the first
        if (there == point or point in there.parents) and len(point.parts) >= longest:
            longest = len(point.parts)
            found = Disk(file_system=kind[0], device=fields[2])
    return found

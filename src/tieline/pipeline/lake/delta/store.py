"""Where a lake of Delta tables is: a directory, or a place in an object store, reached by the same library as its logs.

A store travels to tasks, with the options that were given to it and those of the environment of the driver, because
executors seldom have them.  They are secrets, so nothing prints them.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast  # Any: pyarrow has no types

import pyarrow.fs as pafs

from tieline.extras import remedy
from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.layout import LakeError

if TYPE_CHECKING:
    from deltalake import DeltaTable

SCHEMES: Final = ("s3", "s3a", "abfs", "abfss", "az", "gs", "hdfs")
#: What the environment says about each kind of store, without what only means something on one machine.
_ENVIRONMENT: Final = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|REGION|DEFAULT_REGION|ENDPOINT|ENDPOINT_URL|ALLOW_HTTP"
    r"|VIRTUAL_HOSTED_STYLE_REQUEST|S3_LOCKING_PROVIDER|CONDITIONAL_PUT)"
    r"|AZURE_(STORAGE_ACCOUNT_NAME|STORAGE_ACCOUNT_KEY|STORAGE_SAS_TOKEN|CLIENT_ID|CLIENT_SECRET|TENANT_ID)"
    r"|GOOGLE_(SERVICE_ACCOUNT_KEY|BUCKET)"
)
_PREFIX: Final = {"s3": "AWS_", "s3a": "AWS_", "abfs": "AZURE_", "abfss": "AZURE_", "az": "AZURE_", "gs": "GOOGLE_"}
#: Options by which two writers would both succeed.
_UNSAFE: Final = re.compile(r"(aws_s3_)?allow_unsafe_rename|mount_allow_unsafe_rename|(aws_)?copy_if_not_exists")


def check() -> None:
    """Raise :class:`LakeError` if delta-rs is not installed."""
    try:
        import deltalake  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        raise LakeError(f"Delta tables need deltalake: {remedy('delta')}") from None


def is_address(where: str | Path) -> bool:
    """Whether a lake's place is in an object store."""
    return "://" in str(where)


class Store:
    """One lake's place; names below it are written with slashes."""

    def __init__(self, where: str | Path, options: Mapping[str, str]) -> None:
        if is_address(where):
            scheme = str(where).partition("://")[0]
            if scheme not in SCHEMES:
                raise LakeError(f"{where}: a lake is in a directory, or at {'://, '.join(SCHEMES)}://.")
            self.where = str(where).rstrip("/")
            prefix = _PREFIX.get(scheme, "\0")
            found = {
                name: value
                for name, value in os.environ.items()
                if name.startswith(prefix) and _ENVIRONMENT.fullmatch(name)
            }
            given = {name.lower() for name in options}
            self._options = {**{n: v for n, v in found.items() if n.lower() not in given}, **options}
        else:
            self.where = str(Path(where).absolute())
            self._options = dict(options)
        for name, value in self._options.items():
            if _UNSAFE.fullmatch(name.lower()) or (
                name.lower().endswith("conditional_put") and value.lower() == "disabled"
            ):
                raise LakeError(
                    f"the option {name} lets two writers both believe that they were first: a lake needs a store that "
                    "refuses to write what is there already."
                )

    def __repr__(self) -> str:
        return f"<Store {self.where}>"

    @property
    def directory(self) -> Path | None:
        """The directory; None in an object store."""
        return None if is_address(self.where) else Path(self.where)

    @property
    def options(self) -> dict[str, str]:
        """What the store is told; never to be printed."""
        return dict(self._options)

    def address(self, name: str) -> str:
        """Where a name of the lake is, for other libraries."""
        return f"{self.where}/{name}"

    def table(self, name: str) -> DeltaTable | None:
        """A Delta table as it is now; None if there is none."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self.address(name), storage_options=self.options)
        except TableNotFoundError:
            return None

    def files(self) -> Any:  # Any: pyarrow has no types
        """The lake's place as a file system."""
        if self.directory is not None:
            return pafs.SubTreeFileSystem(self.where, pafs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        return pafs.PyFileSystem(DeltaStorageHandler(self.where, self.options))

    def put(self, name: str, data: memoryview) -> None:
        """Write a file that no other has the name of; in a directory it is on the disk when this returns."""
        if self.directory is None:
            from deltalake.fs import DeltaStorageHandler

            # through pyarrow it would be handed buffers, and it takes bytes; its types do not say that it can be closed
            handler = DeltaStorageHandler(self.where, self._options)._handler  # noqa: SLF001 (nothing else takes bytes)
            stream: Any = handler.open_output_stream(name, None)
            stream.write(bytes(data))
            stream.close()
            return
        path, disk = self.directory / name, Disk()
        disk.make(path.parent)
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        disk.sync(path.parent)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        try:
            self.files().delete_file(name)
        except FileNotFoundError:
            return

    def size(self, name: str) -> int | None:
        """How large a file is; None if there is none."""
        return cast("int | None", self.files().get_file_info(name).size)


def part_name(day: str) -> str:
    """The name of a new file of a day below its table, which no other file has."""
    return f"day={day}/part-{secrets.token_hex(8)}.parquet"

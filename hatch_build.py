"""Puts compiled modules into a wheel when ``TIELINE_COMPILE=1`` is set; without it the wheel is plain Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledModules(BuildHookInterface[Any]):
    """Asks for mypyc only where it is used, and an editable installation never does: there is ``make compile``."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs in addition."""
        return list(self._native_build().TOOLS) if _is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add libraries and record to what is packed."""
        if not _is_wanted() or version == "editable":
            return
        native_build = self._native_build()
        name, text = native_build.native().record(native_build.sources())
        record = native_build.WORKSHOP / name
        added = {library: library.relative_to(native_build.LIBRARIES) for library in native_build.build()}
        record.write_text(text)
        added[record] = Path("tieline", name)
        build_data["force_include"].update({str(file): str(place) for file, place in added.items()})
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def _native_build(self) -> Any:
        if self.root not in sys.path:
            sys.path.insert(0, self.root)
        import native_build

        return native_build


def _is_wanted() -> bool:
    return os.environ.get("TIELINE_COMPILE") == "1"

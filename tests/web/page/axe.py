"""axe-core, which knows what keeps people out of pages: installed beside the project, as other tools of npm are."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page

from tests.conftest import need

#: The version that the tests were written with; another one may have other rules.
VERSION: Final = "4.14.1"
_DIRECTORY: Final = Path(__file__).parents[3] / ".peers" / "axe"
_INSTALL_S: Final = 300
_RUN: Final = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations;
}"""


def axe_source() -> str:
    """The text of axe-core, installed if it is not there; where it cannot be, the test is skipped with a sentence."""
    npm = need("npm")
    package = _DIRECTORY / "node_modules" / "axe-core"
    try:
        _DIRECTORY.mkdir(parents=True, exist_ok=True)
        with (_DIRECTORY / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            manifest = package / "package.json"
            if not manifest.exists() or json.loads(manifest.read_text())["version"] != VERSION:
                _install(npm)
    except (subprocess.SubprocessError, OSError) as problem:
        if os.environ.get("CI") == "true":
            raise
        said = getattr(problem, "stderr", None) or problem
        pytest.skip(f"axe-core cannot be installed here: {said}")
    return (package / "axe.min.js").read_text()


def _install(npm: str) -> None:
    flags = ["--no-fund", "--no-audit", "--save-exact", "--ignore-scripts", "--loglevel", "error"]
    subprocess.run(
        [npm, "install", *flags, "--prefix", str(_DIRECTORY), f"axe-core@{VERSION}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=_INSTALL_S,
    )


def violations(page: Page, source: str) -> list[str]:
    """What axe finds on the page as it is: the rule, and the elements that break it."""
    # given to the debugger, not to the page: the page's policy lets no foreign script in
    page.evaluate(source)
    found: list[dict[str, Any]] = page.evaluate(_RUN)
    return [
        f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')}" for one in found for node in one["nodes"]
    ]

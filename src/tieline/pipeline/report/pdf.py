"""A page as PDF, printed by whatever Chromium this machine has."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE_S: Final = 120
_FLAGS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-pdf-header-footer",
)


class NoPdf(Exception):
    """No PDF could be made; the message is a sentence."""


def find_browser() -> str | None:
    """The program that prints, if there is one."""
    return next((found for name in _BROWSERS if (found := shutil.which(name))), None)


def print_pdf(page: Path, target: Path) -> None:
    """Print an HTML file to a PDF beside it."""
    browser = find_browser()
    if browser is None:
        raise NoPdf("a PDF needs Chromium or Chrome on this machine; the HTML report prints well from any browser")
    target.unlink(missing_ok=True)  # what stands there afterwards is this page
    with tempfile.TemporaryDirectory(prefix="tieline-pdf-") as profile:
        # For root Chromium starts only without its sandbox; the page is ours, has no script and asks for nothing.
        outside = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [browser, *_FLAGS, *outside, f"--user-data-dir={profile}", f"--print-to-pdf={target.absolute()}"]
        try:
            ended = subprocess.run(  # noqa: S603  a program from PATH, a file of ours
                [*command, page.absolute().as_uri()], capture_output=True, check=False, timeout=_PATIENCE_S
            )
        except subprocess.TimeoutExpired:
            raise NoPdf(f"{browser} did not finish the PDF within {_PATIENCE_S} s") from None
    if ended.returncode != 0 or not target.is_file():
        last = ended.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["nothing"]
        raise NoPdf(f"{browser} could not print the PDF; it said: {last[0]}")

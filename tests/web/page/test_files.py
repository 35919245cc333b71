"""The files of the page: what others wrote is what they published, nothing points elsewhere, and all of it is small."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import tieline.web
from tieline.sched.levels import DEFAULTS

PAGE = Path(tieline.web.__file__).parent / "page"
OTHERS = ("fonts", "vendor")
#: All that a browser asks for, packed; a phone on a thin link waits for it.  86 kB of it are letters, 35 kB libraries.
MOST_BYTES = 190_000


def _files() -> list[Path]:
    return sorted(path for path in PAGE.rglob("*") if path.is_file())


def _is_ours(path: Path) -> bool:
    return path.relative_to(PAGE).parts[0] not in OTHERS


def test_what_others_wrote_is_what_they_published() -> None:
    lines = [line.split("  ") for line in (PAGE / "vendor/SHA256SUMS").read_text().splitlines()]
    listed = {name: digest for digest, name in lines}
    served = {".js", ".css", ".woff2"}
    there = {str(path.relative_to(PAGE)) for path in _files() if not _is_ours(path) and path.suffix in served}
    assert there == set(listed)
    for name, digest in listed.items():
        assert hashlib.sha256((PAGE / name).read_bytes()).hexdigest() == digest, name


def test_every_package_has_its_licence() -> None:
    table = re.findall(
        r"^\| ([\w-]+)[^|]*\| [\d.]+ \| ([\w.-]+) \|", (PAGE / "vendor/README.md").read_text(), re.MULTILINE
    )
    assert {package for package, _ in table} == {
        *("lit-html", "uPlot", "d3-force", "d3-quadtree", "d3-dispatch", "d3-timer", "IBM"),
    }
    words = {
        "BSD-3-Clause": "Redistribution and use",
        "MIT": "Permission is hereby granted",
        "ISC": "Permission to use, copy",
        "OFL-1.1": "SIL Open Font License",
    }
    for package, licence in table:
        name = "ibm-plex" if package == "IBM" else package
        assert words[licence] in (PAGE / f"vendor/licences/{name}.txt").read_text(), package


def test_nothing_that_we_wrote_points_elsewhere_or_takes_markup_from_text() -> None:
    for path in _files():
        if not _is_ours(path):
            continue
        text = path.read_text().replace("http://www.w3.org/", "")
        assert not re.search(r"(?:https?:)?//[\w-]+\.\w{2,}", text), path
        for word in (
            "unsafeHTML",
            "unsafeSVG",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "eval(",
            "new Function",
        ):
            assert word not in text, (path, word)
        # a style attribute is not applied under the page's policy, so it would only look as if it worked
        assert not re.search(r"\sstyle=", text), path


def test_a_phone_on_a_thin_link_gets_it_soon() -> None:
    asked = [path for path in _files() if path.suffix in {".html", ".js", ".css", ".svg", ".woff2"}]
    packed = sum(len(gzip.compress(path.read_bytes(), mtime=0)) for path in asked)
    assert packed < MOST_BYTES, f"{packed} bytes"


def test_levels_have_the_same_words_everywhere() -> None:
    names = [traffic.name for traffic in DEFAULTS]
    (listed,) = re.findall(r"LEVELS = \[(.*)\]", (PAGE / "app/dialogs/levels.js").read_text())
    assert [word.strip('"') for word in listed.split(", ")] == names
    said = ", ".join(f"{level} {name}" for level, name in enumerate(names))
    root = Path(__file__).parents[3]
    assert f"{said}." in (root / "docs/reference/configuration.md").read_text()
    assert said in (root / "docs/how/priority.md").read_text().replace(" (the default)", "")
    assert said in (root / "docs/glossary.md").read_text()

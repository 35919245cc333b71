"""Build the documents as a site that needs no server and no network: ``make site``.

The pages stay Markdown that reads well where it lies. A copy of them is laid out as in the repository, so that links
between pages need no change, and MkDocs makes the site of the copy. What is in the navigation, under which title and in
which order, is said once: in ``docs/index.md``.
"""

from __future__ import annotations

import argparse
import logging
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
#: What stands at the root of the site, beside the folders ``docs`` and ``examples``.
_ROOT_PAGES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")
#: What the site has of its own; the script is Martin Donath's, under the licence beside it.
_ASSETS = ("site.css", "iframe-worker-1.0.4.js", "iframe-worker-LICENSE.txt")
#: What pages link to or show.
_SHOWN = {".md", ".svg", ".png", ".json", ".toml", ".csv"}
_SECTION = re.compile(r"^\*\*(.+?)\.?\*\*", re.MULTILINE)
_ENTRY = re.compile(r"^\| \[(.+?)\]\((.+?)\)", re.MULTILINE)
#: Has a section of its own.
_DECISIONS = "adr/README.md"
_DECISION = re.compile(r"\[(.+?)\]\((\d{4}-[\w-]+\.md)\)")
#: A fence says for tests what to do with a block; a reader is shown the language alone.
_FENCE = re.compile(r"^(\s*```\w+) .*$", re.MULTILINE)
_PROGRAM = re.compile(r"\]\((\w+)\.py\)")

Nav = list[dict[str, Any]]


def lay_out(pages: Path) -> None:
    """Copy everything that belongs to the site into one folder."""
    for name in _ROOT_PAGES:
        _copy(ROOT / name, pages / name)
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.suffix in _SHOWN and HERE not in path.parents:
            _copy(path, pages / path.relative_to(ROOT))
    examples = pages / "examples"
    for path in sorted((ROOT / "examples").glob("*.py")):
        examples.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8").rstrip()
        (examples / f"{path.stem}.md").write_text(f"# {path.name}\n\n```python\n{text}\n```\n", encoding="utf-8")
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    (examples / "README.md").write_text(_FENCE.sub(r"\1", _PROGRAM.sub(r"](\1.md)", text)), encoding="utf-8")
    for name in _ASSETS:
        shutil.copy(HERE / name, pages / name)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".md":
        target.write_text(_FENCE.sub(r"\1", source.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        shutil.copy(source, target)


def navigation() -> Nav:
    """The sections and pages of ``docs/index.md``, with the decisions as a section of their own."""
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    heads = [*_SECTION.finditer(text)]
    ends = [head.start() for head in heads[1:]] + [len(text)]
    nav: Nav = [
        {
            "Start": [
                {"Tieline": "README.md"},
                {"The first five minutes": "docs/start.md"},
                {"Ten examples": "examples/README.md"},
                {"All pages": "docs/index.md"},
            ]
        }
    ]
    for head, end in zip(heads, ends, strict=True):
        found = _ENTRY.findall(text, head.end(), end)
        entries = [{title: _place(link)} for title, link in found if link.endswith(".md") and link != _DECISIONS]
        if entries:
            nav.append({head[1]: entries})
    listed = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    nav.append({"Decisions": [f"docs/{_DECISIONS}", *(f"docs/adr/{link}" for _, link in _DECISION.findall(listed))]})
    return nav


def _place(link: str) -> str:
    return link.removeprefix("../") if link.startswith("../") else f"docs/{link}"


def build(out: Path) -> None:
    """Make the site, or end with what is wrong in a page."""
    from mkdocs.commands.build import build as make  # an extra that only this needs
    from mkdocs.config import load_config

    pages = out.with_name(f"{out.name}-pages")
    shutil.rmtree(pages, ignore_errors=True)
    lay_out(pages)
    config = load_config(str(HERE / "mkdocs.yml"), docs_dir=str(pages), site_dir=str(out), nav=navigation())
    config.plugins.on_startup(command="build", dirty=False)
    try:
        make(config)
    finally:
        config.plugins.on_shutdown()
        shutil.rmtree(pages, ignore_errors=True)


def main() -> int:
    """Build into the folder that was named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="where the site goes (build/site)")
    out = parser.parse_args().out.resolve()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    build(out)
    print(f"the site is in {out}: open {out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

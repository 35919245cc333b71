"""Write the pages and the drawing that are generated, or with ``--check`` see that they are current."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from docs.architecture import drawing
from docs.reference import commands, papers
from tieline.conf import render

DOCS = Path(__file__).parents[1]
PAGES: dict[str, Callable[[], str]] = {
    "architecture/rooms.svg": drawing.rooms_svg,
    "reference/commands.md": commands.markdown,
    "reference/configuration.md": render.reference_markdown,
    "reference/tieline.schema.json": render.json_schema,
    "reference/tieline.toml": render.default_toml,
    **{f"papers/{name}.md": partial(papers.markdown, name) for name in papers.written()},
}


def main(*, check: bool) -> int:
    """Zero when every page says what the code says."""
    stale = 0
    for name, make in PAGES.items():
        page, text = DOCS / name, make()
        if page.exists() and page.read_text(encoding="utf-8") == text:
            print(f"current  docs/{name}")
        elif check:
            print(f"STALE    docs/{name}: run `make docs` and commit the result")
            stale += 1
        else:
            page.write_text(text, encoding="utf-8")
            print(f"written  docs/{name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))

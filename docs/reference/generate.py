"""Write the reference pages that are generated, or with ``--check`` see that they are current."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.reference import commands
from tieline.conf import render

HERE = Path(__file__).parent
PAGES = {
    "commands.md": commands.markdown,
    "configuration.md": render.reference_markdown,
    "tieline.schema.json": render.json_schema,
    "tieline.toml": render.default_toml,
}


def main(*, check: bool) -> int:
    """Zero when every page says what the code says."""
    stale = 0
    for name, make in PAGES.items():
        page, text = HERE / name, make()
        if page.exists() and page.read_text(encoding="utf-8") == text:
            print(f"current  docs/reference/{name}")
        elif check:
            print(f"STALE    docs/reference/{name}: run `make docs` and commit the result")
            stale += 1
        else:
            page.write_text(text, encoding="utf-8")
            print(f"written  docs/reference/{name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))

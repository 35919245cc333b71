"""Bind the pages beside the papers into one readable file: ``make papers``.

The pages are those of ``docs/papers``, as ``tieline reproduce`` has written them, or of any other folder that it wrote.
The book is one HTML file that holds its figures and its style, so that it can be sent, opened without a network, and
printed: every paper begins on a page of its own.
"""

from __future__ import annotations

import argparse
import base64
import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tieline.bench.papers.frame.record import PaperRecord
from tieline.bench.papers.registry import PAPERS

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
_IMAGE = re.compile(r'(<img[^>]*\ssrc=")([^":]+\.png)(")')
_LINK = re.compile(r'<a href="([^"]+)">(.*?)</a>', re.DOTALL)
_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>')
#: A fence says for tests what to do with a block; a reader is shown the language alone.
_FENCE = re.compile(r"^(```\w+) .*$", re.MULTILINE)
_EXTENSIONS = ("tables", "toc", "pymdownx.superfences")


class Chapter(NamedTuple):
    """One paper, ready to be bound."""

    name: str
    title: str
    tally: str
    body: str
    #: Anchor and title of each section.
    sections: list[tuple[str, str]]


def chapters(folder: Path) -> Iterator[Chapter]:
    """The papers of a folder, in the order in which they are run."""
    for name in PAPERS:
        if (folder / f"{name}.json").exists():
            yield _chapter(folder, name)


def _chapter(folder: Path, name: str) -> Chapter:
    from markdown import markdown  # an extra that only documents need

    record = PaperRecord.read(folder / f"{name}.json")
    text = _FENCE.sub(r"\1", (folder / f"{name}.md").read_text(encoding="utf-8"))
    body = markdown(text, extensions=list(_EXTENSIONS), output_format="html")
    # the same headings are in every paper
    body = re.sub(r'(<h\d id=")', rf"\g<1>{name}-", body)
    body = _IMAGE.sub(lambda found: f"{found[1]}{_inlined(folder / found[2])}{found[3]}", body)
    body = _LINK.sub(lambda found: _link(found[1], found[2]), body)
    return Chapter(name, record.title, record.tally(), body, _HEADING.findall(body))


def _inlined(picture: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def _link(target: str, words: str) -> str:
    """What leads to a place in the book or in the world stays a link; other pages are not bound with it."""
    if target.startswith(("https://", "http://")):
        return f'<a href="{target}">{words}</a>'
    page, _, _anchor = target.partition("#")
    name = page.removesuffix(".md")
    return f'<a href="#{name}">{words}</a>' if name in PAPERS else f"<span>{words}</span>"


def bound(folder: Path) -> str:
    """The whole book as HTML, with everything that it shows inside it."""
    found = list(chapters(folder))
    style = (HERE / "book.css").read_text(encoding="utf-8")
    contents = "".join(
        f'<li><a href="#{one.name}">{html.escape(one.title)}</a> <small>{html.escape(one.tally)}</small><ul>'
        + "".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in one.sections)
        + "</ul></li>"
        for one in found
    )
    bodies = "".join(f'<section class="paper" id="{one.name}">{one.body}</section>' for one in found)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Tieline beside its papers</title><style>{style}</style></head><body>"
        "<header><h1>Tieline beside its papers</h1><p>Every figure and table of the papers behind Tieline, computed "
        "again: what a paper says, what we measure, and by which rule it holds or not.</p></header>"
        f"<nav><h2>Contents</h2><ol>{contents}</ol></nav>{bodies}</body></html>\n"
    )


def main() -> int:
    """Bind the pages of a folder into the file that was named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, default=ROOT / "docs" / "papers", help="what `tieline reproduce` wrote")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "papers.html", help="the book (build/papers.html)")
    asked = parser.parse_args()
    found = [one.name for one in chapters(asked.pages)]
    if not found:
        print(f"{asked.pages} has no pages: tieline reproduce all --out {asked.pages} writes them", file=sys.stderr)
        return 1
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(bound(asked.pages), encoding="utf-8")
    print(f"the book of {', '.join(found)} is {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

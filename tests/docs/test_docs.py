"""The pages keep their promises: links lead somewhere, programs run, settings are accepted, every name is explained."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path

import pytest

from tests.kits.patience import PATIENCE_S
from tieline.conf.load import loads
from tieline.core.account import Drop
from tieline.core.client import Hold

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
OBSERVE = ROOT / "docs" / "how" / "observe.md"
ADRS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))

_FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _blocks(page: Path) -> list[tuple[str, str]]:
    """Every fenced block: what stands behind the fence, and its content."""
    return [(found[1], found[2]) for found in _FENCE.finditer(page.read_text(encoding="utf-8"))]


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{_name(page)} links to {link}"
        if anchor and there.suffix == ".md":
            assert anchor in _anchors(there), f"{_name(page)} links to {link}; there is no such heading"


def test_what_a_billion_rows_a_day_need_is_the_same_on_both_pages() -> None:
    def figures(page: str) -> list[str]:
        """The rows of the table of slopes, without its headings."""
        text = (ROOT / "docs" / page).read_text()
        return text[text.index("| CPU, log to plain tables |") :].partition("\n\n")[0].splitlines()

    assert len(figures("scale.md")) == 7
    assert figures("scale.md") == figures("how/sizing.md")


_RULE = re.compile(r"\|(?: *:?-+:? *\|)+")


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_row_stands_in_a_table_with_as_many_columns(page: Path) -> None:
    """What begins with a bar is a table: its second line is the rule, and an empty line would end it too early."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for table in re.findall(r"(?:^ *\|.*\n?)+", text, re.MULTILINE):
        rows = [row.strip() for row in table.splitlines()]
        assert len(rows) > 2 and _RULE.fullmatch(rows[1]), f"{_name(page)}: {rows[0]}"
        columns = rows[1].count("|")
        uneven = [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) != columns]
        assert uneven == [], _name(page)


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(index.read_text("utf-8"))}
    hidden = [_name(page) for page in PAGES if page not in linked and page.parent != ROOT and page != index]
    # the decisions have a list of their own
    assert [page for page in hidden if not page.startswith("docs/adr/")] == []
    listed = (ROOT / "docs" / "adr" / "README.md").read_text("utf-8")
    assert [adr.name for adr in ADRS if f"({adr.name})" not in listed] == []


def _settings() -> Iterator[tuple[Path, str]]:
    return ((page, body) for page in PAGES for kind, body in _blocks(page) if kind.split()[:1] == ["toml"])


@pytest.mark.parametrize(("page", "text"), [pytest.param(*one, id=_name(one[0])) for one in _settings()])
def test_every_configuration_shown_is_accepted(page: Path, text: str) -> None:
    loads(text, _name(page))


def _programs() -> Iterator[tuple[Path, str, str]]:
    """Each block marked ``python run`` with the ``text output`` that follows it."""
    for page in PAGES:
        for (kind, body), (next_kind, output) in pairwise([*_blocks(page), ("", "")]):
            if kind == "python run":
                yield page, body, output if next_kind == "text output" else ""


@pytest.mark.parametrize(
    ("program", "output"),
    [pytest.param(body, output, id=f"{_name(page)}-{n}") for n, (page, body, output) in enumerate(_programs())],
)
def test_every_program_prints_what_the_page_says(program: str, output: str, tmp_path: Path) -> None:
    done = _run(tmp_path, "-c", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == output


def _tests() -> dict[Path, list[str]]:
    """The blocks marked ``python test``, by page."""
    shown = {page: [body for kind, body in _blocks(page) if kind == "python test"] for page in PAGES}
    return {page: bodies for page, bodies in shown.items() if bodies}


@pytest.mark.parametrize("page", _tests(), ids=_name)
def test_every_test_shown_passes(page: Path, tmp_path: Path) -> None:
    for number, body in enumerate(_tests()[page]):
        (tmp_path / f"test_shown_{number}.py").write_text(body, encoding="utf-8")
    # installed, the plug-in is there by itself
    plugin = [] if entry_points(group="pytest11", name="tieline") else ["-p", "tieline.pytest_plugin"]
    done = _run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", *plugin)
    assert done.returncode == 0, done.stdout


def _run(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", *words]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def _named(text: str) -> set[str]:
    """What stands between backquotes."""
    return set(re.findall(r"`([^`\n]+)`", text))


def test_every_drop_and_every_hold_is_explained() -> None:
    missing = {*Drop, *Hold} - _named(OBSERVE.read_text(encoding="utf-8"))
    assert not missing, f"docs/how/observe.md does not explain {sorted(missing)}"


def _closings() -> set[str]:
    """The names under which the source ends connections, as far as they are written there."""
    patterns = (
        r'\bshut\([^"]*?"(\w+)"',
        r'\b_end\([^"]*?"(\w+)"',
        r'\.closed\["(\w+)"\]',
        r'\bLayerError\("(\w+)"',
        r'"(tls_\w+|ws_\w+)"',
    )
    names = {name for pattern in patterns for name in re.findall(pattern, _source("core", "net"))}
    # a broken rule of the protocol is named by its reason code
    for error in re.findall(r"Violation\((.+)\)", _source("core", "wire")):
        names |= {reason.lower() for reason in re.findall(r"Reason\.(\w+)", error)}
    return names | {"malformed_packet", "protocol_error", "packet_too_large"}


def _source(*parts: str) -> str:
    return "\n".join(path.read_text("utf-8") for part in parts for path in (ROOT / "src/tieline" / part).rglob("*.py"))


def test_every_closing_is_explained() -> None:
    names = _closings()
    assert {"taken_over", "tls_error", "no_descriptors", "ws_text_frame", "topic_alias_invalid"} <= names
    missing = names - _named(OBSERVE.read_text(encoding="utf-8")) - {"unsupported_protocol_version"}
    assert not missing, f"docs/how/observe.md does not explain {sorted(missing)}"


# What a page says of the code stands between backquotes.  A path, or a name with a path in front of it, is something
# that exists.  Pages also tell of things that are gone, the decisions above all: they call them by their name alone.
_SOURCE = ROOT / "src" / "tieline"
_PACKAGES = sorted(path.parent.name for path in _SOURCE.glob("*/__init__.py"))
#: ``core/routing/routes.Routes.find`` or ``core/routing/routes.py``.
_THING = re.compile(rf"((?:{'|'.join(_PACKAGES)})(?:/\w+)+)(?:\.py)?((?:\.\w+)*)")
#: ``tieline.match.where.bind``, but not a file.
_DOTTED = re.compile(r"tieline(?:\.(?!(?:db|schema|sock|toml)\b)\w+)+")
#: ``tests/core/oracle.py``, ``fuzz``, ``docs/reference``.
_FILE = re.compile(r"(?:src|tests|docs|fuzz|examples)(?:/[\w.-]+)+")
#: ``Burst.cut``.
_MEMBER = re.compile(r"([A-Z][a-z]\w*)\.([a-z_]\w*)(?:\(.*\))?")


def _things(page: Path) -> list[str]:
    return sorted(_named(_FENCE.sub("", page.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_part_of_the_code_that_a_page_names_exists(page: Path) -> None:
    for name in _things(page):
        if found := _THING.fullmatch(name):
            _check_thing(f"tieline.{found[1].replace('/', '.')}", found[2].split(".")[1:])
        elif _DOTTED.fullmatch(name):
            parts = name.split(".")
            modules = [end for end in range(1, len(parts) + 1) if _is_module(parts[:end])]
            _check_thing(".".join(parts[: modules[-1]]), parts[modules[-1] :])


def _is_module(parts: list[str]) -> bool:
    path = ROOT.joinpath("src", *parts)
    return path.is_dir() or path.with_suffix(".py").exists()


def _check_thing(module: str, attributes: list[str]) -> None:
    thing: object = import_module(module)
    for attribute in attributes:
        thing = getattr(thing, attribute)
    where = getattr(thing, "__module__", module)
    is_package = (ROOT / "src" / module.replace(".", "/")).is_dir()
    assert is_package or where == module or not where.startswith("tieline."), f"{attributes} is defined in {where}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    missing = [name for name in _things(page) if _FILE.fullmatch(name) and not (ROOT / name).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_member_of_a_class_that_a_page_names_exists(page: Path) -> None:
    for name in _things(page):
        if found := _MEMBER.fullmatch(name):
            kind, member = found[1], re.escape(found[2])
            defined = re.compile(rf"\bdef {member}\b|\bself\.{member}\b|^ +{member}\b.*[:=]", re.MULTILINE)
            sources = (source for source in _sources() if re.search(rf"^class {kind}\b", source, re.MULTILINE))
            assert any(defined.search(source) for source in sources), name


@cache
def _sources() -> list[str]:
    return [path.read_text("utf-8") for path in _SOURCE.rglob("*.py")]


def test_the_map_of_the_architecture_has_every_package_and_nothing_else() -> None:
    """A line begins with the name of a folder, or of a module or file; its indentation says in which folder that is."""
    drawn = next(body for _kind, body in _blocks(ROOT / "ARCHITECTURE.md") if body.startswith("src/tieline/"))
    folders: list[Path] = [ROOT]
    found: set[Path] = set()
    for line in drawn.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        path = folders[depth] / name
        assert path.is_dir() if name.endswith("/") else path.with_suffix(".py").is_file(), line
        folders = [*folders[: depth + 1], path]
        found.add(path)
    packages = {init.parent for init in _SOURCE.rglob("__init__.py")}
    assert {str(path.relative_to(ROOT)) for path in packages - found} == set()


def test_no_page_knows_this_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/(home|root|tmp)/", page.read_text("utf-8")), _name(page)


@pytest.mark.parametrize("adr", ADRS, ids=lambda adr: adr.stem)
def test_every_decision_has_the_same_four_parts(adr: Path) -> None:
    text = adr.read_text(encoding="utf-8")
    assert re.match(rf"# {int(adr.name[:4])}\. \S", text), "the heading has the number of the file"
    parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert parts == ["Status", "Context", "Decision", "Consequences"]


def test_each_number_is_that_of_one_decision() -> None:
    # gaps are allowed: two people who decide at the same time take numbers that are apart
    numbers = [int(adr.name[:4]) for adr in ADRS]
    assert numbers[0] == 1
    assert len(set(numbers)) == len(numbers)

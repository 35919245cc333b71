"""Every key of a TOML text is found on the line where it was written."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.conf.lines import Path, line_of

TEXT = '''\
# a comment with [brackets] and = signs
name = "a # no comment"  # a comment

[limits]
"packet_bytes" = 3
'queue bytes' = """
several
[lines] = 1
"""
nested.deeper.still = [
  1, # one, two ]
  "]", {a = 1, b = "}"},
  {c = [2,
        3]},
]

[[listener]]
url = 'tcp://a'
[[listener]]
url = \'\'\'tcp://b\'\'\'
  [listener.inner]
  x = 1
[[listener.list]]
y = 1979-05-27T07:32:00Z
[[listener.list]]
y = -inf
[mqtt] # end
full = "a \\" b"
empty = ""
last = true'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 2),
        (("limits",), 4),
        (("limits", "packet_bytes"), 5),
        (("limits", "queue bytes"), 6),
        (("limits", "nested"), 10),
        (("limits", "nested", "deeper", "still"), 10),
        (("limits", "nested", "deeper", "still", 0), 11),
        (("limits", "nested", "deeper", "still", 1), 12),
        (("limits", "nested", "deeper", "still", 2, "b"), 12),
        (("limits", "nested", "deeper", "still", 3, "c", 1), 14),
        (("listener",), 17),
        (("listener", 0), 17),
        (("listener", 0, "url"), 18),
        (("listener", 1), 19),
        (("listener", 1, "url"), 20),
        (("listener", 1, "inner", "x"), 22),
        (("listener", 1, "list", 0, "y"), 24),
        (("listener", 1, "list", 1, "y"), 26),
        (("mqtt", "full"), 28),
        (("mqtt", "empty"), 29),
        (("mqtt", "last"), 30),
        (("mqtt", "absent"), 27),
        (("listener", 0, "absent"), 17),
        (("absent",), None),
        ((), None),
    ],
)
def test_each_key_has_its_line(path: Path, line: int | None) -> None:
    tomllib.loads(TEXT)
    assert line_of(TEXT, path) == line


def test_windows_line_ends_count_once() -> None:
    assert line_of("a = 1\r\nb = 2\r\n[c]\r\nd = 3\r\n", ("c", "d")) == 4


keys = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)
scalars = st.one_of(
    st.integers(-99, 99).map(str),
    st.booleans().map(lambda flag: str(flag).lower()),
    st.text(alphabet="ab #[]{}=,'.\t", max_size=8).map(lambda text: f'"{text}"'),
    st.text(alphabet='ab #[]{}=,".\t', max_size=8).map(lambda text: f"'{text}'"),
    st.text(alphabet="ab #[]{}=,'\n", max_size=8).map(lambda text: f'"""\n{text}"""'),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4).map(
        lambda items: "[\n" + "".join(f"  {item},\n" for item in items) + "]"
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(keys, values), unique_by=lambda pair: pair[0], max_size=6))
def test_any_file_of_keys_is_mapped(pairs: list[tuple[str, str]]) -> None:
    text, expected = "", {}
    for key, value in pairs:
        expected[key] = text.count("\n") + 1
        text += f"{key} = {value} # {value.splitlines()[0]}\n"
    tomllib.loads(text)
    assert {key: line_of(text, (key,)) for key in expected} == expected


@given(st.text(alphabet="ab=[]{}'\"#,.\n \\", max_size=60))
def test_the_scanner_ends_on_everything_that_is_toml(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    for path in _paths(data, ()):
        assert line_of(text, path) is not None or not all(isinstance(part, str) for part in path)


def _paths(data: Any, path: Path) -> list[Path]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [found for part, value in inner for found in [(*path, part), *_paths(value, (*path, part))]]

"""The words of an expression: from characters to tokens, one at a time, so that the leftmost fault is found first.

A fault is an :class:`ExpressionError`, here and wherever an expression is read: what is wrong, and in which column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from tieline.match.where.terms import Value


class ExpressionError(ValueError):
    """An expression that cannot be used; ``column`` counts characters from 1, ``text`` says what was expected there."""

    def __init__(self, text: str, column: int) -> None:
        super().__init__(text, column)
        self.text = text
        self.column = column

    def __str__(self) -> str:
        return f"column {self.column}: {self.text}"


class TokenKind(Enum):
    """What a token may stand for."""

    #: A bare word: an attribute, or a text where a text is expected.
    WORD = auto()
    #: A name in backquotes: an attribute and nothing else.
    NAME = auto()
    NUMBER = auto()
    TEXT = auto()
    TRUTH = auto()
    #: An operator, keyword or bracket, its spellings made one; or a character that nothing begins with.
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """A word, what it means, and the column (from 1) where it begins."""

    kind: TokenKind
    value: Value
    column: int


#: Keywords, in lower case, and the symbol that each of them is.
_KEYWORDS: Final = {"and": "and", "or": "or", "not": "not", "in": "in"}
_TRUTHS: Final = {"true": True, "false": False}
#: Longer spellings first: ``<=`` is not ``<`` and ``=``.
_OPERATORS: Final = {
    "<=": "<=",
    ">=": ">=",
    "<>": "!=",
    "!=": "!=",
    "==": "=",
    "&&": "and",
    "||": "or",
    "<": "<",
    ">": ">",
    "=": "=",
    "!": "not",
    "&": "and",
    "|": "or",
}
_DIGITS: Final = frozenset("0123456789")


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, the last of them ``END``, one column behind it."""
    pos = 0
    while pos < len(text):
        char = text[pos]
        if char.isspace():
            pos += 1
            continue
        column = pos + 1
        if char in "\"'`":
            content, pos = _quoted(text, pos)
            if char == "`" and not content:
                raise ExpressionError("expected a name between backquotes", column)
            yield Token(TokenKind.NAME if char == "`" else TokenKind.TEXT, content, column)
        elif char in _DIGITS or char in "+-.":
            number, pos = _number(text, pos)
            yield Token(TokenKind.NUMBER, number, column)
        elif _begins_word(char):
            end = _word_end(text, pos)
            yield _word(text[pos:end], column)
            pos = end
        else:
            spelling = text[pos : pos + 2] if text[pos : pos + 2] in _OPERATORS else char
            yield Token(TokenKind.SYMBOL, _OPERATORS.get(spelling, spelling), column)
            pos += len(spelling)
    yield Token(TokenKind.END, "", len(text) + 1)


def is_plain(name: str) -> bool:
    """Whether a name can be written without backquotes."""
    if not _begins_word(name[:1]) or name.lower() in _KEYWORDS or name.lower() in _TRUTHS:
        return False
    try:
        return _word_end(name, 0) == len(name)
    except ExpressionError:
        return False


def _word(word: str, column: int) -> Token:
    lower = word.lower()
    if lower in _KEYWORDS:
        return Token(TokenKind.SYMBOL, _KEYWORDS[lower], column)
    if lower in _TRUTHS:
        return Token(TokenKind.TRUTH, _TRUTHS[lower], column)
    return Token(TokenKind.WORD, word, column)


def _begins_word(char: str) -> bool:
    return char.isalpha() or char == "_"


def _word_end(text: str, pos: int) -> int:
    """Where a word ends: letters, digits and underscores, in steps joined by single dots."""
    while True:
        start = pos
        while pos < len(text) and (text[pos].isalnum() or text[pos] == "_"):
            pos += 1
        if pos == start:
            raise ExpressionError("expected a letter, a digit or '_' after '.'", pos + 1)
        if text[pos : pos + 1] != ".":
            return pos
        pos += 1


def _quoted(text: str, pos: int) -> tuple[str, int]:
    """The content of quotes, where a doubled quote is one quote, and the position behind them."""
    quote = text[pos]
    pieces: list[str] = []
    start = pos + 1
    while True:
        end = text.find(quote, start)
        if end < 0:
            raise ExpressionError(f"expected {quote} to close what column {pos + 1} opens", len(text) + 1)
        pieces.append(text[start:end])
        if text[end + 1 : end + 2] != quote:
            return quote.join(pieces), end + 1
        start = end + 2


def _number(text: str, pos: int) -> tuple[float, int]:
    """A number with sign, fraction and exponent, and the position behind it.

    Nothing that stands directly behind a number may look like a part of it: ``1.2.3`` and ``12ab`` are faults, not
    a number and something else.
    """
    start = pos
    if text[pos] in "+-":
        pos += 1
        if text[pos : pos + 1] not in _DIGITS and text[pos : pos + 1] != ".":
            is_in_name = start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_")
            hint = "; a name with other characters is written in backquotes" if is_in_name else ""
            raise ExpressionError(f"expected a digit after '{text[start]}'{hint}", pos + 1)
    pos = _digits(text, pos)
    if text[pos : pos + 1] == ".":
        pos = _some_digits(text, pos + 1, "'.'")
    if text[pos : pos + 1] in ("e", "E"):
        pos += 1
        if text[pos : pos + 1] in ("+", "-"):
            pos += 1
        pos = _some_digits(text, pos, "the 'e' of a number")
    if pos < len(text) and (text[pos].isalnum() or text[pos] in "_."):
        raise ExpressionError("expected the end of the number; a text that begins with a digit needs quotes", pos + 1)
    number = float(text[start:pos])
    if math.isinf(number):
        raise ExpressionError("expected a number below 1.8e308", start + 1)
    return number + 0.0, pos  # -0.0 becomes 0.0: equal numbers are written the same


def _digits(text: str, pos: int) -> int:
    while pos < len(text) and text[pos] in _DIGITS:
        pos += 1
    return pos


def _some_digits(text: str, pos: int, after: str) -> int:
    end = _digits(text, pos)
    if end == pos:
        raise ExpressionError(f"expected a digit after {after}", pos + 1)
    return end

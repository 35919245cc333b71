"""How an expression is written into a topic filter, so that any client can ask.

``$where/<expression>/<filter>``, where the characters ``/ + # %`` of the expression are percent-encoded, and others may
be.  Any filter may stand behind it, ``#`` included, and ``$share/<group>/`` before it.

``<filter>?<expression>``, where it is switched on: everything behind the first ``?`` is the expression, as it is,
without encoding.  That is so only if it compares something: if there is a ``<``, ``>`` or ``=``, or a bracket behind
``in``, ``changed`` or ``delta``, outside quotes.  Otherwise, and behind a ``$where/``, a ``?`` is an ordinary character
of the filter.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tieline.match.where.lexer import ExpressionError
from tieline.wire.errors import Violation
from tieline.wire.topics import SHARE, split_share

WHERE: Final = "$where/"

_QUOTES: Final = "\"'`"
_BEFORE_BRACKETS: Final = ("changed", "delta", "in")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
#: What would end the expression, or mean something else, inside a topic filter.
_UNSAFE: Final = "%/+#"


class Asked(NamedTuple):
    """What a subscription asks for."""

    #: The group of a shared subscription.
    share: str | None
    #: The topic filter alone.
    filter: str
    #: The expression, decoded and not yet parsed.
    expression: str | None


def split(filter_: str, *, question_mark: bool) -> Asked:
    """Take the filter of a subscription apart.

    Raises :class:`ExpressionError` where ``$where/`` is not followed by a decodable expression and a filter; its column
    counts from behind the ``$where/``.  A malformed share is left whole, for the check of topic filters to refuse.
    """
    try:
        share, rest = split_share(filter_)
    except Violation:
        return Asked(None, filter_, None)
    if rest.startswith(WHERE):
        encoded, _, bare = rest.removeprefix(WHERE).partition("/")
        if not encoded:
            raise ExpressionError("expected an expression", 1)
        if not bare:
            raise ExpressionError("expected '/' and a topic filter after the expression", len(encoded) + 1)
        if bare.startswith((SHARE, WHERE)):
            raise ExpressionError(f"expected {SHARE} before {WHERE}, and each only once", len(encoded) + 2)
        return Asked(share, bare, _decoded(encoded))
    if question_mark:
        bare, _, tail = rest.partition("?")
        if _compares(tail):
            return Asked(share, bare, tail)
    return Asked(share, rest, None)


def spell(asked: Asked) -> str:
    """The ``$where/`` spelling, which :func:`split` takes apart again."""
    share = "" if asked.share is None else f"{SHARE}{asked.share}/"
    where = "" if asked.expression is None else f"{WHERE}{_encoded(asked.expression)}/"
    return share + where + asked.filter


def _compares(tail: str) -> bool:
    """Whether there is a comparison outside quotes; a quote that is never closed hides the rest."""
    pos = 0
    while pos < len(tail):
        char = tail[pos]
        if char in "<>=":
            return True
        if char in _QUOTES:
            pos = tail.find(char, pos + 1)
            if pos < 0:
                return False
        elif char == "(" and _last_word(tail, pos) in _BEFORE_BRACKETS:
            return True
        pos += 1
    return False


def _last_word(text: str, end: int) -> str:
    """The word directly before a position, spaces aside, in lower case."""
    while end and text[end - 1].isspace():
        end -= 1
    start = end
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return text[start:end].lower()


def _decoded(encoded: str) -> str:
    decoded = bytearray()
    #: Where each of the bytes was written.
    columns: list[int] = []
    pos = 0
    while pos < len(encoded):
        char = encoded[pos]
        if char in "+#":
            raise ExpressionError(f"expected %{ord(char):02X} instead of '{char}' in an encoded expression", pos + 1)
        if char == "%":
            digits = encoded[pos + 1 : pos + 3]
            if len(digits) != 2 or not _HEX.issuperset(digits):
                raise ExpressionError("expected two hexadecimal digits after '%'", pos + 2)
            piece, length = bytes.fromhex(digits), 3
        else:
            # A lone surrogate becomes bytes that are no UTF-8, and is refused with them.
            piece, length = char.encode(errors="surrogatepass"), 1
        decoded += piece
        columns += [pos + 1] * len(piece)
        pos += length
    try:
        return decoded.decode()
    except UnicodeDecodeError as error:
        raise ExpressionError("expected UTF-8", columns[error.start]) from None


def _encoded(expression: str) -> str:
    return "".join(
        "".join(f"%{byte:02X}" for byte in char.encode()) if char in _UNSAFE or not char.isprintable() else char
        for char in expression
    )

"""The grammar of expressions: a recursive descent with one token of foresight.

::

    expression  = conjunction { or conjunction }                    or:  or | ||
    conjunction = negation { and negation }                         and: and & &&
    negation    = { not } ( "(" expression ")" | condition )        not: not !
    condition   = name operator value
                | value operator name [ operator value ]            195.5 <= voltage < 207
                | name [ not ] in "(" value { "," value } ")"
                | changed "(" name ")"
                | delta "(" name ")" ( ">" | ">=" ) number
    operator    = "<" | "<=" | ">" | ">=" | "=" | "==" | "!=" | "<>"
    value       = number | text in quotes | true | false | word     a word only behind = and != and inside in ( )

Keywords may be written in capitals.  A name is a word, dots included (``pcc.voltage``), or anything in backquotes.
Only parentheses nest, and they are counted, so the descent is never deeper than ``MAX_DEPTH`` of them.
"""

from __future__ import annotations

from typing import Final

from tieline.match.where.lexer import ExpressionError, Token, TokenKind, tokens
from tieline.match.where.terms import Changed, Delta, End, OneOf, Range, Term, Value, conjunction, disjunction, negation

#: Characters of an expression; Solace allows 2,000 for a selector, Google Pub/Sub 256.
MAX_LENGTH: Final = 1_024
#: Parentheses inside one another.
MAX_DEPTH: Final = 16
#: Comparisons of one expression; each value of a list counts.
MAX_TERMS: Final = 64

_LESS: Final = ("<", "<=")
_GREATER: Final = (">", ">=")
_EQUAL: Final = ("=", "!=")
_VALUES: Final = (TokenKind.NUMBER, TokenKind.TEXT, TokenKind.TRUTH)
_KINDS: Final = {float: "a number", str: "a text", bool: "true or false"}


def read(text: str) -> Term:
    """What a text says, or an :class:`ExpressionError`."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expected at most {MAX_LENGTH} characters", MAX_LENGTH + 1)
    return _Parser(text).whole()


class _Parser:
    """One reading of one text."""

    __slots__ = ("_depth", "_rest", "_terms", "_token")

    def __init__(self, text: str) -> None:
        self._rest = tokens(text)
        #: The first token that is not consumed yet.
        self._token: Token = next(self._rest)
        self._depth = 0
        self._terms = 0

    def whole(self) -> Term:
        term = self._expression()
        if self._token.kind is not TokenKind.END:
            raise self._expected("'and', 'or' or the end")
        return term

    # --- tokens ------------------------------------------------------------------------------------------------------

    def _next(self) -> Token:
        """Consume a token, never the ``END``."""
        token, self._token = self._token, next(self._rest)
        return token

    def _sees(self, *symbols: str) -> bool:
        return self._token.kind is TokenKind.SYMBOL and self._token.value in symbols

    def _accept(self, symbol: str) -> bool:
        """Consume a symbol if it is next."""
        if not self._sees(symbol):
            return False
        self._next()
        return True

    def _require(self, symbol: str, where: str) -> None:
        if not self._accept(symbol):
            raise self._expected(f"'{symbol}' {where}")

    def _expected(self, what: str) -> ExpressionError:
        return ExpressionError(f"expected {what}", self._token.column)

    def _count(self, column: int) -> None:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise ExpressionError(f"expected at most {MAX_TERMS} comparisons", column)

    # --- what joins --------------------------------------------------------------------------------------------------

    def _expression(self) -> Term:
        terms = [self._conjunction()]
        while self._accept("or"):
            terms.append(self._conjunction())
        return disjunction(terms)

    def _conjunction(self) -> Term:
        terms = [self._negation()]
        while self._accept("and"):
            terms.append(self._negation())
        return conjunction(terms)

    def _negation(self) -> Term:
        # A loop, not a call: any number of `not` costs no stack.
        is_negated = False
        while self._accept("not"):
            is_negated = not is_negated
        term = self._parenthesis() if self._sees("(") else self._condition()
        return negation(term) if is_negated else term

    def _parenthesis(self) -> Term:
        if self._depth == MAX_DEPTH:
            raise self._expected(f"at most {MAX_DEPTH} parentheses inside one another")
        opening = self._next()
        self._depth += 1
        term = self._expression()
        self._depth -= 1
        self._require(")", f"to close the one in column {opening.column}")
        return term

    # --- what compares -----------------------------------------------------------------------------------------------

    def _condition(self) -> Term:
        self._count(self._token.column)
        if self._token.kind in (TokenKind.WORD, TokenKind.NAME):
            return self._of_attribute()
        if self._token.kind in _VALUES:
            return self._of_value()
        raise self._expected("an attribute, a value, 'not' or '('")

    def _of_attribute(self) -> Term:
        """A condition that begins with a name."""
        token = self._next()
        name = str(token.value)
        if token.kind is TokenKind.WORD and self._sees("("):
            return self._call(name, token.column)
        if self._accept("in"):
            return self._list(name)
        if self._accept("not"):
            self._require("in", "after 'not'")
            return negation(self._list(name))
        operator = self._operator(f"'{name}'")
        return _compared(name, operator, self._value(f"'{operator}'", is_ordering=operator not in _EQUAL))

    def _of_value(self) -> Term:
        """A condition that begins with a value: a comparison the other way round, or a range."""
        value = self._next().value
        if isinstance(value, bool) and not self._sees(*_EQUAL):
            raise self._expected("'=' or '!=' after true or false")
        operator = self._operator("the value")
        name = self._name(f"'{operator}'")
        mirrored = operator.translate(_MIRROR)
        term = _compared(name, mirrored, value)
        if operator in _EQUAL or not self._sees(*_LESS, *_GREATER):
            return term
        onward = _LESS if operator in _LESS else _GREATER
        if not self._sees(*onward):
            raise self._expected(f"'{onward[0]}' or '{onward[1]}', as the range began")
        self._count(self._token.column)
        onward_operator = str(self._next().value)
        column = self._token.column
        other = self._value(f"'{onward_operator}'", is_ordering=True)
        if type(other) is not type(value):
            raise ExpressionError(f"expected {_KINDS[type(value)]}, as the range began", column)
        return _between(term, _compared(name, onward_operator, other))

    def _call(self, function: str, column: int) -> Term:
        if function.lower() not in ("changed", "delta"):
            raise ExpressionError("expected 'changed' or 'delta' before '('", column)
        self._next()
        name = self._name("'('")
        self._require(")", f"after '{name}'")
        if function.lower() == "changed":
            return Changed(name)
        if not self._sees(*_GREATER):
            raise self._expected("'>' or '>=' after delta( )")
        operator = str(self._next().value)
        distance = self._token
        if distance.kind is not TokenKind.NUMBER or not float(distance.value) >= 0:
            raise self._expected(f"a number not below 0 after '{operator}'")
        self._next()
        return Delta(name, float(distance.value), operator == ">")

    def _list(self, name: str) -> Term:
        """The values behind ``in``; each is a comparison that counts, the first was counted with its name."""
        self._require("(", "after 'in'")
        values = [self._value("'('", is_ordering=False)]
        while self._accept(","):
            self._count(self._token.column)
            column = self._token.column
            values.append(self._value("','", is_ordering=False))
            if type(values[-1]) is not type(values[0]):
                raise ExpressionError(f"expected {_KINDS[type(values[0])]}, like the values before", column)
        if not self._accept(")"):
            raise self._expected("',' or ')' after a value")
        return OneOf(name, tuple(dict.fromkeys(values)))

    def _operator(self, after: str) -> str:
        if not self._sees(*_LESS, *_GREATER, *_EQUAL):
            raise self._expected(f"a comparison after {after}")
        return str(self._next().value)

    def _name(self, after: str) -> str:
        if self._token.kind not in (TokenKind.WORD, TokenKind.NAME):
            raise self._expected(f"an attribute after {after}")
        return str(self._next().value)

    def _value(self, after: str, *, is_ordering: bool) -> Value:
        kind = self._token.kind
        if is_ordering:
            if kind not in (TokenKind.NUMBER, TokenKind.TEXT):
                raise self._expected(f"a number or a quoted text after {after}")
        elif kind not in (*_VALUES, TokenKind.WORD):
            raise self._expected(f"a number, a text, true or false after {after}")
        return self._next().value


#: ``5 < x`` is ``x > 5``.
_MIRROR: Final = str.maketrans("<>", "><")


def _compared(name: str, operator: str, value: Value) -> Term:
    if operator == "=":
        return OneOf(name, (value,))
    if operator == "!=":
        return negation(OneOf(name, (value,)))
    # Truth values are not ordered; both callers have refused them.
    assert not isinstance(value, bool)
    end = End(value, is_open=len(operator) == 1)
    return Range(name, None, end) if operator in _LESS else Range(name, end, None)


def _between(one: Term, other: Term) -> Term:
    """One range out of two that are open on opposite sides."""
    assert isinstance(one, Range)
    assert isinstance(other, Range)
    return Range(one.name, one.low or other.low, one.high or other.high)

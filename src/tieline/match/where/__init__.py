"""Expressions over the content of messages: parsed, evaluated, and turned into boxes."""

from __future__ import annotations

from tieline.match.where.binding import Bound, bind, understood
from tieline.match.where.lexer import ExpressionError
from tieline.match.where.predicate import Predicate, parse
from tieline.match.where.spelling import Asked, spell, split

__all__ = ["Asked", "Bound", "ExpressionError", "Predicate", "bind", "parse", "spell", "split", "understood"]

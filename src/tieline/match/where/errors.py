"""What is wrong with an expression, and in which column."""

from __future__ import annotations


class ExpressionError(ValueError):
    """An expression that cannot be used; ``column`` counts characters from 1, ``text`` says what was expected there."""

    def __init__(self, text: str, column: int) -> None:
        super().__init__(text, column)
        self.text = text
        self.column = column

    def __str__(self) -> str:
        return f"column {self.column}: {self.text}"

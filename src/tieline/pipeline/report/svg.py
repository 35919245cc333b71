"""SVG for pages: a few shapes as escaped markup, coloured by the page's style sheet in light, dark and print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from markupsafe import Markup, escape

_RENAMED: Final = {"class_": "class"}


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """One element. Text is escaped, elements are kept; ``text_anchor=`` becomes ``text-anchor=``."""
    written = Markup("").join(
        Markup(' {}="{}"').format(_RENAMED.get(key, key.replace("_", "-")), _value(value))
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(escape(each) for each in inside)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, content)  # noqa: S704  our own names of elements


def picture(
    width: float, height: float, label: str, parts: Iterable[Markup], *, class_: str = "", stretches: bool = False
) -> Markup:
    """A whole picture that scales with the page; ``label`` is what a screen reader says.

    One that ``stretches`` fills its place whatever the proportions: for bars, not for text.
    """
    shape = Markup(' preserveAspectRatio="none"') if stretches else ""
    return Markup('<svg viewBox="0 0 {} {}" role="img" class="{}"{}><title>{}</title>{}</svg>').format(
        _value(width), _value(height), class_, shape, label, Markup("").join(parts)
    )


def _value(value: object) -> str:
    """Numbers as short as a picture needs them."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

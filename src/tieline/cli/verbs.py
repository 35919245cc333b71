"""What the verbs of the command line are made of: they are loaded when they are called, and share blocks of options.

A table lists verbs with the place of their Typer app, ``module`` or ``module:attribute``; the module is imported when
the verb is called, because the libraries behind some of them are slow to import.

A block is a dataclass whose fields are annotated as Typer wants options to be, or are blocks themselves.  A verb takes
the whole block as one parameter: :func:`with_blocks` spreads its fields over the verb's signature, where Typer finds
them, and puts them together again when the verb is called.  So an option that several verbs have is declared once.
A verb has a parameter for each option or block, and no fewer than its users need: here alone functions take ten.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from importlib import import_module
from typing import Any, TypeGuard, get_type_hints  # Any: whatever the parser of a command line takes

import typer
from typer.core import TyperCommand

#: Verb, place of its app within a package, help.
Verb = tuple[str, str, str]

#: Where the app of each verb is, by how the verb is typed.
_PLACES: dict[str, tuple[str, str]] = {}


class Raw(TyperCommand):
    """Hands everything after its name over in ``ctx.args``: to a parser of its own, or to a command loaded later."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # Any: the context of a library within Typer
        ctx.args = list(args)
        return []


def new_app(help_text: str | None = None) -> typer.Typer:
    """An app for one verb, or with ``help_text`` for a verb that has verbs of its own."""
    if help_text is None:
        return typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    return typer.Typer(help=help_text, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def load_app(package: str, place: str) -> typer.Typer:
    """The app at ``module`` or ``module:attribute`` of a package."""
    module, _, attribute = place.partition(":")
    found: typer.Typer = getattr(import_module(f"{package}.{module}"), attribute or "app")
    return found


def add_verbs(app: typer.Typer, verbs: Iterable[Verb], *, package: str, program: str) -> None:
    """Give an app verbs that are loaded when they are called; ``program`` is what stands before them."""
    for verb, place, help_text in verbs:
        command = app.command(verb, cls=Raw, help=help_text, add_help_option=False, options_metavar="[OPTIONS]")
        command(_loader(package, place, f"{program} {verb}"))


def _loader(package: str, place: str, program: str) -> Callable[[typer.Context], None]:
    def run(ctx: typer.Context) -> None:
        load_app(package, place)(args=ctx.args, prog_name=program)

    _PLACES[program] = (package, place)
    return run


def loaded(program: str) -> typer.Typer | None:
    """The app behind a verb that is loaded when it is called, given as it is typed; None if it is there already."""
    found = _PLACES.get(program)
    return None if found is None else load_app(*found)


def with_blocks(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options of its blocks in their places; for Typer, which calls it with keywords."""
    hints = get_type_hints(verb, include_extras=True)
    spread: list[inspect.Parameter] = []
    blocks: dict[str, type[Any]] = {}
    for parameter in inspect.signature(verb).parameters.values():
        kind = hints[parameter.name]
        if _is_block(kind):
            blocks[parameter.name] = kind
            spread += _spread(kind)
        else:
            spread.append(parameter.replace(annotation=kind))

    @wraps(verb)
    def called(**given: object) -> None:
        whole = {name: _gathered(kind, given) for name, kind in blocks.items()}
        verb(**given, **whole)

    called.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]  # which inspect asks for first
    called.__annotations__ = {each.name: each.annotation for each in spread}
    return called


def _is_block(kind: Any) -> TypeGuard[type[Any]]:  # Any: an annotation may be anything
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _spread(block: type[Any]) -> Iterator[inspect.Parameter]:
    """The options of a block, in the order of its fields; a field may be a block of its own."""
    hints = get_type_hints(block, include_extras=True)
    for field in dataclasses.fields(block):
        kind = hints[field.name]
        if _is_block(kind):
            yield from _spread(kind)
        else:
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _gathered(block: type[Any], given: dict[str, object]) -> object:
    """A block made of its options, which are taken out of what was given."""
    hints = get_type_hints(block, include_extras=True)
    fields = {
        name: _gathered(hints[name], given) if _is_block(hints[name]) else given.pop(name)
        for name in (field.name for field in dataclasses.fields(block))
    }
    return block(**fields)

"""``tieline check``, ``tieline conf`` and ``tieline reload``: what a configuration means, may say, and changes."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any  # Any: values of JSON

import typer

from tieline.cli.management import RunningBroker, shown
from tieline.cli.trouble import FAILED, MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks
from tieline.conf import render
from tieline.conf.effective import effective
from tieline.conf.error import ConfError
from tieline.conf.load import load
from tieline.conf.paths import distrust
from tieline.conf.schema import Listener, Settings

check_app = new_app()


@check_app.command()
def check(file: Annotated[Path, typer.Argument(help="The TOML file.", metavar="FILE")]) -> None:
    """Print the settings of FILE as they will act (* = not the default) and write nothing.

    Exit code 2 means that `tieline serve --config FILE` would refuse to start.
    """
    try:
        settings = load(file)
    except ConfError as problem:
        raise Trouble(str(problem), code=MISUSED) from None
    print(effective(settings))
    problems = list(_on_disk(settings))
    for problem_text in problems:
        print(f"tieline: {file}: {problem_text}", file=sys.stderr)
    if problems:
        raise typer.Exit(MISUSED)


def _on_disk(settings: Settings) -> Iterator[str]:
    """What the files that the settings name would answer at the start."""
    if settings.data is not None and Path(settings.data).exists() and not Path(settings.data).is_dir():
        yield f"data = {settings.data} is not a directory."
    elif settings.data is not None and Path(settings.data).exists() and (problem := distrust(Path(settings.data))):
        yield f"data: {problem}."
    for listener in settings.listener:
        yield from _certificates(listener)
    if settings.auth.password_file is not None:
        from tieline.net.auth import passwords

        try:
            passwords.read(settings.auth.password_file)
        except passwords.PasswordFileError as problem:
            yield f"auth.password_file: {problem}"


def _certificates(listener: Listener) -> Iterator[str]:
    if listener.certificate is None or listener.key is None:
        return
    missing = [
        name for name in (listener.certificate, listener.key, listener.client_ca) if name and not Path(name).is_file()
    ]
    for name in missing:
        yield f"{listener.url}: there is no file {name}."
    if missing:
        return
    from tieline.net.address import load_certificate

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        load_certificate(context, listener.certificate, listener.key)
    except (OSError, ValueError) as problem:
        yield f"{listener.url}: {listener.certificate} and {listener.key} cannot be used together: {problem}"
    if listener.client_ca is not None:
        try:
            context.load_verify_locations(listener.client_ca)
        except OSError as problem:
            yield f"{listener.url}: {listener.client_ca} cannot be used: {problem}"


conf_app = new_app("Print the default configuration, its JSON Schema or its reference page.")


@conf_app.command()
def default() -> None:
    """Print a TOML file with every key, its default and its meaning."""
    print(render.default_toml(), end="")


@conf_app.command()
def schema() -> None:
    """Print the JSON Schema, for editors that complete and check TOML."""
    print(render.json_schema(), end="")


@conf_app.command()
def reference() -> None:
    """Print the reference page in Markdown."""
    print(render.reference_markdown(), end="")


reload_app = new_app()


@reload_app.command()
@with_blocks
def reload(
    *,
    at: RunningBroker,
    dry: Annotated[bool, typer.Option("--dry", help="Only print what would change.")] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Apply what can be applied, although the rest needs a restart.")
    ] = False,
) -> None:
    """Print what differs from the file the broker was started with, then apply it.

    A file that cannot be used changes nothing. Neither does one with changes that need a restart, unless --partial is
    given; exit code 2 says so.
    """
    with at.reach() as broker:
        planned = shown(broker.ask("reload", dry=True))
        _print_changes(planned)
        if dry:
            raise typer.Exit(MISUSED if planned["refused"] else 0)
        if planned["refused"] and not partial:
            names = ", ".join(planned["refused"])
            print(f"tieline: nothing was changed: {names} would need a restart (--partial: the rest).", file=sys.stderr)
            raise typer.Exit(MISUSED)
        done = shown(broker.ask("reload", partial=partial))
    if not done["applied"]:
        print("tieline: the file has changed in the meantime; nothing was applied.", file=sys.stderr)
        raise typer.Exit(FAILED)
    print(f"applied; {done['disconnected']} clients were disconnected")


def _print_changes(answer: dict[str, Any]) -> None:
    for change in answer["changes"]:
        state = "applies now" if change["live"] else "needs a restart"
        print(f"{change['key']}: {change['old']} -> {change['new']}  ({state})")
    for name in answer["read_again"]:
        print(f"{name}: read again")
    if not answer["changes"]:
        print("no setting differs")

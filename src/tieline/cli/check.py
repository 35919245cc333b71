"""``tieline check``: a configuration file as it will act, or the reason why it will not."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tieline.cli.trouble import MISUSED, Trouble
from tieline.conf.effective import effective
from tieline.conf.error import ConfError
from tieline.conf.load import load
from tieline.conf.schema import Listener, Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
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

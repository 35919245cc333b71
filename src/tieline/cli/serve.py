"""``tieline serve``: settings from a file and the command line, then the broker until it is told to stop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app
from tieline.conf import rules, urls
from tieline.conf.error import ConfError
from tieline.conf.load import load
from tieline.conf.overlay import Peer, StrategyName
from tieline.conf.schema import Listener, Settings

if TYPE_CHECKING:
    from tieline.net.services import Service

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["human", "json"]

app = new_app()

_LISTEN = (
    "tcp://, tls://, ws://, wss://, peer:// or peer+tls:// and host:port, or peer+unix:// and a path; replaces the "
    "file's listeners. Repeatable."
)
_JOIN = "peer://, peer+tls:// or peer+unix:// and where a broker is to be joined; adds to the file's peers. Repeatable."


@app.command()
def serve(  # one for each option
    *,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file; see `tieline conf default`.")] = None,
    listen: Annotated[list[str] | None, typer.Option(metavar="URL", help=_LISTEN)] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM certificate chain, for tls:// and wss://.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="PEM private key, for tls:// and wss://.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory for what outlives the process; without it, nothing does."),
    ] = None,
    join: Annotated[list[str] | None, typer.Option(metavar="URL", help=_JOIN)] = None,
    overlay: Annotated[
        StrategyName | None, typer.Option(help="By which links messages travel between brokers.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of this broker in logs, $SYS and its socket.")
    ] = None,
    log_level: Annotated[Level, typer.Option(help="Least level written.")] = "info",
    log_format: Annotated[Format, typer.Option(help="Log lines for people or for programs.")] = "human",
) -> None:
    """Run the broker until SIGTERM or SIGINT; SIGHUP reads the file again, as `tieline reload` does.

    Without any option it listens on tcp://127.0.0.1:1883, which only programs on this machine can reach.
    One line on standard output says when it is ready and where; the log goes to standard error.
    """

    def read() -> Settings:
        return combine(
            config=config,
            listen=listen or [],
            certificate=certificate,
            key=key,
            data=data,
            name=name,
            join=join or [],
            overlay=overlay,
        )

    def reread() -> Settings:
        try:
            return read()
        except Trouble as trouble:
            raise ReloadError(str(trouble)) from None

    settings = read()
    from tieline.net.reload import ReloadError
    from tieline.net.server import run

    raise typer.Exit(
        run(settings, log_level=log_level, log_format=log_format, reread=reread, services=_services(settings))
    )


def _services(settings: Settings) -> list[Service]:
    """What runs beside the broker: the page and its like, where they are wanted and their libraries are there."""
    from tieline.net.preflight import has_web, without_web

    if problem := without_web(settings):
        raise Trouble(problem, code=MISUSED)
    if not has_web() or (settings.http.url is None and settings.http.page == "off"):
        return []
    from tieline.web.service import HttpService

    return [HttpService(by_default=True)]


def combine(  # one for each option of the command line that a file may hold
    *,
    config: Path | None,
    listen: list[str],
    certificate: Path | None = None,
    key: Path | None = None,
    data: Path | None = None,
    name: str | None = None,
    join: Sequence[str] = (),
    overlay: StrategyName | None = None,
) -> Settings:
    """The file's settings with the command line's on top, checked as a whole."""
    try:
        settings = Settings() if config is None else load(config)
    except ConfError as problem:
        raise Trouble(str(problem), code=MISUSED) from None
    if listen:
        listeners = tuple(_listener(url, certificate, key) for url in listen)
        settings = msgspec.structs.replace(settings, listener=listeners)
    elif certificate or key:
        raise Trouble("--certificate and --key go with --listen tls://… or wss://…", code=MISUSED)
    if data is not None:
        settings = msgspec.structs.replace(settings, data=str(data))
    if name is not None:
        settings = msgspec.structs.replace(settings, name=name)
    if join:
        settings = msgspec.structs.replace(settings, peer=(*settings.peer, *(Peer(url=url) for url in join)))
    if overlay is not None:
        settings = msgspec.structs.replace(
            settings, overlay=msgspec.structs.replace(settings.overlay, strategy=overlay)
        )
    for _path, sentence in rules.broken(settings):
        raise Trouble(sentence, code=MISUSED)
    return settings


def _listener(text: str, certificate: Path | None, key: Path | None) -> Listener:
    try:
        url = urls.parse(text)
    except urls.UrlError as problem:
        raise Trouble(str(problem), code=MISUSED) from None
    if not url.is_tls or url.is_peer:
        return Listener(url=str(url))
    if certificate is None or key is None:
        raise Trouble(f"{url} encrypts: give --certificate and --key, or a [[listener]] in --config.", code=MISUSED)
    return Listener(url=str(url), certificate=str(certificate), key=str(key))

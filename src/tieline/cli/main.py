"""The ``tieline`` command: a list of verbs, each loaded when it is called.

Importing everything for ``tieline serve`` would cost more time than the broker needs to start, so this module knows
only the names and one line of help for each verb.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Final

import typer

from tieline.cli.trouble import FAILED, Trouble
from tieline.cli.verbs import Verb, add_verbs
from tieline.extras import ExtraNeeded
from tieline.version import __version__

VERBS: Final[tuple[Verb, ...]] = (
    ("serve", "serve", "Run the broker."),
    ("check", "configuration:check_app", "Show what a configuration file means, without acting on it."),
    ("passwd", "passwd", "Set a user's password in a password file."),
    ("reload", "configuration:reload_app", "Let a running broker read its configuration again."),
    ("conf", "configuration:conf_app", "Print the default configuration, its JSON Schema or its reference page."),
    ("pub", "pub", "Publish messages, with the flags of mosquitto_pub."),
    ("sub", "sub", "Subscribe and print messages, with the flags of mosquitto_sub."),
    ("store", "store", "Check, repair or copy what a broker keeps in its data directory."),
    ("top", "top", "Watch a running broker: rates, slow clients, drops."),
    ("net", "net", "Show the network of joined brokers: who is there, which links are up, what passes them."),
    ("drain", "drain", "Empty a joined broker for maintenance: its sessions move to other brokers."),
    ("why", "explain:why_app", "Say why: what a client may do, what it waits for, what it lost."),
    ("trace", "explain:trace_app", "Say who would get a message and why, without sending it."),
    ("clients", "listing:clients_app", "List the clients of a running broker, and what waits for them."),
    ("subscriptions", "listing:subscriptions_app", "List who has subscribed to what at a running broker."),
    ("retained", "listing:retained_app", "List the retained messages of a running broker."),
    ("kick", "listing:kick_app", "End the connection of a client, or its session too."),
    ("heat", "heat", "Give a running broker the heat of its topics, look at it, or take it back."),
    ("log", "log", "Read the log that a broker keeps, follow it, or serve it to others."),
    ("pipeline", "pipeline", "Turn logs into tables and reports, on Spark."),
    ("doctor", "doctor", "Say what of Java, Spark and the extras was found here."),
    ("sim", "sim", "Run a simulated world: publish it, or write its history."),
    ("demo", "demo", "Show everything at work: broker, microgrid, islanding, Spark, report."),
    ("plan", "plan", "Decide which topic travels over which link, with a proof."),
    ("bench", "bench", "Measure the broker beside other brokers."),
    ("reproduce", "reproduce", "Repeat the experiments of the papers behind it."),
    ("completion", "completion", "Print a script by which bash or zsh completes verbs, options and choices."),
)

app = typer.Typer(
    name="tieline",
    help="Tieline: an MQTT 3.1.1 and 5 broker, and what becomes of the messages.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
add_verbs(app, VERBS, package="tieline.cli", program="tieline")


@app.command()
def version() -> None:
    """Print the version of this program."""
    print(__version__)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tieline {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; ends the process."""
    try:
        app(prog_name="tieline")
    except Trouble as trouble:
        print(f"tieline: {trouble}", file=sys.stderr)
        sys.exit(trouble.code)
    except ExtraNeeded as missing:
        print(f"tieline: {missing}", file=sys.stderr)
        sys.exit(FAILED)
    except BrokenPipeError:
        # Whoever read our output has gone (`tieline sub … | head`): that is no error worth a sentence.  Python would
        # still complain when it flushes at exit, so standard output leads nowhere from here on.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(130)

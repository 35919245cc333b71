"""``tieline passwd``: set a user's password in a password file, or remove the user."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app

app = new_app()


@app.command()
def passwd(
    file: Annotated[Path, typer.Argument(help="The password file; made if it is not there.", metavar="FILE")],
    user: Annotated[str, typer.Argument(help="The user.", metavar="USER")],
    *,
    delete: Annotated[bool, typer.Option("--delete", help="Remove the user.")] = False,
) -> None:
    """Set the password of USER in FILE, as an argon2id hash.

    The password is asked for twice, or read from the first line of standard input if that is no terminal; it never
    stands on a command line, which others could see. A broker takes the change over with `tieline reload`.
    """
    from tieline.net.auth import passwords

    if problem := passwords.flaw(user):
        raise Trouble(problem, code=MISUSED)
    try:
        existed = passwords.put(file, user, None if delete else _ask(user))
    except passwords.PasswordFileError as error:
        raise Trouble(str(error)) from None
    if delete and not existed:
        raise Trouble(f'{file} has no user "{user}".')
    if warning := passwords.exposure(file):
        print(f"tieline: {warning}", file=sys.stderr)
    done = "removed from" if delete else "changed in" if existed else "added to"
    print(f"{user} {done} {file}")


def _ask(user: str) -> bytes:
    if not sys.stdin.isatty():
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = getpass.getpass(f"password of {user}: ")
        if password and getpass.getpass("again: ") != password:
            raise Trouble("the two are not the same; nothing was changed.")
    if not password:
        raise Trouble("an empty password is refused; nothing was changed.", code=MISUSED)
    return password.encode()

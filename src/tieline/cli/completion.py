"""``tieline completion``: a script by which a shell completes verbs, options and their choices.

Everything that there is to complete stands in the script, so that a shell need not start Python for each key.  It is
made by walking over the same verbs that parse the command line, and is printed again after an upgrade.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple  # Any: commands of a library within Typer

import typer
from typer.main import get_command

from tieline.cli.verbs import load_app, loaded, new_app

app = new_app()

_INTRODUCTION = """\
# Completes the tieline command, version {version}. Print it again after an upgrade.
#   bash:  source <(tieline completion bash), or put it into ~/.local/share/bash-completion/completions/tieline
#   zsh:   source <(tieline completion zsh), in ~/.zshrc
"""

_FOR_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"

_SCRIPT = """\
_tieline() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" place=tieline known="" word
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$place $word" in
{places}) place="$place $word" ;;
    esac
  done
  case "$place $before" in
{choices}
  esac
  if [ -z "$known" ]; then
    case "$place" in
{words}
    esac
  fi
  COMPREPLY=($(compgen -W "$known" -- "$current"))
}}
complete -o default -F _tieline tieline
"""


class Place(NamedTuple):
    """A verb, or a verb of a verb, and what may follow it."""

    #: As it is typed, ``tieline log read``.
    path: str
    words: list[str]
    #: Of options that take one of a few words.
    choices: dict[str, list[str]]


@app.command()
def completion(
    shell: Annotated[Literal["bash", "zsh"], typer.Argument(help="Which shell is to complete.")],
) -> None:
    """Print a script that makes a shell complete verbs, options and choices: source <(tieline completion bash)."""
    from tieline.cli.main import VERBS
    from tieline.version import __version__

    found = list(places([(verb, place) for verb, place, _help in VERBS]))
    print(_INTRODUCTION.format(version=__version__), end="")
    if shell == "zsh":
        print(_FOR_ZSH, end="")
    print(_script(found), end="")


def places(verbs: list[tuple[str, str]]) -> Iterator[Place]:
    """All verbs with what may follow them, the program itself first."""
    yield Place("tieline", [*(verb for verb, _place in verbs), "version", "--help", "--version"], {})
    for verb, place in verbs:
        if verb in {"pub", "sub"}:
            yield _of_flags(verb)
        else:
            yield from _below(f"tieline {verb}", get_command(load_app("tieline.cli", place)))


def _of_flags(verb: str) -> Place:
    """The verbs that parse their words themselves."""
    from tieline.cli import pub, sub

    groups = {"pub": pub.GROUPS, "sub": sub.GROUPS}[verb]
    return Place(f"tieline {verb}", [name for _title, rows in groups for row in rows for name in row.names], {})


def _below(path: str, command: Any) -> Iterator[Place]:
    inner: dict[str, Any] = getattr(command, "commands", None) or {}
    options = [each for each in command.params if each.param_type_name == "option"]
    words = [*inner, *(name for each in options for name in (*each.opts, *each.secondary_opts))]
    choices = {
        name: [str(choice) for choice in each.type.choices]
        for each in options
        if getattr(each.type, "choices", None)
        for name in each.opts
    }
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    for each in arguments:
        words += [str(choice) for choice in getattr(each.type, "choices", None) or ()]
    yield Place(path, list(dict.fromkeys((*words, "--help"))), choices)
    for name, below in inner.items():
        behind = loaded(f"{path} {name}")
        yield from _below(f"{path} {name}", below if behind is None else get_command(behind))


def _script(found: list[Place]) -> str:
    def case(pattern: str, words: list[str]) -> str:
        return f"      {shlex.quote(pattern)}) known={shlex.quote(' '.join(words))} ;;"

    return _SCRIPT.format(
        places=" |\\\n".join(f"      {shlex.quote(each.path)}" for each in found[1:]),
        choices="\n".join(
            case(f"{each.path} {option}", words) for each in found for option, words in each.choices.items()
        ),
        words="\n".join(case(each.path, each.words) for each in found),
    )

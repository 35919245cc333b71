"""A user's mistake or the world's refusal: one sentence and an exit code, never a traceback."""

from __future__ import annotations

#: The command itself failed: no connection, a refusal, a file that cannot be read.
FAILED = 1
#: The command was asked for something that it cannot mean.
MISUSED = 2
#: Nothing arrived in the time given with -W; the number that mosquitto_sub uses.
TIMED_OUT = 27
#: What a shell says of a program that Ctrl-C ended.
INTERRUPTED = 130


class Trouble(Exception):
    """Ends the command with a sentence on standard error."""

    def __init__(self, text: str, *, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code

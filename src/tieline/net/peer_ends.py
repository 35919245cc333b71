"""Why connections to other brokers end: each reason has a name, by which it is counted, and a sentence for the log."""

from __future__ import annotations

from typing import Final

#: What the node itself says of a connection that it ends, by name.
SENTENCES: Final = {
    "bad_frames": "it sent what is no frame of this protocol",
    "gap": "a frame of it was missing",
    "silent": "nothing was heard of it for too long",
    "stuck": "it does not read what it is told",
    "replaced": "a newer connection replaces it",
    "refused": "it was refused",
    "": "it was ended",
}
#: By the first words of a sentence, the name of a reason that the socket found.
_BY_WORDS: Final = {
    "the other end has closed": "closed",
    "the connection broke": "broken",
    "it cannot be reached": "unreachable",
    "TLS": "tls",
    "a newer connection": "replaced",
    "this broker stops": "stopped",
}


def name_of(sentence: str) -> str:
    """The name under which the end of a connection is counted that was told in these words."""
    for words, name in _BY_WORDS.items():
        if sentence.startswith(words):
            return name
    return "other"

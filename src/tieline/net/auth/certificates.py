"""The user whom a client's certificate names."""

from __future__ import annotations

from typing import Any, Literal

#: Alternative names that can stand for a user; addresses cannot.
_KINDS = ("DNS", "email", "URI")


def user_of(certificate: dict[str, Any] | None, source: Literal["cn", "san"]) -> str:
    """The user in a verified certificate, as ``SSLObject.getpeercert`` gives it; empty if it names none."""
    if not certificate:
        return ""
    if source == "san":
        names = [name for kind, name in certificate.get("subjectAltName", ()) if kind in _KINDS]
    else:
        parts = [pair for part in certificate.get("subject", ()) for pair in part]
        names = [value for key, value in parts if key == "commonName"]
        if len(names) > 1:
            # which of several is meant is a question with two answers, and so with a way around the rules
            return ""
    name = str(names[0]) if names else ""
    return name if name.isprintable() else ""

"""Whom TLS believes, and whether a connection that was let in would still be believed after a reload.

Theory of operation
-------------------
OpenSSL verifies a certificate during the handshake and never again.  So that whoever is no longer trusted does not stay
because they came early, each reload compares what was trusted then with what is trusted now.

OpenSSL remembers the chain that it has verified, from the other end's certificate up to an authority of ours.  The same
chain would be found again if every certificate of it that was ours to trust still is, the last one among them.  Where
one is not, the connection may not stay, although another chain might be found: a new handshake finds that out.  An
authority that is added ends nobody's connection, so authorities can be replaced one after the other.

A handshake that continues an earlier one has no chain.  Then nothing may have been taken away at all.  The same is so
of revocation lists: what a new list says is read by OpenSSL alone, in a new handshake.
"""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Any, Final, NamedTuple  # Any: what ssl keeps to itself

#: Revocation lists among the certificates of a file.
_LISTS: Final = re.compile(rb"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)
#: How OpenSSL names the form of a certificate that has no text around it.
_DER: Final = 2


class Trust(NamedTuple):
    """What a file of authorities says."""

    #: Their certificates, as bytes.
    authorities: frozenset[bytes]
    #: Lists of certificates that are revoked.
    revocations: frozenset[bytes]

    def still_holds(self, before: Trust, chain: list[bytes]) -> bool:
        """Whether a chain (empty if it is not known) that was verified by another trust is verified by this one too."""
        if not self.revocations <= before.revocations:
            return False
        if not chain:
            return before.authorities <= self.authorities
        return chain[-1] in self.authorities and before.authorities.intersection(chain) <= self.authorities


class Context(ssl.SSLContext):
    """What TLS needs to know at one end; it remembers whom it trusts."""

    #: None where the other end need not show a certificate.
    trust: Trust | None = None

    def believe(self, path: str) -> None:
        """Trust the authorities in a file, but for what its revocation lists name; raises OSError."""
        # read before OpenSSL does: what is newer than was noted here is compared once too often, never too seldom
        revocations = frozenset(_LISTS.findall(Path(path).read_bytes()))
        self.load_verify_locations(path)
        if self.cert_store_stats()["crl"]:
            self.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        self.trust = Trust(frozenset(self.get_ca_certs(binary_form=True)), revocations)


def read_trust(path: str) -> Trust:
    """Whom a file of authorities says to trust; raises OSError."""
    context = Context(ssl.PROTOCOL_TLS_CLIENT)
    context.believe(path)
    assert context.trust is not None
    return context.trust


def verified_chain(connection: ssl.SSLObject) -> list[bytes]:
    """The certificates that a handshake has verified, the other end's first; none if it continued an earlier one."""
    if hasattr(connection, "get_verified_chain"):
        found: list[bytes] = connection.get_verified_chain()
        return found
    # before Python 3.13 the same, where it was not yet public
    hidden: Any = connection._sslobj  # type: ignore[attr-defined]  # noqa: SLF001
    return [certificate.public_bytes(_DER) for certificate in hidden.get_verified_chain() or ()]

"""TLS over memory buffers."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal  # Any: a certificate as ssl describes it

from tieline.net.layer import LayerError
from tieline.net.trust import Trust, verified_chain

if TYPE_CHECKING:
    from tieline.net.trust import Context


_READ = 65_536
#: What a step of a handshake counts towards the work of a turn: most of one is a signature, which takes a millisecond.
WORK_PER_STEP = 10_000
#: What OpenSSL and two buffers take for one connection, about.
TLS_BYTES = 24_000


class Tls:
    """One end of one TLS connection: the server's, or with the name of the server that of who dials it."""

    __slots__ = ("_incoming", "_object", "_outgoing", "_trust", "_work", "is_over", "is_ready")

    #: Everything that can be decrypted is: a chunk of it is little.
    has_more = False

    def __init__(self, context: Context, server: str | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server is None, server)
        self._trust = context.trust
        self.is_ready = False
        self.is_over = False
        self._work = 0

    def received(self, data: bytes) -> bytes:
        """Decrypt what can be decrypted."""
        self._incoming.write(data)
        plain: list[bytes] = []
        try:
            if not self.is_ready:
                self._work += WORK_PER_STEP
                self._object.do_handshake()
                self.is_ready = True
            while True:
                chunk = self._object.read(_READ)
                if not chunk:
                    self.is_over = True
                    break
                plain.append(chunk)
                if not self._incoming.pending and not self._object.pending():
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_over = True
        except ssl.SSLError as error:
            name = "tls_error" if self.is_ready else "tls_handshake_failed"
            raise LayerError(name, _explain(data, error, is_ready=self.is_ready), b"".join(plain)) from error
        return plain[0] if len(plain) == 1 else b"".join(plain)

    def user(self, source: Literal["cn", "san"]) -> str:
        """Whom the client's certificate names; empty if nobody."""
        return user_of(self._object.getpeercert(), source)

    def is_believed(self, trust: Trust) -> bool:
        """Whether the other end has shown a certificate that is good by what is trusted now."""
        if self._trust is None or trust == self._trust:
            return self._trust is not None
        # whoever is still shaking hands is verified by what was trusted when it began
        return self.is_ready and trust.still_holds(self._trust, verified_chain(self._object))

    @property
    def names(self) -> frozenset[str]:
        """What the other end's verified certificate is for: its common name and its DNS names."""
        certificate: dict[str, Any] = self._object.getpeercert() or {}
        subject = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
        return frozenset((*subject, *(name for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS")))

    def wrap(self, data: bytes) -> bytes:
        """Encrypt bytes, after whatever the handshake still had to say."""
        if data:
            self._object.write(data)
        return self._outgoing.read()

    def pending(self) -> bytes:
        """Handshake bytes and alerts."""
        return self._outgoing.read() if self._outgoing.pending else b""

    @property
    def has_pending(self) -> bool:
        """Whether the handshake or an alert wants to go out."""
        return self._outgoing.pending > 0

    @property
    def is_costly(self) -> bool:
        """While hands are shaken."""
        return not self.is_ready

    @property
    def waiting(self) -> int:
        """Words of the handshake, and alerts: a peer cannot ask for many."""
        return 0

    def take_work(self) -> int:
        """Steps of the handshake."""
        work, self._work = self._work, 0
        return work

    @property
    def held(self) -> int:
        """The beginning of a record, and what OpenSSL keeps for each connection."""
        return TLS_BYTES + self._incoming.pending

    def farewell(self) -> bytes:
        """close_notify, without waiting for the peer's."""
        if self.is_ready:
            # the peer's close_notify has not come, and need not
            with suppress(ssl.SSLError):
                self._object.unwrap()
        return self._outgoing.read()


def _explain(data: bytes, error: ssl.SSLError, *, is_ready: bool) -> str:
    """A sentence for the log."""
    if not is_ready and data[:1] == b"\x10":
        return "plain MQTT on a TLS port"
    if not is_ready and data[:4] in {b"GET ", b"POST", b"HEAD"}:
        return "plain HTTP on a TLS port"
    text = error.reason.lower().replace("_", " ") if error.reason else str(error)
    # such as "certificate revoked", or that a list of these is too old
    return f"{text}: {error.verify_message}" if isinstance(error, ssl.SSLCertVerificationError) else text


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

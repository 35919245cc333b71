"""A certificate authority of the tests' own, and what it issued."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import trustme

from tieline.conf.schema import Listener

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """PEM files: the authority, the broker's certificate and key, and a client's, both in one file."""

    authority: Path
    certificate: Path
    key: Path
    client: Path

    def context(self, *, with_client: bool = False) -> ssl.SSLContext:
        """What a client needs that trusts the authority, and proves who it is if asked to."""
        context = trusting(self.authority)
        if with_client:
            context.load_cert_chain(self.client)
        return context

    def encrypt_key(self) -> None:
        """Give the broker's key a password."""
        from cryptography.hazmat.primitives import serialization as pem

        key = pem.load_pem_private_key(self.key.read_bytes(), None)
        secret = pem.BestAvailableEncryption(b"passphrase")
        self.key.write_bytes(key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, secret))

    def listeners(self, urls: Sequence[str], *, asks_clients: bool = False) -> tuple[Listener, ...]:
        """A listener for each address; those that encrypt get the certificate."""
        return tuple(
            Listener(
                url=url,
                certificate=str(self.certificate),
                key=str(self.key),
                client_ca=str(self.authority) if asks_clients else None,
            )
            if url.startswith(("tls:", "wss:"))
            else Listener(url=url)
            for url in urls
        )


def issue(directory: Path) -> Certificates:
    """Make an authority and let it issue one certificate for this machine and one for a client."""
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1", "::1", "localhost")
    client = authority.issue_cert("client@example.org")
    made = Certificates(
        authority=directory / "authority.pem",
        certificate=directory / "certificate.pem",
        key=directory / "key.pem",
        client=directory / "client.pem",
    )
    authority.cert_pem.write_to_path(str(made.authority))
    server.private_key_pem.write_to_path(str(made.key))
    for blob in server.cert_chain_pems:
        blob.write_to_path(str(made.certificate), append=True)
    client.private_key_and_cert_chain_pem.write_to_path(str(made.client))
    return made


def trusting(authority: Path) -> ssl.SSLContext:
    """What a client needs that trusts an authority."""
    return ssl.create_default_context(cafile=str(authority))

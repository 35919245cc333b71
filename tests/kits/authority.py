"""An authority that issues whatever it is asked for: strange names, chains, and lists of what it has revoked."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_BEGIN, _END = datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=1)


def _named(*names: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])


class Authority:
    """A certificate that signs others; its own is signed by ``above``, or by itself."""

    def __init__(self, name: str, above: Authority | None = None) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._above = above
        self._revoked: list[x509.RevokedCertificate] = []
        signed_by = above or self
        builder = self._builder(self._name, signed_by._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._certificate = builder.sign(signed_by._key, hashes.SHA256())

    @property
    def pem(self) -> str:
        """Its certificate."""
        return self._certificate.public_bytes(Encoding.PEM).decode()

    @property
    def revocations(self) -> str:
        """A list of all that it has revoked."""
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        builder = builder.last_update(_BEGIN).next_update(_END)
        for each in self._revoked:
            builder = builder.add_revoked_certificate(each)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()

    def issue(self, path: Path, *names: str, alternative: tuple[str, ...] = ()) -> ssl.SSLContext:
        """What a client with a certificate for these common names needs; it believes every broker."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_named(*names), self._name, key)
        if alternative:
            # an address, a mailbox or a host, by what is in it
            kinds = [
                x509.UniformResourceIdentifier(name)
                if "://" in name
                else x509.RFC822Name(name)
                if "@" in name
                else x509.DNSName(name)
                for name in alternative
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(kinds), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        chain = certificate.public_bytes(Encoding.PEM).decode() + (self.pem if self._above is not None else "")
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        path.write_text(secret + chain)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(path)
        return context

    def revoke(self, path: Path) -> None:
        """Name a certificate of its own in the next list."""
        number = x509.load_pem_x509_certificates(path.read_bytes())[0].serial_number
        builder = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(_BEGIN)
        self._revoked.append(builder.build())

    @staticmethod
    def _builder(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(_BEGIN).not_valid_after(_END)

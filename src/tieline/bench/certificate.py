"""A certificate for one run: made in a temporary directory, trusted by the generator only."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_OPENSSL_S = 20


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files of a self-signed P-256 certificate for 127.0.0.1."""

    certificate: Path
    key: Path


def make_certificate(directory: Path) -> Certificate | None:
    """A fresh certificate, or nothing on a machine without the ``openssl`` command."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return None
    made = Certificate(certificate=directory / "cert.pem", key=directory / "key.pem")
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(made.key), "-out", str(made.certificate)]
    done = subprocess.run(command, capture_output=True, timeout=_OPENSSL_S, check=False)
    return made if done.returncode == 0 else None

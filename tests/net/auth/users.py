"""Password files for tests, cheap to check."""

from __future__ import annotations

from pathlib import Path

from argon2 import PasswordHasher

from tieline.net.auth.passwords import put

HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def write_users(path: Path, **users: str) -> Path:
    """Users and their passwords."""
    for user, password in users.items():
        put(path, user, password.encode(), HASHER)
    return path

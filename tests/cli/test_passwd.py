"""`tieline passwd`: a password file that only its owner can read, and no password on a command line."""

from __future__ import annotations

import stat
from pathlib import Path

from tests.cli.conftest import Tieline
from tieline.core.ports import Login
from tieline.net.auth.passwords import read


def _is_right(file: Path, user: str, password: str) -> bool:
    login = Login(client_id="c", username=user, password=password.encode(), listener="", peer="")
    return read(file).authenticate(login) == user


def test_users_are_added_changed_and_removed(tieline: Tieline, tmp_path: Path) -> None:
    file = tmp_path / "users"
    added = tieline("passwd", str(file), "ann", stdin="one two\n")
    assert (added.returncode, added.stdout, added.stderr) == (0, f"ann added to {file}\n", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and "one two" not in file.read_text()
    assert "$argon2id$" in file.read_text() and _is_right(file, "ann", "one two")
    file.chmod(0o644)
    changed = tieline("passwd", str(file), "ann", stdin="three")
    assert f"ann changed in {file}" in changed.stdout and "can be read or changed by others" in changed.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o644, "whose it is and who reads it is the owner's business"
    assert _is_right(file, "ann", "three") and not _is_right(file, "ann", "one two")
    assert tieline("passwd", "--delete", str(file), "ann").returncode == 0
    assert "ann" not in read(file)
    absent = tieline("passwd", "--delete", str(file), "ann")
    assert absent.returncode == 1 and 'has no user "ann"' in absent.stderr


def test_what_cannot_be_a_user_or_a_password_changes_nothing(tieline: Tieline, tmp_path: Path) -> None:
    file = tmp_path / "users"
    assert tieline("passwd", str(file), "a:b", stdin="x\n").returncode == 2
    assert "an empty password" in tieline("passwd", str(file), "ann", stdin="\n").stderr
    assert not file.exists()
    file.write_text("ann:plain\n")
    broken = tieline("passwd", str(file), "bob", stdin="x\n")
    assert broken.returncode == 1 and "not an argon2id hash" in broken.stderr
    assert file.read_text() == "ann:plain\n"


def test_check_looks_into_the_password_file(tieline: Tieline, tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text('[auth]\npassword_file = "users"\n')
    absent = tieline("check", str(tmp_path / "broker.toml"))
    assert absent.returncode == 2 and "auth.password_file: " in absent.stderr and "no such file" in absent.stderr

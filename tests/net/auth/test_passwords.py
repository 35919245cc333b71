"""The password file: written in one step and for its owner alone, read strictly, checked at equal cost."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from tieline.core.ports import Login
from tieline.net.auth import passwords
from tieline.net.auth.passwords import PasswordFileError, Passwords, put, read

#: Cheap, so that the tests are.
HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def login(user: str | None, password: bytes | None) -> Login:
    return Login(client_id="c", username=user, password=password, listener="", peer="192.0.2.1:1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    put(path, "ann", b"right", HASHER)
    put(path, "bob", "schlüssel".encode(), HASHER)
    return path


def test_who_has_the_password_is_the_user(file: Path) -> None:
    users = read(file)
    assert users.authenticate(login("ann", b"right")) == "ann"
    assert users.authenticate(login("bob", "schlüssel".encode())) == "bob"
    for user, password in (
        ("ann", b"wrong"),
        ("ann", b""),
        ("ann", None),
        ("eve", b"right"),
        (None, b"right"),
        ("", b""),
    ):
        assert users.authenticate(login(user, password)) is None


def test_a_user_who_does_not_exist_costs_as_much_as_a_wrong_password(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    verify = PasswordHasher.verify

    def watched(self: PasswordHasher, hashed: str, password: bytes) -> bool:
        checked.append(hashed.rsplit("$", 2)[0])
        return verify(self, hashed, password)

    monkeypatch.setattr(PasswordHasher, "verify", watched)
    users = read(file)
    users.authenticate(login("ann", b"wrong"))
    users.authenticate(login("eve", b"wrong"))
    assert len(checked) == 2 and checked[0] == checked[1], "one check each, with the same parameters"


def test_an_empty_file_lets_nobody_in(tmp_path: Path) -> None:
    assert Passwords({}).authenticate(login("ann", b"x")) is None


def test_the_file_is_its_owners_alone_and_keeps_comments(file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("# our people\n" + file.read_text())
    file.chmod(0o644)
    assert passwords.exposure(file)
    assert put(file, "ann", b"other", HASHER), "she was there"
    assert passwords.exposure(file), "its mode is kept"
    file.chmod(0o600)
    assert not passwords.exposure(file)
    assert file.read_text().startswith("# our people\n")
    users = read(file)
    assert users.authenticate(login("ann", b"other")) == "ann"
    assert users.authenticate(login("ann", b"right")) is None
    assert put(file, "ann", None) and "ann" not in read(file) and "bob" in read(file)
    assert [path.name for path in file.parent.iterdir()] == ["users"], "nothing is left beside it"


@pytest.mark.parametrize("name", ["", "*", "-", "a:b", "#a", "a\nb", "a\0"])
def test_names_that_could_not_be_read_back_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PasswordFileError):
        put(tmp_path / "users", name, b"x", HASHER)
    assert not (tmp_path / "users").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ann", "a line is user:hash"),
        ("ann:plain text", "not an argon2id hash"),
        ("ann:$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAA", "not an argon2id hash"),
        ("ann:$7$101$abc$def", "not an argon2id hash"),
        ("*:x", "is no user name"),
    ],
)
def test_a_line_that_is_no_user_is_an_error_with_its_line_and_without_its_hash(
    tmp_path: Path, line: str, said: str
) -> None:
    path = tmp_path / "users"
    path.write_text(f"# one\n{line}\n")
    with pytest.raises(PasswordFileError) as refused:
        read(path)
    assert f"{path}:2: " in str(refused.value) and said in str(refused.value)
    assert "plain text" not in str(refused.value) and "AAAA" not in str(refused.value)


def test_a_user_twice_is_an_error(file: Path) -> None:
    file.write_text(file.read_text() * 2)
    with pytest.raises(PasswordFileError, match="is there already"):
        read(file)


def test_files_that_cannot_be_read_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(PasswordFileError, match="cannot be read: no such file"):
        read(tmp_path / "absent")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(PasswordFileError, match="not written in UTF-8"):
        read(tmp_path / "bytes")
    with pytest.raises(PasswordFileError, match="cannot be written"):
        put(tmp_path / "absent" / "users", "ann", b"x", HASHER)


def test_nothing_shows_a_hash(file: Path) -> None:
    users = read(file)
    assert repr(users) == "<Passwords of 2 users>"
    assert "right" not in repr(login("ann", b"right"))


def test_two_who_change_a_file_at_once_undo_nothing_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "users"
    for number in range(20):
        put(path, f"old{number}", b"x", HASHER)
    names = [f"old{number}" for number in range(20)] + [f"new{number}" for number in range(20)]
    passwords_of = [None] * 20 + [b"y"] * 20
    with ThreadPoolExecutor(8) as many:
        existed = many.map(lambda name, password: put(path, name, password, HASHER), names, passwords_of)
        assert list(existed) == [True] * 20 + [False] * 20
    users = read(path)
    assert all(f"new{number}" in users and f"old{number}" not in users for number in range(20))


def test_a_link_stays_one_and_a_file_keeps_its_owner_and_mode(tmp_path: Path) -> None:
    target, link = tmp_path / "kept" / "users", tmp_path / "users"
    target.parent.mkdir()
    put(target, "ann", b"x", HASHER)
    assert target.stat().st_mode & 0o777 == 0o600
    target.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(target, 12345, 23456)
    before = target.stat()
    link.symlink_to(target)
    put(link, "bob", b"x", HASHER)
    after = target.stat()
    assert link.is_symlink() and "bob" in read(target)
    assert (before.st_uid, before.st_gid, before.st_mode) == (after.st_uid, after.st_gid, after.st_mode)


def test_who_is_not_there_is_removed_without_a_trace(tmp_path: Path) -> None:
    assert not put(tmp_path / "users", "ann", None)
    assert not (tmp_path / "users").exists()

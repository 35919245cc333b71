"""`tieline check` and `tieline conf` show what settings mean, and touch nothing."""

from __future__ import annotations

import json
from pathlib import Path

import trustme

from tests.cli.conftest import Tieline
from tieline.conf.load import loads
from tieline.conf.schema import Settings


def test_a_good_file_is_shown_as_it_acts(tieline: Tieline, tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text('name = "edge"\ndata = "d"\n[limits]\nqueue_bytes = "none"\n')
    shown = tieline("check", str(file))
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "* name" in shown.stdout and "no limit" in shown.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broker.toml"], "check wrote something"


def test_a_bad_file_is_refused_with_its_line(tieline: Tieline, tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text("[limits]\ninflght = 3\n")
    shown = tieline("check", str(file))
    assert shown.returncode == 2
    assert shown.stderr == f'tieline: {file}:2: "limits.inflght" is not a setting; did you mean "inflight"?\n'


def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_lines(tieline: Tieline, tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(
        "nmae = 'x'\n[[listener]]\nurl = 5\n[[listener]]\nurl = 'tcp://a'\nprot = 1\n"
        "[limits]\nsessions = -1\ninflght = 3\n[event.x]\ntopic = 'a'\nattributes = [{ name = 'v', bonds = [1, 2] }]\n"
    )
    shown = tieline("check", str(file))
    assert shown.returncode == 2 and shown.stdout == ""
    lines = [line.removeprefix(f"tieline: {file}:").partition(":")[0] for line in shown.stderr.splitlines()]
    assert lines == ["1", "3", "6", "8", "9", "12"]
    assert "listener[2].prot" in shown.stderr and '"event.x.attributes[1].bonds" is not a setting' in shown.stderr


def test_broken_rules_and_files_that_cannot_be_used_are_said_together(tieline: Tieline, tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    (tmp_path / "short.key").write_text("short")
    file.write_text(
        "name = 'a b'\ndata = 'd'\n[overlay]\nkey_file = 'short.key'\n[auth]\npassword_file = 'absent'\n"
        "[[listener]]\nurl = 'tcp://127.0.0.1:0'\n"
    )
    (tmp_path / "d").write_text("")
    shown = tieline("check", str(file))
    assert shown.returncode == 2
    for part in ('name = "a b" is refused', "is not a directory", "at least 16 bytes", "auth.password_file: "):
        assert part in shown.stderr


def test_what_serve_would_warn_of_is_said_and_is_no_error(tieline: Tieline, tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text("[auth]\nanonymous = 'everywhere'\n[[listener]]\nurl = 'tcp://0.0.0.0:1883'\n")
    shown = tieline("check", str(file))
    assert shown.returncode == 0
    assert "warning: tcp://0.0.0.0:1883 can be reached from other machines, and every client is let in" in shown.stderr


def test_certificates_are_tried(tieline: Tieline, tmp_path: Path) -> None:
    authority = trustme.CA()
    mine, other = authority.issue_cert("localhost"), authority.issue_cert("localhost")
    mine.cert_chain_pems[0].write_to_path(tmp_path / "c.pem")
    mine.private_key_pem.write_to_path(tmp_path / "k.pem")
    other.private_key_pem.write_to_path(tmp_path / "other.pem")
    (tmp_path / "junk.pem").write_text("junk")
    file = tmp_path / "broker.toml"

    def answer(key: str, authorities: str) -> tuple[int, str]:
        file.write_text(
            f"[[listener]]\nurl = 'tls://[::1]'\ncertificate = 'c.pem'\nkey = '{key}'\nclient_ca = '{authorities}'\n"
        )
        shown = tieline("check", str(file))
        return shown.returncode, shown.stderr

    assert answer("k.pem", "c.pem") == (0, "")
    assert answer("other.pem", "c.pem")[0] == 2 and "cannot be used together" in answer("other.pem", "c.pem")[1]
    assert answer("absent.pem", "c.pem")[0] == 2 and "there is no file" in answer("absent.pem", "c.pem")[1]
    assert answer("k.pem", "junk.pem")[0] == 2 and "junk.pem cannot be used" in answer("k.pem", "junk.pem")[1]


def test_a_data_directory_that_is_a_file_is_refused(tieline: Tieline, tmp_path: Path) -> None:
    (tmp_path / "d").write_text("")
    file = tmp_path / "broker.toml"
    file.write_text("data = 'd'\n")
    shown = tieline("check", str(file))
    assert shown.returncode == 2 and "is not a directory" in shown.stderr


def test_conf_prints_the_generated_pages(tieline: Tieline) -> None:
    assert loads(tieline("conf", "default").stdout) == Settings()
    assert json.loads(tieline("conf", "schema").stdout)["title"] == "Tieline"
    assert tieline("conf", "reference").stdout.startswith("# Configuration")

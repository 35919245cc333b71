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

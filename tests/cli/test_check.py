"""`tieline check` and `tieline conf` show what settings mean, and touch nothing."""

from __future__ import annotations

import json
import socket
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
        "nmae = 'x'\n[[listener]]\nurl = 5\n[[listener]]\nurl = 'tcp://127.0.0.1:0'\nprot = 1\n"
        "[limits]\nsessions = -1\ninflght = 3\n[event.x]\ntopic = 'a'\nattributes = [{ name = 'v', bonds = [1, 2] }]\n"
    )
    shown = tieline("check", str(file))
    assert shown.returncode == 2 and shown.stdout == ""
    lines = [line.removeprefix(f"tieline: {file}:").partition(":")[0] for line in shown.stderr.splitlines()]
    assert lines == ["1", "3", "6", "8", "9", "12"]
    assert "listener[2].prot" in shown.stderr and '"event.x.attributes[1].bonds" is not a setting' in shown.stderr


def test_what_the_schema_refuses_hides_nothing_of_what_follows(tieline: Tieline, tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(
        "nmae = 'x'\n"
        "data = '/proc/none'\n"
        "[auth]\npassword_file = 'absent'\n"
        "[[listener]]\nport = 1\n"
        "[[listener]]\nurl = 'tcp://127.0.0.1:99999'\n"
        "[[listener]]\nurl = 'tcp://no.such.host.invalid:0'\n"
        "[[class]]\nname = 'a'\nlevel = 9\nfilter = 'a/#/b'\n"
        "[[rule]]\nfilter = 'x'\nalow = ['read']\n"
        "[[rule]]\nfilter = 'y/#/z'\nallow = ['read']\ngroups = ['nobody']\n"
        "[event.x]\ntopic = 'a/#/b'\nattributes = [{ name = 'v', kind = 'colour' }, { name = 'w', bonds = 1 }]\n"
    )
    shown = tieline("check", str(file))
    assert shown.returncode == 2 and shown.stdout == ""
    said = [line.removeprefix(f"tieline: {file}:") for line in shown.stderr.splitlines()]
    of_the_file = [line for line in said if line[0].isdigit()]
    assert [(int(line.partition(":")[0]), line.partition(": ")[2][:24]) for line in of_the_file] == [
        (1, '"nmae" is not a setting;'),
        (5, 'listener[1] lacks "url".'),
        (6, '"listener[1].port" is no'),
        (8, '"tcp://127.0.0.1:99999" '),
        (13, "class[1].level = 9 is re"),
        (14, '"a/#/b" is no topic filt'),
        (17, '"rule[1].alow" is not a '),
        (19, '"y/#/z" is no topic filt'),
        (21, "rule[2] speaks of the gr"),
        (23, '"a/#/b" is no topic filt'),
        (24, "event.x.attributes[1].ki"),
        (24, '"event.x.attributes[2].b'),
    ]
    rest = said[len(of_the_file) :]
    assert len(rest) == 3, "each of what can only be known of this machine"
    for line, part in zip(rest, ("which keeps nothing", "no.such.host.invalid", "auth.password_file"), strict=True):
        assert part in line


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


def test_places_in_which_nothing_can_be_kept_are_refused(tieline: Tieline, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = tmp_path / "broker.toml"
    for place, said in (
        ("/proc/none", "file system of the kernel (proc)"),
        ("/sys/a/b", "file system of the kernel (sysfs)"),
        (f"{tmp_path}/file/below", f"{tmp_path}/file is not a directory"),
        (f"{tmp_path}/{'x' * 100}", "longer than"),
    ):
        file.write_text(f"data = '{place}'\n")
        shown = tieline("check", str(file))
        assert shown.returncode == 2 and said in shown.stderr, place
    file.write_text("data = 'to/be/made'\n")
    assert tieline("check", str(file)).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broker.toml", "file"], "check wrote something"


def test_addresses_that_cannot_be_listened_on_are_refused_and_those_in_use_are_not(
    tieline: Tieline, tmp_path: Path
) -> None:
    file = tmp_path / "broker.toml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        file.write_text(f"[[listener]]\nurl = 'tcp://127.0.0.1:{taken.getsockname()[1]}'\n")
        assert tieline("check", str(file)).returncode == 0
    # of a network for documents, which is nobody's
    for url in ("tcp://192.0.2.1:1883", "ws://no.such.host.invalid:0", f"peer+unix://{tmp_path}/absent/socket"):
        file.write_text(f"[[listener]]\nurl = '{url}'\n")
        shown = tieline("check", str(file))
        assert shown.returncode == 2 and f"cannot listen on {url}: " in shown.stderr
        served = tieline("serve", "--config", str(file))
        assert served.returncode == 1 and f"cannot listen on {url}" in served.stderr
    file.write_text("[http]\nurl = 'http://192.0.2.1:8080'\n[auth]\npassword_file = 'absent'\n")
    assert "cannot listen on tcp://192.0.2.1:8080" in tieline("check", str(file)).stderr


def test_conf_prints_the_generated_pages(tieline: Tieline) -> None:
    assert loads(tieline("conf", "default").stdout) == Settings()
    assert json.loads(tieline("conf", "schema").stdout)["title"] == "Tieline"
    assert tieline("conf", "reference").stdout.startswith("# Configuration")

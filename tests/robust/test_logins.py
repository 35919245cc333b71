"""A flood of failed logins: those who are in notice nothing, and a user elsewhere still gets in."""

from __future__ import annotations

import threading
from pathlib import Path
from time import monotonic

from tests.kits.dial import Dial, dial, hang_up, open_socket
from tests.kits.patience import PATIENCE_S, until
from tests.net.auth.users import write_users
from tests.robust.arena import Pair, hammering
from tieline.conf.schema import Auth, Listener, Settings
from tieline.core.ports import Login
from tieline.pytest_plugin import BrokerThread
from tieline.wire.encode import encode
from tieline.wire.packets import Connack, Connect
from tieline.wire.reason import Reason


def _settings(file: Path | None = None, **auth: object) -> Settings:
    name = None if file is None else str(file)
    listener = (Listener(url="tcp://127.0.0.1:0"), Listener(url="tcp://127.0.0.2:0"))
    return Settings(listener=listener, auth=Auth(password_file=name, **auth))  # type: ignore[arg-type]


def test_a_flood_of_wrong_passwords_stops_nobody(tmp_path: Path) -> None:
    users = write_users(tmp_path / "users", ann="right")
    with BrokerThread(_settings(users, failures=20)) as broker:
        pair = Pair(broker.urls[0])

        def guess() -> None:
            with Dial(broker.urls[0]) as eve:
                assert eve.connect("eve", username="ann", password=b"guess").reason is not Reason.SUCCESS

        with hammering(guess):
            for _ in range(50):
                guess()
        closed = broker.ask(lambda core: dict(core.account.closed))
        assert closed["refused_bad_user_name_or_password"] >= 20
        assert closed["refused_connection_rate_exceeded"] > 0, "refused unheard, and counted"
        told = broker.ask(lambda core: core.system.values(monotonic())["$SYS/broker/tieline/logins/throttled"])
        assert int(told) == closed["refused_connection_rate_exceeded"]
        pair.stop()


def test_strangers_behind_the_same_address_do_not_lock_out_a_user_who_came_in_before(tmp_path: Path) -> None:
    users = write_users(tmp_path / "users", ann="right", bob="right")
    with BrokerThread(_settings(users, failures=10, remember_s=0)) as broker:
        with dial(broker.urls[0], "ann", username="ann", password=b"right"):
            pass
        for number in range(20):
            with Dial(broker.urls[0]) as stranger:
                assert stranger.connect("", username=f"eve {number}", password=b"guess").reason is not Reason.SUCCESS
        with Dial(broker.urls[0]) as unknown:
            assert unknown.connect("bob", username="bob", password=b"right").reason is Reason.CONNECTION_RATE_EXCEEDED
        with dial(broker.urls[0], "ann", username="ann", password=b"right"):
            pass


class _Stuck:
    """An authenticator that does not come back until it is let."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def authenticate(self, login: Login) -> str | None:
        self.go.wait(PATIENCE_S)
        return login.username


def test_checks_that_never_end_fill_a_bounded_line_and_no_more() -> None:
    stuck = _Stuck()
    with BrokerThread(_settings(workers=2, waiting=10), authenticator=stuck) as broker:
        pair = Pair(broker.urls[0])
        hello = encode(Connect(version=5, client_id="", username="eve", password=b"x"), 5)
        socks: list[Dial] = []
        for _ in range(100):
            client = Dial(broker.urls[0])
            client.send(hello)
            socks.append(client)

        def busy() -> int:
            return broker.ask(lambda core: core.account.closed["refused_server_busy"])

        # those who wait hear nothing yet; the others were told at once
        until(lambda: busy() >= 100 - 12, "all but those who are checked or wait were refused")
        assert busy() == 100 - 12
        told = broker.ask(lambda core: core.system.values(monotonic())["$SYS/broker/tieline/logins/turned_away"])
        assert int(told) == 100 - 12
        stuck.go.set()
        let_in = 0
        for client in socks:
            answer = client.expect(Connack)
            let_in += answer.reason is Reason.SUCCESS
            hang_up(client.sock)
        assert let_in == 12
        pair.stop()
        with dial(broker.urls[0], "late", username="late", password=b"x"):
            pass


def test_logins_that_hang_up_at_once_cost_no_more_than_those_that_stay(tmp_path: Path) -> None:
    users = write_users(tmp_path / "users", ann="right")
    with BrokerThread(_settings(users, failures=5)) as broker:
        pair = Pair(broker.urls[0])
        hello = encode(Connect(version=5, client_id="", username="eve", password=b"x"), 5)
        for _ in range(100):
            sock = open_socket(broker.urls[0])
            sock.sendall(hello)
            hang_up(sock)
        pair.stop()
        assert broker.ask(lambda core: core.questions._pending) == {}

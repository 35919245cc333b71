"""Logins at a live broker: passwords, certificates, nobody, another program's authenticator, over every transport."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme

from tests.kits.certificates import Certificates, issue, trusting
from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.net.auth.users import write_users
from tieline import Broker, Listener, Settings
from tieline.conf.schema import Auth, Claim, Rule
from tieline.core.ports import Login
from tieline.net.auth.passwords import PasswordFileError
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Connack, Connect, Disconnect, Puback, Publish
from tieline.wire.reason import Reason

FREE = "tcp://127.0.0.1:0"


def settings(file: Path | None, *urls: str, rule: tuple[Rule, ...] = (), **auth: object) -> Settings:
    name = None if file is None else str(file)
    return Settings(
        listener=tuple(Listener(url=url) for url in urls or (FREE,)),
        auth=Auth(password_file=name, **auth),  # type: ignore[arg-type]  # the test's own words
        rule=rule,
    )


@pytest.fixture
def users(tmp_path: Path) -> Path:
    return write_users(tmp_path / "users", ann="right", bob="other")


@pytest.mark.parametrize("version", [4, 5])
def test_right_and_wrong_passwords(users: Path, version: int) -> None:
    with BrokerThread(settings(users)) as broker:
        with dial(broker.urls[0], "a", version=version, username="ann", password=b"right"):
            assert broker.ask(lambda core: [conn.login.user for conn in core.connections if conn.login]) == ["ann"]
        for user, password in (("ann", b"wrong"), ("eve", b"right"), ("ann", None)):
            with Dial(broker.urls[0], version=version) as client:
                answer = client.connect("x", username=user, password=password)
                assert answer.reason is Reason.BAD_USER_NAME_OR_PASSWORD
                client.expect_end()
        assert broker.ask(lambda core: core.account.closed["refused_bad_user_name_or_password"]) == 3


def test_the_password_is_not_kept(users: Path) -> None:
    with BrokerThread(settings(users)) as broker, dial(broker.urls[0], "a", username="ann", password=b"right"):
        assert broker.ask(lambda core: [conn.login.password for conn in core.connections if conn.login]) == [None]


def test_nothing_fails_open_on_a_listener_for_other_machines() -> None:
    with BrokerThread(Settings(listener=(Listener(url="tcp://0.0.0.0:0"),))) as broker:
        reachable = broker.urls[0].replace("0.0.0.0", "127.0.0.1")
        for user in (None, "ann"):
            with Dial(reachable) as client:
                answer = client.connect("x", username=user, password=b"x" if user else None)
                assert answer.reason is Reason.NOT_AUTHORIZED
                assert "auth.anonymous" in answer.properties["reason_string"]


def test_a_password_opens_a_listener_for_other_machines(users: Path) -> None:
    with BrokerThread(settings(users, "tcp://0.0.0.0:0")) as broker:
        reachable = broker.urls[0].replace("0.0.0.0", "127.0.0.1")
        with dial(reachable, "a", username="ann", password=b"right"):
            pass


def test_nowhere_means_nowhere(users: Path) -> None:
    with BrokerThread(settings(users, anonymous="nowhere")) as broker, Dial(broker.urls[0]) as client:
        assert client.connect("x").reason is Reason.NOT_AUTHORIZED


def test_what_follows_the_login_waits_for_it(users: Path) -> None:
    with BrokerThread(settings(users)) as broker, Dial(broker.urls[0]) as client:
        client.send(
            Connect(version=5, client_id="a", username="ann", password=b"right"),
            Publish(topic="t", payload=b"x", qos=1, packet_id=1),
        )
        client.expect(Connack, reason=Reason.SUCCESS)
        client.expect(Puback, packet_id=1)


def test_a_client_that_leaves_before_its_check_is_done_leaves_nothing(users: Path) -> None:
    with BrokerThread(settings(users)) as broker:
        with Dial(broker.urls[0]) as client:
            client.send(Connect(version=5, client_id="a", username="ann", password=b"right"))
        until(lambda: not broker.ask(lambda core: core.connections), "the connection has gone")
        with dial(broker.urls[0], "b", username="bob", password=b"other"):
            assert broker.ask(lambda core: [*core.sessions]) == ["b"]
        assert broker.ask(lambda core: core.questions._pending) == {}


def test_a_password_file_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ann:plain\n")

    async def start() -> None:
        async with Broker(settings(tmp_path / "users")):
            pass

    with pytest.raises(PasswordFileError, match="users:1: "):
        asyncio.run(start())


# --- certificates -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificates, trustme.CA]:
    directory = tmp_path_factory.mktemp("made")
    certificates = issue(directory)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(directory / "clients.pem"))
    return certificates, authority


def _client(made: tuple[Certificates, trustme.CA], *names: str, common_name: str | None = None) -> ssl.SSLContext:
    certificates, authority = made
    context = trusting(certificates.authority)
    authority.issue_cert(*names, common_name=common_name).configure_cert(context)
    return context


def _asks(made: tuple[Certificates, trustme.CA], user_from: str, scheme: str = "tls") -> Settings:
    certificates, _ = made
    listener = Listener(
        url=f"{scheme}://127.0.0.1:0",
        certificate=str(certificates.certificate),
        key=str(certificates.key),
        client_ca=str(certificates.authority.parent / "clients.pem"),
        user_from=user_from,  # type: ignore[arg-type]  # the test's own words
    )
    rules = (Rule(allow="all", filter="%u/#"),)
    return Settings(listener=(listener,), rule=rules, auth=Auth(anonymous="nowhere"))


def test_the_common_name_is_the_user(made: tuple[Certificates, trustme.CA]) -> None:
    with BrokerThread(_asks(made, "cn")) as broker:
        context = _client(made, "whatever.example", common_name="pump-7")
        with dial(broker.urls[0], "c", context=context, username="ann", password=b"ignored") as client:
            client.send(Publish(topic="pump-7/x", payload=b"", qos=1, packet_id=1))
            client.expect(Puback, reason=Reason.NO_MATCHING_SUBSCRIBERS)
            client.send(Publish(topic="ann/x", payload=b"", qos=1, packet_id=2))
            client.expect(Puback, reason=Reason.NOT_AUTHORIZED)


def test_the_alternative_name_is_the_user_and_a_nameless_certificate_is_nobody(
    made: tuple[Certificates, trustme.CA],
) -> None:
    with BrokerThread(_asks(made, "san")) as broker:
        context = _client(made, "ann@example.org")
        with dial(broker.urls[0], "c", context=context):
            found = broker.ask(lambda core: [conn.login.user for conn in core.connections if conn.login])
            assert found == ["ann@example.org"]
    with BrokerThread(_asks(made, "cn")) as broker, Dial(broker.urls[0], context=_client(made, "x.example")) as client:
        answer = client.connect("c")
        assert answer.reason is Reason.BAD_USER_NAME_OR_PASSWORD
        assert "names no user" in answer.properties["reason_string"]


# --- somebody else's authenticator ------------------------------------------------------------------------------------


class Tokens:
    """Lets in whoever brings a token, under the name in it."""

    def authenticate(self, login: Login) -> str | None:
        name, _, mark = (login.password or b"").partition(b".")
        return name.decode() if mark == b"signed" else None


def test_an_authenticator_of_the_programs_own() -> None:
    with BrokerThread(Settings(listener=(Listener(url=FREE),)), authenticator=Tokens()) as broker:
        with dial(broker.urls[0], "c", password=b"ann.signed"):
            found = broker.ask(lambda core: [conn.login.user for conn in core.connections if conn.login])
            assert found == ["ann"]
        with Dial(broker.urls[0]) as client:
            assert client.connect("d", username="ann", password=b"ann.forged").reason is not Reason.SUCCESS


def test_claims_believe_only_users_who_were_checked(users: Path) -> None:
    conf = Settings(
        listener=(Listener(url=FREE),),
        auth=Auth(password_file=str(users)),
        claim=(Claim(user="ann", max_level=3), Claim(max_level=0)),
    )
    properties = {"user_property": [("priority", "3")]}
    with BrokerThread(conf) as broker:
        levels: list[list[int]] = []
        for user, password in (("ann", b"right"), (None, None)):
            with dial(broker.urls[0], "c", username=user, password=password, properties=properties) as client:
                levels.append(broker.ask(lambda core: [conn.level for conn in core.connections]))
                client.send(Disconnect())
                client.expect_end()
    assert levels == [[3], [0]]

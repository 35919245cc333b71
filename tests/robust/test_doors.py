"""An unprivileged client finds nothing it may not see through any door: MQTT, WebSocket, HTTP, ``$SYS``, the log.

The boss keeps secrets in every way a broker knows: live, retained, as a will, in a shared group, in a queue, in the
log, in the record of a dropped message.  Others try every door and every question.  Every byte they get is kept, and
none of it may hold a mark.  What they could learn without seeing it is tested as well: an answer must not depend on
anything secret, neither on whether a topic exists nor on what a message says.
"""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.kits.dial import Dial
from tests.kits.patience import until
from tests.robust.house import PAYLOAD, PROPERTY, TOPIC, Guest, House, everything_until, opened
from tieline.wire.encode import encode
from tieline.wire.packets import (
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Will,
)
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason

pa = pytest.importorskip("pyarrow")
pytest.importorskip("uvicorn")

VAULT = "open/vault/onyx"
SECRET = b'{"gauge": 42, "mode": "quartz", "note": "topaz"}'
TOLD: Properties = {
    "user_property": [("beryl", "beryl")],
    "response_topic": "open/vault/onyx-reply",
    "correlation_data": b"beryl",
    "content_type": "beryl",
}

#: Every way to ask for more than one may; none of them names a secret.
WISHES = (
    "#",
    "+/#",
    "+/+/+",
    "open/#",
    "open/+/+",
    "open/vault/#",
    "open/vault/+",
    "hall/#",
    "$SYS/#",
    "$SYS/broker/tieline/last_drop/#",
    "$share/crew/open/#",
    "$share/crew/open/vault/#",
    "$share/mine/open/+/+",
    "$where/gauge%3E0/open/#",
    "$where/gauge%3E0/open/vault/+",
    "$share/crew/$where/gauge%3E0/open/vault/#",
    "open/vault/#?gauge>0",
    "inbox/+/x",
    "inbox/boss/#",
)

#: What even the least may subscribe to; what it matches and they may not read is withheld.
GRANTED = {"open/#", "open/+/+", "$share/crew/open/#", "$share/mine/open/+/+", "$where/gauge%3E0/open/#"}


class Boss:
    """The one who may see everything, and does."""

    def __init__(self, house: House) -> None:
        self.guest = Guest(house, "boss")
        self._number = 0
        self.client = self.guest.enter("jasper-main")
        #: Publishes what everybody may know of, its name included.
        self.ringer = self.guest.enter("ringer")
        wishes = ("#", "$share/crew/open/vault/#")
        wanted = Subscribe(packet_id=1, subscriptions=tuple(Subscription(filter=wish, qos=1) for wish in wishes))
        self.client.send(wanted)
        assert self.client.expect(Suback).reasons == (1, 1)
        # one who is away: what is QoS 0 for it is dropped, and named
        with self.guest.enter("jasper-away", properties={"session_expiry_interval": 600}) as away:
            away.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="open/vault/#", qos=1),)))
            while not isinstance(away.receive(), Suback):
                pass  # of a session that is kept, the answer waits for the disk; what is retained does not
        until(lambda: self._is_away(house), "the drop is told")
        self.client.send(Publish(topic="inbox/boss/onyx", payload=PAYLOAD, retain=True))

    def _is_away(self, house: House) -> bool:
        """Publish until the store tells that one was dropped, because its receiver is away."""
        self.speak()
        with Guest(house, "boss").enter("jasper-looks") as client:
            client.subscribe("$SYS/broker/tieline/last_drop/offline")
            client.send(Pingreq())
            packet = client.receive()
        return isinstance(packet, Publish) and TOPIC in packet.payload

    def speak(self, payload: bytes = SECRET, *, qos: Sequence[int] = (0, 1, 2)) -> bytes:
        """Publish the secret in every way, then ring a bell that everybody may hear; what the bell says."""
        client = self.client
        self._number += 1
        for each in qos:
            client.send(Publish(topic=VAULT, payload=payload, qos=each, packet_id=10 * (each > 0), properties=TOLD))
            if each == 1:
                self._until(Puback)
            elif each == 2:
                self._until(Pubrec)
                client.send(Pubrel(packet_id=10))
                self._until(Pubcomp)
        client.send(Publish(topic=f"{VAULT}-kept", payload=payload, retain=True, properties=TOLD))
        will = Will(topic=f"{VAULT}-will", payload=payload, retain=True)
        with self.guest.enter("jasper-dies", will=will):
            pass
        self._until(Publish, topic=f"{VAULT}-will")
        return self.ring()

    def ring(self) -> bytes:
        """Let everybody know that all was said."""
        bell = b"bell %d" % self._number
        self.ringer.send(Publish(topic="open/bell", payload=bell))
        return bell

    def close(self) -> None:
        """Leave, without a word."""
        self.client.close()
        self.ringer.close()

    def _until(self, kind: type[Packet], topic: str | None = None) -> None:
        """Take packets until one of this kind; what has to be acknowledged is."""
        while True:
            packet = self.client.receive()
            assert packet is not None
            if isinstance(packet, Publish) and packet.qos:
                self.client.send(Puback(packet_id=packet.packet_id))
            if isinstance(packet, kind) and topic in (None, getattr(packet, "topic", None)):
                return


@pytest.fixture(name="house", scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with opened(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture(name="boss", scope="module")
def _boss(house: House) -> Iterator[Boss]:
    boss = Boss(house)
    yield boss
    boss.close()


@pytest.fixture(name="guest", params=["guest", None], ids=["guest", "nobody"])
def _guest(request: pytest.FixtureRequest, house: House, boss: Boss) -> Iterator[Guest]:
    """Somebody unprivileged: a user, and nobody in particular; afterwards nothing secret has reached them."""
    guest = Guest(house, request.param)
    yield guest
    assert guest.heard and guest.knows() == set()


def wishes(**options: Any) -> Subscribe:
    return Subscribe(packet_id=1, subscriptions=tuple(Subscription(filter=wish, **options) for wish in WISHES))


# --- MQTT and WebSocket -----------------------------------------------------------------------------------------------


def test_the_boss_sees_it_all(house: House, boss: Boss) -> None:
    """Otherwise the other tests would prove nothing."""
    owner = Guest(house, "boss")
    with owner.enter("jasper-second") as client:
        client.send(wishes())
        assert set(client.expect(Suback).reasons) == {0}
        everything_until(client, boss.speak())
    assert owner.knows(TOPIC, PAYLOAD, PROPERTY) == {TOPIC, PAYLOAD, PROPERTY}


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("client_id", ["", "+", "#", "boss"])
def test_nothing_is_sent_to_a_subscriber(guest: Guest, boss: Boss, version: int, client_id: str) -> None:
    with guest.enter(client_id, version=version) as client:
        client.send(wishes(qos=1))
        answer = client.expect(Suback)
        assert {wish for wish, reason in zip(WISHES, answer.reasons, strict=True) if reason < 0x80} == GRANTED
        got = everything_until(client, boss.speak())
        assert {packet.topic for packet in got if isinstance(packet, Publish)} == {"open/bell"}


def test_each_refusal_names_its_rule(guest: Guest) -> None:
    with guest.enter("s") as client:
        for wish in set(WISHES) - GRANTED:
            answer = client.subscribe(wish)
            assert answer.reasons == (Reason.NOT_AUTHORIZED,)
            text = answer.properties["reason_string"]
            assert "rule" in text
            if "vault" in wish:
                assert text.endswith("rule 3: deny all open/vault/#"), "the asker has named it"
            if wish == "hall/#":
                assert text.endswith("rule 4: deny subscribe on a part of this"), "the asker does not know which"


def test_nothing_is_sent_through_websocket(guest: Guest, boss: Boss) -> None:
    with guest.over_websocket("w") as client:
        client.send(encode(wishes(), 5))
        assert isinstance(client.packet(), Suback)
        bell = boss.speak()
        topics = set()
        while True:
            packet = client.packet()
            assert isinstance(packet, Publish)
            topics.add(packet.topic)
            if packet.payload == bell:
                break
    assert topics == {"open/bell"}


@pytest.mark.parametrize("handling", [0, 1])
def test_nothing_retained_is_sent_in_any_form(guest: Guest, boss: Boss, handling: int) -> None:
    boss.speak()
    with guest.enter("r", properties={"topic_alias_maximum": 10}) as client:
        asked = wishes(qos=2, retain_as_published=True, retain_handling=handling)
        asked.properties["subscription_identifier"] = [7]
        client.send(asked, Pingreq())
        client.expect(Suback)
        client.expect(Pingresp)
        last = everything_until(client, boss.ring())[-1]
        assert isinstance(last, Publish)
        assert set(last.properties["subscription_identifier"]) == {7}
        assert last.topic == "open/bell", "no alias was taken by a topic that was not sent"


def test_a_topic_that_exists_is_refused_as_one_that_does_not(house: House, boss: Boss, guest: Guest) -> None:
    boss.speak()
    for version in (4, 5):
        with guest.dial(version=version) as client:
            client.connect("probe", **guest.login)
            for name in (VAULT, f"{VAULT}-kept", f"{VAULT}-will"):
                assert _probe(client, name) == _probe(client, f"open/vault/{'x' * len(name.rpartition('/')[2])}")
    guest.heard = [heard.replace(VAULT.encode(), b"") for heard in guest.heard]  # it was the guest who said it


def _probe(client: Dial, name: str) -> list[str]:
    """What somebody is told who names a topic, without the name."""
    client.send(
        Subscribe(packet_id=3, subscriptions=(Subscription(filter=name), Subscription(filter=f"$share/crew/{name}"))),
        Publish(topic=name, payload=b"", retain=True, qos=1, packet_id=4),
    )
    answers = [client.receive(), client.receive()]
    for packet in answers:
        assert isinstance(packet, Suback | Puback)
        assert client.version == 4 or "rule" in packet.properties["reason_string"]
    # one of them may wait for the disk, the other does not
    return sorted(repr(packet).replace(name, "NAME") for packet in answers)


# --- what could be learned without being seen -------------------------------------------------------------------------

#: Conditions that the secret meets, beside ones that it does not.
ORACLES = (
    ("gauge > 40", "gauge < 40"),
    ("gauge = 42", "gauge = 41"),
    ("mode in ('quartz', 'x')", "mode in ('other', 'x')"),
    ("changed(gauge)", "gauge < 0"),
    ("delta(gauge) > 1", "gauge > 99"),
    ("not gauge < 40", "not gauge > 40"),
)


@pytest.mark.parametrize(("holds", "fails"), ORACLES)
@pytest.mark.parametrize("filter_", ["open/#", "$share/crew/open/#"])
def test_a_condition_on_a_secret_is_no_oracle(guest: Guest, boss: Boss, filter_: str, holds: str, fails: str) -> None:
    heard = [_heard_with(guest, boss, filter_, condition) for condition in (holds, fails)]
    assert heard[0] == heard[1]


def _heard_with(guest: Guest, boss: Boss, filter_: str, condition: str) -> list[bytes]:
    """All bytes that come to somebody who asks for a condition, while the secret changes twice."""
    head, share, tail = filter_.rpartition("open/")
    with guest.enter("oracle") as client, guest.enter("listener") as bell:
        bell.subscribe("open/bell")
        before = len(guest.heard)
        wanted = Subscription(filter=f"{head}$where/{quote(condition, safe='')}/{share}{tail}", qos=1)
        client.send(Subscribe(packet_id=1, subscriptions=(wanted,)))
        assert client.expect(Suback).reasons == (1,)
        everything_until(bell, boss.speak(qos=(0, 1)))
        everything_until(bell, boss.speak(b'{"gauge": 7, "mode": "topaz"}', qos=(0, 1)))
        client.send(Pingreq())
        client.expect(Pingresp)
        return [part for part in guest.heard[before:] if b"bell" not in part]


def test_a_member_who_may_not_read_takes_nothing_away_from_the_group(house: House, boss: Boss, guest: Guest) -> None:
    with guest.enter("thief") as client, Guest(house, "boss").enter("jasper-worker") as worker:
        client.send(
            Subscribe(
                packet_id=1,
                subscriptions=(
                    Subscription(filter="$share/crowd/open/#", qos=1),
                    Subscription(filter="$share/pair/$where/gauge%3E0/open/#", qos=1),
                ),
            )
        )
        assert client.expect(Suback).reasons == (1, 1)
        worker.subscribe("$share/crowd/open/#", 1)
        boss.speak(qos=(0, 0, 0, 0))
        got = [worker.expect(Publish).topic for _ in range(6)]
        assert got == [VAULT] * 4 + [f"{VAULT}-kept", f"{VAULT}-will"]


# --- other people's sessions, wills, names ----------------------------------------------------------------------------


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("client_id", ["jasper-main", "jasper-away"])
def test_nobody_continues_or_ends_another_users_session(
    guest: Guest, boss: Boss, client_id: str, is_clean: bool
) -> None:
    for version in (4, 5):
        with guest.dial(version=version) as client:
            properties = {"session_expiry_interval": 600} if version == 5 else {}
            answer = client.connect(client_id, clean_start=is_clean, properties=properties, **guest.login)
            assert answer.reason is Reason.CLIENT_IDENTIFIER_NOT_VALID
            assert not answer.session_present
            client.expect_end()
    boss.speak(qos=(1,))  # still connected
    with boss.guest.enter("jasper-away", clean_start=False, properties={"session_expiry_interval": 600}) as away:
        assert isinstance(away.receive(), Publish), "what waited still waits"


def test_a_will_for_a_secret_topic_is_refused_by_its_rule(guest: Guest) -> None:
    with guest.dial() as client:
        answer = client.connect("w", will=Will(topic="open/vault/x", payload=b"lie"), **guest.login)
        assert answer.reason is Reason.NOT_AUTHORIZED
        assert answer.properties["reason_string"] == "will: broker.toml:40: rule 3: deny all open/vault/#"


def test_an_alias_is_no_way_around_a_rule(guest: Guest, boss: Boss) -> None:
    with guest.enter("a") as client:
        for topic in ("open/vault/x", ""):
            client.send(Publish(topic=topic, payload=b"lie", qos=1, packet_id=5, properties={"topic_alias": 1}))
            answer = client.expect(Puback)
            assert answer.reason is Reason.NOT_AUTHORIZED and "rule 3" in answer.properties["reason_string"]


def test_an_answer_to_a_secret_topic_does_not_reach_who_asked_for_it(guest: Guest, boss: Boss) -> None:
    """A request may name any topic for its answer; naming it does not allow to read it."""
    with guest.enter("q") as client:
        client.subscribe("open/#")
        client.send(Publish(topic="open/ask", payload=b"?", properties={"response_topic": "open/vault/reply"}))
        boss.client.send(Publish(topic="open/vault/reply", payload=SECRET, properties={"correlation_data": b"beryl"}))
        got = everything_until(client, boss.speak())
        assert {packet.topic for packet in got if isinstance(packet, Publish)} == {"open/ask", "open/bell"}


def test_a_full_queue_names_nobody(guest: Guest, house: House, boss: Boss) -> None:
    """A publisher is refused because a receiver has no room; which receiver is not for everybody."""
    properties = {"session_expiry_interval": 600, "receive_maximum": 1}
    with Guest(house, "boss").enter("jasper-slow", properties=properties) as slow, guest.enter("p") as client:
        slow.subscribe("open/flood", 1)
        payload = bytes(900_000)
        for number in range(1, 30):
            client.send(Publish(topic="open/flood", payload=payload, qos=1, packet_id=number))
            answer = client.expect(Puback)
            if answer.reason is Reason.QUOTA_EXCEEDED:
                assert answer.properties["reason_string"] == "the queue of a receiver is full"
                break
        else:
            pytest.fail("the queue was never full")


# --- $SYS -------------------------------------------------------------------------------------------------------------


def test_who_may_watch_the_broker_hears_of_drops_only_where_it_may_read(house: House, boss: Boss) -> None:
    watch = Guest(house, "watch")
    with watch.enter("w") as client:
        client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="$SYS/#"),)))
        assert client.expect(Suback).reasons == (0,)
        dropped = "$SYS/broker/tieline/dropped/offline"
        seen = {packet.topic: packet.payload for packet in _some(client, dropped)}
        assert "$SYS/broker/tieline/last_drop/offline" not in seen and "$SYS/broker/version" in seen
        boss.speak()
        before = seen[dropped]
        seen = {packet.topic: packet.payload for packet in _some(client, dropped)}
        assert int(seen[dropped]) > int(before), "that something was dropped is counted for everybody who watches"
        # of what may be read, it is told
        with boss.guest.enter("jasper-gone", properties={"session_expiry_interval": 600}) as gone:
            gone.subscribe("open/lost", 1)
        last = "$SYS/broker/tieline/last_drop/offline"

        def lost() -> bool:
            boss.ringer.send(Publish(topic="open/lost", payload=b"x"))
            return any(packet.topic == last and b"open/lost" in packet.payload for packet in _some(client, dropped))

        until(lost, "a drop that it may know of")
    assert watch.knows(TOPIC, PAYLOAD, PROPERTY) == set()


def _some(client: Dial, last: str) -> list[Publish]:
    """A report of $SYS, as far as it goes."""
    got: list[Publish] = []
    while True:
        packet = client.receive()
        assert isinstance(packet, Publish)
        got.append(packet)
        if packet.topic == last:
            client.send(Pingreq())
            while not isinstance(packet := client.receive(), Pingresp):
                assert isinstance(packet, Publish)
                got.append(packet)
            return got


# --- HTTP -------------------------------------------------------------------------------------------------------------

PAGES = (
    "/metrics", "/ready", "/v1/heat", "/v1/demand", "/top", "/why?client=x", "/trace?topic=open/vault/x", "/drops",
    "/log",
)  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS"])
def test_no_page_is_shown(house: House, guest: Guest, path: str, method: str) -> None:
    status, answer = guest.fetch(house.http, path, method)
    if guest.user is None:
        assert status == 401
    else:
        assert status == 403 and (method == "HEAD" or b"rule" in answer)


def test_the_pages_name_no_topic_to_those_who_may_see_them(house: House, boss: Boss) -> None:
    table = json.dumps({VAULT: 7, f"{VAULT}/#": 8}).encode()
    status, answer = boss.guest.fetch(house.http, "/v1/heat", "PUT", table)
    assert status == 200 and TOPIC in answer
    watch = Guest(house, "watch")
    assert watch.fetch(house.http, "/metrics")[0] == 200
    assert watch.fetch(house.http, "/ready")[0] == 200
    assert watch.fetch(house.http, "/v1/heat")[0] == 200
    assert b'tieline_dropped_messages_total{class="normal",why="offline"}' in b"".join(watch.heard)
    assert watch.knows() == set()


def test_health_is_all_that_is_for_everybody(house: House) -> None:
    stranger = Guest(house, None)
    assert stranger.fetch(house.http, "/health")[0] == 200
    assert stranger.heard[0].endswith(b"\r\n\r\nok\n")


# --- the log ----------------------------------------------------------------------------------------------------------


def rows(answer: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of a range, and what its end says."""
    body = answer.partition(b"\r\n\r\n")[2]
    data = b""
    while (size := int(body.partition(b"\r\n")[0], 16)) > 0:
        start = body.index(b"\r\n") + 2
        data += body[start : start + size]
        body = body[start + size + 2 :]
    reader = pa.ipc.open_stream(io.BytesIO(data))
    found: list[dict[str, Any]] = []
    ended: dict[str, Any] = {}
    while True:
        try:
            batch, metadata = reader.read_next_batch_with_custom_metadata()
        except StopIteration:
            return found, ended
        found += batch.to_pylist()
        if metadata is not None:
            ended = json.loads(metadata[b"tieline"])


def offsets(house: House, guest: Guest, stream: str = "log") -> dict[str, Any]:
    status, answer = guest.fetch(house.log, f"/v1/offsets?stream={stream}")
    assert status == 200
    found: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


def test_the_boss_reads_it_all_in_the_log(house: House, boss: Boss) -> None:
    boss.speak()
    owner = Guest(house, "boss")
    for stream in ("log", "events"):
        owner.heard.clear()
        until(lambda stream=stream: offsets(house, owner, stream)["latest"] > 5, "something is in it")  # type: ignore[misc]
        assert owner.fetch(house.log, f"/v1/read?from=0&stream={stream}")[0] == 200
        assert owner.knows(TOPIC) == {TOPIC}
    assert isinstance(offsets(house, owner)["bytes"], int)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/offsets",
        "/v1/read?from=0",
        "/v1/read?from=0&stream=events",
        "/v1/read?from=0&topics=open/vault/%23",
        "/v1/read?from=0&where=gauge%3E0",
        "/v1/read?from=0&columns=topic,payload,attributes,publisher",
        "/v1/read?from=999999999",
        "/v1/read?from=x",
        "/v1/readers",
    ],
)
def test_no_record_is_read(house: House, boss: Boss, guest: Guest, path: str) -> None:
    status, answer = guest.fetch(house.log, path)
    if guest.user is None:
        assert status == 401
    elif "offsets" in path:
        assert b'"bytes":null' in answer
    elif status == 200 and "readers" not in path:
        found, ended = rows(answer)
        assert ended["withheld"] > 0, "there was something to be seen"
        assert {row["topic"] for row in found} <= {"open/bell", "open/ask", "open/lost", "open/flood"}


def test_no_reader_is_moved(house: House, guest: Guest) -> None:
    for name in ("spark", "x"):
        status, answer = guest.fetch(house.log, f"/v1/readers/{name}", "PUT", b'{"position": 1}')
        assert status == (401 if guest.user is None else 403)
        assert guest.user is None or b"no rule allows" in answer


def test_the_log_is_no_oracle(house: House, boss: Boss) -> None:
    """What is withheld is counted, but the count depends on no question that could be asked about it."""
    guest = Guest(house, "guest")
    last = offsets(house, guest)["latest"]
    answers = []
    for condition in [condition for pair in ORACLES[:3] for condition in pair]:
        for topics in ("open/vault/%23", "open/%23", "%23"):
            path = f"/v1/read?from=0&to={last}&topics={topics}&where={quote(condition)}"
            status, answer = guest.fetch(house.log, path)
            assert status == 200
            answers.append(rows(answer))
    assert answers[0][1]["withheld"] > 0
    assert all(answer == answers[0] for answer in answers)
    # offset by offset: one that is withheld is like any other that is
    withheld = set()
    for offset in range(min(last, 60)):
        found, ended = rows(guest.fetch(house.log, f"/v1/read?from={offset}&to={offset + 1}")[1])
        if ended["withheld"]:
            withheld.add((len(found), ended["rows"], ended["withheld"]))
    assert withheld == {(0, 0, 1)}
    assert guest.knows() == set()


def test_events_are_told_only_where_their_topics_may_be_known(house: House, boss: Boss) -> None:
    watch = Guest(house, "watch")
    status, answer = watch.fetch(house.log, "/v1/read?from=0&stream=events")
    found, ended = rows(answer)
    assert status == 200 and ended["withheld"] > 0
    assert "connect" in {row["kind"] for row in found}
    assert watch.knows(TOPIC, PAYLOAD, PROPERTY) == set()


# --- on the disk, and after a crash -----------------------------------------------------------------------------------


def test_the_files_are_their_owners_alone(house: House, boss: Boss) -> None:
    found = [path for path in house.data.rglob("*") if not path.is_dir()]
    assert {path.name for path in found} >= {"tieline.db", "tieline.sock"}
    for path in [house.data, *found]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_crash_opens_no_door(tmp_path: Path) -> None:
    with opened(tmp_path, with_log=False) as house:
        boss = Boss(house)
        guest = Guest(house, "guest")
        with guest.enter("stays", properties={"session_expiry_interval": 600}) as client:
            client.subscribe("open/#", 1)
        boss.speak()
        boss.close()
        house.kill()
        house.open(with_log=False)
        with guest.dial() as client:
            answer = client.connect("jasper-away", clean_start=False, **guest.login)
            assert answer.reason is Reason.CLIENT_IDENTIFIER_NOT_VALID
        properties = {"session_expiry_interval": 600}
        boss = Boss(house)
        with guest.enter("stays", clean_start=False, properties=properties) as client:
            client.subscribe("open/vault/#")
            got = everything_until(client, boss.speak())
            assert {packet.topic for packet in got if isinstance(packet, Publish)} == {"open/bell"}
        boss.close()
        assert guest.knows() == set()
        with Guest(house, "boss").enter("jasper-away", clean_start=False) as away:
            assert isinstance(away.receive(), Publish), "what waited for the boss is still there"

"""A topic of which only the newest word counts: nobody gets two at once, and nothing is dropped for its sake."""

from __future__ import annotations

from tests.kits.world import World
from tieline.conf.schema import Mqtt, Settings
from tieline.core.figures.feed import Feed
from tieline.core.ports import Allowed, Login, Verdict
from tieline.wire.packets import Publish

TOPIC = "$SYS/broker/tieline/page"


def feed_of(world: World) -> Feed:
    return Feed(TOPIC, world.broker.routes, world.broker.delivery)


def speak(world: World, feed: Feed, text: bytes) -> int:
    heard = feed.speak(text, world.now)
    world.settle()
    return heard


def test_who_listens_hears_it_as_qos_0_and_nothing_stays() -> None:
    world = World()
    feed = feed_of(world)
    assert speak(world, feed, b"nobody") == 0
    client = world.client("a")
    client.subscribe(TOPIC, qos=2)
    assert feed.is_heard
    assert speak(world, feed, b"1") == 1
    client.expect(Publish, topic=TOPIC, payload=b"1", qos=0, retain=False)
    client.subscribe("$SYS/#")
    assert speak(world, feed, b"2") == 1, "one copy, however many filters match"
    late = world.client("b", version=4)
    late.subscribe(TOPIC)
    assert late.inbox == [] and len(world.broker.retained) == 0


def test_who_has_not_taken_the_last_word_gets_no_other() -> None:
    world = World()
    feed = feed_of(world)
    slow, quick = world.client("slow"), world.client("quick")
    for client in (slow, quick):
        client.subscribe(TOPIC)
    slow.is_reading = False
    heard = [speak(world, feed, b"%d" % number) for number in range(5)]
    assert heard == [2, 1, 1, 1, 1] and feed.passed_over == 4
    assert world.broker.sessions["slow"].queue.messages == 1
    assert [packet.payload for packet in quick.inbox if isinstance(packet, Publish)] == [b"%d" % n for n in range(5)]
    assert not world.broker.account.drops
    slow.is_reading = True
    world.broker.mark(slow.connection)
    world.settle()
    slow.expect(Publish, payload=b"0")
    assert speak(world, feed, b"5") == 2
    slow.expect(Publish, payload=b"5")


def test_a_congested_subscriber_is_passed_over_too() -> None:
    world = World()
    feed = feed_of(world)
    slow, publisher = world.client("slow"), world.client("p")
    slow.subscribe("#")
    slow.subscribe(TOPIC)
    slow.is_reading = False
    for number in range(50):
        publisher.publish("a", b"%d" % number)
        world.advance(0.2)
        speak(world, feed, b"x" * 100)
    assert feed.passed_over >= 45 and not world.broker.account.drops


def test_who_is_away_neither_listens_nor_collects() -> None:
    world = World()
    feed = feed_of(world)
    client = world.durable("a")
    client.subscribe(TOPIC, qos=1)
    client.drop()
    assert not feed.is_heard and speak(world, feed, b"1") == 0
    assert world.broker.sessions["a"].queue.messages == 0 and not world.broker.account.drops


class Rules:
    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Allowed(user=login.username)

    def publish(self, login: Login, topic: str) -> Verdict:
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Allowed()

    def may(self, action: str, user: str | None, client_id: str, topic: str) -> bool:
        return topic != TOPIC or user == "operator"


def test_who_may_not_read_the_topic_does_not_hear_it_whatever_the_filter() -> None:
    world = World(Settings(mqtt=Mqtt(sys_interval_s=0)), access=Rules())
    feed = feed_of(world)
    for user in ("nosy", "operator"):
        world.client(user, username=user).subscribe("$SYS/#")
    assert feed.is_heard and speak(world, feed, b"1") == 1
    assert [packet for packet in world.clients[0].inbox if isinstance(packet, Publish)] == []


def test_shared_and_conditional_subscriptions_hear_it_too() -> None:
    world = World()
    feed = feed_of(world)
    world.client("a").subscribe(f"$share/g/{TOPIC}")
    picky = world.client("b")
    picky.subscribe(f"{TOPIC}?n>3")
    assert feed.is_heard and speak(world, feed, b'{"n": 1}') == 1 and speak(world, feed, b'{"n": 9}') == 2
    picky.expect(Publish, payload=b'{"n": 9}')


def test_very_many_subscribers_share_what_may_be_said_in_a_second() -> None:
    world = World()
    feed = feed_of(world)
    for number in range(30):
        world.client(f"c{number}").subscribe(TOPIC)
    big = b"x" * 300_000
    heard = [speak(world, feed, big) for _ in range(4)]
    assert max(heard) < 30 and sum(heard) >= 30, "in turns"
    got = [sum(isinstance(packet, Publish) for packet in client.inbox) for client in world.clients]
    assert min(got) >= 1 and max(got) - min(got) <= 1

"""`tieline plan import running`: brokers that run, clients that publish and subscribe, and a plan for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Tieline
from tests.kits.certificates import issue
from tests.kits.dial import Dial, dial
from tieline.cli.trouble import FAILED, MISUSED
from tieline.conf.schema import Auth, Http, Listener, Rule, Settings
from tieline.plan import plan as plans
from tieline.plan.instance import Instance
from tieline.plan.proof import proven
from tieline.plan.reading import document
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish

NAMES = ("hill", "mill", "dam")
LINKS = "a,b,capacity,cost\nhill,mill,none,1\nmill,dam,none,1\nhill,dam,none,3\n"
#: Seconds between two rounds of every publisher.
_BEAT_S = 0.01


class Network(NamedTuple):
    """Brokers that run, and a file of links."""

    brokers: dict[str, BrokerThread]
    directory: Path

    def address(self, name: str) -> str:
        """As `--broker` takes it."""
        return f"{name}={self.directory / name}"

    def options(self) -> tuple[str, ...]:
        """All brokers and their links."""
        given = [word for name in self.brokers for word in ("--broker", self.address(name))]
        return (*given, "--links", str(self.directory / "links.csv"))


@contextmanager
def publishing(client: Dial, *rounds: tuple[str, int]) -> Iterator[None]:
    """Publish to each topic so many messages, again and again."""
    packets = [Publish(topic=topic, payload=b"0123456789") for topic, count in rounds for _ in range(count)]
    stop = threading.Event()

    def publish() -> None:
        while not stop.wait(_BEAT_S):
            client.send(*packets)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture(name="network", scope="module")
def _network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    directory = tmp_path_factory.mktemp("network")
    (directory / "links.csv").write_text(LINKS)
    with ExitStack() as running:
        brokers = {
            name: running.enter_context(BrokerThread(data=str(directory / name), name=name, manage=True))
            for name in NAMES
        }
        clients = {
            client: running.enter_context(dial(brokers[broker].urls[0], client))
            for client, broker in (
                ("pv-7", "hill"), ("meter-2", "mill"), ("control", "dam"), ("archive", "dam"), ("alarm", "mill"),
            )
        }  # fmt: skip
        clients["control"].subscribe("pv/#")
        clients["archive"].subscribe("+/+/power")
        clients["archive"].subscribe("meter/#")
        clients["alarm"].subscribe("$where/v%20%3E%205/pv/+/video")
        running.enter_context(publishing(clients["pv-7"], ("pv/7/power", 1), ("pv/7/video", 4), ("unheard", 1)))
        running.enter_context(publishing(clients["meter-2"], ("meter/2", 1)))
        yield Network(brokers, directory)


def imported(tieline: Tieline, path: Path, *words: str) -> tuple[Instance, str]:
    done = tieline("plan", "import", "running", *words, "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: ")
    return document.read(path), done.stderr


def test_from_a_running_network_to_a_proven_plan(tieline: Tieline, network: Network, tmp_path: Path) -> None:
    instance, said = imported(
        tieline, tmp_path / "net.json", *network.options(), "--seconds", "2", "--unit", "messages"
    )
    wanted = {(topic.id, topic.source): topic.subscribers for topic in instance.topics}
    assert wanted == {
        ("meter/2", "meter-2"): ("archive",),
        ("pv/7/power", "pv-7"): ("archive", "control"),
        ("pv/7/video", "pv-7"): ("alarm", "control"),
    }
    at = {link.a: link.b for link in instance.links if not link.cost}
    assert at == {"pv-7": "hill", "meter-2": "mill", "control": "dam", "archive": "dam", "alarm": "mill"}
    rates = {topic.id: topic.rate for topic in instance.topics}
    # both are sent by the same rounds, and two seconds have many: one round more or less changes little
    assert rates["pv/7/video"] / rates["pv/7/power"] == pytest.approx(4.0, rel=0.5)
    assert "watching 3 brokers for 2 s" in said
    assert "topics left out, because nobody else subscribes to them: 1." in said
    assert "subscriptions with a condition, which count as if they wanted every message: 1." in said

    plan_file, picture = tmp_path / "net.plan.json", tmp_path / "net.svg"
    done = tieline("plan", "solve", str(tmp_path / "net.json"), "--json", str(plan_file))
    assert done.returncode == 0, done.stderr
    plan = proven(instance, plans.read(plan_file))
    # the way from hill to dam over mill costs 2: for power twice, for video once and 1 for mill; the meter's costs 1
    assert (plan.unmet, plan.status, plan.cost) == (0, "optimal", 2 * 2 + 2 + 1 + 1)
    assert tieline("plan", "draw", str(tmp_path / "net.json"), str(plan_file), "--out", str(picture)).returncode == 0
    assert "<svg" in picture.read_text()


def test_brokers_may_stand_for_their_clients(tieline: Tieline, network: Network, tmp_path: Path) -> None:
    words = (*network.options(), "--seconds", "1", "--per", "broker", "--name", "villages")
    instance, _ = imported(tieline, tmp_path / "net.json", *words)
    assert instance.name == "villages" and len(instance.nodes) == 3
    assert {(topic.id, topic.source): topic.subscribers for topic in instance.topics} == {
        ("meter/2", "mill"): ("dam",),
        ("pv/7/power", "hill"): ("dam",),
        ("pv/7/video", "hill"): ("dam", "mill"),
    }


def test_without_links_it_says_so(tieline: Tieline, network: Network, tmp_path: Path) -> None:
    given = [word for name in NAMES for word in ("--broker", network.address(name))]
    instance, said = imported(tieline, tmp_path / "net.json", *given, "--seconds", "1")
    assert all(link.capacity == float("inf") and link.b in NAMES and link.a not in NAMES for link in instance.links)
    assert "nothing is known of links between the brokers: add --links." in said


def test_nothing_is_imported_unless_all_brokers_answer(tieline: Tieline, network: Network, tmp_path: Path) -> None:
    out = tmp_path / "net.json"
    nowhere = tmp_path / "nowhere.sock"
    given = (*network.options(), "--links", str(tmp_path / "links.csv"), "--broker", f"sea={nowhere}")
    (tmp_path / "links.csv").write_text(LINKS + "dam,sea,1,1\n")
    done = tieline("plan", "import", "running", *given, "--out", str(out))
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert done.stderr.startswith(f"tieline: sea: no broker answers at {nowhere};") and done.stderr.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "which broker?"),
        (("--broker", "hill="), "write NAME=ADDRESS"),
        (("--broker", "=x"), "write NAME=ADDRESS"),
        (("--broker", "hill=a", "--broker", "hill=b"), "two brokers are called hill"),
        (("--broker", "hill=a", "--seed", "3"), "--seed cannot be given here: it is for files"),
        (("--broker", "hill=a", "--links", "net.doc"), "net.doc: a name that ends in .csv"),
        (("--broker", "hill=http://"), "is no address of a broker"),
    ],
)
def test_what_cannot_be_meant(tieline: Tieline, tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    done = tieline("plan", "import", "running", *words, "--out", str(tmp_path / "x.json"))
    assert done.returncode == MISUSED and sentence in done.stderr
    assert not (tmp_path / "x.json").exists()


def test_options_of_a_running_network_are_not_for_files(tieline: Tieline, tmp_path: Path) -> None:
    for option in (("--broker", "a=b"), ("--per", "client"), ("--seconds", "3"), ("--links", "x.csv")):
        done = tieline("plan", "import", "x.graphml", *option, "--out", str(tmp_path / "x.json"))
        assert done.returncode == MISUSED and f"{option[0]} cannot be given here" in done.stderr


def test_where_nothing_is_published(tieline: Tieline, tmp_path: Path) -> None:
    with BrokerThread(data=str(tmp_path / "quiet"), name="quiet", manage=True):
        done = tieline(
            "plan", "import", "running", "--broker", f"quiet={tmp_path / 'quiet'}", "--seconds", "0.1", "--out", "-"
        )
    assert done.returncode == FAILED and "nothing was published at quiet in 0.1 s; watch for longer" in done.stderr
    assert done.stdout == ""


class Doorman:
    """One user."""

    def authenticate(self, login: object) -> str | None:
        return "planner" if getattr(login, "password", None) == b"right" else None


def test_over_https_with_a_password(tieline: Tieline, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    from tieline.web.service import HttpService

    files = issue(tmp_path)
    beside = HttpService()
    settings = Settings(
        listener=(Listener(url="tcp://127.0.0.1:0"),),
        http=Http(url="https://127.0.0.1:0", certificate=str(files.certificate), key=str(files.key)),
        rule=(
            Rule(filter="$SYS/broker/tieline/demand", allow=("write",), users=("planner",)),
            Rule(filter="#", allow="all"),
        ),
        auth=Auth(failures="none", anonymous="everywhere"),
    )
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("right\n")
    wrong.write_text("wrong\n")
    with BrokerThread(settings, services=[beside], authenticator=Doorman()) as broker:
        words = ("--broker", f"far={beside.url}", "--seconds", "1", "--user", "planner")
        trusted = ("--cafile", str(files.authority))
        with dial(broker.urls[0], "p") as publisher, dial(broker.urls[0], "s") as subscriber:
            subscriber.subscribe("a/#")
            with publishing(publisher, ("a/b", 1)):
                instance, _ = imported(tieline, tmp_path / "far.json", *words, *trusted, "--password-file", str(right))
        assert [(topic.id, topic.source, topic.subscribers) for topic in instance.topics] == [("a/b", "p", ("s",))]
        for options, sentence in (
            ((*trusted, "--password-file", str(wrong)), f"far: the broker at {beside.url} refused (401)"),
            (("--password-file", str(right)), f"far: {beside.url} cannot be reached: "),
            ((*trusted, "--password-file", str(tmp_path / "none")), "cannot read"),
            (("--cafile", str(tmp_path / "none")), "cannot use"),
        ):
            done = tieline("plan", "import", "running", *words, *options, "--out", str(tmp_path / "not.json"))
            assert done.returncode == FAILED and sentence in done.stderr, done.stderr
            assert not (tmp_path / "not.json").exists()

"""`tieline plan watch`: from what brokers have measured to a plan in force, and never to a worse one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from tests.cli.conftest import Tieline
from tests.cli.plan.conftest import Ring
from tests.cli.plan.test_import_running import publishing
from tests.kits.dial import dial
from tests.kits.patience import PATIENCE_S, until
from tests.net.test_peers import node_of
from tieline.cli.trouble import FAILED
from tieline.plan.reading import document

#: Every look counts for so long.
_LOOK = ("--every", "1")


@contextmanager
def _traffic(ring: Ring, messages: int) -> Iterator[None]:
    """Two publishers at hill whose messages are wanted at dam; each sends so many at a time."""
    with ExitStack() as stack:
        subscriber = stack.enter_context(dial(ring.brokers["dam"].urls[0], "s"))
        subscriber.subscribe("pv/#")
        for name in ("p", "q"):
            client = stack.enter_context(dial(ring.brokers["hill"].urls[0], name))
            stack.enter_context(publishing(client, (f"pv/{name}", messages)))
        yield


def _epochs(ring: Ring) -> set[int]:
    return {
        broker.ask(lambda core: node_of(core).carrier.strategy.tables.epoch)  # type: ignore[attr-defined]
        for broker in ring.brokers.values()
    }


def _looks(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_plan_is_made_and_stays_and_is_left_when_a_link_dies(tieline: Tieline, ring: Ring) -> None:
    with _traffic(ring, 2):
        dry = _looks(tieline("plan", "watch", *ring.at_hill, *_LOOK, "--times", "1", "--dry", "--json"))
        assert [look["state"] for look in dry] == ["proposed"]
        assert "no plan is in force" in str(dry[0]["reasons"])
        assert str(dry[0]["checker"]).startswith("proven")
        assert not ring.brokers["hill"].ask(lambda core: node_of(core).counts.planned)

        first = _looks(tieline("plan", "watch", *ring.at_hill, *_LOOK, "--times", "2", "--margin", "90", "--json"))
        assert [look["state"] for look in first] == ["applied", "stays"]
        until(lambda: ring.brokers["hill"].ask(lambda core: node_of(core).counts.planned) > 10, "messages go by it")
        told = json.loads(tieline("plan", "status", "--json", *ring.at_hill).stdout)
        assert told["planner"]["state"] == "stays"
        assert told["planner"]["look"] == 2
        applied = told["planner"]["applied"]
        assert (applied["epoch"], applied["before_epoch"]) == (1, 0) and applied["ago_s"] > 0
        assert applied["proposal"]["requests"] == 2 and told["planner"]["published"] > 0
        assert applied["proposal"]["bound"] <= applied["proposal"]["objective_after"]
        assert applied["before"]["carried"] > 0 and applied["after"]["carried"] > 0, "measured before it, and since"
        assert {tuple(link["ends"]) for link in told["planner"]["links"]} == {
            ("dam", "hill"), ("dam", "mill"), ("hill", "mill"),
        }  # fmt: skip
        said = tieline("plan", "status", *ring.at_hill).stdout
        assert "plan 1 stays: everything is as it was planned" in said


def test_links_that_carry_too_much_are_relieved(tieline: Tieline, ring: Ring) -> None:
    with _traffic(ring, 2):
        file = ring.directory / "traffic.json"
        hill = f"hill={ring.directory / 'hill'}"
        done = tieline("plan", "import", "running", "--broker", hill, "--seconds", "1", "--out", str(file))
        assert done.returncode == 0, done.stderr
    # what a pipeline would have measured in a busier hour: both topics together are too much for one link
    instance = document.read(file)
    topics = tuple(msgspec.structs.replace(topic, rate=60_000.0) for topic in instance.topics)
    file.write_bytes(document.render(msgspec.structs.replace(instance, topics=topics)))
    watch = ("plan", "watch", *ring.at_hill, "--every", "0.5", "--traffic", str(file), "--json")
    (look,) = _looks(tieline(*watch, "--times", "1"))
    assert look["state"] == "applied"
    assert "link dam - hill would carry 120,000 of 90,000" in str(look["reasons"])
    assert (round(float(str(look["shortfall_before"]))), look["shortfall_after"], look["unmet"]) == (30_000, 0.0, 0)
    assert look["flows_moved"] == 1
    # nothing can be done about more than all links carry: what would be worse is not applied
    topics = tuple(msgspec.structs.replace(topic, rate=190_000.0) for topic in instance.topics)
    file.write_bytes(document.render(msgspec.structs.replace(instance, topics=topics)))
    (look,) = _looks(tieline(*watch, "--times", "1"))
    assert look["state"] == "refused"
    assert "plan 1 stays" in str(look["verdict"])
    assert str(look["checker"]).startswith("refused: 290,000 would not get through, and 200,000 do not as it is")
    assert float(str(look["shortfall_after"])) > float(str(look["shortfall_before"]))
    assert _epochs(ring) == {1}


def test_a_planner_that_is_killed_leaves_the_last_plan_in_force(tieline: Tieline, ring: Ring) -> None:
    with _traffic(ring, 2):
        command = [sys.executable, "-m", "tieline", "plan", "watch", *ring.at_hill, *_LOOK, "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            assert json.loads(watching.stdout.readline())["state"] == "applied"
            watching.send_signal(signal.SIGKILL)
            watching.wait(PATIENCE_S)
        assert _epochs(ring) == {1}
        before = ring.brokers["hill"].ask(lambda core: node_of(core).counts.planned)
        until(
            lambda: ring.brokers["hill"].ask(lambda core: node_of(core).counts.planned) > before + 20,
            "messages go by the plan as before",
        )


def test_whom_nobody_can_reach_is_one_sentence(tieline: Tieline, tmp_path: Path) -> None:
    done = tieline("plan", "watch", "--data", str(tmp_path), "--name", "hill", *_LOOK)
    assert done.returncode == FAILED
    assert "no broker answers" in done.stderr

"""`tieline plan` as people use it: from an instance to a proven plan, and a sentence for whatever is wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Tieline
from tieline.cli.main import main
from tieline.cli.plan import pictures
from tieline.cli.plan.solve import Method
from tieline.cli.trouble import FAILED, MISUSED
from tieline.compiling import PLAIN
from tieline.plan import plan as plans
from tieline.plan.generate.testset import paper, tiny
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.proof import proven
from tieline.plan.reading import document
from tieline.plan.solve import METHODS

#: A link that ends at nothing.
DANGLING = """{"format": "tieline-instance-1", "name": "x", "nodes": [{"id": "a", "roles": ["broker"]}],
    "links": [{"a": "a", "b": "z", "capacity": 1, "cost": 1}], "topics": []}"""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture(name="plan")
def _plan(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `tieline plan` in this process."""

    def run(*words: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["tieline", "plan", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        sys.stdout.flush()
        return Done(int(end.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture(name="small")
def _small(tmp_path: Path) -> Path:
    path = tmp_path / "case2.json"
    document.write(paper("case2", seed=1), path)
    return path


def crowded() -> Instance:
    """Two topics, and between the brokers room for one."""
    return Instance(
        name="crowded",
        nodes=(
            Node(id="left", roles=("broker",), at=(0.0, 0.0)),
            Node(id="right", roles=("broker",), at=(1.0, 0.0)),
            Node(id="sensor", roles=("publisher",), at=(-0.5, 0.5)),
            Node(id="screen", roles=("subscriber",), at=(1.5, 0.5)),
        ),
        links=(
            Link(a="left", b="right", capacity=1.0, cost=2.0),
            Link(a="sensor", b="left", capacity=9.0, cost=1.0),
            Link(a="screen", b="right", capacity=9.0, cost=1.0),
        ),
        topics=tuple(Topic(id=name, source="sensor", rate=1.0, subscribers=("screen",)) for name in ("heat", "light")),
    )


@pytest.fixture(name="unmet")
def _unmet(tmp_path: Path, plan: Command) -> tuple[Path, Path]:
    """An instance in which somebody gets nothing, and its plan."""
    instance, found = tmp_path / "crowded.json", tmp_path / "crowded.plan.json"
    document.write(crowded(), instance)
    assert plan("solve", instance, "--json", found).returncode == 0
    return instance, found


# --- solve ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "mip", "lagrangian", "annealing", "distributed"])
def test_every_method_gives_a_plan_that_is_true(plan: Command, small: Path, tmp_path: Path, method: str) -> None:
    out = tmp_path / "plan.json"
    done = plan("solve", small, "--method", method, "--seconds", "60", "--json", out)
    assert done.returncode == 0, done.stderr
    found = plans.read(out)
    assert proven(paper("case2", seed=1), found) is found
    assert "no plan has a smaller objective" in done.stdout and f"written to {out}" in done.stdout


def test_the_search_in_plain_python(
    tieline: Tieline, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLAIN, "1")  # compiling would take longer than searching
    out = tmp_path / "plan.json"
    done = tieline("plan", "solve", str(small), "--method", "lns", "--seconds", "0.5", "--json", str(out))
    assert done.returncode == 0, done.stderr
    proven(paper("case2", seed=1), plans.read(out))


@pytest.mark.parametrize("model", ["f1", "f1-paper", "f1d", "f2", "tb"])
def test_every_model(plan: Command, small: Path, model: str) -> None:
    done = plan("solve", small, "--model", model, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["method"] == f"mip:{model}"


def test_the_json_has_the_promised_keys(plan: Command, small: Path) -> None:
    done = plan("solve", small, "--json", "-")
    written: dict[str, Any] = json.loads(done.stdout)
    promised = {"objective", "unmet", "bound", "gap", "seconds", "status", "routes"}
    assert promised <= written.keys()
    instance = paper("case2", seed=1)
    assert len(written["routes"]) == len(instance.topics)
    for route, topic in zip(written["routes"], instance.topics, strict=True):
        assert (route["topic"], route["source"]) == topic.key
        for hop in route["links"]:
            assert set(hop) == {"from", "to", "subscribers"}
            assert set(hop["subscribers"]) <= set(topic.subscribers)


def test_progress_is_told_on_standard_error(plan: Command, small: Path) -> None:
    done = plan("solve", small, "--method", "mip", "--json", "-")
    assert "objective" in done.stderr and "bound" in done.stderr
    json.loads(done.stdout)


def test_a_model_belongs_to_mip(plan: Command, small: Path) -> None:
    done = plan("solve", small, "--method", "lns", "--model", "f1")
    assert (done.returncode, done.stdout) == (MISUSED, "")
    assert "--model is for --method mip" in done.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "this is not JSON"),
        ("{}", 'its "format" is not "tieline-instance-1"'),
        (
            DANGLING,
            'there is no node "z"',
        ),
    ],
)
def test_a_bad_instance_is_one_sentence(plan: Command, tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    done = plan("solve", path)
    assert (done.returncode, done.stdout) == (MISUSED, "")
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_a_file_that_is_not_there(plan: Command, tmp_path: Path) -> None:
    done = plan("solve", tmp_path / "none.json")
    assert done.returncode == MISUSED and "No such file" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_ctrl_c_gives_the_best_plan_so_far(tieline: Tieline, tmp_path: Path) -> None:
    instance, out = tmp_path / "mesh.json", tmp_path / "plan.json"
    words = ("plan", "generate", "300", "--topics", "200", "--requests", "800", "--out", str(instance))
    assert tieline(*words).returncode == 0
    solving = subprocess.Popen(
        [sys.executable, "-m", "tieline", "plan", "solve", str(instance), "--seconds", "200", "--json", str(out)],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert solving.stderr is not None
    for line in solving.stderr:
        if "search: objective" in line:
            break
    solving.send_signal(signal.SIGINT)
    solving.communicate(timeout=60)
    assert solving.returncode == 0
    found = plans.read(out)
    assert found.status == "interrupted"
    proven(document.read(instance), found)


# --- generate, import -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["tiny", "case3", "12"])
def test_a_seed_makes_the_same_instance(plan: Command, size: str) -> None:
    first, again, other = (plan("generate", size, "--seed", seed) for seed in "774")
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    assert (first.stdout == other.stdout) == (size == "tiny")
    document.parse(first.stdout)


def test_what_is_generated_is_told(plan: Command, tmp_path: Path) -> None:
    done = plan("generate", "res0", "--out", tmp_path / "res0.json", "--unmet-cost", "50")
    assert "14 nodes" in done.stdout and "28 arcs" in done.stdout
    assert document.read(tmp_path / "res0.json").unmet_cost == 50


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("3",), "3 is no size"),
        (("res9",), "res9 is no size"),
        (("case3", "--topics", "4"), "--topics cannot be given here"),
        (("20", "--topics", "2", "--requests", "900"), "900 requests"),
        (("20", "--tightness", "0"), "tightness"),
        (("topohub:topozoo/Nowhere",), "topohub has no topology"),
    ],
)
def test_what_cannot_be_generated(plan: Command, words: tuple[str, ...], sentence: str) -> None:
    done = plan("generate", *words)
    assert (done.returncode, done.stdout) == (MISUSED, "")
    assert sentence in done.stderr


def test_wildcards_are_expanded_on_import(plan: Command, tmp_path: Path) -> None:
    source = json.loads(document.render(crowded()))
    for topic in source["topics"]:
        topic["subscribers"] = []
    source["subscriptions"] = [{"node": "screen", "filter": "+"}]
    path = tmp_path / "traffic.json"
    path.write_text(json.dumps(source))
    done = plan("import", path, "--out", tmp_path / "instance.json")
    assert "2 requests" in done.stdout
    assert document.read(tmp_path / "instance.json") == crowded()


def test_graphml_is_imported(plan: Command, tmp_path: Path) -> None:
    path = tmp_path / "ring.graphml"
    nodes = "".join(f'<node id="n{at}"/>' for at in range(6))
    edges = "".join(f'<edge source="n{at}" target="n{(at + 1) % 6}"/>' for at in range(6))
    path.write_text(f"<graphml><graph>{nodes}{edges}</graph></graphml>")
    done = plan("import", path, "--topics", "2", "--requests", "4", "--out", tmp_path / "ring.json")
    assert done.returncode == 0, done.stderr
    assert document.read(tmp_path / "ring.json").request_count == 4


# --- check, explain, what-if ------------------------------------------------------------------------------------------


def test_a_true_plan_is_proven(plan: Command, unmet: tuple[Path, Path]) -> None:
    done = plan("check", *unmet)
    assert done.returncode == 0
    assert done.stdout.startswith("proven: ") and "1 of 2 requests served" in done.stdout


def test_a_false_plan_is_refuted(plan: Command, unmet: tuple[Path, Path]) -> None:
    instance, path = unmet
    lying = json.loads(path.read_text())
    lying["cost"] -= 1
    path.write_text(json.dumps(lying))
    done = plan("check", instance, path)
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert "the plan is refuted: the plan states cost" in done.stderr


def test_what_is_no_plan(plan: Command, small: Path) -> None:
    done = plan("check", small, small)
    assert done.returncode == MISUSED and "this is not a plan" in done.stderr


def test_a_refuted_plan_is_not_explained_either(plan: Command, unmet: tuple[Path, Path]) -> None:
    instance, path = unmet
    path.write_text(path.read_text().replace('"unmet": 1', '"unmet": 0', 1))
    assert plan("explain", instance, path).returncode == FAILED


def test_the_full_link_is_named(plan: Command, unmet: tuple[Path, Path]) -> None:
    done = plan("explain", *unmet)
    assert done.returncode == 0
    assert "left - right (1 of 1)" in done.stdout
    served = "heat" if "light" in done.stdout.splitlines()[0] else "light"
    assert "is served" in plan("explain", *unmet, f"{served}:screen").stdout


def test_a_request_that_nobody_made(plan: Command, unmet: tuple[Path, Path]) -> None:
    done = plan("explain", *unmet, "heat:left")
    assert done.returncode == MISUSED and "there is no request heat:left" in done.stderr


def test_what_if_a_link_fails(plan: Command, unmet: tuple[Path, Path], tmp_path: Path) -> None:
    after, changed = tmp_path / "after.json", tmp_path / "changed.json"
    done = plan("what-if", *unmet, "--remove", "right-left", "--json", after, "--instance", changed)
    assert done.returncode == 0, done.stderr
    assert "no longer served" in done.stdout
    assert len(document.read(changed).links) == 2
    assert proven(document.read(changed), plans.read(after)).unmet == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name a change"),
        (("--remove", "left-nowhere"), "there is no link and no broker left-nowhere"),
        (("--remove", "sensor"), "is not a broker"),
        (("--rate", "sound=3"), "there is no topic sound"),
        (("--rate", "heat=much"), "--rate heat=much"),
        (("--unsubscribe", "heat:left"), "there is no request heat:left"),
    ],
)
def test_a_change_that_means_nothing(
    plan: Command, unmet: tuple[Path, Path], words: tuple[str, ...], sentence: str
) -> None:
    done = plan("what-if", *unmet, *words)
    assert done.returncode == MISUSED
    assert sentence in done.stderr


# --- draw, compare ----------------------------------------------------------------------------------------------------


def test_a_plan_is_drawn(plan: Command, unmet: tuple[Path, Path], tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    assert plan("draw", *unmet, "--out", picture).returncode == 0
    assert ET.parse(picture).getroot().tag.endswith("svg")
    bare = tmp_path / "network.png"
    assert plan("draw", unmet[0], "--out", bare).returncode == 0
    assert bare.read_bytes().startswith(b"\x89PNG")


def test_a_picture_has_a_format(plan: Command, unmet: tuple[Path, Path], tmp_path: Path) -> None:
    done = plan("draw", *unmet, "--out", tmp_path / "plan.bmp")
    assert done.returncode == MISUSED and "ends in .svg" in done.stderr


def test_a_topic_without_a_plan_travels_nowhere(plan: Command, small: Path) -> None:
    done = plan("draw", small, "--topic", "t0")
    assert done.returncode == MISUSED and "--topic needs a PLAN" in done.stderr


def test_methods_are_compared(plan: Command, tmp_path: Path) -> None:
    instance, figures = tmp_path / "tiny.json", tmp_path / "compared.json"
    document.write(tiny(), instance)
    picture = tmp_path / "compared.png"
    done = plan("compare", instance, "--seconds", "60", "--out", picture, "--json", figures)
    assert done.returncode == 0, done.stderr
    rows = json.loads(figures.read_text())["methods"]
    assert [row["method"] for row in rows] == ["auto", "lns", "mip", "lagrangian", "annealing", "distributed"]
    assert {row["best_bound"] for row in rows} == {6.0}
    assert rows[0]["status"] == "optimal" and rows[0]["gap"] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_commands_know_every_method() -> None:
    assert set(get_args(Method)) == set(METHODS) == set(pictures.METHODS)

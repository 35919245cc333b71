"""What every test may ask for: tools that are not Python, and examples that are the same in every run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.remote import Producer

from tests.kits.examples import EVERY_DAY
from tests.kits.groups import SHARED, ByGroup, group_of
from tieline.native import is_compiled

_HERE = Path(__file__).parent
#: Tests that search for plans, and count seconds.
_SEARCHING = (
    *("plan/search", "plan/adapt", "plan/kernels", "plan/reduce"),
    *("plan/test_solve.py", "plan/test_explain.py", "cli/test_plan.py"),
)

# The test command says the same each time it is given: the same examples, none that an earlier run left behind, and no
# limit that measures the machine instead of the code.  `make explore` looks for examples that nobody has tried.
settings.register_profile(
    "repeat",
    max_examples=EVERY_DAY,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("repeat"), derandomize=False, max_examples=10 * EVERY_DAY)
settings.load_profile("repeat")

# Hypothesis tries constants that it finds in the modules loaded so far, which depend on the tests that ran before in
# the same process.  It has no setting for that; test_examples.py notices if this no longer helps.
setattr(providers, "_get_local_constants", lambda: providers._local_constants)  # noqa: B010 - it is not ours


# A shell starts what runs in its background with SIGINT ignored, and so would every process that a test starts and
# means to interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Brokers without a data directory or a name share one management socket, and a second one is refused.  Each process of
# the tests has a directory of its own for these, with a short name because the path of a socket is limited.
_RUNTIME = tempfile.mkdtemp(prefix="tl-")
os.environ["XDG_RUNTIME_DIR"] = _RUNTIME


def pytest_report_header() -> str:
    """Which of the two is tested."""
    return f"broker: {'compiled' if is_compiled() else 'plain Python'}"


def pytest_unconfigure() -> None:
    """Nothing is left behind."""
    shutil.rmtree(_RUNTIME, ignore_errors=True)


def need(tool: str) -> str:
    """The path of a program that the test cannot do without.

    On a developer's machine its absence skips the test with a sentence; where CI=true nothing may stay untested, so the
    test fails.
    """
    # Debian keeps daemons where an ordinary user's PATH does not look.
    path = shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin:/usr/local/sbin")
    if path is not None:
        return path
    sentence = f"{tool} is not installed, so what it would say is unknown"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup:
    """Where tests run in several processes, those that share something share one."""
    return ByGroup(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever comes first in a group waits for a JVM, or for the compiler, so all in it get more time."""
    for item in items:
        if group_of(item.nodeid) in SHARED and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The loops of the planner's search are compiled, or loaded, before a test that counts seconds begins."""
    if _is_among(item, _SEARCHING):
        from tieline.plan.search.warm import warm

        warm()


def _is_among(item: pytest.Item, places: tuple[str, ...]) -> bool:
    return any(item.path.is_relative_to(_HERE / each) for each in places)


@pytest.fixture
def tracing() -> None:
    """The test traces system calls, which takes a program and, in some containers, a right."""
    if subprocess.run([need("strace"), "-o", "/dev/null", "true"], check=False).returncode != 0:
        pytest.skip("this machine does not let programs be traced")


@pytest.fixture(name="need")
def _need() -> Callable[[str], str]:
    return need

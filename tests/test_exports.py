"""The public surface: what ``import tieline`` promises, and what it does not load."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files

import pytest

import tieline

PROMISED = ["Broker", "Limits", "Listener", "Mqtt", "Settings", "__version__"]


def test_exactly_these_names() -> None:
    assert tieline.__all__ == PROMISED


@pytest.mark.parametrize("name", PROMISED)
def test_each_name_is_there(name: str) -> None:
    assert getattr(tieline, name) is not None


def test_star_import() -> None:
    namespace: dict[str, object] = {}
    exec("from tieline import *", namespace)
    assert set(PROMISED) <= namespace.keys()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tieline' has no attribute 'Client'"):
        _ = tieline.Client


def test_the_version_is_that_of_the_package() -> None:
    assert tieline.__version__ == version("tieline")


def test_types_are_shipped() -> None:
    assert files("tieline").joinpath("py.typed").is_file()


def test_a_broker_takes_settings_or_keywords() -> None:
    parameters = inspect.signature(tieline.Broker).parameters
    keywords = [name for name, one in parameters.items() if one.kind is inspect.Parameter.KEYWORD_ONLY]
    assert next(iter(parameters)) == "settings"
    assert keywords == ["listen", "name", "data", "access", "authenticator", "store", "manage", "reread", "services"]


@pytest.mark.parametrize("heavy", ["asyncio", "ssl", "websockets", "rich", "typer", "paho", "tieline.net"])
def test_importing_the_package_loads_nothing_heavy(heavy: str) -> None:
    program = f"import sys, tieline; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_broker_loads_neither_the_command_line_nor_a_client() -> None:
    program = """
import sys, tieline
tieline.Broker
loaded = [name for name in ("typer", "rich", "paho", "websockets", "pytest") if name in sys.modules]
sys.exit(" ".join(loaded) or 0)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"loaded for nothing: {done.stderr}"

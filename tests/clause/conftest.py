"""Fixtures of the clause tests: a world, once with whole packets and once byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.kits.world import World

NewWorld = Callable[..., World]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clause(*ids): the normative statements that the test checks")


@pytest.fixture(params=[False, True], ids=["whole", "split"])
def new_world(request: pytest.FixtureRequest) -> NewWorld:
    """Makes a world with settings of its own."""
    return partial(World, split=request.param)


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """A world with the default settings."""
    return new_world()

from __future__ import annotations

import pytest

from tieline.extras import ExtraNeeded, is_installed, library_in, needs, remedy


def test_what_is_installed_is_known_without_importing_it() -> None:
    assert is_installed("msgspec")
    assert not is_installed("no_such_library")
    assert not is_installed("no_such_library.part")


def test_a_missing_library_ends_in_the_command_that_installs_it() -> None:
    with (
        pytest.raises(ExtraNeeded, match=r"^no_such_library is not installed: pip install 'tieline\[plan\]'$"),
        needs("plan"),
    ):
        import no_such_library  # type: ignore[import-not-found]  # noqa: F401 - that is what the test is about


def test_the_library_of_a_module_is_its_first_name() -> None:
    assert library_in(ModuleNotFoundError("no", name="pyarrow.compute")) == "pyarrow"
    assert library_in(ImportError("no name at all")) == "no name at all"
    assert remedy("sim") == "pip install 'tieline[sim]'"

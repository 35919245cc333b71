"""What the tests of the shell share: certificates, made once."""

from __future__ import annotations

import pytest

from tests.kits.certificates import Certificates, issue


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"))

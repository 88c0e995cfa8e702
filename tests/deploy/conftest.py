"""One deployment for all tests here: four roles in four containers, over TLS with an authority of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.containers import Deployment, running_deployment


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with running_deployment(tmp_path_factory.mktemp("deployment"), events=500) as running:
        yield running

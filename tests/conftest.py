"""What all tests share: real rows, one async backend, and a home folder that is nobody's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real rows that are not part of the repository; they lie beside the checkout, in `../shared/data`."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        reason = f"the real rows are not beside this checkout (looked for {folder.name} in ../shared)"
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {reason}")
        pytest.skip(reason)
    return folder


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No SENTINEL_ or AZURE_ setting of the person who runs the tests, and a home folder of the test's own."""
    for name in list(os.environ):
        if name.startswith(("SENTINEL_", "AZURE_")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    monkeypatch.setenv("SENTINEL_HOME", str(home))
    return home

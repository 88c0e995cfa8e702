"""docs/install.md: sizes are those that were measured, and every extra of the package is told."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

import pytest
from bench.dependencies import EXTRAS

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "install.md").read_text()
MEASURED = json.loads((REPOSITORY / "bench" / "results" / "install_size.json").read_text())["measured"]
TOLD = {extra: int(size) for extra, size in re.findall(r"^\| `([a-z-]+)` \| .* \| (\d+) MB \|$", PAGE, re.MULTILINE)}


def test_every_extra_is_told() -> None:
    assert set(TOLD) == set(EXTRAS) <= set(metadata.metadata("sentinel-rag").get_all("Provides-Extra") or [])


@pytest.mark.parametrize("extra", sorted(TOLD))
def test_the_size_of_an_extra_is_the_measured_one(extra: str) -> None:
    assert TOLD[extra] == pytest.approx(MEASURED["extras_add"][extra]["mb"], rel=0.1)


def test_the_default_install_keeps_its_promise() -> None:
    """OPS-1, issue 9: below 400 MB."""
    (told,) = re.findall(r"The default takes \[(\d+) MB\]", PAGE)
    assert int(told) == pytest.approx(MEASURED["default_mb"], rel=0.1)
    assert MEASURED["default_mb"] < 400

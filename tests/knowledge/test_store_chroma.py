"""The Chroma store: the contract of all stores, and what holds for its owner, its index and its crashes.

ChromaDB lies in `.venv/chroma` (`make test` puts it there), since nothing else needs its half gigabyte.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_contract import StoreContract

from sentinel_rag.knowledge.stores import KnowledgeStore
from sentinel_rag.knowledge.stores.chroma import ChromaStore

CHROMA = Path(sys.prefix) / "chroma"


@pytest.fixture(autouse=True, scope="module")
def chromadb_installed() -> None:
    if not (CHROMA / "installed").exists():
        reason = "ChromaDB is not in .venv/chroma: `make test` installs it, or `make .venv/chroma/installed`"
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {reason}")
        pytest.skip(reason)
    # Behind everything else, so that it brings what is not there and shadows nothing.
    sys.path.append(str(CHROMA))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chroma"


class TestChromaStore(StoreContract):
    @pytest.fixture
    def store(self, path: Path) -> Iterator[KnowledgeStore]:
        with ChromaStore(path) as opened:
            yield opened


class TestChromaGraph(StoreContract):
    """The same where Chroma is asked however few chunks there are."""

    @pytest.fixture
    def store(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeStore]:
        monkeypatch.setattr("sentinel_rag.knowledge.stores.chroma.search.EXACT", 0)
        with ChromaStore(path) as opened:
            yield opened

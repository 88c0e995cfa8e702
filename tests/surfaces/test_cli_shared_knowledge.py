"""`sentinel knowledge ingest` of several homes into one store: each says what it did to its own, and does no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.azure_search import running_azure_search

from sentinel_rag.app.knowledge_stores import shipped_playbooks
from sentinel_rag.surfaces.cli import main

Run = Callable[..., Any]
SHIPPED = sum(each.suffix == ".md" for each in shipped_playbooks().iterdir())


@pytest.fixture
def run(
    clean_environment: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """A command of the home of that name, which has to end well; what it told as JSON."""
    with running_azure_search() as (url, _):
        monkeypatch.setenv("SENTINEL_KNOWLEDGE_STORE", "azure-search")
        monkeypatch.setenv("SENTINEL_AZURE_SEARCH_ENDPOINT", url)
        monkeypatch.setenv("SENTINEL_AZURE_SEARCH_KEY", "double-key")
        monkeypatch.setenv("SENTINEL_EMBEDDINGS", "none")

        def command(home: str, *words: str) -> Any:
            monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / home))
            assert main(["knowledge", *words, "--json"]) == 0
            return json.loads(capsys.readouterr().out)

        yield command


def figures(told: Any) -> tuple[int, int, int, int]:
    return told["added"], told["changed"], told["unchanged"], told["removed"]


@pytest.mark.requirement("KNOW-4")
def test_a_plain_ingest_of_another_home_leaves_the_teams_playbooks(run: Run, tmp_path: Path) -> None:
    team = tmp_path / "team"
    team.mkdir()
    (team / "phishing.md").write_text("# Phishing\n\nCall the zebra desk.\n")
    assert figures(run("a", "ingest", "--only", "playbooks", str(team))) == (1, 0, 0, 0)
    assert figures(run("b", "ingest", "--only", "playbooks")) == (SHIPPED, 0, 0, 0)
    assert figures(run("a", "ingest", "--only", "playbooks")) == (0, 0, 1, 0)
    assert figures(run("c", "ingest", "--only", "playbooks")) == (0, 0, SHIPPED, 0)
    for home in ("a", "b"):
        status = run(home, "status")
        assert status["collections"]["playbooks"]["documents"] == SHIPPED + 1
        assert not any("anew" in sentence for sentence in status["next_ingest"])
    hits = run("b", "search", "zebra desk")["hits"]
    assert (hits[0]["citation"], hits[0]["text"]) == ("phishing.md > Phishing", "Call the zebra desk.")

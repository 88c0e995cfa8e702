"""Public MCP servers behind the gateway, and the public conformance suite before it: `make mcp-servers` runs them, and
the results that are committed are those of the versions that are pinned."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.requirement("GATE-4"), pytest.mark.requirement("GATE-5")]


def committed(name: str) -> Any:
    return json.loads((REPOSITORY / "bench" / "results" / f"{name}.json").read_text())["measured"]


def test_the_results_are_whole_and_of_the_pinned_versions() -> None:
    from bench.bench_mcp_servers import ERAS
    from bench.npm_tools import versions

    servers, suite = committed("mcp_servers"), committed("mcp_conformance")
    pinned = versions()
    assert servers["servers"] == {name: version for name, version in pinned.items() if "server-" in name}
    assert suite["suite"] == "@modelcontextprotocol/conformance " + pinned["@modelcontextprotocol/conformance"]
    assert set(servers["expectations"]) == set(ERAS)
    assert all(all(each.values()) and len(each) > 20 for each in servers["expectations"].values())
    tried = [each for each in suite["scenarios"].values() if "passed" in each]
    assert len(tried) > 15
    assert all(each["passed"] and "wrong" not in each for each in tried)


@pytest.mark.parametrize("names", [["mcp_servers"], ["mcp_conformance"], ["mcp_conformance", "mcp_servers"]])
def test_without_the_packages_it_ends_with_1_and_says_what_to_run(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was tried then, which must not look like a run in which everything held; the others run all the same."""
    from bench.__main__ import main

    from bench import npm_tools

    monkeypatch.setattr(npm_tools, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench", *names])
    for name in names:  # whatever another test has imported: it is run as a program here
        monkeypatch.delitem(sys.modules, f"bench.bench_{name}", raising=False)
    before = [(REPOSITORY / "bench" / "results" / f"{name}.json").read_bytes() for name in names]
    assert main() == 1
    told = capsys.readouterr()
    assert told.err.count("run: make mcp-servers\n") == len(names)
    assert [line for line in told.out.splitlines() if line.startswith("==")] == [f"== {name}" for name in names]
    assert [(REPOSITORY / "bench" / "results" / f"{name}.json").read_bytes() for name in names] == before

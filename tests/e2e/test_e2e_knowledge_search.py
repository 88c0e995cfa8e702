"""Knowledge through all zones, with the installed command: searched in a fresh home, and by those who may read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_e2e_zones import post

from sentinel_rag.app.run_state import RunFolder

PROC = Path("/proc")


@pytest.fixture(scope="module")
def running(new_product: Any) -> Iterator[Any]:
    """The product in an empty home, whose person reads as hr."""
    product = new_product("knowledge")
    product.settings.update(SENTINEL_READERS="hr", SENTINEL_EMBEDDINGS="none")
    with product.up():
        yield product


def search(running: Any, session: str, **arguments: Any) -> tuple[int, Any]:
    state = RunFolder(running.home).read()
    assert state is not None
    url = running.json("status")["interceptor"]["url"]
    body = {"session_id": session, "tool_name": "search_knowledge_base", "args": arguments}
    return post(url, "/v1/proxy-execute", body, {"X-API-Key": state.keys["agent"]})


def doctor_line(running: Any) -> str:
    findings = running.json("doctor", code=1)  # an empty workspace is a fault
    return str(next(each["detail"] for each in findings if each["name"] == "knowledge"))


def opened_by_the_person(running: Any) -> str:
    state = RunFolder(running.home).read()
    assert state is not None
    url = running.json("status")["interceptor"]["url"]
    return str(post(url, "/v1/sessions", {}, {"X-API-Key": state.keys["user"]})[1]["session_id"])


@pytest.mark.requirement("KNOW-3")
@pytest.mark.requirement("KNOW-4")
def test_a_fresh_home_finds_the_shipped_playbooks_and_then_ones_own_by_who_may_read(
    running: Any, tmp_path: Path
) -> None:
    assert "begins with the shipped playbooks at the first search" in doctor_line(running)
    assert "search_knowledge_base" in {tool["name"] for tool in running.json("tools")}
    code, body = search(running, "e2e-fresh", query="who decides about isolating a host", collection="playbooks")
    assert code == 200
    found = body["result"]
    shipped = {path.name for path in (Path(__file__).parents[2] / "data" / "playbooks").glob("*.md")}
    assert {hit["document_id"] for hit in found["hits"]} <= shipped
    assert any(hit["citation"].endswith("> Containment") for hit in found["hits"])
    assert found["freshness"] == {"incidents": 0, "playbooks": len(shipped), "incidents_as_of": None}
    assert f"{len(shipped)} playbooks" in doctor_line(running)
    if PROC.is_dir():  # words need no model, so none was loaded
        pid = running.json("status")["executors"]["knowledge"]["pid"]
        assert "onnxruntime" not in (PROC / str(pid) / "maps").read_text()

    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "open.md").write_text("# Open\n\nThe xylophone is in the hall.\n")
    (folder / "closed.md").write_text("---\nreaders: [hr]\n---\n# Closed\n\nThe xylophone of the board is sold.\n")
    done = running.run("knowledge", "ingest", str(folder), "--only", "playbooks")
    assert done.returncode == 0, done.stderr
    _, as_person = search(running, opened_by_the_person(running), query="xylophone")
    assert {hit["document_id"] for hit in as_person["result"]["hits"]} == {"open.md", "closed.md"}
    _, as_agent = search(running, "e2e-of-the-agent", query="xylophone")
    assert [hit["document_id"] for hit in as_agent["result"]["hits"]] == ["open.md"]
    assert as_agent["result"]["freshness"]["playbooks"] == len(shipped) + 1  # the shipped ones stay
    readers = []
    for answer in (as_person, as_agent):
        lines = running.run("audit", "show", answer["audit_id"], "--json").stdout.splitlines()
        readers += [record["readers"] for line in lines if "readers" in (record := json.loads(line)["record"])]
    assert readers == [["hr"], []]

"""docs/concepts.md: each box prints what the page says."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from page_boxes import Step, matches, steps

from sentinel_rag.surfaces.cli import main
from sentinel_rag_testing.running_gateway import RunningGateway

STEPS = list(steps((Path(__file__).resolve().parents[2] / "docs" / "concepts.md").read_text()))


@pytest.mark.parametrize("step", STEPS, ids=[step.typed.strip() for step in STEPS])
def test_each_box_prints_what_the_page_says(
    step: Step,
    clean_environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(step.typed)[1:]) == step.code
    printed = capsys.readouterr().out
    assert step.printed is not None
    assert matches(printed, step.printed), printed


@pytest.mark.requirement("TAINT-1")
def test_the_four_steps_happen_at_a_real_gateway(gateway: RunningGateway) -> None:
    """What the page explains by `policy explain`, over the wire: a search, the read, the same search, the change."""
    session = gateway.open_session()
    search = {"query": "CVE-2026-1234 exploitation"}
    assert gateway.call("web_search", search, session_id=session).status == 200
    assert gateway.context(session) == ("LOW", "UNTRUSTED")
    assert gateway.call("get_incident_detail", {"incident": "125"}, session_id=session).status == 200
    assert gateway.context(session) == ("MEDIUM", "UNTRUSTED")
    again = gateway.call("web_search", search, session_id=session)
    assert (again.status, again.body["reason"], again.body["rule_id"]) == (403, "sink_label", "web_search_default")
    close = gateway.call("update_incident", {"incident": "125", "status": "Closed"}, session_id=session)
    assert (close.status, close.body["reason"], close.body["rule_id"]) == (
        403,
        "approval_required",
        "update_incident_any",
    )
    refused = [(record["tool"], record["reason"]) for record in gateway.records() if record["kind"] == "refusal"]
    assert refused == [("web_search", "sink_label"), ("update_incident", "approval_required")]

"""A KQL template of the operator's own, through all zones with the installed command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

OWN = """\
name: {name}
description: Sign-ins counted by how people authenticated.
tables: [SigninLogs]
time_column: TimeGenerated
questions: [Sign-ins by authentication requirement., How do people authenticate?]
totals: [Total]
kql: |
  SigninLogs
  | where {window}
  | summarize Total = count() by AuthenticationRequirement
  | order by Total desc
"""


@pytest.mark.requirement("TOOL-4")
def test_it_is_asked_for_and_recorded_like_a_shipped_one(generated: Any, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "signins_by_requirement.yaml").write_text(OWN.replace("{name}", "signins_by_requirement"))
    product = type(generated)(generated.copy(tmp_path / "home").home, {"SENTINEL_TEMPLATES": str(folder)})
    answer = product.json("ask", "run the template signins_by_requirement")
    assert answer["outcome"] == "answered"
    assert answer["tables"][0]["columns"] == ["AuthenticationRequirement", "Total"]
    call = answer["tools"][-1]
    assert (call["name"], call["arguments"]) == ("run_kql_query", {"template": "signins_by_requirement"})
    record = product.run("audit", "show", call["audit_id"], "--json").stdout
    assert "signins_by_requirement" in record


def test_a_faulty_one_keeps_the_zones_from_starting_and_is_told_with_its_line(generated: Any, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "raw_signins.yaml").write_text(OWN.replace("{name}", "raw_signins"))
    (folder / "wrong.yaml").write_text(OWN.replace("{name}", "wrong").replace("{window}", "true"))
    product = type(generated)(generated.copy(tmp_path / "home").home, {"SENTINEL_TEMPLATES": str(folder)})
    failed = product.run("ask", "how many incidents are open?")
    assert failed.returncode == 2
    assert "raw_signins.yaml:1: 'raw_signins' is the name of a shipped template; choose another" in failed.stderr
    assert "wrong.yaml:7: the query has no {window} slot" in failed.stderr
    assert "Traceback" not in failed.stderr

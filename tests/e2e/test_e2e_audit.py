"""The journal of the whole product: sealed by its zones, checked by the command line, kept at a second place."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.requirement("AUD-2")
def test_a_stopped_product_leaves_a_journal_that_is_sealed_to_the_end(
    new_product: Callable[[str], Any], tmp_path: Path
) -> None:
    product = new_product("audit")
    anchor = tmp_path / "anchor.jsonl"
    product.settings["SENTINEL_AUDIT_ANCHOR"] = str(anchor)
    assert product.run("demo").returncode == 0
    found = product.json("audit", "verify")
    assert (found["intact"], found["unsealed"]) == (True, 0)
    assert found["anchored"] == found["sealed"] == found["last"] > 4
    export = tmp_path / "records.jsonl"
    assert product.run("audit", "export", str(export)).returncode == 0
    assert product.json("audit", "verify", "--file", str(export))["last"] == found["last"]
    denied = product.run("audit", "show", "--decision", "deny", "--json").stdout.splitlines()
    assert "web_search" in [json.loads(line)["record"]["tool"] for line in denied]


@pytest.mark.requirement("AUD-3")
def test_records_are_moved_beside_a_running_product_and_kill_9_costs_no_record(
    new_product: Callable[[str], Any],
) -> None:
    product = new_product("audit-running")
    assert product.run("workspace", "generate", "--days", "7", "--events", "1000").returncode == 0
    with product.start("up", "--json") as running:
        assert running.stdout is not None
        assert running.stdout.readline()
        assert product.run("ask", "list open incidents").returncode in (0, 3)
        moved = product.json("audit", "rotate")
        assert moved["first"] == 1
        assert product.run("ask", "list open incidents").returncode in (0, 3)
        running.send_signal(signal.SIGKILL)
        running.wait()
    found = product.json("audit", "verify")
    assert found["intact"]
    assert found["last"] > moved["last"] + 2
    assert product.json("audit", "rotate")["first"] == moved["last"] + 1
    assert product.json("audit", "verify")["unsealed"] == 0

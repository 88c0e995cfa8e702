"""The whole product with the gateway's state in PostgreSQL: asked once, and recorded there and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.postgres_server import PostgresServer


@pytest.mark.requirement("OPS-5")
def test_a_product_on_postgresql_answers_and_leaves_its_journal_there(
    generated: Any, postgres: PostgresServer, tmp_path: Path
) -> None:
    product = generated.afresh(tmp_path / "home")
    product.settings.update(
        {"SENTINEL_DATABASE_URL": postgres.url, "SENTINEL_DATABASE_SCHEMA": "whole_product"},
    )
    said = product.run("ask", "list open incidents")
    assert said.returncode == 0, said.stdout + said.stderr
    found = product.json("audit", "verify")
    assert (found["intact"], found["unsealed"]) == (True, 0)
    assert found["last"] > 2
    assert not (product.home / "gateway" / "journal.sqlite").exists()
    assert not (product.home / "gateway" / "keys.sqlite").exists()
    for log in (product.home / "logs").iterdir():
        assert postgres.url.encode() not in log.read_bytes()

"""`sentinel doctor` on knowledge: it advises nothing that would be refused now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sentinel_rag.app.run_state import RunFolder, RunState
from sentinel_rag.surfaces.cli import main


def test_a_store_with_one_owner_that_the_zones_may_have_is_looked_into_after_them(
    clean_environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SENTINEL_KNOWLEDGE_STORE", "chroma")

    def detail() -> str:
        main(["doctor", "--json"])
        (found,) = (each for each in json.loads(capsys.readouterr().out) if each["name"] == "knowledge")
        return str(found["detail"])

    assert ": sentinel knowledge status looks into it; found by" in detail()
    folder = RunFolder(clean_environment)
    with folder.hold():
        folder.write(RunState(0, False, "lab", ()))
        assert "`sentinel up` may have it open, as one process can; once it has ended, sentinel knowledge" in detail()

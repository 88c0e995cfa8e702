"""What sentences are read as, in rows: each tells some of what the frame must hold, and what is left unread."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.language.frames import Reader, WorkspaceNames
from sentinel_rag.language.times import Now, read_time_in_its_zone

_CLOCK = Now(datetime(2024, 7, 23, 12, tzinfo=UTC), UTC)
_NAMES = WorkspaceNames.of(
    {
        "account": ["m.keller@contoso.example", "siobhan.o'brien@contoso.example", "ana.lópez@contoso.example"],
        "host": ["srv-file-01.contoso.example", "dc-01.contoso.example"],
    }
)
READER = Reader(lambda text: read_time_in_its_zone(text, _CLOCK), _NAMES)
ROWS: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "readings.toml").read_text(encoding="utf-8"))["row"]


@pytest.mark.requirement("AGENT-1")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["q"])
def test_a_sentence_is_read(row: dict[str, Any]) -> None:
    frame = READER.read(row["q"])
    told = {f"{type_}:{value}" for type_, values in frame.features.items() for value in values}
    assert set(row.get("told", [])) <= told, told
    assert not set(row.get("never", [])) & told
    assert frame.unread == row.get("unread", [])
    assert frame.window == row.get("window", frame.window)
    assert frame.language == row.get("language", frame.language)


@pytest.mark.parametrize("text", ["", " ", "?", "((((", "\u0000", "🔥" * 50, "a" * 4000, "12 " * 500, "'", "[", "#"])
def test_any_text_gives_a_frame(text: str) -> None:
    assert READER.read(text) is not None

"""Several readers while an import writes, over the server: no error, and each answer is of one moment."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runaway import ADMIN_TOKEN, RunawayServer, runaway_server

pytestmark = [pytest.mark.requirement("DATA-4"), pytest.mark.requirement("DATA-5")]

ROWS = 5_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunawayServer]:
    with runaway_server(tmp_path) as running:
        yield running


def export(folder: Path, part: int) -> Path:
    """Rows of one part; each part has a column that the table does not have yet."""
    path = folder / f"part{part}.jsonl"
    with path.open("w") as file:
        for number in range(ROWS):
            row = {"TimeGenerated": "2024-07-02T00:00:00Z", "Part": part, "Number": number, f"Only{part}": number % 7}
            file.write(json.dumps(row) + "\n")
    return path


def test_readers_see_whole_imports_only_while_tables_grow_and_change(server: RunawayServer, tmp_path: Path) -> None:
    parts = 4
    files = [export(tmp_path, part) for part in range(parts)]

    def add(file: Path) -> None:
        body = {"path": str(file), "table": "Readers_CL"}
        reply = server.send("POST", "/admin/import", body, {"authorization": f"Bearer {ADMIN_TOKEN}"})
        assert reply.status == 200
        assert reply.body["reports"][0]["rows_stored"] == ROWS

    add(files[0])
    done = threading.Event()
    seen: list[tuple[int, int, int]] = []
    faults: list[Any] = []
    kql = (
        f"Readers_CL | summarize n = count(), parts = dcount(Part), ends = countif(Number == {ROWS - 1}) "
        "| extend again = toscalar(Readers_CL | count) | project n, parts, ends, again"
    )

    def read() -> None:
        while not done.is_set():
            reply = server.query(kql)
            if reply.status != 200:
                faults.append(reply)
                return
            n, whole, ends, again = reply.body["tables"][0]["rows"][0]
            seen.append((n, whole, ends))
            if n != again:
                faults.append((n, again))
            everything = server.query("Readers_CL | take 3")
            if everything.status != 200:
                faults.append(everything)

    readers = [threading.Thread(target=read, name=f"reader-{number}") for number in range(3)]
    for reader in readers:
        reader.start()
    try:
        for file in files[1:]:
            add(file)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert faults == []
    assert seen
    assert set(seen) <= {(ROWS * part, part, part) for part in range(1, parts + 1)}
    final = server.query(kql).body["tables"][0]["rows"]
    assert final == [[ROWS * parts, parts, parts, ROWS * parts]]


def test_an_import_that_fails_changes_nothing_for_a_reader(server: RunawayServer, tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(b"PAR1 and then nothing that is Parquet")
    reply = server.send("POST", "/admin/import", {"path": str(path)}, {"authorization": f"Bearer {ADMIN_TOKEN}"})
    assert reply.status == 400
    assert server.query("Syslog | count").body["tables"][0]["rows"] == [[10]]

"""What a query may use: memory and disk are bounded, an answer is cut at the service's limits, the server goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from runaway import RunawayServer, runaway_server

from sentinel_rag.workspace.store import MemoryLimits
from sentinel_rag.workspace.workspace import Workspace
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("DATA-4")

TEXT = "'" + "a" * 400 + "'"
TEXTS = f"range x from 1 to 4000000 step 1 | extend t = strcat({TEXT}, x)"
HUNGRY = {
    "a_set_of_all": f"{TEXTS} | summarize make_set(t) | project array_length(set_t)",
    "a_list_of_all": f"{TEXTS} | summarize make_list(t) | project array_length(list_t)",
    "a_sort_larger_than_the_disk_allowed": (
        f"range x from 1 to 4000000 step 1 | extend t = strcat({TEXT}, hash_sha256(tostring(x))) | sort by t asc"
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunawayServer]:
    limits = MemoryLimits(memory="200MB", spill="50MB")
    with runaway_server(tmp_path_factory.mktemp("memory"), memory=limits) as running:
        yield running


@pytest.mark.parametrize("kql", HUNGRY.values(), ids=HUNGRY)
def test_a_query_that_needs_too_much_memory_is_refused_and_the_server_goes_on(server: RunawayServer, kql: str) -> None:
    reply = server.query(kql)
    assert reply.status == 400
    inner = reply.body["error"]["innererror"]["innererror"]
    assert inner["code"] == "E_LOW_MEMORY_CONDITION"
    assert "more memory than the workspace may use" in inner["message"]
    assert server.query("Syslog | count").body["tables"][0]["rows"] == [[10]]


def test_a_sort_that_does_not_fit_in_memory_uses_the_disk(tmp_path: Path) -> None:
    workspace = Workspace.open(tmp_path, limits=MemoryLimits(memory="200MB", spill="4GB"))
    answer = workspace.query(
        f"range x from 1 to 500000 step 1 | extend t = strcat(hash_sha256(tostring(x)), {TEXT}) | sort by t asc "
        "| project x"
    )
    assert answer.row_count == 500_000
    workspace.close()
    assert list(tmp_path.glob("spill/*")) == []


def test_what_a_killed_process_had_spilled_is_removed_when_the_workspace_is_opened_again(tmp_path: Path) -> None:
    Workspace.open(tmp_path).close()
    (tmp_path / "spill").mkdir(exist_ok=True)
    leftover = tmp_path / "spill" / "duckdb_temp_storage_DEFAULT-0.tmp"
    leftover.write_bytes(b"x" * 1000)
    Workspace.open(tmp_path).close()
    assert not leftover.exists()


MEASURED = """
import json, resource, sys
from pathlib import Path
from sentinel_rag.workspace.workspace import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
workspace.query("range x from 1 to 10 step 1")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
answer = workspace.query(sys.argv[2])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([answer.row_count, len(answer.encoded.text), answer.partial, (after - before) // 1024]))
workspace.close()
"""


@pytest.mark.parametrize(
    ("kql", "rows", "most_mib"),
    [
        pytest.param("range x from 1 to 40000000 step 1 | where x % 2 == 0 | count", 1, 60, id="a_long_range"),
        pytest.param("range x from 1 to 2000000 step 1 | extend t = 'a text of some length'", 500_000, 200, id="rows"),
        pytest.param(f"range x from 1 to 2000000 step 1 | extend t = {TEXT}", None, 350, id="bytes"),
    ],
)  # fmt: skip
def test_an_answer_costs_its_own_size_and_not_that_of_its_rows(
    tmp_path: Path, kql: str, rows: int | None, most_mib: int
) -> None:
    """Field report C3: the service cuts at 500,000 rows and at 64,000,000 bytes, with a reason beside the rows."""
    command = [sys.executable, "-c", MEASURED, str(tmp_path), kql]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=WAIT_S)
    count, size, partial, grown_mib = json.loads(done.stdout)
    assert grown_mib < most_mib
    if rows == 1:
        assert (count, partial) == (1, "")
    elif rows is not None:
        assert (count, partial) == (rows, f"Query result set has exceeded the internal record count limit {rows}")
    else:
        assert 63_900_000 < size <= 64_000_000
        assert partial == "Query result set has exceeded the internal data size limit 64000000"


def test_a_cut_answer_is_a_partial_result_of_the_service(tmp_path: Path) -> None:
    with runaway_server(tmp_path) as server:
        body = server.query("range x from 1 to 600000 step 1").body
    assert len(body["tables"][0]["rows"]) == 500_000
    assert body["error"]["code"] == "PartialError"
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in body["error"]["details"][0]["innererror"]["message"]


EXPLODING = """
import json, sys
from pathlib import Path
from sentinel_rag.workspace.server import bound_process_memory
from sentinel_rag.workspace.workspace import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
workspace.query("range x from 1 to 10 step 1")
bound_process_memory(2_000_000_000)
for _ in range(3):
    try:
        workspace.query(sys.argv[2])
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
print(json.dumps(workspace.query("range x from 1 to 10 step 1 | count").rows))
workspace.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process's address space")
@pytest.mark.slow
def test_texts_of_gigabytes_in_one_batch_of_rows_end_the_query_and_not_the_process(tmp_path: Path) -> None:
    thousand = "strcat('a', strrep('b', 1000))"
    kql = (
        "range x from 1 to 2000 step 1 | extend t = strcat(tostring(x), strrep('a', 1000)) "
        f"| extend t = replace_string(t, 'a', strcat({thousand}, tostring(x))) "
        "| extend t = replace_string(t, 'b', strrep(tostring(x), 100)) | summarize sum(strlen(t))"
    )
    done = subprocess.run(
        [sys.executable, "-c", EXPLODING, str(tmp_path), kql],
        check=True,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    *refusals, last = (json.loads(line) for line in done.stdout.splitlines())
    assert len(refusals) == 3
    assert [refusal for refusal in refusals if not refusal.startswith("KqlMemoryError")] == []
    assert last == [[10]]

"""The records of the second collection of field reports: each ends as it says, by its own words where it has them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from action_estate import estate
from asking import Conversation, shown
from tests.knowledge.made_files import Typed, made_pdf
from tests.support.mcp_over_http import SESSIONS, RawMcp
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.model_analyst import ModelAnalyst
from sentinel_rag.agent.models.endpoints import compatible_endpoint, no_key
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.knowledge.documents.pdf import read_pdf
from sentinel_rag.surfaces.cli import main
from sentinel_rag.workspace.importing.source_files import UnreadableFileError
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from sentinel_rag_testing.scripted_gateway import shipped_catalogue
from sentinel_rag_testing.scripted_model import ScriptedModel, calls_reply, stream_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import call_piece, chunk, ending

COLLECTION = "field-reports-2.jsonl"
IDS = [f"F{number:02d}" for number in range(1, 15)]


class Bench:
    """What a record is tried on."""

    def __init__(self, folder: Path, estate: Any, gateway: RunningGateway) -> None:
        self.folder, self.estate, self.gateway = folder, estate, gateway
        self.workspace = Workspace.open(folder / "workspace")

    def imported(self, name: str, text: str) -> Any:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return self.workspace.import_path(path)[0]

    def rows(self, kql: str) -> list[list[Any]]:
        return [list(row) for row in self.workspace.query(kql).to_dict()["rows"]]

    def called(self, **arguments: Any) -> Any:
        """What the tool server was sent of a call over MCP."""
        client = RawMcp(self.gateway.url, self.gateway.key, SESSIONS).initialized()
        assert client.call("query_incidents", arguments)["isError"] is False
        return self.gateway.executor.calls[-1].arguments


def _severities(bench: Bench, record: dict[str, Any]) -> None:
    header = record["input"].partition("CSV header: ")[2].partition(",...")[0].rstrip(".")
    names = header.split(",")
    assert {"Severity", "StartTimeUtc", "EndTimeUtc", "AlertDisplayName"} <= {*names}
    lines = [
        ",".join(
            "High"
            if name == "Severity" and n < 102
            else f"2020-01-0{1 + n % 9} 00:00:00"
            if "Time" in name
            else f"{name}{n}"
            for name in names
        )
        for n in range(189)
    ]
    report = bench.imported("alertlist.csv", "\n".join([header, *lines]) + "\n")
    assert report.table == "SecurityAlert"
    assert bench.rows("SecurityAlert | where AlertSeverity == 'High' | count") == [[102]]
    assert bench.rows("SecurityAlert | where isnull(StartTime) or isnull(EndTime) or DisplayName == '' | count") == [
        [0]
    ]


def _own_type(bench: Bench, _: dict[str, Any]) -> None:
    row = {"Type": "WindowsEvent", "EventID": 3, "Channel": "c", "Provider": "p", "EventData": {}, "Computer": "w"}
    assert bench.imported("events.json", json.dumps(row) + "\n").table == "WindowsEvent"


def _bad_file(bench: Bench, _: dict[str, Any]) -> None:
    (bench.folder / "notes.log").write_text("Two lines\nof prose.\n")
    (bench.folder / "SecurityAlert.csv").write_text("SystemAlertId,AlertSeverity,TimeGenerated\na,High,2024-01-01\n")
    assert main(["workspace", "import", str(bench.folder / "notes.log"), str(bench.folder / "SecurityAlert.csv")]) == 1


def _zeek(bench: Bench, _: dict[str, Any]) -> None:
    with pytest.raises(UnreadableFileError, match="Zeek log"):
        bench.imported("conn.log", "#separator \\x09\n#fields\tts\tuid\n#types\ttime\tstring\n1.0\tC1\n")


def _epochs(bench: Bench, _: dict[str, Any]) -> None:
    for place, (name, cell) in enumerate(
        (("timestamp", '"1612192196113"'), ("alertTime", "1616424563915"), ("unixTime", "1678936138"))
    ):
        report = bench.imported(f"f{place}.json", f'[{{"{name}": {cell}, "a": "b", "c": "d"}}]')
        assert bench.rows(f"{report.table} | where isnotnull(TimeGenerated) | count") == [[1]], name


def _frames(bench: Bench, _: dict[str, Any]) -> None:
    table: dict[str, Any] = {"FrameType": "DataTable", "TableKind": "PrimaryResult", "Rows": [["x", "y"]]}
    table["Columns"] = [{"ColumnName": "A"}, {"ColumnName": "B"}]
    report = bench.imported("raw.json", json.dumps([{"FrameType": "DataSetHeader"}, table]))
    assert bench.rows(f"{report.table} | project A") == [["x"]]


def _numbers(bench: Bench, _: dict[str, Any]) -> None:
    assert bench.called(limit="5") == bench.called(limit=5.0) == {"limit": 5}


def _nulls(bench: Bench, _: dict[str, Any]) -> None:
    assert bench.called(limit=2, severity=None, owner=None) == {"limit": 2}


async def _broken_off(_: Bench, record: dict[str, Any]) -> None:
    cut = record["input"].partition("arguments ")[2].partition(" (cut)")[0]
    broken = stream_reply(
        chunk({"tool_calls": [call_piece("query_incidents", cut, call_id="call_1")]}), *ending("tool_calls")
    )
    server, gateway = (
        ScriptedModel([broken, calls_reply(("query_incidents", {"limit": 2})), text_reply("Done.")]),
        small_estate(),
    )
    with server.running() as url:
        model = OpenAIWireModel(compatible_endpoint(f"{url}/v1", "scripted", no_key))
        models = SimpleNamespace(of=lambda _: model)
        analyst = ModelAnalyst(gateway, models, clock=lambda: NOW, catalogue=shipped_catalogue(gateway))
        answer = await analyst.answer(Question("Which incidents are there?", "shift"))
        await model.aclose()
    told = [message["content"] for message in server.requests[1].body["messages"] if message["role"] == "tool"]
    assert "not one JSON object" in told[0]
    assert [call.arguments for call in gateway.calls] == [{"limit": 2}]
    assert "without asking any tool" not in answer.text


def _slash(bench: Bench, _: dict[str, Any]) -> None:
    client = RawMcp(bench.gateway.url, bench.gateway.key, SESSIONS, path="/mcp/").initialized()
    assert client.request("tools/list", {}).status == 200


def _feet(bench: Bench, _: dict[str, Any]) -> None:
    feet = [Typed("IRM #1 WORM", 9, 38), Typed("TLP:CLEAR", 12, 770), Typed("TLP:CLEAR", 12, 20)]
    pages = [
        [Typed(str(n), 9, 27), *feet, Typed("Worm infection", 18, 700), Typed("Isolate.", 11, 660)] for n in range(6)
    ]
    text = " ".join(block.text for section in read_pdf(made_pdf(pages)).sections for block in section.blocks)
    assert "Isolate." in text
    assert "TLP:CLEAR" not in text


async def _asked(bench: Bench, question: str) -> tuple[str, list[str]]:
    conversation = Conversation(bench.estate)
    return shown(await conversation.ask(question)), [tool for tool, _ in conversation.calls]


async def _excluded(bench: Bench, _: dict[str, Any]) -> None:
    answer, _calls = await _asked(bench, "exclude incidents with owner unassigned")
    assert answer.startswith("24 of 28 incidents.")


async def _table_rows(bench: Bench, _: dict[str, Any]) -> None:
    answer, calls = await _asked(bench, "how many rows are in SigninLogs?")
    assert answer.startswith("`SigninLogs` holds 28 rows")
    assert calls == ["list_tables"]


async def _ranked(bench: Bench, _: dict[str, Any]) -> None:
    result = await bench.estate.ask("query_alerts")
    assert isinstance(result, QueryResult)
    for question in ("which alert fires most often?", "top alert names"):
        answer, _calls = await _asked(bench, question)
        name, count = max(result.summary["by_name"].items(), key=lambda each: each[1])
        lines = answer.splitlines()
        assert lines[lines.index(name) + 1] == str(count)


CHECKS: dict[str, Callable[[Bench, dict[str, Any]], Awaitable[None] | None]] = dict(
    zip(
        IDS,
        [
            *(_severities, _own_type, _excluded, _table_rows, _ranked, _bad_file, _zeek, _epochs, _frames, _numbers),
            *(_nulls, _broken_off, _feet, _slash),
        ],
        strict=True,
    )
)


@pytest.fixture(scope="module")
def records(shared_data: Path) -> dict[str, dict[str, Any]]:
    lines = (shared_data.parent / "cases" / COLLECTION).read_text(encoding="utf-8").splitlines()
    return {record["id"]: record for record in map(json.loads, lines)}


@pytest.fixture
def bench(tmp_path: Path, clean_environment: Path, shipped_policy: Policy, executor: FakeToolServer) -> Iterator[Bench]:
    with (
        estate(tmp_path / "estate") as running,
        running_gateway(shipped_policy, tmp_path / "gateway", executor) as gateway,
    ):
        made = Bench(tmp_path, running, gateway)
        yield made
        made.workspace.close()


@pytest.mark.parametrize("record_id", IDS)
def test_a_record_ends_as_it_says(records: dict[str, dict[str, Any]], bench: Bench, record_id: str) -> None:
    outcome = CHECKS[record_id](bench, records[record_id])
    if outcome is not None:
        asyncio.run(outcome)  # type: ignore[arg-type]


def test_every_record_is_tried(records: dict[str, dict[str, Any]]) -> None:
    assert records.keys() == CHECKS.keys()

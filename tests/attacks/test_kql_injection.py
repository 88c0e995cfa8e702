"""KQL injection. The attacker controls every text argument of every tool (a hijacked agent, or words of a log row that
it repeats). Whatever is written there, it stays inside string literals, and the query keeps the shape it has for a
plain word: no operator, table or statement is added.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sentinel"))

from sentinel_servers import ScriptedWire, Served
from starlette.responses import JSONResponse

from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.anyio

MARK = "PWNED"
TRIES = 30
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
NET = re.compile(r'(?:\(?Entities contains "" or CompromisedEntity contains ""\)?(?: and )?)+')
PAYLOADS = [
    f'"; {MARK} | take 1 //',
    f"'; {MARK} | take 1 //",
    f'x" or {MARK} == "x',
    f'\\" or {MARK} //',
    f'\\\\" | union {MARK} | where x == "',
    f"x\n| union {MARK}\n| where Title == x",
    f"x\r{MARK}\r",
    f"x\u2028| {MARK}",
    f"{{window}} {MARK} {{user}}",
    f'h"{MARK}" @"\\"',
    f"```{MARK}```",
    f"]) | {MARK} //",
    f"externaldata(x:string)['http://{MARK}']",
    f"\u201d or {MARK} == \u201c",
    f"\uff02 or {MARK} == \uff02",
    f"\x00{MARK}\x1b[2K",
]
ARGUMENTS: list[tuple[str, dict[str, Any], str]] = [
    ("query_incidents", {}, "title_contains"),
    ("query_incidents", {}, "owner"),
    ("query_incidents", {}, "entity"),
    ("query_alerts", {}, "name_contains"),
    ("query_alerts", {}, "entity"),
    ("query_alerts", {}, "product"),
    ("query_alerts", {}, "tactic"),
    ("query_alerts", {}, "alert_id"),
    ("query_alerts", {}, "incident"),
    ("get_incident_detail", {}, "incident"),
]


@pytest.fixture(scope="module")
def wire() -> Any:
    scripted = ScriptedWire()
    scripted.answers = [JSONResponse({"tables": [{"name": "PrimaryResult", "columns": [], "rows": []}]})]
    with serve(scripted.app()) as url:
        scripted.url = url
        yield scripted


async def queries(wire: ScriptedWire, tool: str, arguments: dict[str, Any]) -> list[str]:
    """The distinct queries that the call sent, string literals emptied. The call may be refused: then none."""
    wire.requests.clear()
    await Served(wire.url).call(tool, **arguments)
    return sorted({STRING.sub('""', request["query"]) for request in wire.requests})


def shape(query: str) -> list[str]:
    """The query without what depends on how many words a value has."""
    lines = [
        re.sub(r"(\(?Entities contains \"\" or CompromisedEntity contains \"\"\)?( and )?)+", "NET", line)
        for line in query.splitlines()
    ]
    return list(dict.fromkeys(lines))


async def new_shapes(
    wire: ScriptedWire, tool: str, plain: dict[str, Any], given: dict[str, Any], sent: list[str]
) -> set[tuple[str, ...]]:
    """The shapes of the queries that `given` brings about and a plain word never does. Counts and what is known of a
    table are asked beside the rows and given up when the rows suffice: not every run sends them, and one that was given
    up may still arrive with the next call's."""
    unknown = {tuple(shape(query)) for query in sent}
    for _ in range(TRIES):
        unknown -= {tuple(shape(query)) for query in await queries(wire, tool, plain)}
        if unknown:
            unknown &= {tuple(shape(query)) for query in await queries(wire, tool, given)}
        if not unknown:
            break
    return unknown


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
@pytest.mark.parametrize(("tool", "fixed", "argument"), ARGUMENTS, ids=lambda value: str(value))
async def test_no_argument_leaves_its_literal(
    wire: ScriptedWire, tool: str, fixed: dict[str, Any], argument: str, payload: str
) -> None:
    given = {**fixed, argument: payload}
    sent = await queries(wire, tool, given)
    assert not any(MARK in query for query in sent)
    if sent and argument != "incident":
        assert not await new_shapes(wire, tool, {**fixed, argument: "plainword"}, given, sent)


PARAMETERS = [
    (template.name, parameter.name)
    for template in load_templates().values()
    for parameter in template.parameters
    if parameter.type in ("string", "enum", "timespan", "list")
]


@pytest.mark.parametrize(("template", "parameter"), PARAMETERS)
async def test_no_template_parameter_leaves_its_literal(wire: ScriptedWire, template: str, parameter: str) -> None:
    """One function writes the literals of all templates, so each parameter meets a quarter of the payloads, in turn."""
    needed = {p.name: "192.0.2.1" for p in load_templates()[template].parameters if p.required}
    if "table" in needed:  # its columns are looked up
        columns = [{"name": name, "type": "string"} for name in ("TimeGenerated", "Kind", "Bytes")]
        wire.schema = JSONResponse({"tables": [{"name": "Own_CL", "columns": columns}]})
        needed = {name: {"table": "Own_CL", "by": "Kind", "sum": "Bytes"}[name] for name in needed}
    plain = {"template": template, "parameters": needed}
    assert await queries(wire, "run_kql_query", plain)
    for payload in PAYLOADS[PARAMETERS.index((template, parameter)) % 4 :: 4]:
        given = {"template": template, "parameters": {**needed, parameter: payload}}
        sent = await queries(wire, "run_kql_query", given)
        assert not any(MARK in query for query in sent), payload
        assert not await new_shapes(wire, "run_kql_query", plain, given, sent), payload


@pytest.mark.parametrize("name", ["../x", "raw_signins; drop", "raw_signins\n", "{window}", "RAW_SIGNINS", "*"])
async def test_only_a_registered_template_runs(wire: ScriptedWire, name: str) -> None:
    wire.requests.clear()
    outcome = await Served(wire.url).call("run_kql_query", template=name)
    if name.strip() == "raw_signins":
        assert any("SigninLogs" in request["query"] for request in wire.requests)
    else:
        assert outcome.to_dict()["code"] == "invalid_argument"
        assert wire.requests == []


@pytest.mark.parametrize("field", ["start_time", "end_time"])
@pytest.mark.parametrize(
    "text", [f"2024-07-02T09:45:00Z) | {MARK}", f"now() {MARK}", "2024-07-02T09:45:00Z'", "٢٠٢٤-07-02T09:45:00Z"]
)
async def test_times_are_parsed_and_never_pasted(wire: ScriptedWire, field: str, text: str) -> None:
    wire.requests.clear()
    outcome = await Served(wire.url).call("query_incidents", **{field: text})
    assert outcome.to_dict()["code"] == "invalid_argument"
    assert wire.requests == []

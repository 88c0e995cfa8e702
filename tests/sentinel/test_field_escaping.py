"""Values of the real world in every parameter and argument: what has quotes, slashes, line ends or emoji in it is found
exactly as it is or not at all, on a real workspace, and is never an error or a piece of a query."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from estate_rows import alert, incident
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentinel_servers import NOW, Served, connected, managed

from law_examples import examples
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryResult
from sentinel_rag.contracts.tool_schemas import OPT_IN_TOOLS, SENTINEL_TOOLS, TOOLS_BY_NAME, WRITING_TOOLS
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.sentinel.templates.template_registry import KqlTemplate, load_templates

pytestmark = pytest.mark.anyio

VALUES = [
    "O'Brien",
    "St. John's",
    'the "quoted" one',
    r"C:\Users\ana\run.exe",
    "ends in a backslash\\",
    "\\\\server\\share$",
    'a\\"b',
    "two\nlines",
    "two\r\nlines",
    "a\ttab",
    "😀 emoji 👩‍💻",
    "Ünïcødé Ж 名",
    "sep\u2028arated",
    "{window} {user}",
    "100%_*?",
    "`tick` ```fence```",
    "x' or '1'=='1",
    "/* c */ // c",
    '@"verbatim" h"hidden"',
    "null",
]
EVERYTHING_AT_ONCE = [
    'O\'Brien "Bo" \\',
    "\\\\srv\\a$\n😀\u2028{window}\t%_*",
    "x' or '1'=='1 // \"",
    '@"v" h"h" ``` \r\n \x00\x85',
]
"""Several of them in one value, two for each place in turn, where all of them would take minutes."""
TIME = "2024-08-01T01:00:00Z"
COMPARED = re.compile(r"\b([A-Z]\w*) (?:=~|==|has|contains|startswith) \{(\w+)\}")
Call = Callable[..., Awaitable[QueryResult | QueryError]]


def texts_of(template: KqlTemplate) -> list[str]:
    return [parameter.name for parameter in template.parameters if parameter.type in ("string", "list")]


TEMPLATES = load_templates()
PARAMETERS = [(template.name, name) for template in TEMPLATES.values() for name in texts_of(template)]


def planted() -> dict[str, list[dict[str, Any]]]:
    """For each value and each column that a template compares with a parameter, a row that holds it."""
    estate: dict[str, list[dict[str, Any]]] = {}
    for template in TEMPLATES.values():
        columns = {column for column, name in COMPARED.findall(template.kql) if name in texts_of(template)}
        rows = estate.setdefault(template.tables[0], [])
        rows += [{"TimeGenerated": TIME, **dict.fromkeys(columns, value)} for value in VALUES if columns]
    for number, value in enumerate(VALUES, start=1):
        account = [{"$id": "2", "Type": "account", "Name": value}]
        estate.setdefault("SecurityIncident", []).append(incident(number, TIME, Title=f"Seen: {value} !"))
        estate.setdefault("SecurityAlert", []).append(
            alert(f"named {value} so", TIME, Entities=account, ProductName=f"Product {value}")
        )
    return {table: rows for table, rows in estate.items() if rows}


@pytest.fixture(scope="module")
def estate(serving: Any) -> Served:
    served: Served = serving(limits=None, **planted())
    return served


@pytest.fixture
async def call(estate: Served) -> AsyncIterator[Call]:
    """Calls of one service, so that hundreds of them share its connections."""
    async with connected(estate.url) as workspace, managed(estate.url) as rest:
        service = SentinelService({"lab": workspace}, rest={"lab": rest}, clock=lambda: NOW)

        async def one(tool: str, **arguments: Any) -> QueryResult | QueryError:
            return await service.call(tool, arguments)

        yield one


def refused_by_form(outcome: QueryError) -> bool:
    """True for a value that a declaration does not take, such as an address with an apostrophe."""
    return outcome.code is QueryErrorCode.INVALID_ARGUMENT and "form" in outcome.message


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(("template", "parameter"), PARAMETERS)
async def test_every_template_parameter_takes_every_value(call: Call, template: str, parameter: str) -> None:
    """Field report G6: O'Brien, St. John's, backslashes, quotes, line ends and emoji in every template parameter."""
    declared = {each.name: each for each in TEMPLATES[template].parameters}
    needed = {name: "192.0.2.1" for name, each in declared.items() if each.required}
    of_list = declared[parameter].type == "list"
    columns = [column for column, name in COMPARED.findall(TEMPLATES[template].kql) if name == parameter]
    for value in EVERYTHING_AT_ONCE[PARAMETERS.index((template, parameter)) % 2 :: 2]:
        given_value: Any = [value] if of_list else value
        outcome = await call("run_kql_query", template=template, parameters={**needed, parameter: given_value})
        if isinstance(outcome, QueryError):
            assert refused_by_form(outcome), (value, outcome)
            continue
        for row in outcome.rows:
            for column in columns:
                assert column not in row or value.lower() in str(row[column]).lower(), (value, row)


EXACT = [
    ("user_signin_history", "user", "UserPrincipalName"),
    ("process_by_name", "process", "FileName"),
    ("office_activity_by_user", "user", "UserId"),
    ("emails_from_sender", "sender", "SenderFromAddress"),
    ("url_clicks", "url_contains", "Url"),
    ("dns_queries_for_domain", "domain", "Name"),
]


@pytest.mark.parametrize(("template", "parameter", "column"), EXACT)
async def test_a_value_comes_back_exactly_as_it_was_stored(
    call: Call, template: str, parameter: str, column: str
) -> None:
    """Field report G6: the row with that value is found, and holds it character for character."""
    shown = TEMPLATES[template].kql
    for value in VALUES:
        outcome = await call("run_kql_query", template=template, parameters={parameter: value})
        assert isinstance(outcome, QueryResult), (value, outcome)
        assert outcome.coverage.rows_total, value
        if re.search(rf"\b{column}\b", shown.rpartition("project")[2]) and column in outcome.rows[0]:
            assert {row[column] for row in outcome.rows} == {value}


ARGUMENTS = [
    (tool.name, name)
    for tool in SENTINEL_TOOLS
    if tool.name not in WRITING_TOOLS | OPT_IN_TOOLS
    for name, schema in tool.parameter_schemas().items()
    if schema.get("type") == "string" and "enum" not in schema and name not in ("start_time", "end_time", "kql")
]


@pytest.mark.parametrize(("tool", "argument"), ARGUMENTS)
async def test_every_argument_of_every_tool_takes_every_value(call: Call, tool: str, argument: str) -> None:
    """Field report G6: the same in every text argument of every tool that reads."""
    for value in EVERYTHING_AT_ONCE[ARGUMENTS.index((tool, argument)) % 2 :: 2]:
        outcome = await call(tool, **{argument: value})
        if isinstance(outcome, QueryError):
            assert outcome.code is QueryErrorCode.INVALID_ARGUMENT, (value, outcome)
            assert outcome.field in (argument, *TOOLS_BY_NAME[tool].required()), (value, outcome)


@pytest.mark.parametrize("value", VALUES, ids=ascii)
async def test_incidents_and_alerts_with_such_names_are_found(call: Call, value: str) -> None:
    """Field report G6: by title, by name, by product, and by the account that they name."""
    line = " ".join(value.split())
    for tool, argument, column, held in (
        ("query_incidents", "title_contains", "title", f"Seen: {line} !"),
        ("query_alerts", "name_contains", "name", f"named {line} so"),
        ("query_alerts", "product", "product", f"Product {line}"),
    ):
        outcome = await call(tool, **{argument: value})
        assert isinstance(outcome, QueryResult), outcome
        assert held in [" ".join(str(row[column]).split()) for row in outcome.rows], (tool, argument)
    named = await call("query_alerts", entity=value, entity_kind="account")
    assert isinstance(named, QueryResult), named
    assert [" ".join(str(row["name"]).split()) for row in named.rows] == [f"named {line} so"]


@pytest.mark.slow
@settings(
    max_examples=examples(25, 10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(value=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
async def test_any_text_is_a_value_and_nothing_else(estate: Served, value: str) -> None:
    async with connected(estate.url) as workspace:
        service = SentinelService({"lab": workspace}, clock=lambda: NOW)
        for tool, arguments in (
            ("run_kql_query", {"template": "user_signin_history", "parameters": {"user": f"zq{value}qz"}}),
            ("query_alerts", {"name_contains": f"zq{value}qz"}),
            ("query_incidents", {"entity": f"zq{value}qz"}),
        ):
            outcome = await service.call(tool, arguments)
            assert isinstance(outcome, QueryResult), (tool, value, outcome)
            assert outcome.rows == ()

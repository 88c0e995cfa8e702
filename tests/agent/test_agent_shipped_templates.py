"""Questions in an analyst's words, against the templates that ship: which query is run, and with what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.small_estate import NOW, rows_result, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Picture
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.tool_calls import ToolCall
from sentinel_rag.sentinel.templates.template_registry import load_templates

pytestmark = pytest.mark.anyio

SHIPPED = load_templates()
ANA = "ana@contoso.example"


async def queries(*questions: str) -> list[ToolCall]:
    gateway = small_estate(
        list_kql_templates=lambda _: rows_result(
            [template.to_row() for template in SHIPPED.values()], table="", time_column=""
        ),
        run_kql_query=lambda _: rows_result([{"Events": 1}], table="SigninLogs", time_column="TimeGenerated"),
    )
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    for question in questions:
        await analyst.answer(Question(question, "s"))
    return [call for call in gateway.calls if call.tool_name == "run_kql_query"]


@pytest.mark.parametrize(
    ("question", "template"),
    [
        ("threat intelligence matches", "threat_intelligence_matches"),
        ("failed logons by account", "failed_logons_by_account"),
    ],
)
async def test_a_query_that_cannot_be_about_the_name_before_is_a_question_of_its_own(
    question: str, template: str
) -> None:
    _, last = await queries("where did winword.exe run?", question)
    assert last.arguments == {"template": template}


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(
    ("question", "template", "parameters"),
    [
        ("incidents by owner in July", "incidents_by_owner", {}),
        ("high alerts by tactic", "alerts_by_tactic", {"severity": "High"}),
        ("type 10 logons to web-03", "logons_by_authentication", {"logon_type": "10", "host": "web-03"}),
        ("sign-ins grouped by country in the last 7 days", "signins_by_country", {}),
        ("sign-ins per application", "signins_by_application", {}),
        ("number of sign-ins by day", "signins_by_day", {}),
        ("failed sign-ins by user", "failed_signins_by_user", {}),
        (f"failed sign-ins of {ANA}", "failed_signins_by_user", {"user": ANA}),
        (f"sign-in history of {ANA}", "user_signin_history", {"user": ANA}),
        ("processes by host", "processes_by_host", {}),
        ("parent and child process pairs", "parent_child_processes", {}),
        ("which processes did winword.exe start", "parent_child_processes", {"parent": "winword.exe"}),
        ("where was winword.exe started?", "process_by_name", {"process": "winword.exe"}),
        ("rare processes", "rare_processes", {}),
        ("DNS queries by host", "dns_queries_by_host", {}),
        ("Office activity by user and operation", "office_operations_by_user", {}),
        (f"office activity by user {ANA}", "office_activity_by_user", {"user": ANA}),
        ("mailbox rule changes", "mailbox_rule_changes", {}),
        ("Entra audit changes by actor", "entra_changes_by_actor", {}),
        ("Entra audit changes by target", "entra_changes_by_target", {}),
        ("firewall denies by source", "firewall_denied_by_source", {}),
        ("firewall denies by destination", "firewall_denied_by_destination", {}),
        ("firewall denies by source and destination", "firewall_denied_by_source_and_destination", {}),
        ("which users are risky", "risky_users", {}),
        ("identity risk detections", "risk_detections_by_user", {}),
        ("threat intelligence matches", "threat_intelligence_matches", {}),
        ("ingestion by table", "ingestion_by_table", {}),
        ("ingestion by table and day", "ingestion_by_table_and_day", {}),
        (f"account activity timeline of {ANA}", "account_activity_timeline", {"account": ANA}),
        ("who queried evil.example?", "dns_queries_for_domain", {"domain": "evil.example"}),
        ("who clicked on links to evil.example?", "url_clicks", {"url_contains": "evil.example"}),
    ],
)
async def test_the_query_that_was_asked_for_is_run(question: str, template: str, parameters: dict[str, Any]) -> None:
    made = await queries(question)
    assert [call.arguments["template"] for call in made[:1]] == [template]
    assert made[0].arguments.get("parameters", {}) == parameters


@pytest.mark.parametrize("name", sorted(SHIPPED))
async def test_no_example_question_runs_another_query_than_its_own(name: str) -> None:
    """An example may be answered by another tool, or ask back for what "this user" is; never by a wrong query. Which
    watchlists there are is looked up before one is read."""
    looked_up = {"watchlists"} if name.startswith("watchlist_") else set()
    for question in SHIPPED[name].questions:
        made = [call for call in await queries(question) if call.arguments["template"] not in looked_up]
        assert {call.arguments["template"] for call in made[:1]} <= {name}, question


async def test_the_totals_of_all_rows_are_said_as_facts() -> None:
    rows: list[dict[str, Any]] = [{"Country": "PT", "SignIns": 5}, {"Country": "RO", "SignIns": 2}]
    found = rows_result(rows, table="SigninLogs", time_column="TimeGenerated")
    summary = {"template": "signins_by_country", "description": "By country.", "totals": {"SignIns": 7, "Failures": 3}}
    gateway = small_estate(
        list_kql_templates=lambda _: rows_result(
            [template.to_row() for template in SHIPPED.values()], table="", time_column=""
        ),
        run_kql_query=lambda _: replace(found, summary=summary),
    )
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("sign-ins by country", "s"))
    assert answer.text.startswith("Most SignIns: `PT` 5, `RO` 2. In all 2 rows: SignIns 7, Failures 3.")
    assert answer.tables[0].picture is Picture.RANKING
    assert {"/summary/totals/SignIns", "/summary/totals/Failures"} <= {piece.pointer for piece in answer.evidence}

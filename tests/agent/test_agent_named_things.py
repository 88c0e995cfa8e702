"""Properties of named things, their incidents, keywords alone, several kinds at once, durations, what comes first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate
from tests.support.small_estate_rows import alert_id

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, rows_result

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]
SIDS = ("S-1-5-21-1-2-3-1104", "S-1-5-21-1-2-3-2208")


def calls(gateway: ScriptedGateway) -> list[tuple[str, dict[str, object]]]:
    return [(call.tool_name, dict(call.arguments)) for call in gateway.calls]


def column(answer: Answer, name: str, table: int = 0) -> list[str]:
    shown = answer.tables[table]
    return [row[shown.columns.index(name)] for row in shown.rows]


def alert(short: str, *entities: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "alert_id": alert_id(short), "name": "Some alert", "severity": "High", "status": "New",
        "time": "2024-07-02T09:47:00Z", "incident_number": 12, "product": "Microsoft Defender", "description": "Text.",
        "entities": list(entities), "entity_count": len(entities), **fields,
    }  # fmt: skip


def account(name: str, **properties: str) -> dict[str, Any]:
    return {"kind": "account", "name": name, **properties}


async def ask_over(question: str, *rows: dict[str, Any], total: int | None = None) -> tuple[Answer, ScriptedGateway]:
    names = rows_result([{"name": name} for name in ("bjenkins", "gsmith")])
    found = rows_result(rows, total=len(rows) if total is None else total)
    gateway = small_estate(query_alerts=found, get_top_entities=names)
    return await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question(question, "s")), gateway


@pytest.mark.parametrize("question", ["what's the sid of bjenkins", "bjenkins sid", "sid for bjenkins?"])
async def test_a_property_is_read_from_the_named_thing_with_the_count_of_alerts(question: str) -> None:
    named = account("bjenkins@contoso.example", sid=SIDS[0])
    other = account("someone@contoso.example", sid="S-1-5-21-9-9-9-9")
    answer, gateway = await ask_over(question, alert("a1", named), alert("a2", named, other), alert("a3", other))
    assert answer.text.startswith(f"SID of `bjenkins`: `{SIDS[0]}` (in 2 alerts).")
    assert "S-1-5-21-9-9-9-9" not in answer.text
    assert calls(gateway)[0][1]["entity"] == "bjenkins"


async def test_every_distinct_value_is_told_commonest_first() -> None:
    rows = [alert(f"a{place}", account("bjenkins", sid=SIDS[place > 3])) for place in range(1, 6)]
    answer, _ = await ask_over("sid of bjenkins", *rows, total=45)
    assert f"`{SIDS[0]}` (in 3 alerts), `{SIDS[1]}` (in 2 alerts)" in answer.text
    assert "45 alerts name `bjenkins`; I looked at the newest 5." in answer.text


async def test_a_thing_of_another_kind_comes_from_the_alerts_that_name_both() -> None:
    rows = [alert("a1", account("gsmith"), {"kind": "ip", "name": "203.0.113.7"})]
    answer, gateway = await ask_over("which ip did user gsmith use in incident 12", *rows)
    assert "IP address in the alerts that name `gsmith`: `203.0.113.7` (in 1 alert)." in answer.text
    assert calls(gateway) == [("query_alerts", {"incident": "12", "entity": "gsmith", "entity_kind": "account"})]


@pytest.mark.parametrize(
    ("question", "entity", "expected"),
    [
        ("aad id of gsmith", account("gsmith", aad_user_id="7f1c"), "Entra object id of `gsmith`: `7f1c`"),
        ("upn of gsmith", account("gsmith", upn="g@contoso.example"), "UPN of `gsmith`: `g@contoso.example`"),
        ("os of host ws-01", {"kind": "host", "name": "ws-01", "os_family": "Linux"}, "`Linux`"),
        ("domain of user gsmith", account("gsmith", nt_domain="CONTOSO"), "Domain of `gsmith`: `CONTOSO`"),
        ("md5 of rare.exe", {"kind": "file", "name": "C:\\t\\rare.exe", "md5": "d41d8cd98f00b204e9800998ecf8427e"},
         "`d41d8cd98f00b204e9800998ecf8427e`"),
        ("command line of rare.exe", {"kind": "process", "name": "rare.exe", "command_line": "rare.exe -x"},
         "`rare.exe -x`"),
    ],
)  # fmt: skip
async def test_kinds_of_properties(question: str, entity: dict[str, Any], expected: str) -> None:
    answer, _ = await ask_over(question, alert("a1", entity))
    assert answer.outcome is Outcome.ANSWERED
    assert expected in answer.text


async def test_a_property_of_another_account_is_never_given_instead() -> None:
    answer, _ = await ask_over("sid of a.nowak", alert("a1", account("b.other", sid=SIDS[0])))
    assert SIDS[0] not in answer.text or "in the alerts that name" in answer.text
    gateway = small_estate(query_alerts=rows_result([], total=0, table_rows=8))
    nothing = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("sid of a.nowak", "s"))
    assert nothing.outcome is Outcome.NO_DATA
    assert [name for name, _ in calls(gateway)].count("query_alerts") == 1


async def test_alerts_of_a_host_in_an_incident_are_counted(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("how many alerts has host dc-01 in incident 12?")
    assert answer.text.startswith("1 alert (naming `dc-01`, of incident `12`).")
    assert calls(gateway) == [("query_alerts", {"incident": "12", "entity": "dc-01", "entity_kind": "host"})]


async def test_every_kind_that_is_named_is_answered(ask: Ask) -> None:
    answer = await ask("which accounts, hosts and ips are involved in incident 12")
    for label in ("Accounts (1): `m.keller`", "Hosts (2): ", "IP addresses (1): `198.51.100.23`"):
        assert label in answer.text


async def test_what_it_is_about_and_who_is_involved_are_both_answered(ask: Ask) -> None:
    answer = await ask("What is incident 12 about, and which accounts and hosts are involved?")
    for part in (
        "“Lateral movement from fin-ws-014 with ransomware tools”",
        "Severity High, status Active",
        "Alerts: 2.",
        "Accounts (1): `m.keller`.",
        "Hosts (2): `fin-ws-014.contoso.example`, `dc-01.contoso.example`.",
    ):
        assert part in answer.text
    assert {table.title for table in answer.tables if table.folded} >= {"Ids and addresses"}


async def test_a_url_is_an_entity_and_no_reference_to_the_portal(ask: Ask) -> None:
    answer = await ask("what URL was clicked in incident 23?")
    assert "`https://login-update.example/reset`" in answer.text
    assert "Sentinel number" not in answer.text
    link = await ask("link to incident 40 please")
    assert "asset/incidents/40" in link.text


async def test_many_values_stand_in_a_table_and_a_path_is_no_hash() -> None:
    clean = small_estate()

    def detailed(arguments: Any) -> QueryResult:
        result = clean.answers["get_incident_detail"](arguments).to_dict()  # type: ignore[operator]
        files = [{"name": f"C:\\t\\f{n}.exe", "alerts": 1, "sha256": f"{n:064x}"} for n in range(6)]
        result["rows"][0]["entities"] = {"file": [*files, {"name": "C:\\t\\none.exe", "alerts": 1}]}
        return QueryResult.from_dict(result)

    gateway = small_estate(get_incident_detail=detailed)
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(
        Question("which file hashes are in incident 12", "s")
    )
    assert "6 distinct values" in answer.text
    assert column(answer, "Hash") == [f"{n:064x}" for n in range(6)]
    assert column(answer, "Belongs to")[0] == "C:\\t\\f0.exe"
    assert "none.exe" not in answer.text + str(answer.tables)


async def test_incidents_of_a_thing_are_a_list_of_incidents(ask: Ask, gateway: ScriptedGateway) -> None:
    for question in (
        "which incidents involve m.keller",
        "which incidents involve svc-backup",
        "incidents on host dc-01",
    ):
        answer = await ask(question)
        assert "Incident" in answer.tables[0].columns
    assert {name for name, _ in calls(gateway)} == {"query_incidents"}
    assert calls(gateway)[0][1] == {"entity": "m.keller"}


@pytest.mark.parametrize("word", ["ransomware", "Mimikatz", "password spray"])
async def test_a_lone_keyword_is_looked_for_in_titles_and_names(ask: Ask, gateway: ScriptedGateway, word: str) -> None:
    answer = await ask(word)
    assert answer.outcome is Outcome.ANSWERED
    kept = [call for call in calls(gateway) if call[0] != "list_kql_templates"]
    assert kept == [("query_incidents", {"title_contains": word}), ("query_alerts", {"name_contains": word})]


async def test_an_attack_that_no_title_names_is_found_by_its_technique(gateway: ScriptedGateway) -> None:
    found = rows_result([alert("a4", techniques=["T1566.002"])], total=1)
    gateway = small_estate(
        query_incidents=rows_result([], total=0, table_rows=6),
        query_alerts=[rows_result([], total=0, table_rows=8), found],
    )
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("phishing incidents", "s"))
    assert "1 alert has `T1566` as technique; of incidents: 12." in answer.text


@pytest.mark.parametrize("question", ["what should I look at first?", "anything urgent", "where do i start"])
async def test_what_comes_first_are_the_open_incidents_by_severity(
    ask: Ask, gateway: ScriptedGateway, question: str
) -> None:
    await ask(question)
    assert calls(gateway) == [("query_incidents", {"status": "Open", "order": "severity"})]


async def test_how_long_an_incident_was_open_in_words() -> None:
    row = {
        "number": 38, "title": "One", "status": "Closed", "created_time": "2024-07-01T08:00:00Z",
        "closed_time": "2024-07-03T11:30:00Z", "open_duration_s": 185400.0,
    }  # fmt: skip
    gateway = small_estate(get_incident_detail=rows_result([row], summary={"matched_by": "incident_number"}))
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    answer = await analyst.answer(Question("how long was incident 38 open?", "s"))
    assert "It was open for 2 days 3 hours." in answer.text
    assert "Closed 2024-07-03 11:30:00 UTC." in answer.text
    assert any(piece.pointer == "/rows/0/open_duration_s" for piece in answer.evidence)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ('what is the description of alert "Password spray"', "Description (alert “Password spray”): “Pass"),
        ('which product raised "Password spray"', "Raised by (alert “Password spray”): “Azure Active"),
        ("remediation steps for the mimikatz alert", "Remediation steps: none recorded in these alerts."),
    ],
)  # fmt: skip
async def test_a_field_of_an_alert_is_in_the_answer(ask: Ask, question: str, expected: str) -> None:
    answer = await ask(question)
    assert expected in answer.text
    assert "left out" not in answer.text


async def test_remediation_steps_are_told() -> None:
    rows = [alert("a1", name="Rare tool", remediation_steps=["Isolate the host.", "Reset the password."])]
    answer, gateway = await ask_over("how do i remediate the rare alert", *rows)
    assert "“Isolate the host.”, “Reset the password.”" in answer.text
    assert calls(gateway)[0][1] == {"name_contains": "rare", "limit": 5}


async def test_counting_by_technique_is_not_counting_by_name(ask: Ask, gateway: ScriptedGateway) -> None:
    for question, template in (
        ("which techniques are most common", "alerts_by_technique"),
        ("which alert names are most common", "alert_count_by_name"),
        ("alerts per tactic", "alerts_by_tactic"),
    ):
        await ask(question)
        assert calls(gateway)[-1] == ("run_kql_query", {"template": template})


async def test_how_much_was_looked_at_stands_once_and_few_alerts_are_read_again() -> None:
    rows = [alert(f"a{place}", account("m.keller"), name="Unusual run key", entity_count=9) for place in range(1, 8)]
    gateway = small_estate(query_alerts=rows_result(rows, total=150))
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(
        Question(
            "In incident 12, which file did an unusual program write into a run key?",
            "s",
        )
    )
    assert answer.text.count("I looked at") == 1
    again = [arguments for name, arguments in calls(gateway) if "alert_id" in arguments]
    assert len(again) == 7
    assert all(set(arguments) == {"alert_id"} for arguments in again)


async def test_a_severity_and_above_is_said_in_words(ask: Ask) -> None:
    assert "(severity Medium and above)" in (await ask("alerts of medium severity and above")).text


@pytest.mark.parametrize("made_up", ["x' or 1=1", "a\n| take 5", ""])
async def test_an_alert_id_that_is_none_never_becomes_an_argument(made_up: str) -> None:
    rows = [{**alert("a1", account("m.keller"), entity_count=9), "alert_id": made_up}]
    gateway = small_estate(query_alerts=rows_result(rows, total=150))
    await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("which file was dropped in incident 12", "s"))
    assert not [arguments for _, arguments in calls(gateway) if "alert_id" in arguments]


async def test_when_an_attack_began_is_the_earliest_activity_of_its_alerts(ask: Ask) -> None:
    answer = await ask("when did the attack in incident 12 start")
    assert "began 2024-07-02 09:42:00 UTC (alert “Malicious file was dropped”)" in answer.text


async def test_a_bare_number_behind_in_is_an_incident(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("which urls are in 23")
    assert calls(gateway) == [("get_incident_detail", {"incident": "23"})]
    assert "URLs (1): `https://login-update.example/reset`." in answer.text


@pytest.mark.parametrize("question", ["scheduled tasks created", "impossible travel logins"])
async def test_a_template_that_knows_little_of_the_question_is_not_run(
    ask: Ask, gateway: ScriptedGateway, question: str
) -> None:
    await ask(question)
    assert "run_kql_query" not in [name for name, _ in calls(gateway)]


async def test_a_bare_name_behind_on_is_a_host(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("what programs were started on web-03")
    expected = {"template": "processes_on_host", "parameters": {"host": "web-03"}}
    assert calls(gateway)[-1] == ("run_kql_query", expected)


async def test_a_name_with_an_apostrophe_stays_whole(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("alerts of siobhan.o'brien")
    await ask("sid of siobhan.o'brien@contoso.example")
    asked = [arguments["entity"] for name, arguments in calls(gateway) if name == "query_alerts"]
    assert asked == ["siobhan.o'brien", "siobhan.o'brien@contoso.example"]


async def test_the_sid_of_another_account_in_the_same_alert_is_no_answer() -> None:
    rows = [alert("a1", account("gsmith"), account("other", sid=SIDS[0]))]
    answer, _ = await ask_over("sid of gsmith", *rows)
    assert answer.outcome is Outcome.NO_DATA
    assert "The alerts that name `gsmith` hold no SID of it." in answer.text
    assert SIDS[0] not in answer.text


async def test_an_attack_and_a_host_narrow_together(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("ransomware alerts on fin-ws-014")
    assert calls(gateway)[0] == ("query_alerts", {"entity": "fin-ws-014", "name_contains": "ransomware"})


async def test_a_hash_with_the_word_of_its_kind_is_looked_up(ask: Ask, gateway: ScriptedGateway) -> None:
    value = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
    answer = await ask(f"hash {value}")
    assert calls(gateway) == [("query_alerts", {"entity": value})]
    assert "1 alert matches" in answer.text


async def test_what_a_person_closed_is_counted_by_owner(ask: Ask, gateway: ScriptedGateway) -> None:
    for name in ("Ines Duarte", "\u00c5sa \u00d6berg"):
        await ask(f"how many incidents did {name} close")
        assert calls(gateway)[-1] == ("query_incidents", {"status": "Closed", "owner": name})

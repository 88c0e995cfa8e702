"""What the offline analyst answers, over an estate whose truth is known: facts, their evidence, and plain emptiness."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from tests.support.small_estate import NOW, small_estate
from tests.support.small_estate_rows import alert_id

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.agent.tool_runs import resolve
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryErrorCode, QueryResult
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, denial, failure, rows_result

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]


def column(answer: Answer, name: str, table: int = 0) -> list[str]:
    shown = answer.tables[table]
    place = shown.columns.index(name)
    return [row[place] for row in shown.rows]


def calls(gateway: ScriptedGateway) -> list[tuple[str, dict[str, object]]]:
    return [(call.tool_name, dict(call.arguments)) for call in gateway.calls]


async def test_an_exact_severity_is_counted_alone(ask: Ask) -> None:
    answer = await ask("how many high severity alerts?")
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text.startswith("3 alerts (severity High).")
    assert not answer.suggestions


async def test_a_threshold_counts_everything_from_it_up(ask: Ask) -> None:
    answer = await ask("how many alerts of medium severity and above?")
    assert answer.text.startswith("6 alerts")
    assert "High 3, Medium 3" in answer.text


@pytest.mark.requirement("CHAT-15")
async def test_open_incidents_newest_first_are_a_numbered_list_with_suggestions(ask: Ask) -> None:
    answer = await ask("list the incidents still open, newest first")
    assert column(answer, "Incident") == ["40", "31", "18", "12"]
    assert column(answer, "") == ["[1]", "[2]", "[3]", "[4]"]
    assert answer.suggestions


async def test_what_an_incident_is_about_and_how_many_alerts_it_has(ask: Ask) -> None:
    answer = await ask("what is incident 12 about and how many alerts has it?")
    assert "“Lateral movement from fin-ws-014 with ransomware tools”" in answer.text
    assert "Alerts: 2." in answer.text
    assert "severity High, status Active" in answer.text.replace("Severity", "severity")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("who owns incident 31?", "Owner: “Ines Duarte”."),
        ("who owns incident 40?", "It has no owner."),
        ("status of incident 12", "Status: Active."),
        ("when was incident 12 created", "Created 2024-07-02 09:51:00 UTC"),
        ("was incident 23 closed and when", "Closed 2024-07-12 14:00:00 UTC."),
        ("was incident 12 closed and when?", "No closing time is recorded; its status is Active."),
        ("which tactics does incident 12 show", "Tactics: Execution, LateralMovement."),
        ("which techniques does incident 12 show", "Techniques: T1021.002, T1204.002."),
        ("how many alerts has incident 12", "2 alerts (of incident `12`)."),
        ("which hosts are involved in incident 12", "`fin-ws-014.contoso.example`, `dc-01.contoso.example`"),
        ("comments on incident 7", "Nobody has commented on it."),
        ("classification of incident 23", "Classification: BenignPositive."),
        ("what is the defender id of incident 12", "Defender id 598"),
        ("what is the sha256 of dropper.exe in incident 12", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
        ("what is the command line of the powershell alert in incident 31", "powershell.exe -enc AAAA"),
        (f"which incident does alert {alert_id('a5')} belong to", "belongs to incident 18"),
        (f"what time was alert {alert_id('a5')}", "at 2024-07-09 13:15:00 UTC"),
        ("oldest alert", "1 of 8"),
        ("which day was the busiest", "starts 2024-07-02 00:00:00 UTC with 2 alerts"),
        ("top accounts by distinct alerts", "First is `m.keller` with 4 alerts."),
    ],
)  # fmt: skip
async def test_single_facts(ask: Ask, question: str, expected: str) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.ANSWERED
    assert expected in answer.text


async def test_a_defender_id_is_not_a_sentinel_number(ask: Ask) -> None:
    answer = await ask("is incident 612 a Sentinel number?")
    assert (
        "`612` is the Defender id of a Sentinel incident, not a Sentinel number: it is Sentinel incident 18."
        in answer.text
    )


async def test_a_title_that_fits_several_incidents_is_asked_back_and_picked_by_number(ask: Ask) -> None:
    asked = await ask("tell me about the phishing incident")
    assert asked.outcome is Outcome.CLARIFICATION
    assert column(asked, "Incident") == ["40", "23"]
    picked = await ask("[2]")
    assert picked.text.startswith("Incident 23:")


@pytest.mark.requirement("CHAT-10")
async def test_an_empty_window_says_so_and_offers_the_window_where_rows_are(ask: Ask, gateway: ScriptedGateway) -> None:
    empty = await ask("show high alerts of the last 24 hours")
    assert empty.outcome is Outcome.NO_DATA
    assert "No alerts match (severity High)." in empty.text
    assert "from 2024-07-22 12:00:00 UTC to before 2024-07-23 12:00:00 UTC" in empty.text
    assert (
        "does hold rows: 8, the oldest of 2024-06-25 07:10:00 UTC, the newest of 2024-07-20 06:10:00 UTC" in empty.text
    )
    found = await ask("yes")
    assert found.outcome is Outcome.ANSWERED
    assert column(found, "Severity") == ["High"] * 3
    assert calls(gateway)[-1] == ("query_alerts", {"severity": "High"})


async def test_each_offer_can_be_picked_by_number_or_by_its_words(analyst: OfflineAnalyst) -> None:
    for session, pick in (("a", "[2]"), ("b", None)):
        empty = await analyst.answer(Question("alerts of the last 7 days with low severity", session))
        chosen = pick or empty.suggestions[1]
        answer = await analyst.answer(Question(chosen, session))
        assert dict(answer.tools[0].arguments)["end_time"] == "2024-07-20T06:10:01Z"


async def test_a_suggested_window_is_a_question_that_stands_alone(ask: Ask, analyst: OfflineAnalyst) -> None:
    empty = await ask("alerts of the last 24 hours")
    answer = await analyst.answer(Question(empty.suggestions[0], "another shift"))
    assert len(answer.tables[0].rows) == 8


async def test_an_empty_table_is_told_apart_from_an_empty_window() -> None:
    gateway = small_estate(query_alerts=rows_result([], table_rows=0))
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("alerts of today", "s"))
    assert answer.outcome is Outcome.NO_DATA
    assert "holds no rows at all" in answer.text


async def test_a_mistyped_name_is_proposed_and_never_substituted(ask: Ask, gateway: ScriptedGateway) -> None:
    asked = await ask("which alerts name host fin-ws-41?")
    assert asked.outcome is Outcome.CLARIFICATION
    assert "`fin-ws-41`" in asked.text
    assert "[1] Show the alerts that name host fin-ws-014.contoso.example" in asked.text
    assert calls(gateway)[0] == ("query_alerts", {"entity": "fin-ws-41", "entity_kind": "host"})
    assert "1 alert matches" in (await ask("[1]")).text


async def test_the_directory_of_names_is_fetched_once_a_session(ask: Ask, gateway: ScriptedGateway) -> None:
    for name in ("fin-ws-41", "web-30"):
        await ask(f"alerts of host {name}")
    assert [name for name, _ in calls(gateway)].count("get_top_entities") == 2


@pytest.mark.requirement("CHAT-8")
async def test_the_footnote_tells_call_rows_window_age_and_record() -> None:
    gateway = small_estate()
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW, timezone="Europe/Berlin")
    answer = await analyst.answer(Question("show 3 alerts since 1 July", "s"))
    (line,) = answer.footnote
    assert line.startswith('query_alerts(start_time="2024-06-30T22:00:00Z", limit=3)')
    for part in (
        "3 of 7 rows",
        "everything since 2024-06-30 22:00:00 UTC (2024-07-01 00:00:00 CEST) by TimeGenerated",
        "newest row 2024-07-20 06:10:00 UTC (08:10:00 CEST), 3 days old",
        "audit audit-1",
    ):
        assert part in line


async def test_partial_data_is_a_warning_in_answer_and_footnote() -> None:
    partial = rows_result([], total=5, partial_reason="The response was cut at 64 MB.")
    gateway = small_estate(query_alerts=partial)
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("how many alerts", "s"))
    assert "Warning: the result is partial." in answer.text
    assert "PARTIAL: The response was cut at 64 MB." in answer.footnote[0]


async def test_a_refusal_tells_what_was_not_done_with_rule_record_and_a_next_step() -> None:
    gateway = small_estate(query_incidents=denial("incidents.deny", "HIGH"))
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("list open incidents", "s"))
    assert answer.outcome is Outcome.DENIED
    for part in (
        "Not done: query_incidents",
        "the policy forbids it (rule incidents.deny, audit audit-1)",
        "audit-1",
        "Nothing was read",
    ):
        assert part in answer.text
    assert "Taint level" not in answer.text
    assert "Access denied by security policy. Taint level: HIGH" in answer.footnote[0]
    assert answer.tools[0].status == "denied"


@pytest.mark.requirement("CHAT-13")
async def test_a_failing_tool_is_tried_once_more_and_then_explained() -> None:
    busy = failure(QueryErrorCode.UNAVAILABLE, "The workspace does not answer.", "Start it with `sentinel up`.")
    gateway = small_estate(query_alerts=busy)
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("newest alerts", "s"))
    assert len(gateway.calls) == 2
    assert answer.outcome is Outcome.TOOL_FAILED
    assert "which is not the same as finding nothing" in answer.text
    assert "Start it with `sentinel up`." in answer.text


async def test_a_second_try_that_works_is_silent() -> None:
    busy = failure(QueryErrorCode.UNAVAILABLE, "Busy.")
    gateway = small_estate(query_alerts=[busy, rows_result([], total=4)])
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("how many alerts", "s"))
    assert answer.text.startswith("4 alerts.")
    assert "Busy" not in answer.text


async def test_what_worked_is_told_beside_what_did_not() -> None:
    detail = rows_result(
        [{"number": 12, "title": "One", "owner": "m.keller"}], summary={"matched_by": "incident_number"}
    )
    gateway = small_estate(get_incident_detail=[detail, failure(QueryErrorCode.TIMEOUT, "Too slow.")])
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("who owns incidents 12 and 18", "s"))
    assert answer.outcome is Outcome.ANSWERED
    assert "Owner: “m.keller”." in answer.text
    assert "Too slow" in answer.text
    assert [trace.status for trace in answer.tools] == ["ok", "failed"]


@pytest.mark.requirement("CHAT-11")
async def test_sample_data_is_refused_in_the_agreed_words_and_real_data_queried(ask: Ask) -> None:
    answer = await ask("generate fake alerts for a demo")
    first = "I'm not allowed to provide example data to prevent context poisoning. Let me query some real data..."
    assert answer.text.splitlines()[0] == first
    assert len(answer.tables[0].rows) == 8


@pytest.mark.requirement("CHAT-12")
@pytest.mark.parametrize("question", ["what's the weather in Berlin", "tell me a joke", "write me a python script"])
async def test_out_of_scope_is_friendly_and_says_what_it_can_do(
    ask: Ask, gateway: ScriptedGateway, question: str
) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.OUT_OF_SCOPE
    assert "I read Microsoft Sentinel for you" in answer.text
    assert not gateway.calls


@pytest.mark.parametrize(
    "question",
    ["close incident 12", "please assign #18 to me", "can you isolate host fin-ws-014?", "block 203.0.113.77",
     "show incident 12 and close it", "add a comment to incident 12: benign", "mark 12 as false positive",
     "delete all alerts", "Could you disable the account m.keller", "set severity of incident 23 to low"],
)  # fmt: skip
async def test_a_wish_to_change_something_reads_nothing_and_says_so(
    ask: Ask, gateway: ScriptedGateway, question: str
) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.OUT_OF_SCOPE
    assert answer.text.startswith("I can only read: nothing was changed.")
    assert not gateway.calls


@pytest.mark.parametrize(
    "question",
    [
        "closed incidents",
        "was incident 23 closed?",
        "which incidents were resolved",
        "updated incidents first",
        "update me on incident 12",
        "update on #12?",
        "email alerts of last month",
        "comment history of incident 12",
    ],
)
async def test_asking_about_changes_is_not_asking_for_one(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask(question)
    assert gateway.calls


async def test_unsure_means_a_question_with_alternatives(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("blorp the frobnicator")
    assert answer.outcome is Outcome.CLARIFICATION
    assert "[1] List the incidents still open, newest first" in answer.text
    assert {call.tool_name for call in gateway.calls} <= {"list_kql_templates", "get_top_entities"}
    picked = await ask("1")
    assert column(picked, "Incident") == ["40", "31", "18", "12"]


async def test_a_missing_parameter_is_asked_for_and_the_value_alone_completes_it(
    ask: Ask, gateway: ScriptedGateway
) -> None:
    asked = await ask("which processes ran on the host")
    assert asked.outcome is Outcome.CLARIFICATION
    assert "Name the account, host or address" in asked.text
    answer = await ask("web-03")
    assert answer.outcome is Outcome.ANSWERED
    expected = {"template": "processes_on_host", "parameters": {"host": "web-03"}}
    assert calls(gateway)[-1] == ("run_kql_query", expected)


async def test_an_ambiguous_date_is_asked_back_and_picked(ask: Ask, gateway: ScriptedGateway) -> None:
    asked = await ask("how many alerts on 03/07/2024")
    assert asked.outcome is Outcome.CLARIFICATION
    await ask("[1]")
    assert calls(gateway)[-1][1] == {"start_time": "2024-07-03T00:00:00Z", "end_time": "2024-07-04T00:00:00Z"}


@pytest.mark.requirement("CHAT-9")
async def test_analysis_is_offered_and_carries_the_notice(ask: Ask) -> None:
    detail = await ask("what is incident 12 about?")
    assert "Would you like me to analyze potential implications?" in detail.text
    analysis = await ask("yes please")
    assert "a human must verify it before acting" in analysis.text
    assert "Execution, LateralMovement" in analysis.text
    assert column(analysis, "Entity") == ["m.keller"]


@pytest.mark.requirement("CHAT-14")
async def test_status_lines_come_while_tools_run(analyst: OfflineAnalyst) -> None:
    seen: list[Progress] = []
    await analyst.answer(Question("list open incidents", "s", progress=seen.append))
    assert {line.text for line in seen} == {"Querying incidents..."}
    assert seen[0].elapsed_s >= 0
    assert [line.tool and (line.tool.name, line.tool.status) for line in seen] == [
        None,
        ("query_incidents", "running"),
        ("query_incidents", "ok"),
    ]
    assert seen[-1].tool is not None
    assert seen[-1].tool.coverage is not None


async def test_every_piece_of_evidence_leads_to_its_value(gateway: ScriptedGateway, analyst: OfflineAnalyst) -> None:
    for question in ("what is incident 12 about?", "list incidents", "show all alerts", "alerts per day", "top hosts"):
        answer = await analyst.answer(Question(question, "s"))
        assert answer.evidence
        results = {}
        for trace in answer.tools:
            outcome = await small_estate().execute(next(c for c in gateway.calls if c.call_id == trace.call_id))
            results[trace.call_id] = outcome.result.to_dict()  # type: ignore[union-attr]
        for piece in answer.evidence:
            assert resolve(results[piece.call_id], piece.pointer) == piece.value
            shown = answer.text + " ".join(cell for table in answer.tables for row in table.rows for cell in row)
            assert piece.text in shown


async def test_the_form_for_machines_is_whole(ask: Ask) -> None:
    answer = await ask("list open incidents")
    assert Answer.from_dict(answer.to_dict()) == answer


async def test_a_time_zone_that_is_none_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="is not a time zone"):
        OfflineAnalyst(small_estate(), clock=lambda: datetime.now(UTC), timezone="Mars/Olympus")


@pytest.mark.parametrize("question", ["", "   ", "\x00\x1b[2J", "?", "'", '"', "[", "((((", "#", "%s%n", "🙂" * 2000])
async def test_any_text_gets_an_answer(ask: Ask, question: str) -> None:
    assert (await ask(question)).text


async def test_open_alerts_are_the_two_statuses_that_are_not_settled(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("how many alerts are still open?")
    assert calls(gateway) == [("query_alerts", {"status": "New"}), ("query_alerts", {"status": "InProgress"})]
    assert "4 alerts (status New)." in answer.text
    assert "2 alerts (status InProgress)." in answer.text


async def test_two_lists_of_one_answer_share_one_numbering(ask: Ask) -> None:
    answer = await ask("show open alerts")
    assert column(answer, "", 0) == ["[1]", "[2]", "[3]", "[4]"]
    assert column(answer, "", 1) == ["[5]", "[6]"]
    assert "“Malicious file was dropped”" in (await ask("details of [6]")).text


async def test_a_title_that_fits_one_incident_is_answered_at_once(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("who owns the password spray incident?")
    assert "Owner: “Ines Duarte”." in answer.text
    assert [name for name, _ in calls(gateway)] == ["query_incidents", "get_incident_detail"]


async def test_a_list_is_not_given_without_a_word_that_was_not_understood(ask: Ask) -> None:
    answer = await ask("need incidents of yesterday asap zzyzx")
    assert answer.outcome is Outcome.CLARIFICATION
    assert "I did not understand “zzyzx”" in answer.text


async def test_which_incident_has_the_most_alerts(ask: Ask) -> None:
    answer = await ask("which incident has the most alerts")
    assert answer.text.startswith("Incident 12 has 2 alerts.\nIncident 31 has 2 alerts.")


async def test_a_product_is_found_under_its_older_name(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("alerts from defender for endpoint")
    assert len(answer.tables[0].rows) == 4
    assert "older name" in answer.text
    assert calls(gateway)[0][1] == {"product": "Defender for Endpoint"}


async def test_templates_that_cannot_be_listed_are_a_failure_and_not_a_misunderstanding() -> None:
    gateway = small_estate(list_kql_templates=failure(QueryErrorCode.TIMEOUT, "Too slow.", "Ask again."))
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("denied mfa sign-ins", "s"))
    assert answer.outcome is Outcome.TOOL_FAILED
    assert "Too slow" in answer.text


ODD_VALUES = (None, "", "text", 7, -1.5, True, [], [None], {}, {"name": None}, [{"kind": 1}], "2024-99-99T00:00:00Z")


@pytest.mark.parametrize("odd", ODD_VALUES, ids=repr)
@pytest.mark.parametrize(
    "question",
    ["list incidents", "how many alerts", "show alerts", "what is incident 12 about", "analyze incident 12",
     "alerts per day", "top hosts", "what happened", "list tables", "list kql templates",
     "which processes ran on host web-03",
     "what is the sha256 of dropper.exe in incident 12", f"what time was alert {alert_id('a5')}",
     "comments on incident 12"],
)  # fmt: skip
async def test_a_result_of_another_shape_is_answered_without_an_error(question: str, odd: object) -> None:
    def deformed(value: object) -> object:
        if isinstance(value, dict):
            return dict.fromkeys(value, odd)
        return value

    clean = small_estate()

    def answer(name: str) -> object:
        def answered(arguments: object) -> QueryResult:
            result = clean.answers[name](arguments).to_dict()  # type: ignore[operator]
            result["rows"] = [deformed(row) for row in result["rows"]]
            result["summary"] = deformed(result["summary"])
            return QueryResult.from_dict(result)

        return answered

    gateway = ScriptedGateway({name: answer(name) for name in clean.answers})  # type: ignore[misc]
    assert (await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question(question, "s"))).text


async def test_an_alert_that_was_shown_in_part_is_read_again_by_its_id() -> None:
    row = {
        "alert_id": alert_id("a1"),
        "name": "Suspicious service launched",
        "time": "2024-07-02T09:47:00.123456Z",
        "incident_number": 12,
        "entities": [{"kind": "host", "name": "dc-01"}],
        "entity_count": 3,
    }
    whole = {
        **row,
        "entities": [{"kind": "file", "name": "C:\\\\tools\\\\rare.exe"}, *row["entities"]],
        "entity_count": 2,
    }
    gateway = small_estate(query_alerts=[rows_result([row]), rows_result([whole])])
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    answer = await analyst.answer(Question("which file was launched by the suspicious service in incident 12", "s"))
    assert "rare.exe" in answer.text
    assert calls(gateway)[1] == ("query_alerts", {"alert_id": alert_id("a1")})


async def test_unassigned_incidents_are_asked_for_as_such(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("unassigned incidents")
    assert column(answer, "Incident") == ["40", "7"]
    assert calls(gateway)[0][1] == {"owner": "unassigned"}

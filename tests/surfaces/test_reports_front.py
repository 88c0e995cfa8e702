"""The first page of a report: what a manager reads, in every form, and what stands behind it."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime
from typing import Any

import docx
import pytest
from pypdf import PdfReader

from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome, ToolTrace
from sentinel_rag.surfaces.reports import (
    HandOver,
    Head,
    Reading,
    ReportTurn,
    as_csv,
    as_docx,
    as_html,
    as_markdown,
    as_pdf,
    calls_for,
    hand_over,
)
from sentinel_rag.surfaces.reports.blocks import MOST_MOMENTS

pytestmark = pytest.mark.requirement("SURF-6")

SESSION, APPROVAL = "s1234567", "9531db7c-9a3b-42a0-acae-f66e8d353574"


def answer(
    tool: str,
    arguments: dict[str, Any],
    cells: dict[str, Any],
    *,
    audit_id: str,
    status: str = "ok",
    text: str = "Read.",
) -> dict[str, Any]:
    """An answer of one call that rests on these cells."""
    outcome = Outcome.DENIED if status == "denied" else Outcome.ANSWERED
    return Answer(
        outcome=outcome,
        text=text,
        session_id=SESSION,
        tools=(ToolTrace("c1", tool, arguments, status, audit_id=audit_id),),
        evidence=tuple(Evidence(str(value), "c1", tool, at, value) for at, value in cells.items()),
    ).to_dict()


def incident(row: int, number: int, severity: str, status: str, title: str, owner: str | None = None) -> dict[str, Any]:
    told = {"number": number, "title": title, "severity": severity, "status": status, "owner": owner}
    return {f"/rows/{row}/{name}": value for name, value in told.items()}


LISTED = answer(
    "query_incidents",
    {"status": "Open"},
    incident(0, 127, "Low", "New", "Unfamiliar sign-in")
    | incident(1, 124, "High", "Active", "Ransomware", "Łukasz Żak"),
    audit_id="a-1",
)
DETAIL = answer(
    "get_incident_detail",
    {"incident": "124"},
    incident(0, 124, "High", "Active", "Ransomware", "Łukasz Żak")
    | {
        "/rows/0/alerts/0/name": "Malicious click",
        "/rows/0/alerts/0/start_time": "2026-11-28T06:20:00Z",
        "/rows/0/alerts/0/severity": "Medium",
        "/rows/0/alerts/1/name": "Encryption was blocked",
        "/rows/0/alerts/1/start_time": "2026-11-30T05:02:00Z",
        "/rows/0/entities/host/0/name": "srv-file-01",
        "/rows/0/entities/account/0/name": "siobhan@example.com",
        "/rows/0/entities/filehash/0/name": "7d1a54",
    },
    audit_id="a-2",
)
CHANGE = {"incident": "127", "status": "Closed", "classification": "BenignPositive"}
ASKED = answer("update_incident", CHANGE, {}, audit_id="a-3", status="denied", text="Waiting for approval.")
DONE = answer(
    "update_incident",
    CHANGE,
    {
        "/rows/0/number": 127,
        "/rows/0/title": "Unfamiliar sign-in",
        "/rows/0/changes/0/field": "status",
        "/rows/0/changes/0/after": "Closed",
    },
    audit_id="a-4",
)


def record(kind: str, audit_id: str, at: str, outcome: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"record": {"kind": kind, "audit_id": audit_id, "at": at, **fields}, "outcome": outcome}


REFUSED = record(
    "refusal", "a-3", "2026-11-30T10:00:00Z", tool="update_incident", reason="approval_required", approval_id=APPROVAL
)
WAITS = record("approval_asked", APPROVAL, "2026-11-30T10:00:00Z", tool="update_incident", why="a change")
APPROVED = record(
    "approval_decided", APPROVAL, "2026-11-30T10:05:00Z", tool="update_incident", decision="approve", key_id="k-lee",
    comment="checked with Anna",
)  # fmt: skip
RAN = record(
    "intent", "a-4", "2026-11-30T10:06:00Z", "success", tool="update_incident", effect="write", approval_id=APPROVAL
)


def report_of(
    *answers: dict[str, Any], records: tuple[dict[str, Any], ...] = (), about: str = "", zone: str = "UTC"
) -> HandOver:
    head = Head(
        conversation_id=SESSION, exported_by="dana", exported_at=datetime(2026, 11, 30, 12, tzinfo=UTC), timezone=zone,
        workspace="soc", incident=about, people={"k-lee": "lee"},
    )  # fmt: skip
    turns = [
        ReportTurn(number, f"2026-11-30T09:0{number}:00Z", f"Question {number}?", each["outcome"], answer=each)
        for number, each in enumerate(answers, 1)
    ]
    return hand_over(head, turns, records)


WHOLE = report_of(LISTED, DETAIL, ASKED, DONE, records=(REFUSED, WAITS, APPROVED, RAN))


def text_of_pdf(content: bytes) -> list[str]:
    return [page.extract_text() for page in PdfReader(io.BytesIO(content)).pages]


def text_of_docx(content: bytes) -> str:
    document = docx.Document(io.BytesIO(content))
    cells = (cell.text for table in document.tables for row in table.rows for cell in row.cells)
    return "\n".join((*(each.text for each in document.paragraphs), *cells))


def test_incidents_stand_by_what_matters_as_they_were_last_told() -> None:
    assert [(each.number, each.status, each.owner) for each in WHOLE.front.incidents] == [
        ("124", "Active", "Łukasz Żak"),
        ("127", "Closed", ""),
    ]


def test_a_change_is_one_action_with_who_approved_it_and_is_no_open_point() -> None:
    [deed] = WHOLE.front.deeds
    assert deed.what == "update_incident: incident 127, status Closed, classification BenignPositive"
    assert (deed.decided, deed.came_of_it, deed.done) == ("approved by lee: checked with Anna", "done", True)
    assert WHOLE.open_questions == ()


def test_what_ran_at_the_yes_of_a_person_stands_as_it_is_now_and_is_no_open_point() -> None:
    report = report_of(LISTED, ASKED, records=(REFUSED, WAITS, APPROVED, RAN))
    assert {each.number: each.status for each in report.front.incidents}["127"] == "Closed"
    assert report.open_questions == ()
    failed = {**RAN, "outcome": "error"}
    report = report_of(LISTED, ASKED, records=(REFUSED, WAITS, APPROVED, failed))
    assert {each.number: each.status for each in report.front.incidents}["127"] == "New"


def test_an_approval_that_waits_is_open_once() -> None:
    report = report_of(LISTED, ASKED, records=(REFUSED, WAITS))
    assert [deed.came_of_it for deed in report.front.deeds] == ["waits for a decision"]
    assert len(report.open_questions) == 1
    assert APPROVAL in report.open_questions[0]


def test_what_was_denied_is_told_as_not_done() -> None:
    denied = record("approval_decided", APPROVAL, "2026-11-30T10:05:00Z", decision="deny", key_id="k-9", comment="")
    [deed] = report_of(ASKED, records=(REFUSED, WAITS, denied)).front.deeds
    assert (deed.decided, deed.came_of_it, deed.done) == ("denied by k-9", "not done: denied", False)


def test_a_refusal_that_nobody_may_lift_is_an_action_and_an_open_question() -> None:
    refused = record("refusal", "a-3", "2026-11-30T10:00:00Z", tool="update_incident", reason="rule_denies")
    report = report_of(ASKED, records=(refused,))
    assert [deed.came_of_it for deed in report.front.deeds] == ["refused: rule_denies"]
    assert len(report.open_questions) == 1


def test_scope_and_story_come_from_the_cells() -> None:
    assert WHOLE.front.scope == (("account", ("siobhan@example.com",)), ("host", ("srv-file-01",)))
    assert [(each.at, each.where) for each in WHOLE.front.happened] == [
        ("2026-11-28T06:20:00Z", "alert"),
        ("2026-11-30T05:02:00Z", "alert"),
        ("2026-11-30T10:06:00Z", "done"),
    ]


def test_the_report_of_one_incident_holds_nothing_of_others() -> None:
    report = report_of(LISTED, DETAIL, ASKED, DONE, records=(REFUSED, WAITS, APPROVED, RAN), about="124")
    assert [fact.turn for fact in report.facts] == [2]
    assert report.front.deeds == ()
    assert as_markdown(report).startswith("# Incident 124: Ransomware\n")
    own = report_of(LISTED, DETAIL, ASKED, DONE, records=(REFUSED, WAITS, APPROVED, RAN), about="127")
    assert [deed.came_of_it for deed in own.front.deeds] == ["done"]


@pytest.mark.parametrize("part", ["Summary", "What happened", "Scope", "Actions", "Open points"])
def test_every_form_has_the_page_before_the_annex(part: str) -> None:
    pages = text_of_pdf(as_pdf(WHOLE))
    assert part in pages[0]
    for written in (as_markdown(WHOLE), as_html(WHOLE), text_of_docx(as_docx(WHOLE))):
        assert written.index(part) < written.index("Annex")


def test_names_of_every_script_of_the_font_come_out_as_they_are() -> None:
    assert "Łukasz Żak" in text_of_pdf(as_pdf(WHOLE))[0]
    assert "Łukasz Żak" in text_of_docx(as_docx(WHOLE))


def test_a_pdf_has_one_page_to_read_however_much_there_is() -> None:
    many = {
        f"/rows/0/alerts/{place}/{name}": value
        for place in range(80)
        for name, value in {"name": f"Alert {place}", "start_time": f"2026-11-{place % 28 + 1:02}T06:20:00Z"}.items()
    }
    listed = {
        at: value
        for row in range(60)
        for at, value in incident(row, 100 + row, "Medium", "New", f"Sign-in {row} " + "long " * 12).items()
    }
    report = report_of(
        answer("query_incidents", {}, listed, audit_id="a-1"),
        answer("get_incident_detail", {"incident": "100"}, many, audit_id="a-2"),
    )
    first, second, *_ = text_of_pdf(as_pdf(report))
    assert "Open points" in first
    assert "Annex" not in first
    assert "Annex" in second
    assert f"{80 - MOST_MOMENTS} more moments are in the annex" in first


HOSTILE = "=cmd|calc! <script>alert(1)</script> [x](javascript:alert(1)) \x00\x1b[2J \u202eexe.gnp \ufffe 中文 https://evil.example"


@pytest.mark.requirement("SURF-5")
def test_no_text_of_others_becomes_a_link_a_field_or_a_script_in_a_document() -> None:
    report = report_of(
        answer("query_incidents", {}, incident(0, 1, "High", "New", HOSTILE), audit_id="a-1", text=HOSTILE)
    )
    pdf = as_pdf(report)
    for name in (b"/URI", b"/JavaScript", b"/JS", b"/Launch", b"/EmbeddedFile"):
        assert name not in pdf
    written = docx.Document(io.BytesIO(as_docx(report)))
    assert not [each for each in written.part.rels.values() if each.is_external]
    xml = written.element.xml
    assert "w:hyperlink" not in xml
    assert "w:fldSimple" not in xml
    assert "w:instrText" not in xml
    assert "\\u202e" in text_of_docx(as_docx(report))


def test_an_alert_that_two_answers_tell_stands_once_with_its_severity() -> None:
    bare = {"/rows/0/alerts/0/name": "Malicious click", "/rows/0/alerts/0/start_time": "2026-11-28T06:20:00Z"}
    again = answer("get_incident_detail", {"incident": "124"}, bare, audit_id="a-9")
    for report in (report_of(DETAIL, again), report_of(again, DETAIL)):
        assert [(each.text, each.severity) for each in report.front.happened] == [
            ("Malicious click (Medium)", "Medium"),
            ("Encryption was blocked", ""),
        ]


def test_of_many_moments_the_worst_and_what_was_done_stay_on_the_page() -> None:
    cells: dict[str, Any] = {}
    for at in range(20):
        severity = "High" if at in (3, 19) else "Low"
        cells |= {
            f"/rows/0/alerts/{at}/name": f"Alert {at}",
            f"/rows/0/alerts/{at}/start_time": f"2026-11-28T{at:02}:20:00Z",
            f"/rows/0/alerts/{at}/severity": severity,
        }
    many = answer("get_incident_detail", {"incident": "124"}, cells, audit_id="a-9")
    page = text_of_pdf(as_pdf(report_of(many, ASKED, DONE, records=(REFUSED, WAITS, APPROVED, RAN))))[0]
    for told in ("Alert 3 (High)", "Alert 19 (High)", "update_incident: incident 127", "Shift hand-over, page 1"):
        assert told in page
    assert f"{21 - MOST_MOMENTS} more moments are in the annex." in page


def test_incidents_that_are_not_closed_are_open_points() -> None:
    alone = report_of(LISTED, DETAIL, about="124")
    assert "- Incident 124 is Active (High), owner Łukasz Żak." in as_markdown(alone)
    shift = as_markdown(report_of(LISTED, DETAIL))
    assert "- Open incidents: 124, 127." in shift
    assert "- Without an owner: 127." in shift


def test_a_table_of_a_word_document_is_in_the_order_that_word_wants_with_widths_by_its_words() -> None:
    document = docx.Document(io.BytesIO(as_docx(report_of(LISTED, DETAIL))))
    for table in document.tables:
        names = [each.tag.rpartition("}")[2] for each in table._tbl.tblPr]
        assert "tblBorders" not in names or names.index("tblW") < names.index("tblBorders") < names.index("tblLook")
    [listed] = [each for each in document.tables if each.rows[0].cells[0].text == "incident"]
    widths = {cell.text: cell.width for cell in listed.rows[0].cells}
    assert widths["status"] < widths["title"]


def test_a_moment_of_a_word_document_is_a_filled_cell_at_its_place() -> None:
    document = docx.Document(io.BytesIO(as_docx(WHOLE)))
    [strip] = [each for each in document.tables if each.rows[0].cells[-1].text == "Malicious click (Medium)"]
    spans = [[int(cell.grid_span) for cell in dict.fromkeys(row.cells)] for row in strip.rows]
    assert [sum(row) for row in spans] == [22, 22, 22]
    assert spans[0] == [1, 1, 19, 1]  # the first stands at the beginning of the line, the last at its end
    assert spans[-1] == [1, 19, 1, 1]
    assert "●" not in text_of_docx(as_docx(WHOLE))


def alert(name: str, severity: str, at: str, *steps: str) -> dict[str, Any]:
    tactics = ["InitialAccess"] if severity == "Medium" else ["Impact"]
    told = {"name": name, "severity": severity, "status": "New", "start_time": at, "tactics": tactics}
    return {**told, "entities": [{"kind": "host", "name": "srv-file-01"}], "remediation_steps": list(steps)}


def row(number: int, severity: str, status: str, title: str, owner: str | None, **more: Any) -> dict[str, Any]:
    told = {"number": number, "title": title, "severity": severity, "status": status, "owner": owner}
    times = {"created_time": "2026-11-28T07:00:00Z", "updated_time": "2026-11-30T08:00:00Z", "closed_time": None}
    return {**told, **times, "classification": None, **more}


def reading(tool: str, arguments: dict[str, Any], **result: Any) -> Reading:
    result["coverage"] = {"workspace": "soc", "rows_returned": 1, "rows_total": len(result.get("rows", ()))}
    return Reading(tool, arguments, "a-read", "2026-11-30T12:00:00Z", result)


DETAIL_READ = reading(
    "get_incident_detail",
    {"incident": "124", "detail": "full"},
    rows=[
        row(
            124, "High", "Active", "Ransomware", "Łukasz Żak",
            alert_count=2,
            alerts=[
                alert("Malicious click", "Medium", "2026-11-28T06:20:00Z", "Isolate the device."),
                alert("Encryption was blocked", "High", "2026-11-30T05:02:00Z", "Restore the backup.", "Isolate it."),
            ],
            entities={"host": [{"name": "srv-file-01", "alerts": 2}], "process": [{"name": "winupd64.exe"}]},
            comments=[
                {"time": "2026-11-29T09:00:00Z", "author": "lee", "message": "Older."},
                {"time": "2026-11-30T06:00:00Z", "author": "anna", "message": "4 GB had left before."},
            ],
            timeline=[
                {"time": "2026-11-28T06:20:00Z", "event": "Alert: Malicious click"},
                {"time": "2026-11-29T08:00:00Z", "event": "Status changed from New to Active by anna"},
            ],
        )
    ],
)  # fmt: skip
PLAYBOOK_READ = reading(
    "search_knowledge_base",
    {"document": "ransomware.md"},
    hits=[
        {"citation": "ransomware.md > When", "document_id": "ransomware.md", "text": "Renames by the thousand."},
        {
            "citation": "ransomware.md > Triage",
            "document_id": "ransomware.md",
            "text": "1. **Isolate** the\n   host.\n2. Ask.\n",
        },
    ],
)


def of_readings(*readings: Reading, approvals: tuple[dict[str, Any], ...] = (), **head: Any) -> HandOver:
    at = datetime(2026, 11, 30, 12, tzinfo=UTC)
    told = Head(conversation_id="", exported_by="dana", exported_at=at, timezone="UTC", **head)
    return hand_over(told, [], [], readings, approvals)


def test_what_a_report_reads_follows_from_what_came() -> None:
    calls = calls_for("124", "", "soc")
    assert next(calls) == ("get_incident_detail", {"incident": "124", "detail": "full", "workspace": "soc"})
    assert calls.send(DETAIL_READ.result)[1] == {
        "query": "Encryption was blocked",  # of the most severe the newest
        "collection": "playbooks",
        "limit": 1,
    }
    assert calls.send(PLAYBOOK_READ.result)[1]["document"] == "ransomware.md"
    with pytest.raises(StopIteration):
        calls.send(PLAYBOOK_READ.result)
    queue = list(calls_for("", "2026-11-30T00:00:00Z", ""))
    assert [each[1].get("status", each[1].get("start_time")) for each in queue] == ["Open", "2026-11-30T00:00:00Z"]


def test_an_incident_that_was_read_tells_what_happened_how_bad_what_is_open_and_what_next() -> None:
    report = of_readings(DETAIL_READ, PLAYBOOK_READ, incident="124")
    first, _, annex = as_markdown(report).partition("## Annex")
    assert re.findall(r"- \*\*(.+?)\*\*: (.+)", first) == [
        (
            "What happened",
            "It began 2026-11-28 06:20 UTC with “Malicious click”; the newest alert is “Encryption was blocked”, "
            "2026-11-30 05:02 UTC. Tactics in order: Initial Access, Impact.",
        ),
        ("How bad", "High. Alerts that are High: 1 of 2. Hosts: 1."),
        (
            "What is open",
            "Incident 124 is Active (High), open for 2 d 5 h, owner Łukasz Żak. Alerts not resolved: 2 of 2.",
        ),
        ("Last word", "anna, 2026-11-30 06:00 UTC: 4 GB had left before."),
        ("What next", "Restore the backup. Isolate it."),
    ]
    assert [(each.where, each.text) for each in report.front.happened] == [
        ("alert", "Malicious click (Medium)"),
        ("sentinel", "Status changed from New to Active by anna"),
        ("alert", "Encryption was blocked (High)"),
    ]
    assert "- Alert “Encryption was blocked”: Restore the backup. Isolate it." in first
    assert "- ransomware.md &gt; Triage: Isolate the host. Ask." in first.replace("\\", "")
    assert "a-read" in annex
    assert report.front.scope == (("host", ("srv-file-01",)),)


ASKED_FOR = {
    "approval_id": APPROVAL, "tool": "update_incident", "asked_at": "2026-11-30T10:00:00Z", "why": "a change",
    "effect": "write", "arguments": {"incident": "126", "severity": "High"}, "person": "anna",
    "title": "anna wants to change the severity of #126", "used_at": None, "decision": None, "outcome": None,
}  # fmt: skip


def queue_of(*approvals: dict[str, Any], team: bool = False) -> HandOver:
    opened = [row(124, "High", "Active", "Ransomware", "Łukasz Żak"), row(126, "Medium", "New", "PowerShell", None)]
    changed = [
        row(126, "Medium", "New", "PowerShell", None, created_time="2026-11-30T07:00:00Z"),
        row(127, "Low", "Closed", "Sign-in", "lee", closed_time="2026-11-30T09:00:00Z", classification="FalsePositive"),
    ]
    return of_readings(
        reading("query_incidents", {"status": "Open"}, rows=opened, summary={"by_severity": {"High": 1, "Medium": 1}}),
        reading("query_incidents", {"time_field": "updated"}, rows=changed, summary={}),
        approvals=approvals,
        since="2026-11-30T00:00:00Z",
        team=team,
    )


def test_a_hand_over_tells_the_queue_what_changed_what_was_done_and_what_waits() -> None:
    done = {
        **ASKED_FOR, "approval_id": "other", "title": "lee wants to close #127", "state": "used",
        "decision": {"by": "k-1", "actor": "", "comment": "seen", "at": "2026-11-30T09:00:00Z", "name": "lea"},
        "used_at": "2026-11-30T09:00:00Z", "outcome": {"status": "success", "audit_id": "a-7"},
    }  # fmt: skip
    failed = {**done, "approval_id": "third", "used_at": None, "state": "approved", "outcome": {"reason": "outdated"}}
    done["asked_at"] = "2026-11-29T22:00:00Z"  # by the shift before
    report = queue_of({**ASKED_FOR, "state": "pending"}, done, failed)
    first = as_markdown(report).partition("## Annex")[0]
    assert "- **Open**: 2 incidents: 1 High, 1 Medium. Without an owner: 126." in first
    assert "- **In the shift**: 1 came (126); 1 closed (127)." in first
    assert "- **Waits**: anna wants to change the severity of #126." in first
    assert "| 124 | Ransomware | High | Active | Łukasz Żak | 2 d 5 h |" in first
    assert "| 126 | PowerShell | came | 2026-11-30 07:00 UTC | Medium New |" in first
    assert "| 127 | Sign-in | closed | 2026-11-30 09:00 UTC | Low Closed FalsePositive |" in first
    assert [(deed.came_of_it, deed.done, deed.waits) for deed in report.front.deeds] == [
        ("done", True, False),
        ("waits for a decision", False, True),
        ("approved, and did not run (outdated)", False, False),
    ]
    assert "approved by lea: seen" in first
    assert csv.DictReader(as_csv(report).splitlines()).__next__()["incident"] == "124"


def test_the_pages_of_a_hand_over_before_its_annex_are_two_at_most() -> None:
    many = [row(n, "Medium", "New", f"Sign-in {n} " + "long " * 20, None) for n in range(100, 160)]
    approvals = [
        {**ASKED_FOR, "approval_id": f"n-{n}", "title": f"anna wants {n} " * 9, "state": "pending"} for n in range(40)
    ]
    report = of_readings(
        reading("query_incidents", {"status": "Open"}, rows=many, summary={}),
        reading("query_incidents", {"time_field": "updated"}, rows=many, summary={}),
        approvals=tuple(approvals),
        since="2026-11-30T00:00:00Z",
    )
    pages = text_of_pdf(as_pdf(report))
    assert "Annex" in "".join(pages[:3])
    assert "Annex" not in pages[0]
    assert "A person must verify" in "".join(pages[:2])


def test_a_queue_that_was_read_in_part_says_so() -> None:
    cut = reading("query_incidents", {"status": "Open"}, rows=[row(124, "High", "Active", "Ransomware", None)])
    cut.result["coverage"]["rows_total"] = 340
    report = of_readings(cut, since="2026-11-30T00:00:00Z")
    assert "340 incidents. Without an owner: 124. Only 1 of 340 were read." in as_markdown(report)


def test_a_word_is_cut_in_no_column() -> None:
    page = text_of_pdf(as_pdf(queue_of()))[0]
    for word in ("incident", "severity", "Active", "Medium", "2026-11-30 09:00 UTC"):
        assert word in page

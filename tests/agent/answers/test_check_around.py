"""What a sentence may say beyond the cells that it cites: what stands around it, what follows from it, what it bids."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from answer_rows import DOSSIER, FLOWS, INCIDENTS, read
from sentinel_rag.agent.answers.check import check_answer
from sentinel_rag.agent.answers.compute import compute
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.repair import repair_request
from sentinel_rag.agent.answers.results import Results
from sentinel_rag.agent.answers.results_file import read_entry
from sentinel_rag.contracts.evidence import SentenceState

pytestmark = pytest.mark.requirement("GRND-1")
FOUND, NOT, GIVEN, OWN = (
    SentenceState.VALUES_FOUND,
    SentenceState.NOT_FOUND,
    SentenceState.SOURCE_GIVEN,
    SentenceState.OWN_WORDS,
)
NOW = datetime(2026, 11, 29, 10, tzinfo=UTC)
SIGNINS = [
    {"TimeGenerated": "2026-11-26T23:36:00Z", "UserPrincipalName": "siobhan@woodgrove.example", "ResultType": 500121},
    {"TimeGenerated": "2026-11-26T23:45:00Z", "UserPrincipalName": "siobhan@woodgrove.example", "ResultType": 500121},
    {"TimeGenerated": "2026-11-26T23:47:00Z", "UserPrincipalName": "siobhan@woodgrove.example", "ResultType": 0},
]
PROCESSES = [
    {"TimeGenerated": "2026-11-28T07:06:00Z", "DeviceName": "srv-file-01", "AccountName": "asa.oberg", "Runs": 2},
    {"TimeGenerated": "2026-11-28T18:36:00Z", "DeviceName": "srv-web-01", "AccountName": "asa.oberg", "Runs": 9},
]
DAYS = [
    {"time": "2026-11-28T00:00:00Z", "count": 2, "high": 1, "low": 1},
    {"time": "2026-11-29T00:00:00Z", "count": 7, "high": 3, "low": 4},
]
COUNTRIES = [{"Name": "Anna", "Location": "SG"}, {"Name": "Bert", "Location": "GB"}]


def query(table: str, rows: list[dict[str, Any]], **summary: Any) -> dict[str, Any]:
    result = {"rows": rows, "coverage": {"tables": [table], "rows_total": len(rows)}, "summary": summary}
    return {"tool": "run_kql_query", "arguments": {"template": "t"}, "result": result}


@pytest.fixture(scope="module")
def evidence() -> ReadResults:
    held = Results()
    held.add(read("c1", "get_incident_detail", DOSSIER))
    for ref, entry in (
        ("c2", query("SigninLogs", SIGNINS)),
        ("c3", query("DeviceProcessEvents", PROCESSES)),
        ("c4", query("SecurityAlert", [], by_severity={"High": 1, "Medium": 3})),
        ("c5", query("SecurityAlert", [], by_severity={"High": 7, "Medium": 9})),
        ("c6", query("SecurityAlert", DAYS)),
        ("c8", query("SigninLogs", COUNTRIES)),
        ("c9", query("SigninLogs", COUNTRIES, totals={"SignIns": 179, "Failures": 0})),
    ):
        held.add(read_entry(entry, held, default_ref=ref))
    page = query("SecurityAlert", [{"AlertName": "a"}, {"AlertName": "b"}, {"AlertName": "c"}])
    held.add(read_entry({**page, "arguments": {"offset": 6}}, held, default_ref="c10"))
    held.add(read("c7", "run_kql_query", FLOWS))
    return ReadResults(held, said=["Was it at 23:40?"])


@pytest.mark.parametrize(
    ("state", "text"),
    [
        # an incident that the cited row knows nothing of, and which holds one of its names; no other thing of a sort
        (GIVEN, "In incident 124 siobhan@woodgrove.example got in at 23:47 [c2.3]."),
        (NOT, "In incident 125 siobhan@woodgrove.example got in at 23:47 [c2.3]."),
        (NOT, "On wks-fin-02 asa.oberg ran it at 07:06 [c3.1]."),
        # the log of a query's rows
        (FOUND, "SigninLogs has the sign-in of siobhan@woodgrove.example at 23:47 [c2.3]."),
        (NOT, "OfficeActivity has the sign-in of siobhan@woodgrove.example at 23:47 [c2.3]."),
        # what was asked about is no claim
        (GIVEN, "At 23:40 siobhan@woodgrove.example had failed once, at 23:36 [c2.1]."),
        (NOT, "At 23:41 siobhan@woodgrove.example had failed once, at 23:36 [c2.1]."),
        # a value of the sentence before is context beside one of its own, and a mistake in its place
        (GIVEN, "It ran at 07:06 [c3.1]. At 18:36, unlike at 07:06, asa.oberg was on srv-web-01 [c3.2]."),
        (NOT, "It ran at 07:06 [c3.1]. At 07:06 asa.oberg was on srv-web-01 [c3.2]."),
        # advice, also behind a subordinate clause
        (OWN, "Treat every account that logged on to srv-file-01 as stolen."),
        (GIVEN, "Pull the memory of srv-file-01 of 08:15 before anybody restarts it [c3.1]."),
        (NOT, "Keep in mind that srv-file-01 ran it at 08:15 [c3.1]."),
        # how far the reading went
        (GIVEN, "asa.oberg ran it at 07:06, and nothing shows `d.dmp` being copied or deleted [c3.1]."),
        (NOT, "asa.oberg ran it at 07:06, and `d.dmp` was deleted [c3.1]."),
        # days of the month, codes, failures by their result code
        (FOUND, "On the 28th asa.oberg ran it on srv-file-01 [c3.1]."),
        (NOT, "On the 27th asa.oberg ran it on srv-file-01 [c3.1]."),
        (NOT, "Am 28. waren es sieben, am 29. zwei [c6.1, c6.2]."),
        (NOT, "Anna comes from GB, Bert from SG [c8.1, c8.2]."),
        (NOT, "Anna comes from GB [c8.1]."),
        (FOUND, "There were two failures before siobhan@woodgrove.example got in at 23:47 [c2]."),
        (NOT, "There were three failures before siobhan@woodgrove.example got in at 23:47 [c2]."),
        # lengths of time between any times of the cited rows, and in two units
        (FOUND, "It came back eleven and a half hours later [c3.1, c3.2]."),
        (FOUND, "Entre los dos pasaron once horas y media [c3.1, c3.2]."),
        (FOUND, "Between the two lie 11 hours and 30 minutes [c3.1, c3.2]."),
        (NOT, "Between the two lie 11 hours and 50 minutes [c3.1, c3.2]."),
        (FOUND, "siobhan@woodgrove.example failed at 23:36 [c2.1]. Eleven minutes later it worked [c2.3]."),
        (NOT, "siobhan@woodgrove.example failed at 23:36 [c2.1]. Eighteen minutes later it worked [c2.3]."),
        # sums, differences and ratios
        (FOUND, "Together the days brought 9 alerts [c6.1, c6.2]."),
        (NOT, "Together the days brought 11 alerts [c6.1, c6.2]."),
        (GIVEN, "8 sessions carried 4.6 GB, 575 MB each on average [c7.1]."),
        (NOT, "8 sessions carried 4.6 GB, 675 MB each on average [c7.1]."),
        # a number is not that of a column that nobody names
        (NOT, "On 28 November there was 1 alert [c6.1]."),
        (FOUND, "On 28 November there was 1 High alert [c6.1]."),
    ],
)
def test_a_sentence_says_more_than_its_cells(evidence: ReadResults, state: SentenceState, text: str) -> None:
    found = check_answer(text, evidence).sentences[-1]
    assert found.state is state, found.reason


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (GIVEN, "Sums over the rows: SignIns 179, Failures 0 [c9]."),
        (NOT, "There were 179 failures [c9]."),
        # the row of all that a page begins with
        (GIVEN, "Rows shown: 3, from [7] on [c10]."),
        (NOT, "There are 7 rows [c10]."),
    ],
)
def test_a_number_of_a_whole_is_told_beside_its_name(evidence: ReadResults, state: SentenceState, text: str) -> None:
    found = check_answer(text, evidence).sentences[-1]
    assert found.state is state, found.reason


@pytest.mark.parametrize(
    ("state", "row"),
    [
        (FOUND, "| High | 1 [c4] | 7 [c5] |"),
        (NOT, "| High | 3 [c4] | 7 [c5] |"),
        (NOT, "| High | 7 [c4] | 1 [c5] |"),
        (FOUND, "| High | 1 | 7 | [c4, c5]"),
        (NOT, "| High | 3 | 7 | [c4, c5]"),
    ],
)
def test_totals_stand_beside_others_in_one_row(evidence: ReadResults, state: SentenceState, row: str) -> None:
    found = check_answer(f"| | before | after |\n|---|---|---|\n{row}", evidence).sentences[-1]
    assert found.state is state, found.reason


def test_the_first_row_below_a_blank_head_is_checked(evidence: ReadResults) -> None:
    found = check_answer("| | |\n|---|---|\n| srv-file-01 | 08:15 [c3.1] |", evidence).sentences[-1]
    assert found.state is NOT


@pytest.mark.parametrize(("state", "high"), [(FOUND, 7), (NOT, 6)])
def test_what_opens_a_list_is_borne_out_by_its_lines(evidence: ReadResults, state: SentenceState, high: int) -> None:
    lines = "- High: 1 [c4], 7 [c5]\n- Medium: 3 [c4], 9 [c5]"
    text = f"High alerts went from 1 to {high}, Medium ones from 3 to 9.\n\n{lines}"
    found = check_answer(text, evidence).sentences[0]
    assert found.state is state, found.reason


@pytest.mark.parametrize(("state", "number"), [(FOUND, 125), (NOT, 124)])
def test_counted_incidents_can_be_named(state: SentenceState, number: int) -> None:
    held = Results()
    held.add(read("c1", "query_incidents", INCIDENTS))
    held.add(compute("c2", {"op": "count", "of": "c1", "where": "status = New"}, held, now=NOW))
    found = check_answer(f"Two of the three are New: {number} and 126 [c2.1].", ReadResults(held)).sentences[0]
    assert found.state is state, found.reason


def test_one_repair_is_told_all_reasons(evidence: ReadResults) -> None:
    asked = repair_request(check_answer("It ran on srv-web-09, which was reimaged [c3.1].", evidence))
    assert "“srv-web-09” does not stand in c3.1" in asked
    assert "no cited row says “reimaged”" in asked


REOPENED = {"number": 108, "title": "Impossible travel", "severity": "High", "status": "Active", "owner": "Åsa Öberg",
            "created_time": "2026-11-16T12:00:00Z", "closed_time": "2026-11-17T09:00:00Z"}  # fmt: skip
ALERTS = [
    {"alert_id": "b1", "name": "Port scan", "severity": "Low", "start_time": "2026-11-28T02:20:00Z",
     "incident_number": 125, "entities": ["ip:203.0.113.152", "host:wks-sal-01"]},
    {"alert_id": "b2", "name": "Password spray", "severity": "Medium", "start_time": "2026-11-27T10:00:00Z",
     "incident_number": 126, "entities": ["ip:203.0.113.152", "account:asa.oberg@woodgrove.example Åsa Öberg"]},
    {"alert_id": "b3", "name": "Logon", "severity": "Medium", "start_time": "2026-11-26T10:00:00Z",
     "incident_number": 124, "entities": ["account:asa.oberg@woodgrove.example Åsa Öberg", "host:srv-dc-01"]},
]  # fmt: skip
STATES = [{"Number": 108, "FirstClosed": "2026-11-17T09:00:00Z", "LastOpen": "2026-11-18T12:00:00Z"}]
OWNERS = [{"Owner": "Åsa Öberg", "Incidents": 8, "Open": 4}, {"Owner": "Tomasz Wójcik", "Incidents": 13, "Open": 2}]
CHANGES = [{"TimeGenerated": "2026-11-28T08:00:00Z", "Account": "siobhan", "Activity": "Registered security info"}]
RENAMES = [
    {"TimeGenerated": f"2026-11-29T05:00:0{n}Z", "FileName": f"{n}.wdgrv", "Program": "winupd64.exe"} for n in range(3)
]


@pytest.fixture(scope="module")
def case() -> ReadResults:
    held = Results()
    held.add(read("c1", "query_incidents", [*INCIDENTS, REOPENED]))
    held.add(read("c2", "query_alerts", ALERTS))
    for ref, entry in (
        ("c3", query("SecurityIncident", STATES)),
        ("c4", query("SecurityIncident", OWNERS)),
        ("c5", query("AuditLogs", CHANGES)),
        ("c6", query("DeviceFileEvents", RENAMES)),
        ("c7", query("SecurityAlert", DAYS)),
    ):
        held.add(read_entry({**entry, "read_at": NOW.isoformat()}, held, default_ref=ref))
    for ref, asked in (
        ("c8", {"op": "count", "of": "c6", "where": "FileName contains wdgrv"}),
        ("c9", {"op": "sum", "of": "c7.1-2", "column": "count"}),
        ("c10", {"op": "group", "of": "c1", "by": "severity"}),
    ):
        held.add(compute(ref, asked, held, now=NOW))
    held.add(read("c11", "get_incident_detail", DOSSIER))
    return ReadResults(held)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        # an account of one dossier that another incident has too
        (GIVEN, "The account asa.oberg@woodgrove.example is in incident 126 too [c11.7]."),
        (NOT, "The account asa.oberg@woodgrove.example is in incident 125 too [c11.7]."),
        # the number of an incident counts nothing, whatever word follows it
        (FOUND, "In incident 124 Åsa Öberg's account came to srv-dc-01 [c2.3]."),
        (NOT, "In incident 125 Åsa Öberg's account came to srv-dc-01 [c2.3]."),
        # an incident beside another one whose row is cited, and which shares a name with it
        (GIVEN, "The alert of 126 names the account of Åsa Öberg, which was used in incident 124 [c2.2]."),
        (NOT, "The alert of 126 names the account of Åsa Öberg, which was used in incident 125 [c2.2]."),
        (NOT, "The alert names the account of Åsa Öberg, which was used in incident 124 [c2.2]."),
        # what the alerts of the cited incident hold, and a state of its row that another one of it lacks
        (GIVEN, "Incident 125 is on wks-sal-01 [c1.2]."),
        (NOT, "Incident 125 is on srv-dc-01 [c1.2]."),
        (GIVEN, "Incident 108, a High one, was first closed on 17 Nov [c3.1]."),
        (NOT, "Incident 108, a Low one, was first closed on 17 Nov [c3.1]."),
        # open, with the time of a closing
        (FOUND, "Incident 108 is High and was reopened [c1.4]."),
        (NOT, "Incident 108 was reopened on 17 Nov at 09:00 [c1.4]."),
        (NOT, "Incident 124 is High and was reopened [c1.1]."),
        # the last of a column has a first of the same
        (FOUND, "Incident 108 is open again since 18 Nov [c3.1]."),
        # nothing later than the newest row
        (FOUND, "No row is newer than 29 Nov 05:00 [c6]."),
        (NOT, "No row is newer than 28 Nov 05:00 [c6]."),
        # the column of the number that is told is the largest
        (FOUND, "Tomasz Wójcik has 2 open, but the most overall with 13 [c4]."),
        (NOT, "Tomasz Wójcik has the most with 2 open [c4]."),
        # what each counted row says, and rows that were given as a range
        (FOUND, "`winupd64.exe` renamed at least 3 files [c8.1]."),
        (NOT, "`winupd64.exe` renamed more than 3 files [c8.1]."),
        (NOT, "`rclone.exe` renamed at least 3 files [c8.1]."),
        (NOT, "On 27 and 28 Nov there were 9 alerts [c9.1]."),
        # the clock, and a length of time before it
        (OWN, "By a week I mean the 7 days before 29 Nov 10:00."),
        (NOT, "By a week I mean the 7 days before 27 Nov 10:00."),
        # lists of what to do
        (OWN, "To settle it, ask Åsa Öberg for the mail, then 203.0.113.152 for its owner."),
    ],
)
def test_what_is_known_of_a_case_is_carried_over(case: ReadResults, state: SentenceState, text: str) -> None:
    found = check_answer(text, case).sentences[-1]
    assert found.state is state, found.reason


@pytest.mark.parametrize(
    ("state", "row"),
    [
        # a cell begins with a capital
        (FOUND, "| 28 Nov 08:00 | siobhan | New security info [c5.1] |"),
        (NOT, "| 28 Nov 08:00 | siobhan | New and Active [c5.1] |"),
        # the state of the incident that a line is about, and not of its alerts
        (GIVEN, "| 124 (High) | Logon, 26 Nov 10:00 [c2.3] |"),
        (NOT, "| 124 (Low) | Logon, 26 Nov 10:00 [c2.3] |"),
        # what is cited behind the line is of all of it
        (FOUND, "| 125 | Port scan | 28 Nov 02:20 [c2.1] | wks-sal-01 | [c2.1]"),
        (FOUND, "| 124 | Logon [c2.3] | 126 | Password spray | [c2.2]"),
        (NOT, "| 124 | Logon [c2.3] | 125 | Password spray | [c2.2]"),
        # a group that all rows were grouped without
        (FOUND, "| Low | 0 [c10] |"),
        (NOT, "| High | 0 [c10] |"),
        # what stands behind the citation of one sentence is not said by that of the next
        (NOT, "| 124 | Logon on 26 Nov at 10:00 [c2.3], at wks-sal-01. A scan on 28 Nov at 02:20 [c2.1] |"),
    ],
)
def test_the_cells_of_a_line_belong_to_it(case: ReadResults, state: SentenceState, row: str) -> None:
    found = check_answer(f"| | |\n|---|---|\n{row}", case).sentences[-1]
    assert found.state is state, found.reason

"""Attacker controls: texts of alerts, events, mails, files and pages, in fields that products copy from them.

Wanted: words that reach the agent as the house's own. The gateway marks each as words of others, whichever tool tells
them, and marks nothing that people of the house write, so that an answer may state it.
"""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.handles import as_text, quoted_in
from sentinel_rag.workspace.sample.company import ALERT_DESCRIPTION, MAIL_SUBJECT
from sentinel_rag_testing.fake_tool_server import Answers
from sentinel_rag_testing.running_gateway import RunningGateway

pytestmark = pytest.mark.requirement("TAINT-3")

THEIRS, OURS = ALERT_DESCRIPTION, "Closed by the night shift"
PROCESS = {
    "kind": "process",
    **dict.fromkeys(("name", "command_line", "parent_command_line", "image_file"), THEIRS),
}
MAIL = {"kind": "mailmessage", "name": MAIL_SUBJECT, "subject": MAIL_SUBJECT}
PERSON = {"kind": "account", "name": "anna@x.example", "display_name": "Anna van den Berg"}
ALERT = {
    "name": OURS,
    "severity": "High",
    "time": "2026-11-27T05:24:00Z",
    "description": THEIRS,
    "custom_details": {"Command": [THEIRS]},
    "entities": [PROCESS, MAIL, PERSON],
}
INCIDENT = {"number": 7, "title": OURS, "owner": "Åsa Öberg", "status": "New", "description": THEIRS}
DOSSIER = {
    **INCIDENT,
    "alerts": [ALERT],
    "entities": {"process": [{**PROCESS, "other_values": {"command_line": [THEIRS]}}], "account": [PERSON]},
    "comments": [{"time": "2026-11-27T05:24:00Z", "author": "Åsa Öberg", "message": OURS}],
    "timeline": [{"time": "2026-11-27T05:24:00Z", "event": OURS}],
    "custom_details": {"Command": [THEIRS]},
    "bookmarks": [{"name": OURS, "notes": THEIRS, "query_result": THEIRS}],
}
ROWS = {
    "rows": [
        {"Account": "anna@x.example", "Command": THEIRS, "At": "2026-11-27T05:24:00Z", "N": 3, "Deep": {"a": [THEIRS]}}
    ]
}
CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("query_incidents", {}, {"rows": [INCIDENT], "summary": {"by_status": {"New": 1}}, "notes": [OURS]}),
    ("get_incident_detail", {"incident": "7"}, {"rows": [DOSSIER], "notes": [OURS]}),
    ("query_alerts", {}, {"rows": [ALERT], "summary": {"by_name": {OURS: 1}}, "notes": [OURS]}),
    ("get_alert_events", {"alert_id": "a"}, {**ROWS, "summary": {**ALERT, "alert_name": OURS, "description": OURS}}),
    ("get_top_entities", {"kind": "process"}, {"rows": [{"kind": "process", "name": THEIRS, "alerts": 2}]}),
    ("get_threat_summary", {}, {"rows": [INCIDENT], "summary": {"top_alert_names": [{"name": OURS, "count": 1}]}}),
    ("run_kql_query", {"template": "rare_processes"}, {**ROWS, "summary": {"description": OURS}}),
    ("describe_table", {"table": "T"}, {"rows": [{"column": "C", "example": THEIRS}]}),
    ("run_freeform_kql", {"kql": "T"}, {**ROWS, "columns": [{"name": THEIRS, "type": "string"}]}),
]


def texts(value: Any, pointer: str = "") -> dict[str, str]:
    """The texts of a JSON value that are more than a word, by pointer."""
    if isinstance(value, dict):
        return {place: text for key, part in value.items() for place, text in texts(part, f"{pointer}/{key}").items()}
    if isinstance(value, list):
        return {place: text for at, part in enumerate(value) for place, text in texts(part, f"{pointer}/{at}").items()}
    return {pointer: value} if isinstance(value, str) and " " in value else {}


@pytest.mark.parametrize(("tool", "arguments", "value"), CALLS, ids=[tool for tool, _, _ in CALLS])
def test_the_words_of_strangers_are_marked_and_those_of_the_house_are_not(
    gateway: RunningGateway, tool: str, arguments: dict[str, Any], value: dict[str, Any]
) -> None:
    gateway.executor.on(tool, Answers(value))
    sent = gateway.call(tool, arguments).body["result"]
    assert as_text(sent) == value
    theirs = {place for place, text in texts(value).items() if text in (THEIRS, MAIL_SUBJECT)}
    assert theirs
    assert set(quoted_in(sent)) == theirs

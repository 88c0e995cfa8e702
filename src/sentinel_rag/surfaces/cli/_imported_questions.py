"""Questions that freshly imported rows answer, with a name out of them: what to type after an import.

For each table that questions reach there is one, told with the value that occurs most; the value is asked of the
workspace, so a question whose answer would be empty is never offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.workspace.importing.reports import ImportReport

if TYPE_CHECKING:
    from sentinel_rag.surfaces.cli._workspace_access import WorkspaceAccess

MOST = 3
LONGEST = 60
"""Characters of a name that a person would type."""

QUESTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "SecurityIncident": (("IncidentNumber", "what is incident {} about?"), ("Severity", "which incidents are open?")),
    "SecurityAlert": (("AlertName", "how many alerts per day?"), ("AlertName", "top accounts by distinct alerts")),
    "SigninLogs": (("UserPrincipalName", "sign-ins of {}"),),
    "DeviceProcessEvents": (("DeviceName", "processes on {}"),),
    "DeviceNetworkEvents": (("DeviceName", "network connections of {}"),),
    "DeviceLogonEvents": (("DeviceName", "logons on {}"),),
    "OfficeActivity": (("UserId", "office activity of {}"),),
    "SecurityEvent": (("Computer", "processes on {}"),),
    "AzureActivity": (("Caller", "azure activity of {}"),),
}
"""By table: the column that gives the name, and the question."""
ANY = "what data do you have?"


def questions_of(workspace: WorkspaceAccess, reports: Sequence[ImportReport]) -> tuple[str, ...]:
    """Up to three questions; none where nothing was stored, or the workspace does not answer."""
    tables = dict.fromkeys(each.table for each in reports if each.rows_stored)
    if not tables:
        return ()
    try:
        found = list(dict.fromkeys(_told(workspace, tables)))[: MOST - 1]
    except SentinelError:
        return ()
    return (*found, ANY)


def _told(workspace: WorkspaceAccess, tables: dict[str, None]) -> Iterator[str]:
    known = [table for table in QUESTIONS if table in tables]
    # The first question of each table, then the second ones.
    for place in range(max((len(QUESTIONS[table]) for table in known), default=0)):
        for table in known:
            for column, question in QUESTIONS[table][place : place + 1]:
                value = _commonest(workspace, table, column)
                if value and len(value) <= LONGEST:
                    yield question.format(value)


def _commonest(workspace: WorkspaceAccess, table: str, column: str) -> str:
    if column not in workspace.schema().get(table, {}):
        return ""
    kql = f"{table} | where isnotempty({column}) | summarize Rows = count() by {column} | top 1 by Rows desc"
    rows = workspace.query(kql, None)["rows"]
    return str(rows[0][0]) if rows else ""

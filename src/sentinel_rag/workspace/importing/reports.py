"""What an import did, row by row accounted for: read = stored + duplicates + rejected; and what can be asked of it.

Frozen values; `to_dict` and `from_dict` are inverses and the form of the admin endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.contracts.json_values import JsonForm


@dataclass(frozen=True, slots=True)
class Misfit(JsonForm):
    """Values of one column that are not of its type. They are kept in the row's `UnfitValues` column.

    `records` and `values` are the first three, aligned; a record is a row of the file, counted from 1 after the header.
    """

    column: str
    type: str
    count: int
    records: tuple[int, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reject(JsonForm):
    """A part of the file that is no row. `line` counts from 1; the content is kept, up to 10 000 characters."""

    line: int | None
    reason: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport(JsonForm):
    """One file into one table. `rejects` holds the first twenty of `rows_rejected`; the store keeps them all."""

    file: str
    table: str
    format: str
    rows_read: int = 0
    rows_stored: int = 0
    duplicates_skipped: int = 0
    rows_rejected: int = 0
    misfits: tuple[Misfit, ...] = ()
    rejects: tuple[Reject, ...] = ()
    new_columns: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()
    commonest: Mapping[str, str] = field(default_factory=dict)
    """Of the columns that questions name, the value that most rows of the file have."""
    oldest: str = ""
    newest: str = ""
    """TimeGenerated of the rows read, to the minute; empty where none has one."""
    columns: tuple[str, ...] = ()
    first: tuple[tuple[str, ...], ...] = ()
    """The first rows as they are typed, cell by cell under `columns`; of each column one of them has something."""
    trial: bool = False
    """Nothing was stored: `rows_stored` would have been."""
    error: str = ""
    next_step: str = ""
    duration_s: float = 0.0

    def sentence(self) -> str:
        """The report in one line for a person."""
        if self.error:
            return self.error if self.error.startswith(self.file) else f"{self.file}: {self.error}"
        stored = "would be stored" if self.trial else "stored"
        parts = [f"{self.file} -> {self.table}: {self.rows_stored:,} of {self.rows_read:,} rows {stored}"]
        if self.oldest:
            parts.append(f"{self.oldest} to {self.newest} UTC" if self.newest != self.oldest else f"{self.oldest} UTC")
        if self.duplicates_skipped:
            parts.append(f"{self.duplicates_skipped:,} already there")
        if self.rows_rejected:
            parts.append(f"{self.rows_rejected:,} rejected")
        unfit = sum(misfit.count for misfit in self.misfits)
        if unfit:
            parts.append(f"{unfit:,} values did not fit their column and are kept in UnfitValues")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        return JsonForm.to_dict(self) | {"new_columns": dict(self.new_columns or {})}


# Questions that freshly imported rows answer, in words that a person would type.
MOST = 3
LONGEST = 60
"""Characters of a name that a person would type."""

QUESTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "SecurityIncident": (("IncidentNumber", "what is incident {} about?"), ("Severity", "which incidents are open?")),
    "SecurityAlert": (("AlertName", "how many alerts per day?"), ("AlertName", "top accounts by distinct alerts")),
    "SigninLogs": (("UserPrincipalName", "sign-ins of {}"), ("IPAddress", "sign-ins from {}")),
    "DeviceProcessEvents": (("DeviceName", "processes on {}"),),
    "DeviceNetworkEvents": (("DeviceName", "network connections of {}"), ("RemoteIP", "which hosts talk to {}?")),
    "DeviceLogonEvents": (("DeviceName", "logons on {}"),),
    "OfficeActivity": (("UserId", "office activity of {}"), ("ClientIP", "office activity from {}")),
    "SecurityEvent": (("Computer", "windows processes on host {}"), ("Computer", "logons on host {}")),
    "AzureActivity": (("Caller", "azure activity of {}"),),
    "AuditLogs": (("OperationName", "changes in entra id"),),
    "DnsEvents": (("ClientIP", "dns queries by host"),),
    "EmailEvents": (("SenderFromAddress", "emails from {}"),),
}
"""By table: the column that gives the name, and the question."""
ANY = "what data do you have?"


def questions_of(reports: Sequence[ImportReport]) -> tuple[str, ...]:
    """Up to three questions that name what the stored rows hold most often; none where nothing was stored."""
    stored = [each for each in reports if each.rows_stored and not each.trial]
    if not stored:
        return ()
    return (*list(dict.fromkeys(_told(stored)))[: MOST - 1], ANY)


def _told(reports: Sequence[ImportReport]) -> Iterator[str]:
    # The first question of each table, then the second ones.
    for place in range(max(len(each) for each in QUESTIONS.values())):
        for report in sorted(reports, key=lambda each: [*QUESTIONS, each.table].index(each.table)):
            for column, question in QUESTIONS.get(report.table, ())[place : place + 1]:
                value = report.commonest.get(column, "")
                if value and len(value) <= LONGEST:
                    yield question.format(value)

"""What an import did, row by row accounted for: read = stored + duplicates + rejected.

Frozen values without behaviour; `to_dict` and `from_dict` are inverses and the form of the admin endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue


@dataclass(frozen=True, slots=True)
class Misfit:
    """Values of one column that are not of its type. They are kept in the row's `UnfitValues` column.

    `records` and `values` are the first three, aligned; a record is a row of the file, counted from 1 after the header.
    """

    column: str
    type: str
    count: int
    records: tuple[int, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reject:
    """A part of the file that is no row. `line` counts from 1; the content is kept, up to 10 000 characters."""

    line: int | None
    reason: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
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
    error: str = ""
    next_step: str = ""
    duration_s: float = 0.0

    def sentence(self) -> str:
        """The report in one line for a person."""
        if self.error:
            return f"{self.file}: {self.error}"
        parts = [f"{self.file} -> {self.table}: {self.rows_stored:,} of {self.rows_read:,} rows stored"]
        if self.duplicates_skipped:
            parts.append(f"{self.duplicates_skipped:,} already there")
        if self.rows_rejected:
            parts.append(f"{self.rows_rejected:,} rejected")
        unfit = sum(misfit.count for misfit in self.misfits)
        if unfit:
            parts.append(f"{unfit:,} values did not fit their column and are kept in UnfitValues")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "file": self.file,
            "table": self.table,
            "format": self.format,
            "rows_read": self.rows_read,
            "rows_stored": self.rows_stored,
            "duplicates_skipped": self.duplicates_skipped,
            "rows_rejected": self.rows_rejected,
            "misfits": [
                {
                    "column": misfit.column,
                    "type": misfit.type,
                    "count": misfit.count,
                    "records": list(misfit.records),
                    "values": list(misfit.values),
                }
                for misfit in self.misfits
            ],
            "rejects": [
                {"line": reject.line, "reason": reject.reason, "content": reject.content} for reject in self.rejects
            ],
            "new_columns": dict(self.new_columns or {}),
            "notes": list(self.notes),
            "error": self.error,
            "next_step": self.next_step,
            "duration_s": self.duration_s,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ImportReport:
        plain = {
            name: data[name]
            for name in (
                "file",
                "table",
                "format",
                "rows_read",
                "rows_stored",
                "duplicates_skipped",
                "rows_rejected",
                "error",
                "next_step",
                "duration_s",
            )
        }
        return cls(
            **plain,
            misfits=tuple(
                Misfit(entry["column"], entry["type"], entry["count"], tuple(entry["records"]), tuple(entry["values"]))
                for entry in data["misfits"]
            ),
            rejects=tuple(Reject(entry["line"], entry["reason"], entry["content"]) for entry in data["rejects"]),
            new_columns=data["new_columns"],
            notes=tuple(data["notes"]),
        )

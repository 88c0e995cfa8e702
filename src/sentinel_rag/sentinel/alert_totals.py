"""Counts over all alerts that match, returned or not, by severity, status, name and product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import ALERT_STATUSES, SEVERITIES
from sentinel_rag.sentinel.alerts import UNKNOWN, Alert, alert_name
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.results import ordered

_COMMONEST_NAMES = 20


@dataclass(frozen=True, slots=True)
class AlertTotals:
    """Counts over all matching alerts. `begun` counts those whose StartTime lies in the window."""

    groups: tuple[tuple[str, str, str, str, int], ...]
    begun: int = 0

    @property
    def total(self) -> int:
        return sum(group[4] for group in self.groups)

    def summary(self) -> dict[str, JsonValue]:
        return {
            "by_severity": ordered(self._by(0), reversed(SEVERITIES)),
            "by_status": ordered(self._by(1), ALERT_STATUSES),
            "by_name": dict(self._by(2).most_common(_COMMONEST_NAMES)),
            "by_product": dict(self._by(3).most_common()),
        }

    def by_severity(self) -> dict[str, int]:
        return ordered(self._by(0), reversed(SEVERITIES))

    def by_name(self) -> Counter[str]:
        return self._by(2)

    def _by(self, place: int) -> Counter[str]:
        counts: Counter[str] = Counter()
        for group in sorted(self.groups, key=lambda item: str(item[place])):
            counts[str(group[place])] += group[4]
        return counts

    @classmethod
    def from_counts(cls, answer: LogsTable, measure: str = "Recorded") -> AlertTotals:
        """From the answer to `newest_alerts.counted`; `measure` is Recorded or Begun."""
        records = list(answer.records())
        return cls(
            tuple(_group(record, record[measure]) for record in records if record[measure]),
            sum(record["Begun"] for record in records),
        )

    @classmethod
    def from_alerts(cls, found: Iterable[Alert]) -> AlertTotals:
        return cls(tuple(_group(alert.record, 1) for alert in found))


def _group(record: Mapping[str, Any], count: int) -> tuple[str, str, str, str, int]:
    return (
        record["AlertSeverity"] or UNKNOWN,
        record["Status"] or UNKNOWN,
        alert_name(record),
        record["ProductName"] or UNKNOWN,
        count,
    )

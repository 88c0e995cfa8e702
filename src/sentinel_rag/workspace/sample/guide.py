"""What the sample estate contains, told by the code that made it: for the demo, and for tests to compare with.

A frozen value; nothing is read back from the store, so a wrong query shows as a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class EstateGuide:
    """Counts are of incidents and alerts, each in its newest version, over the whole time of the estate.

    `main_incident` is the multi-stage attack; the text of `hijack_incident` tries to command whoever reads it.
    `defender_collision` is (Sentinel number, its Defender id), where that id is another incident's Sentinel number.
    """

    start: datetime
    end: datetime
    seed: int
    incidents: int
    incidents_by_severity: Mapping[str, int]
    incidents_by_status: Mapping[str, int]
    alerts: int
    alerts_by_severity: Mapping[str, int]
    main_incident: int
    hijack_incident: int
    reopened_incident: int
    lowered_incident: int
    retitled_incident: int
    missing_alert_incident: int
    no_alert_incident: int
    defender_collision: tuple[int, int]
    compromised_account: str
    attacked_hosts: tuple[str, ...]
    attacker_addresses: tuple[str, ...]
    rows_by_table: Mapping[str, int]

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "start": format_time(self.start),
            "end": format_time(self.end),
            "seed": self.seed,
            "incidents": self.incidents,
            "incidents_by_severity": dict(self.incidents_by_severity),
            "incidents_by_status": dict(self.incidents_by_status),
            "alerts": self.alerts,
            "alerts_by_severity": dict(self.alerts_by_severity),
            "main_incident": self.main_incident,
            "hijack_incident": self.hijack_incident,
            "reopened_incident": self.reopened_incident,
            "lowered_incident": self.lowered_incident,
            "retitled_incident": self.retitled_incident,
            "missing_alert_incident": self.missing_alert_incident,
            "no_alert_incident": self.no_alert_incident,
            "defender_collision": list(self.defender_collision),
            "compromised_account": self.compromised_account,
            "attacked_hosts": list(self.attacked_hosts),
            "attacker_addresses": list(self.attacker_addresses),
            "rows_by_table": dict(self.rows_by_table),
        }

"""The attack that runs through the estate, in nine steps over two days, and the telemetry each step leaves.

Phishing mail, stolen session after MFA fatigue, mailbox rule, new sign-in method, lateral movement, LSASS dump,
domain administrator, exfiltration, attempted encryption. One incident joins its alerts (`attack_alerts`); the rows are
those of `attack_telemetry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel_rag.workspace.estate.attack_alerts import attack_alerts
from sentinel_rag.workspace.estate.attack_facts import LENGTH
from sentinel_rag.workspace.estate.attack_telemetry import attack_telemetry
from sentinel_rag.workspace.estate.company import ADMINISTRATOR
from sentinel_rag.workspace.estate.records import Change, IncidentCase, Row


@dataclass(frozen=True, slots=True)
class Attack:
    """The alerts and raw rows of the attack that ends shortly before the estate does."""

    case: IncidentCase
    rows: Mapping[str, list[Row]]


def attack(*, number: int, defender_id: int, end: datetime, seed: int) -> Attack:
    """The attack with its incident `number`, beginning `LENGTH` before `end`."""
    start = end - LENGTH
    alerts = attack_alerts(start, seed)
    case = IncidentCase(
        number=number,
        defender_id=defender_id,
        title="Multi-stage attack: phishing, stolen session, credential dump and attempted encryption",
        severity="Medium",
        created=alerts[1].at + timedelta(minutes=2),
        alerts=alerts,
        labels=("LATEST", "Ransomware"),
        changes=(
            Change(after=timedelta(hours=3), by="Automation rule - assign", owner=ADMINISTRATOR),
            Change(after=timedelta(hours=27), by="Alert correlation", severity="High"),
            Change(
                after=timedelta(hours=29),
                by=ADMINISTRATOR.upn,
                status="Active",
                comment="LSASS dump on srv-file-01, treating as hands-on-keyboard. Isolating wks-fin-02.",
            ),
            Change(after=timedelta(hours=40), by="Alert correlation"),
            Change(
                after=timedelta(hours=48),
                by=ADMINISTRATOR.upn,
                comment="Encryption was blocked; 4.6 GB had left before. Next: reset Åsa’s credentials.",
            ),
        ),
    )
    return Attack(case, attack_telemetry(start, seed))

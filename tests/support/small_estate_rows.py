"""The rows of the small estate: made-up incidents and alerts, in the shapes of `contracts.tool_schemas`.

All names and addresses are reserved for documentation; nothing in it comes from a real workspace. What answers for them
is `small_estate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sentinel_rag.contracts.query_results import format_time, parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeIncident:
    """An incident; closed ones were closed five hours after they were created. Times are ISO 8601 UTC."""

    number: int
    defender_id: int
    title: str
    severity: str
    status: str
    created: str
    owner: str | None = None

    def row(self) -> dict[str, Any]:
        """As `query_incidents` tells it."""
        later = format_time(parse_time(self.created) + timedelta(hours=5))
        is_closed = self.status == "Closed"
        return {
            "number": self.number,
            "title": self.title,
            "severity": self.severity,
            "status": self.status,
            "created_time": self.created,
            "updated_time": later,
            "closed_time": later if is_closed else None,
            "owner": self.owner,
            "classification": "BenignPositive" if is_closed else None,
            "alert_count": sum(alert.incident == self.number for alert in ALERTS),
            "provider_incident_id": str(self.defender_id),
            "incident_name": f"9a8b7c6d-1111-4222-8333-4444555566{self.number:02d}",
            "provider": "Microsoft XDR",
            "url": f"https://portal.azure.com/#asset/incidents/{self.number}",
            "description": None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeAlert:
    """An alert by its short name, `a1` ... `a8`. `entities` are (kind, name, further fields); its host and its account
    are entities too."""

    key: str
    name: str
    severity: str
    status: str
    time: str
    product: str
    incident: int
    host: str = ""
    account: str = ""
    entities: tuple[tuple[str, str, dict[str, str]], ...] = ()
    tactics: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """As `query_alerts` tells it."""
        listed: list[dict[str, Any]] = [{"kind": kind, "name": name, **more} for kind, name, more in self.entities]
        if self.host:
            listed.append({"kind": "host", "name": self.host, "host_name": self.host.partition(".")[0]})
        if self.account:
            listed.append({"kind": "account", "name": self.account})
        return {
            "alert_id": alert_id(self.key),
            "name": self.name,
            "severity": self.severity,
            "status": self.status,
            "time": self.time,
            "start_time": format_time(parse_time(self.time) - timedelta(minutes=5)),
            "end_time": self.time,
            "product": self.product,
            "provider": "MDATP",
            "tactics": list(self.tactics),
            "techniques": list(self.techniques),
            "compromised_entity": self.host or self.account,
            "incident_number": self.incident,
            "description": f"{self.name} was seen.",
            "entities": listed,
        }


def alert_id(key: str) -> str:
    """The GUID of the estate's alert `a1` ... `a8`."""
    return f"3f1c2b6a-0d7e-4c55-9b1f-6f0f2a9d1e{int(key[1:]):02d}"


INCIDENTS = (
    MadeIncident(
        number=40,
        defender_id=655,
        title="Suspicious inbox rule after phishing click",
        severity="High",
        status="New",
        created="2024-07-20T06:12:00Z",
    ),
    MadeIncident(
        number=31,
        defender_id=640,
        title="Password spray against several accounts",
        severity="Medium",
        status="Active",
        created="2024-07-18T21:40:00Z",
        owner="Ines Duarte",
    ),
    MadeIncident(
        number=23,
        defender_id=31,
        title="Phishing mail delivered and removed",
        severity="Low",
        status="Closed",
        created="2024-07-12T09:00:00Z",
        owner="m.keller",
    ),
    MadeIncident(
        number=18,
        defender_id=612,
        title="Credential theft on a file server",
        severity="High",
        status="Active",
        created="2024-07-09T13:30:00Z",
        owner="Ines Duarte",
    ),
    MadeIncident(
        number=12,
        defender_id=598,
        title="Lateral movement from fin-ws-014 with ransomware tools",
        severity="High",
        status="Active",
        created="2024-07-02T09:51:00Z",
        owner="m.keller",
    ),
    MadeIncident(
        number=7,
        defender_id=581,
        title="Unfamiliar sign-in properties",
        severity="Informational",
        status="Closed",
        created="2024-06-25T07:15:00Z",
    ),
)
ALERTS = (
    MadeAlert(
        key="a1",
        name="Inbox rule forwards mail outside",
        severity="High",
        status="New",
        time="2024-07-20T06:10:00Z",
        product="Microsoft Defender for Office 365",
        incident=40,
        account="ines.duarte@contoso.example",
        entities=(("mailbox", "ines.duarte@contoso.example", {}),),
        tactics=("Collection",),
        techniques=("T1114.003",),
    ),
    MadeAlert(
        key="a2",
        name="Password spray",
        severity="Medium",
        status="InProgress",
        time="2024-07-19T08:00:00Z",
        product="Azure Active Directory Identity Protection",
        incident=31,
        account="m.keller",
        entities=(("ip", "203.0.113.77", {}),),
        tactics=("CredentialAccess",),
        techniques=("T1110.003",),
    ),
    MadeAlert(
        key="a3",
        name="Suspicious PowerShell command line",
        severity="Medium",
        status="New",
        time="2024-07-17T14:05:00Z",
        product="Microsoft Defender Advanced Threat Protection",
        incident=31,
        host="web-03.contoso.example",
        account="svc-backup",
        entities=(
            ("process", "powershell.exe -enc AAAA", {"command_line": "powershell.exe -enc AAAA", "process_id": "4711"}),
        ),
        tactics=("Execution",),
        techniques=("T1059.001",),
    ),
    MadeAlert(
        key="a4",
        name="Phishing mail removed after delivery",
        severity="Low",
        status="Resolved",
        time="2024-07-12T08:55:00Z",
        product="Microsoft Defender for Office 365",
        incident=23,
        account="ines.duarte@contoso.example",
        entities=(("url", "https://login-update.example/reset", {}),),
        tactics=("InitialAccess",),
        techniques=("T1566.002",),
    ),
    MadeAlert(
        key="a5",
        name="Mimikatz credential theft tool",
        severity="High",
        status="New",
        time="2024-07-09T13:20:00Z",
        product="Microsoft Defender Advanced Threat Protection",
        incident=18,
        host="dc-01.contoso.example",
        account="m.keller",
        entities=(("file", "C:\\tools\\mimi.exe", {"sha1": "da39a3ee5e6b4b0d3255bfef95601890afd80709"}),),
        tactics=("CredentialAccess",),
        techniques=("T1003.001",),
    ),
    MadeAlert(
        key="a6",
        name="Malicious file was dropped",
        severity="High",
        status="InProgress",
        time="2024-07-02T09:47:00Z",
        product="Microsoft Defender Advanced Threat Protection",
        incident=12,
        host="fin-ws-014.contoso.example",
        account="m.keller",
        entities=(
            (
                "file",
                "C:\\Users\\Public\\dropper.exe",
                {"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
            ),
            ("url", "https://files.example/dropper", {}),
        ),
        tactics=("Execution",),
        techniques=("T1204.002",),
    ),
    MadeAlert(
        key="a7",
        name="Suspicious remote activity",
        severity="Medium",
        status="New",
        time="2024-07-02T09:50:00Z",
        product="Microsoft Defender Advanced Threat Protection",
        incident=12,
        host="dc-01.contoso.example",
        account="m.keller",
        entities=(("ip", "198.51.100.23", {}),),
        tactics=("LateralMovement",),
        techniques=("T1021.002",),
    ),
    MadeAlert(
        key="a8",
        name="Unfamiliar sign-in properties",
        severity="Informational",
        status="Dismissed",
        time="2024-06-25T07:10:00Z",
        product="Azure Active Directory Identity Protection",
        incident=7,
        account="svc-backup",
        entities=(("ip", "203.0.113.9", {}),),
        tactics=("InitialAccess",),
        techniques=("T1078",),
    ),
)

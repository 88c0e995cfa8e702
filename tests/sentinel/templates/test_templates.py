"""Every shipped KQL template over rows with a known answer, through run_kql_query and the embedded KQL engine."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatch
from typing import Any

import pytest
from estate_rows import alert, incident
from sentinel_servers import Served, workspace_app
from starlette.responses import JSONResponse

from sentinel_rag.agent.tokens import ready_counter
from sentinel_rag.contracts.query_results import QueryErrorCode, note_code, parse_time
from sentinel_rag.contracts.tool_schemas import TEMPLATE_FAMILIES, TOOLS_BY_NAME
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.anyio

T = "2024-08-01T{:02d}:00:00Z".format
DAY = "2024-08-01T00:00:00Z"
FQDNS = (".corp.example", "0.corp.example")
FORWARDING = '[\n  {"Name": "ForwardingSmtpAddress", "Value": "smtp:x@evil.example"}\n]'
ANA, BOB, EVE = "ana@contoso.example", "o'brien@contoso.example", "eve@contoso.example"


NAMED = '[{"Type": "account", "Name": "ana", "UPNSuffix": "contoso.example"}]'


def rows(*rows: dict[str, Any], **common: Any) -> list[dict[str, Any]]:
    """Rows an hour apart from 01:00 on, unless they say otherwise."""
    return [{"TimeGenerated": T(hour), **common, **row} for hour, row in enumerate(rows, start=1)]


def signin(user: str, ip: str, result: str = "0", **over: Any) -> dict[str, Any]:
    return {
        "UserPrincipalName": user,
        "IPAddress": ip,
        "ResultType": result,
        "ResultDescription": "" if result == "0" else f"code {result}",
        "AppDisplayName": "Portal",
        "Location": "PT",
        "RiskLevelDuringSignIn": "none",
        **over,
    }


def process(host: str, name: str, line: str, **over: Any) -> dict[str, Any]:
    return {"DeviceName": host, "FileName": name, "ProcessCommandLine": line, "AccountName": "ana", **over}


def parent(name: str) -> dict[str, Any]:
    return {"InitiatingProcessFileName": name}


WINDOWS = {"logons_of_account": "svc@corp.example", "logons_by_authentication": "sync@corp.example"}
"""Accounts of templates that read logons to Windows."""


def event(number: int, host: str, account: str, **over: Any) -> dict[str, Any]:
    return {"EventID": number, "Computer": host, "Account": account, "IpAddress": "10.0.0.5", "LogonType": 3, **over}


def ntlm(number: int, host: str, account: str, **over: Any) -> dict[str, Any]:
    told = {"AuthenticationPackageName": "NTLM", "LogonTypeName": "3 - Network", "TargetAccount": account, **over}
    return event(number, host, account, **told)


def audit(operation: str, category: str, target: str, **over: Any) -> dict[str, Any]:
    return {
        "OperationName": operation,
        "Category": category,
        "Result": "success",
        "InitiatedBy": {"user": {"userPrincipalName": ANA}},
        "TargetResources": [{"displayName": target, "userPrincipalName": target}],
        **over,
    }


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    return serving(
        SigninLogs=rows(
            signin(ANA, "192.0.2.1", "50126"),
            signin(ANA, "192.0.2.1", "50126"),
            signin(ANA, "192.0.2.1"),
            signin(BOB, "192.0.2.1", "50126"),
            signin(BOB, "198.51.100.7", "500121", RiskLevelDuringSignIn="high", Location="RO"),
            signin(BOB, "198.51.100.7", "500121", RiskLevelDuringSignIn="low", Location="RO"),
            signin(EVE, "192.0.2.10", RiskLevelDuringSignIn="medium"),
        ),
        OfficeActivity=rows(
            {"Operation": "New-InboxRule", "UserId": BOB, "OfficeWorkload": "Exchange", "ClientIP": "192.0.2.1"},
            {"Operation": "Set-Mailbox", "UserId": ANA, "ClientIP": "192.0.2.9:5011", "Parameters": FORWARDING},
            {"Operation": "Remove-InboxRule", "UserId": ANA, "ClientIP": "[2001:db8::1]:5012"},
            {"Operation": "Remove-InboxRule", "UserId": ANA, "ClientIP": "[2001:db8::1]:5013"},
            {"Operation": "Set-Mailbox", "UserId": ANA, "Parameters": '[{"Name":"DisplayName"}]'},
            {"Operation": "FileDownloaded", "UserId": BOB, "OfficeWorkload": "SharePoint"},
            {"Operation": "FileDownloaded", "UserId": BOB, "OfficeWorkload": "SharePoint"},
        ),
        AuditLogs=rows(
            audit("Add member to role", "RoleManagement", "Global Administrator"),
            audit("Consent to application", "ApplicationManagement", "Mail Reader"),
            audit("Update application – Certificates and secrets management ", "ApplicationManagement", "Backup App"),
            audit("Update user", "UserManagement", EVE),
            audit(
                "Update user",
                "UserManagement",
                EVE,
                Result="failure",
                InitiatedBy={"app": {"displayName": "HR Sync"}},
                TargetResources=[
                    {"type": "User", "id": "u1", "userPrincipalName": EVE},
                    {"type": "Group", "id": "g1", "displayName": "Payroll"},
                ],
            ),
        ),
        DeviceProcessEvents=rows(
            process(
                "srv01.corp.example",
                "powershell.exe",
                "powershell -enc AAAA",
                SHA256="AB" * 32,
                **parent("WINWORD.EXE"),
            ),
            process("SRV01", "powershell.exe", "powershell Get-Date", SHA256="AB" * 32, **parent("cmd.exe")),
            process("srv010.corp.example", "powershell.exe", "powershell", SHA256="AB" * 32, **parent("CMD.exe")),
            process(
                "St. John's", "cmd.exe", 'cmd /c "C:\\it\'s here\\x.bat"', AccountName="dee", **parent("explorer.exe")
            ),
            process("srv02", "powershell.exe", "powershell", SHA256="AB" * 32, **parent("cmd.exe")),
        ),
        SecurityEvent=rows(
            event(
                4688,
                "DC01.corp.example",
                "CORP\\ana",
                NewProcessName="C:\\x.exe",
                CommandLine="x.exe /a",
                ParentProcessName="C:\\Windows\\Explorer.EXE",
            ),
            event(4624, "DC01.corp.example", "CORP\\ana"),
            event(4625, "DC01.corp.example", "CORP\\ana", TargetAccount="CORP\\ana"),
            event(4625, "dc01", "CORP\\bob"),
            event(4625, "dc02", "CORP\\bob"),
            event(4624, "dc02", "CORP\\bob"),
            ntlm(4624, "fs01.corp.example", "CORP\\sync", LmPackageName="NTLM V1"),
            ntlm(4624, "fs01.corp.example", "CORP\\sync", LmPackageName="NTLM V2"),
            ntlm(4625, "fs01.corp.example", "CORP\\sync", LmPackageName="NTLM V2"),
            ntlm(4624, "fs02", "CORP\\eve", AuthenticationPackageName="Kerberos", LmPackageName="-"),
        ),
        DeviceLogonEvents=rows(
            {"DeviceName": "srv01", "AccountName": "svc", "ActionType": "LogonSuccess", "LogonType": "Network"},
            {"DeviceName": "srv01", "AccountName": "SVC", "ActionType": "LogonFailed", "LogonType": "Network"},
            {"DeviceName": "srv02", "AccountName": "other", "ActionType": "LogonSuccess", "LogonType": "Network"},
        ),
        DeviceNetworkEvents=rows(
            {"DeviceName": "srv01", "InitiatingProcessFileName": "a.exe", "RemoteIP": "203.0.113.5", "RemotePort": 443},
            {"DeviceName": "srv02", "InitiatingProcessFileName": "b.exe", "RemoteIP": "203.0.113.50", "RemotePort": 80},
            {"DeviceName": "srv03", "RemoteIP": "203.0.113.9", "RemoteUrl": "c2.evil.example", "RemotePort": 80},
        ),
        DeviceFileEvents=rows(
            {"DeviceName": "srv01.corp.example", "FileName": "a.docx", "ActionType": "FileCreated"},
            {
                "DeviceName": "srv01.corp.example",
                "FileName": "a.docx.locked",
                "PreviousFileName": "a.docx",
                "ActionType": "FileRenamed",
                "InitiatingProcessFileName": "lock.exe",
            },
            {"DeviceName": "srv02", "FileName": "b.docx", "ActionType": "FileDeleted"},
        ),
        IdentityInfo=rows(
            {"AccountUPN": ANA, "AccountName": "ana", "AccountObjectId": "o1", "JobTitle": "Clerk"},
            {"AccountUPN": ANA, "AccountName": "ana", "AccountObjectId": "o1", "JobTitle": "Treasurer"},
            {"AccountUPN": BOB, "AccountDisplayName": "Bob O'Brien", "Department": "IT"},
        ),
        DnsEvents=rows(
            {"ClientIP": "10.0.0.5", "Name": "evil.example", "IPAddresses": "203.0.113.5"},
            {"ClientIP": "10.0.0.5", "Name": "WWW.evil.example"},
            {"ClientIP": "10.0.0.6", "Name": "notevil.example"},
            {"ClientIP": "10.0.0.6", "Name": "NotEvil.example", "ResultCode": 3},
        ),
        CommonSecurityLog=rows(
            {"SourceIP": "10.0.0.5", "DeviceAction": "Deny", "DestinationIP": "203.0.113.5", "DestinationPort": 22},
            {"SourceIP": "10.0.0.5", "DeviceAction": "blocked", "DestinationIP": "203.0.113.5", "DestinationPort": 23},
            {
                "SourceIP": "10.0.0.6",
                "DeviceAction": "allow",
                "DestinationIP": "203.0.113.5",
                "DestinationPort": 443,
                "SentBytes": 700,
                "ReceivedBytes": 30,
            },
            {
                "SourceIP": "10.0.0.7",
                "DeviceAction": "Allowed",
                "DestinationIP": "203.0.113.8",
                "DestinationPort": 53,
                "SentBytes": 800,
            },
            {"SourceIP": "10.0.0.7", "DeviceAction": "allow", "DestinationIP": "203.0.113.8", "DestinationPort": 53},
            DeviceVendor="V",
            DeviceProduct="P",
        ),
        Heartbeat=rows(
            {"Computer": "gone", "OSType": "Linux"},
            {"Computer": "gone", "OSType": "Linux"},
            {"Computer": "fresh", "OSType": "Windows", "TimeGenerated": T(9)},
        ),
        Usage=rows(
            {"DataType": "SigninLogs", "Quantity": 1.25, "IsBillable": True},
            {"DataType": "SigninLogs", "Quantity": 2.5, "IsBillable": True},
            {"DataType": "Heartbeat", "Quantity": 0.5, "IsBillable": False},
        ),
        ThreatIntelligenceIndicator=rows(
            {
                "IndicatorId": "i1",
                "NetworkIP": "203.0.113.5",
                "ThreatType": "C2",
                "ConfidenceScore": 10,
                "Active": True,
            },
            {
                "IndicatorId": "i1",
                "NetworkIP": "203.0.113.5",
                "ThreatType": "C2",
                "ConfidenceScore": 90,
                "Active": True,
            },
            {"IndicatorId": "i2", "DomainName": "evil.example", "ThreatType": "Phishing", "Active": True},
        ),
        ThreatIntelIndicators=rows(
            {
                "Id": "n1",
                "ObservableKey": "ipv4-addr:value",
                "ObservableValue": "198.51.100.7",
                "Confidence": 50,
                "IsActive": True,
                "ValidUntil": T(6),
                "Data": {"indicator_types": ["anonymization"], "description": "Proxy"},
            },
            {"Id": "n2", "ObservableKey": "ipv4-addr:value", "ObservableValue": "192.0.2.1", "IsActive": True},
            {
                "Id": "n2",
                "ObservableKey": "ipv4-addr:value",
                "ObservableValue": "192.0.2.1",
                "IsActive": True,
                "Revoked": True,
            },
        ),
        AADRiskyUsers=rows(
            {"Id": "u1", "UserPrincipalName": ANA, "RiskLevel": "low", "RiskState": "atRisk"},
            {"Id": "u1", "UserPrincipalName": ANA, "RiskLevel": "high", "RiskState": "atRisk"},
            {"Id": "u2", "UserPrincipalName": BOB, "RiskLevel": "high", "RiskState": "atRisk"},
            {"Id": "u2", "UserPrincipalName": BOB, "RiskLevel": "none", "RiskState": "remediated"},
            {"Id": "u3", "UserPrincipalName": EVE, "RiskLevel": "low", "RiskState": "confirmedCompromised"},
        ),
        AADUserRiskEvents=rows(
            {"Id": "e1", "UserPrincipalName": ANA, "RiskEventType": "leakedCredentials", "RiskLevel": "high"},
            {"Id": "e1", "UserPrincipalName": ANA, "RiskEventType": "leakedCredentials", "RiskLevel": "high"},
            {"Id": "e2", "UserPrincipalName": ANA, "RiskEventType": "anonymizedIPAddress", "RiskLevel": "low"},
            {"Id": "e3", "UserPrincipalName": ANA, "RiskEventType": "anonymizedIPAddress", "RiskLevel": "high"},
            {"Id": "e4", "UserPrincipalName": BOB, "RiskEventType": "unfamiliarFeatures", "RiskLevel": "medium"},
            RiskState="atRisk",
        ),
        EmailEvents=rows(
            {"SenderFromAddress": "x@evil.example", "SenderFromDomain": "evil.example", "RecipientEmailAddress": ANA},
            {"SenderFromAddress": "y@good.example", "SenderFromDomain": "good.example", "RecipientEmailAddress": ANA},
        ),
        UrlClickEvents=rows(
            {"AccountUpn": ANA, "Url": "https://evil.example/a?b='c'", "ActionType": "ClickAllowed"},
            {"AccountUpn": BOB, "Url": "https://good.example", "ActionType": "ClickAllowed"},
        ),
        Fw_CL=rows(
            {"user": "ana", "bytes": 5},
            {"user": "bob", "bytes": 7},
            {"user": "ana", "bytes": 9},
        ),
        Watchlist=[
            {
                "TimeGenerated": T(9),
                "LastUpdatedTimeUTC": T(9),
                "WatchlistAlias": "VIP",
                "WatchlistName": "VIP",
                "SearchKey": key,
                "WatchlistItem": {"User": key, "Reason": reason},
                "_DTItemId": key,
                "_DTItemType": "watchlist-item",
                "_DTItemStatus": "Create",
                "_DTTimestamp": T(9),
            }
            for key, reason in (("ana@contoso.example", "CEO"), ("srv01", "files"))
        ],
        AzureActivity=rows(
            {"Caller": ANA, "OperationNameValue": "VM/DELETE", "ActivityStatusValue": "Success"},
            {"Caller": ANA, "OperationNameValue": "VM/DELETE", "ActivityStatusValue": "Success"},
            {"Caller": BOB, "OperationNameValue": "VM/WRITE", "ActivityStatusValue": "Failure"},
        ),
        SecurityAlert=[
            alert("noisy", T(1), AlertSeverity="High", ProductName="P1", Tactics="Impact", Techniques='["T1490"]'),
            alert(
                "noisy",
                T(2),
                AlertSeverity="Low",
                ProductName="P1",
                Status="Resolved",
                Tactics="LateralMovement, Execution, Execution",
                Techniques='["T1021","T1059","T1059"]',
                SubTechniques='["T1021.002"]',
            ),
            alert(
                "noisy 2",
                T(3),
                AlertName="noisy",
                AlertSeverity="High",
                ProductName="P2",
                Tactics='["Execution"]',
                Techniques='["T1059"]',
            ),
            alert("quiet", T(4), ProductName="P1", Tactics="Unknown", Entities=NAMED),
        ],
        SecurityIncident=[
            incident(1, T(1), Severity="High"),
            incident(
                1,
                T(5),
                CreatedTime=T(1),
                ClosedTime=T(5),
                Severity="Low",
                Status="Closed",
                Classification="FalsePositive",
                ClassificationReason="InaccurateData",
            ),
            incident(2, T(2), Severity="High", Status="Closed"),
            incident(2, T(3), CreatedTime=T(2), Severity="High", Status="Active", Owner={"assignedTo": "Ana"}),
            incident(3, T(3), Severity="Low", Status="Closed", ClosedTime=T(5), Classification="TruePositive"),
            incident(4, T(4), Severity="High", Owner={"userPrincipalName": BOB}),
        ],
    )


Case = tuple[str, dict[str, Any], list[str], list[tuple[Any, ...]]]
CASES: list[Case] = [
    (
        "failed_signins_by_user",
        {},
        ["UserPrincipalName", "Failures", "Addresses"],
        [(BOB, 3, 2), (ANA, 2, 1)],
    ),
    ("failed_signins_by_user", {"user": "o'brien"}, ["UserPrincipalName", "Failures"], [(BOB, 3)]),
    ("failed_signins_by_user", {"user": "ANA@contoso.example"}, ["Failures", "Addresses"], [(2, 1)]),
    ("signins_by_country", {}, ["Country", "SignIns", "Failures", "Users"], [("PT", 5, 3, 3), ("RO", 2, 2, 1)]),
    ("signins_in_several_countries", {}, ["UserPrincipalName", "Countries", "CountryList"], [(BOB, 2, ["PT", "RO"])]),
    ("signins_by_country", {"user": "o'brien"}, ["Country", "SignIns"], [("RO", 2), ("PT", 1)]),
    ("signins_by_application", {}, ["Application", "SignIns", "Failures", "Users"], [("Portal", 7, 5, 3)]),
    ("signins_by_day", {}, ["Day", "SignIns", "Addresses"], [("2024-08-01T00:00:00Z", 7, 3)]),
    ("failed_signins_by_user", {"min_failures": 3}, ["UserPrincipalName"], [(BOB,)]),
    ("failed_signins_by_ip", {"min_users": 2}, ["IPAddress", "Failures", "Users"], [("192.0.2.1", 3, 2)]),
    ("signins_from_ip", {"ip": "192.0.2.1"}, ["UserPrincipalName"], [(BOB,), (ANA,), (ANA,), (ANA,)]),
    ("user_signin_history", {"user": BOB}, ["TimeGenerated", "Location"], [(T(6), "RO"), (T(5), "RO"), (T(4), "PT")]),
    ("user_signin_history", {"user": "o'brien"}, ["Location"], [("RO",), ("RO",), ("PT",)]),
    ("user_signin_history", {"user": "brien"}, ["Location"], [("RO",), ("RO",), ("PT",)]),
    ("signin_places_of_user", {"user": BOB}, ["Location", "SignIns", "Failures"], [("RO", 2, 2), ("PT", 1, 1)]),
    ("success_after_failures", {"min_failures": 2}, ["UserPrincipalName", "Failures", "Successes"], [(ANA, 2, 1)]),
    ("risky_signins", {"min_risk": "medium"}, ["UserPrincipalName"], [(EVE,), (BOB,)]),
    ("risky_signins", {}, ["UserPrincipalName"], [(EVE,), (BOB,), (BOB,)]),
    ("mfa_denied_signins", {}, ["UserPrincipalName", "Denials"], [(BOB, 2)]),
    ("raw_signins", {}, ["UserPrincipalName"], [(EVE,), (BOB,), (BOB,), (BOB,), (ANA,), (ANA,), (ANA,)]),
    ("new_inbox_rules", {}, ["Operation", "UserId"], [("Set-Mailbox", ANA), ("New-InboxRule", BOB)]),
    ("new_inbox_rules", {"user": BOB}, ["Operation"], [("New-InboxRule",)]),
    (
        "office_activity_by_user",
        {"user": BOB},
        ["Operation", "Events"],
        [("FileDownloaded", 2), ("New-InboxRule", 1)],
    ),
    (
        "office_operations_by_user",
        {},
        ["UserId", "Operation", "Events", "Addresses"],
        [
            (ANA, "Remove-InboxRule", 2, 1),
            (ANA, "Set-Mailbox", 2, 1),
            (BOB, "FileDownloaded", 2, 0),
            (BOB, "New-InboxRule", 1, 1),
        ],
    ),
    ("office_operations_by_user", {"operation": "filedownloaded"}, ["UserId", "Events"], [(BOB, 2)]),
    (
        "mailbox_rule_changes",
        {},
        ["UserId", "Operation", "Changes", "SentOnTo", "Addresses"],
        [
            (ANA, "Remove-InboxRule", 2, [], ["2001:db8::1"]),
            (ANA, "Set-Mailbox", 1, ["smtp:x@evil.example"], ["192.0.2.9"]),
            (BOB, "New-InboxRule", 1, [], ["192.0.2.1"]),
        ],
    ),
    ("mailbox_rule_changes", {"user": BOB}, ["Operation"], [("New-InboxRule",)]),
    (
        "entra_changes_by_actor",
        {},
        ["Actor", "OperationName", "Changes", "Failed"],
        [
            ("HR Sync", "Update user", 1, 1),
            (ANA, "Add member to role", 1, 0),
            (ANA, "Consent to application", 1, 0),
            (ANA, "Update application – Certificates and secrets management ", 1, 0),
            (ANA, "Update user", 1, 0),
        ],
    ),
    ("entra_changes_by_actor", {"actor": "hr sync"}, ["OperationName", "Failed"], [("Update user", 1)]),
    ("entra_changes_by_target", {"target": "payroll"}, ["Target", "Actors"], [("Payroll", ["HR Sync"])]),
    ("entra_changes_by_target", {"target": EVE}, ["Target", "TargetType"], [(EVE, ""), (EVE, "User")]),
    ("entra_changes_by_target", {"target": "g1"}, ["Target", "TargetType"], [("Payroll", "Group")]),
    ("audit_role_changes", {}, ["Initiator", "TargetName"], [(ANA, "Global Administrator")]),
    ("audit_app_consents", {}, ["Application"], [("Backup App",), ("Mail Reader",)]),
    (
        "process_on_host",
        {"host": "srv01"},
        ["TimeGenerated", "DeviceName"],
        [(T(2), "SRV01"), (T(1), "srv01.corp.example")],
    ),
    ("process_on_host", {"host": "St. John's"}, ["FileName"], [("cmd.exe",)]),
    ("process_on_host", {"host": "St. John's", "contains": "C:\\it's"}, ["FileName"], [("cmd.exe",)]),
    ("process_on_host", {"host": "srv01", "contains": "-ENC"}, ["ProcessCommandLine"], [("powershell -enc AAAA",)]),
    (
        "process_by_name",
        {"process": "ab" * 32},
        ["DeviceName", "Executions"],
        [("SRV01", 1), ("srv01.corp.example", 1), ("srv010.corp.example", 1), ("srv02", 1)],
    ),
    ("process_by_name", {"process": "CMD.exe"}, ["DeviceName"], [("St. John's",)]),
    (
        "processes_by_host",
        {"process": "PowerShell.exe"},
        ["DeviceName", "Executions", "Programs"],
        [("SRV01", 1, 1), ("srv01.corp.example", 1, 1), ("srv010.corp.example", 1, 1), ("srv02", 1, 1)],
    ),
    (
        "processes_by_host",
        {},
        ["DeviceName"],
        [("SRV01",), ("St. John's",), *(("srv01" + x,) for x in FQDNS), ("srv02",)],
    ),
    (
        "parent_child_processes",
        {},
        ["Parent", "Child", "Executions", "Hosts"],
        [
            ("explorer.exe", "cmd.exe", 1, 1),
            ("winword.exe", "powershell.exe", 1, 1),
            ("cmd.exe", "powershell.exe", 3, 3),
        ],
    ),
    ("parent_child_processes", {"parent": "CMD.EXE"}, ["Parent", "Executions"], [("cmd.exe", 3)]),
    ("parent_child_processes", {"child": "cmd.exe", "parent": "winword.exe"}, ["Parent"], []),
    (
        "windows_parent_child_processes",
        {"parent": "explorer.exe"},
        ["Parent", "Child", "Executions", "SomeHosts"],
        [("explorer.exe", "x.exe", 1, ["DC01.corp.example"])],
    ),
    ("windows_rare_processes", {}, ["Program", "Executions", "SampleCommandLine"], [("c:\\x.exe", 1, "x.exe /a")]),
    ("rare_processes", {"max_executions": 1}, ["FileName", "Executions", "Hosts"], [("cmd.exe", 1, 1)]),
    ("windows_processes_on_host", {"host": "dc01"}, ["NewProcessName", "CommandLine"], [("C:\\x.exe", "x.exe /a")]),
    (
        "logons_on_host",
        {"host": "DC01"},
        ["Account", "Logons", "Failures"],
        [("CORP\\ana", 1, 1), ("CORP\\bob", 0, 1)],
    ),
    (
        "logons_by_authentication",
        {"package": "ntlm", "logon_type": "Network", "account": "sync@corp.example"},
        ["Version", "LogonAccount", "Logons", "Failures"],
        [("NTLM V2", "CORP\\sync", 1, 1), ("NTLM V1", "CORP\\sync", 1, 0)],
    ),
    (
        "logons_by_authentication",
        {"package": "NTLM V1", "logon_type": "3", "host": "FS01"},
        ["Package", "Version", "Computer"],
        [("NTLM", "NTLM V1", "fs01.corp.example")],
    ),
    ("logons_by_authentication", {"package": "kerberos"}, ["LogonAccount", "Version"], [("CORP\\eve", "")]),
    (
        "failed_logons_by_account",
        {},
        ["FailedAccount", "Failures"],
        [("CORP\\bob", 2), ("CORP\\ana", 1), ("CORP\\sync", 1)],
    ),
    ("logons_of_account", {"account": "CORP\\svc"}, ["DeviceName"], [("srv01",)]),
    ("logons_of_account", {"account": "svc"}, ["DeviceName", "Logons", "Failures"], [("srv01", 1, 1)]),
    ("network_connections_of_host", {"host": "SRV03"}, ["RemoteUrl", "Ports"], [("c2.evil.example", [80])]),
    ("file_events", {"host": "srv01"}, ["FileName"], [("a.docx.locked",), ("a.docx",)]),
    ("file_events", {"contains": "LOCK.exe"}, ["ActionType", "PreviousFileName"], [("FileRenamed", "a.docx")]),
    ("identity_of_account", {"account": "ana"}, ["JobTitle", "AsOf"], [("Treasurer", T(2))]),
    ("identity_of_account", {"account": "bob o'brien"}, ["AccountUPN", "Department"], [(BOB, "IT")]),
    ("people_of_department", {}, ["Department", "AccountUPN"], [("", ANA), ("IT", BOB)]),
    ("people_of_department", {"department": "it"}, ["AccountUPN", "AsOf"], [(BOB, T(3))]),
    (
        "office_activity_from_ip",
        {"ip": "2001:DB8::1"},
        ["UserId", "Operation", "Events"],
        [(ANA, "Remove-InboxRule", 2)],
    ),
    ("office_activity_from_ip", {"ip": "192.0.2.9"}, ["UserId", "Operation"], [(ANA, "Set-Mailbox")]),
    (
        "firewall_allowed_traffic",
        {},
        ["SourceIP", "DestinationIP", "Connections", "BytesSent", "BytesReceived"],
        [("10.0.0.7", "203.0.113.8", 2, 800, 0), ("10.0.0.6", "203.0.113.5", 1, 700, 30)],
    ),
    ("firewall_allowed_traffic", {"address": "10.0.0.7"}, ["DestinationPort"], [(53,)]),
    ("network_connections_to_ip", {"destination": "203.0.113.5"}, ["DeviceName", "Connections"], [("srv01", 1)]),
    ("network_connections_to_ip", {"destination": "evil.example"}, ["DeviceName"], [("srv03",)]),
    (
        "dns_queries_for_domain",
        {"domain": "evil.example"},
        ["ClientIP", "Queries"],
        [("10.0.0.5", 1), ("10.0.0.5", 1)],
    ),
    (
        "dns_queries_by_host",
        {},
        ["ClientIP", "Queries", "Names", "Failed"],
        [("10.0.0.5", 2, 2, 0), ("10.0.0.6", 2, 1, 1)],
    ),
    ("dns_queries_by_host", {"client": "10.0.0.6"}, ["Queries"], [(2,)]),
    (
        "firewall_denied_by_destination",
        {},
        ["DestinationIP", "DestinationPort", "Denied", "Sources"],
        [("203.0.113.5", 22, 1, 1), ("203.0.113.5", 23, 1, 1)],
    ),
    ("firewall_denied_by_destination", {"min_denied": 2}, ["DestinationIP"], []),
    (
        "firewall_denied_by_source_and_destination",
        {"address": "203.0.113.5"},
        ["SourceIP", "DestinationIP", "Denied"],
        [("10.0.0.5", "203.0.113.5", 2)],
    ),
    ("firewall_denied_by_source_and_destination", {"address": "10.0.0.6"}, ["SourceIP"], []),
    ("firewall_denied_by_source", {}, ["SourceIP", "Denied", "Ports"], [("10.0.0.5", 2, 2)]),
    ("heartbeat_gaps", {}, ["Computer", "LastHeartbeat", "SilentFor"], [("gone", T(2), "07:00:00")]),
    ("heartbeat_gaps", {"silent_for": "8h"}, ["Computer"], []),
    ("heartbeat_gaps", {"silent_for": "PT7H"}, ["Computer"], [("gone",)]),
    ("ingestion_by_table", {}, ["DataType", "Megabytes"], [("SigninLogs", 3.75), ("Heartbeat", 0.5)]),
    (
        "ingestion_by_table_and_day",
        {},
        ["DataType", "Day", "Megabytes", "Hours", "NewestHour"],
        [("Heartbeat", DAY, 0.5, 1, T(3)), ("SigninLogs", DAY, 3.75, 2, T(2))],
    ),
    ("ingestion_by_table_and_day", {"table": "signinlogs"}, ["Megabytes"], [(3.75,)]),
    ("risky_users", {}, ["UserPrincipalName", "RiskLevel"], [(ANA, "high"), (EVE, "low")]),
    ("risky_users", {"min_risk": "medium"}, ["UserPrincipalName", "LastUpdated"], [(ANA, T(2))]),
    (
        "risk_detections_by_user",
        {},
        ["UserPrincipalName", "RiskEventType", "Detections", "High", "LastSeen"],
        [
            (ANA, "anonymizedIPAddress", 2, 1, T(4)),
            (ANA, "leakedCredentials", 1, 1, T(1)),
            (BOB, "unfamiliarFeatures", 1, 0, T(5)),
        ],
    ),
    ("risk_detections_by_user", {"user": "o'brien"}, ["RiskEventType"], [("unfamiliarFeatures",)]),
    (
        "threat_intelligence_matches",
        {},
        ["Address", "Log", "ThreatType", "Confidence", "Matches"],
        [
            ("203.0.113.5", "CommonSecurityLog", "C2", 90.0, 3),
            ("198.51.100.7", "SigninLogs", "anonymization", 50.0, 1),
            ("203.0.113.5", "DeviceNetworkEvents", "C2", 90.0, 1),
        ],
    ),
    (
        "threat_intelligence_matches",
        {"min_confidence": 51},
        ["Log", "FirstSeen", "LastSeen"],
        [("CommonSecurityLog", T(1), T(3)), ("DeviceNetworkEvents", T(1), T(1))],
    ),
    (
        "account_activity_timeline",
        {"account": BOB},
        ["TimeGenerated", "Log", "Outcome"],
        [
            (T(7), "OfficeActivity", ""),
            (T(6), "OfficeActivity", ""),
            (T(6), "SigninLogs", "failure 500121"),
            (T(5), "SigninLogs", "failure 500121"),
            (T(4), "SigninLogs", "failure 50126"),
            (T(3), "AzureActivity", "Failure"),
            (T(1), "OfficeActivity", ""),
        ],
    ),
    (
        "account_activity_timeline",
        {"account": "BOB"},
        ["TimeGenerated", "Activity", "Outcome", "Detail"],
        [
            (T(6), "Windows logon", "success", "dc02"),
            (T(5), "Windows logon", "failure", "dc02"),
            (T(4), "Windows logon", "failure", "dc01"),
        ],
    ),
    (
        "account_activity_timeline",
        {"account": "dee@corp.example"},
        ["Log", "Detail"],
        [("DeviceProcessEvents", "St. John's: cmd /c \"C:\\it's here\\x.bat\"")],
    ),
    ("account_activity_timeline", {"account": "svc"}, ["Outcome"], [("LogonFailed",), ("LogonSuccess",)]),
    (
        "activity_of_account",
        {"account": BOB},
        ["Activity", "Events", "Failed", "Places", "LastSeen"],
        [
            ("Microsoft 365 operations", 3, 0, [], T(7)),
            ("Sign-ins", 3, 3, ["PT", "RO"], T(6)),
            ("Azure operations", 1, 1, [], T(3)),
            ("Clicks on links", 1, 0, [], T(2)),
        ],
    ),
    (
        "activity_of_host",
        {"host": "srv01"},
        ["Activity", "Events", "Failed", "FirstSeen", "LastSeen"],
        [
            ("File events", 2, 0, T(1), T(2)),
            ("Device logons", 2, 1, T(1), T(2)),
            ("Processes started", 2, 0, T(1), T(2)),
            ("Network connections", 1, 0, T(1), T(1)),
        ],
    ),
    (
        "activity_of_ip",
        {"ip": "203.0.113.5"},
        ["Activity", "Events", "Failed", "Who"],
        [
            ("Firewall, to it", 3, 2, ["10.0.0.5", "10.0.0.6"]),
            ("Threat indicators", 2, 0, []),
            ("Connections to it", 1, 0, ["srv01"]),
        ],
    ),
    ("own_table_rows", {"table": "fw_cl", "column": "USER", "value": "Ana"}, ["bytes"], [(9,), (5,)]),
    ("own_table_rows", {"table": "Fw_CL"}, ["TimeGenerated", "user"], [(T(3), "ana"), (T(2), "bob"), (T(1), "ana")]),
    ("own_table_counts", {"table": "Fw_CL", "by": "user"}, ["Value", "Rows"], [("ana", 2), ("bob", 1)]),
    (
        "own_table_counts",
        {"table": "Fw_CL", "by": "bytes", "column": "user", "value": "ana"},
        ["Value", "Rows"],
        [("5", 1), ("9", 1)],
    ),
    (
        "own_table_sums",
        {"table": "Fw_CL", "by": "user", "sum": "bytes"},
        ["Value", "Sum"],
        [("ana", 14.0), ("bob", 7.0)],
    ),
    ("watchlists", {}, ["WatchlistAlias", "Items"], [("VIP", 2)]),
    (
        "watchlist_items",
        {"watchlist": "VIP"},
        ["SearchKey", "Reason"],
        [("ana@contoso.example", "CEO"), ("srv01", "files")],
    ),
    ("watchlist_items", {"watchlist": "VIP", "contains": "srv01"}, ["Reason"], [("files",)]),
    ("watchlist_items", {"watchlist": "VIP", "contains": "srv"}, ["Reason"], []),
    ("watchlist_alerts", {"watchlist": "VIP"}, ["AlertName", "Items"], [("quiet", ["ana@contoso.example"])]),
    (
        "threat_indicator_lookup",
        {"indicator": "203.0.113.5"},
        ["IndicatorId", "ConfidenceScore"],
        [("i1", 90)],
    ),
    ("threat_indicator_lookup", {"indicator": "EVIL.example"}, ["ThreatType"], [("Phishing",)]),
    ("emails_from_sender", {"sender": "EVIL.example"}, ["SenderFromAddress"], [("x@evil.example",)]),
    ("url_clicks", {"url_contains": "b='c'"}, ["AccountUpn"], [(ANA,)]),
    (
        "azure_activity_by_caller",
        {},
        ["Caller", "Operations"],
        [(ANA, 2), (BOB, 1)],
    ),
    ("azure_activity_by_caller", {"caller": BOB}, ["OperationNameValue"], [("VM/WRITE",)]),
    ("alerts_by_product", {}, ["ProductName", "Alerts", "High", "Low"], [("P1", 2, 0, 1), ("P2", 1, 1, 0)]),
    (
        "alerts_by_tactic",
        {},
        ["Tactic", "Alerts", "High", "FirstSeen", "LastSeen"],
        [("Execution", 2, 1, T(1), T(3)), ("LateralMovement", 1, 0, T(1), T(1))],
    ),
    ("alerts_by_tactic", {"severity": "High"}, ["Tactic", "Alerts"], [("Execution", 1)]),
    (
        "alerts_by_technique",
        {},
        ["Technique", "Alerts", "High", "LastSeen"],
        [("T1059", 2, 1, T(3)), ("T1021", 1, 0, T(1)), ("T1021.002", 1, 0, T(1))],
    ),
    ("alerts_by_technique", {"severity": "low"}, ["Technique"], [("T1021",), ("T1021.002",), ("T1059",)]),
    ("alert_count_by_name", {}, ["AlertName", "Alerts", "High"], [("noisy", 2, 1), ("quiet", 1, 0)]),
    ("alert_count_by_name", {"severity": "high"}, ["AlertName", "Alerts"], [("noisy", 1)]),
    (
        "incidents_by_owner",
        {},
        ["OwnerName", "Incidents", "Open", "HighOpen"],
        [("Ana", 1, 1, 1), (BOB, 1, 1, 1), ("(unassigned)", 2, 0, 0)],
    ),
    ("incidents_reopened", {}, ["IncidentNumber", "Status"], [(2, "Active")]),
    (
        "mean_time_to_close",
        {},
        ["Severity", "Closed", "MeanHours", "MedianHours", "LongestHours"],
        [("Low", 2, 3.0, 3.0, 4.0)],
    ),
    (
        "incidents_by_classification",
        {},
        ["Classification", "Incidents"],
        [("FalsePositive", 1), ("TruePositive", 1)],
    ),
]


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(
    ("template", "parameters", "columns", "expected"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES]
)
async def test_the_answer(
    estate: Any, template: str, parameters: dict[str, Any], columns: list[str], expected: list[tuple[Any, ...]]
) -> None:
    result = await estate.ask("run_kql_query", template=template, parameters=parameters)
    assert [tuple(row[column] for column in columns) for row in result.rows] == expected
    assert set(columns) <= {column.name for column in result.columns}
    assert (result.coverage.rows_total, result.summary["template"]) == (len(expected), template)


OWN = {"table": "Fw_CL", "by": "user", "sum": "bytes", "watchlist": "VIP"}


def needed_by(template: str) -> dict[str, str]:
    """A value for each parameter that the template cannot do without."""
    required = [each.name for each in load_templates()[template].parameters if each.required]
    return {name: OWN.get(name, "203.0.113.5") for name in required}


@pytest.mark.parametrize(
    ("parameters", "nearest"),
    [({"table": "Fx_CL"}, ["Fw_CL"]), ({"table": "Fw_CL", "column": "users", "value": "ana"}, ["user"])],
)
async def test_a_table_or_a_column_that_is_not_there_is_told_with_the_nearest(
    estate: Any, parameters: dict[str, str], nearest: list[str]
) -> None:
    error = await estate.refusal("run_kql_query", template="own_table_rows", parameters=parameters)
    assert error.code is QueryErrorCode.INVALID_ARGUMENT
    assert set(nearest) <= set(error.allowed)


async def test_only_a_table_of_peoples_own_is_read_whole(estate: Any) -> None:
    error = await estate.refusal("run_kql_query", template="own_table_rows", parameters={"table": "SigninLogs"})
    assert error.code is QueryErrorCode.INVALID_ARGUMENT


async def test_a_watchlist_of_today_is_held_against_alerts_of_before(estate: Any) -> None:
    hour = {"start_time": "2024-08-01T03:30:00Z", "end_time": "2024-08-01T05:00:00Z"}
    result = await estate.ask("run_kql_query", template="watchlist_alerts", parameters={"watchlist": "VIP"}, **hour)
    assert [row["AlertName"] for row in result.rows] == ["quiet"]


def test_every_shipped_template_is_tested() -> None:
    assert {case[0] for case in CASES} == set(load_templates())


@pytest.mark.parametrize("template", sorted(load_templates()))
async def test_the_window_holds_in_every_template(estate: Any, template: str) -> None:
    needed = needed_by(template)
    result = await estate.ask(
        "run_kql_query",
        template=template,
        parameters=needed,
        start_time="2024-08-02T00:00:00Z",
        end_time="2024-08-03T00:00:00Z",
    )
    assert result.rows == ()
    assert result.coverage.window.start == parse_time("2024-08-02T00:00:00Z")
    assert result.coverage.table_rows is not None
    assert result.coverage.table_rows > 0


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(
    ("template", "column", "filtered"),
    [("alerts_by_tactic", "Tactic", "tactics"), ("alerts_by_technique", "Technique", "techniques")],
)
async def test_rankings_of_the_real_alerts_agree_with_the_alerts_themselves(
    real: Any, template: str, column: str, filtered: str
) -> None:
    ranked = (await real.ask("run_kql_query", template=template, limit=100)).rows
    counted: Counter[str] = Counter()
    for half in ({"order": "newest", "limit": 100}, {"order": "oldest", "limit": 89}):
        for row in (await real.ask("query_alerts", **half)).rows:
            counted.update(row.get(filtered, ()))  # compact rows leave out what is empty
    assert len(ranked) > 10
    assert {row[column]: row["Alerts"] for row in ranked} == counted


@pytest.mark.requirement("TOOL-4")
async def test_totals_are_of_every_row_and_not_of_those_shown(estate: Any) -> None:
    result = await estate.ask("run_kql_query", template="signins_by_country", limit=1)
    assert [row["SignIns"] for row in result.rows] == [5]
    assert (result.coverage.rows_total, result.summary["totals"]) == (2, {"SignIns": 7, "Failures": 5})
    assert "totals" not in (await estate.ask("run_kql_query", template="raw_signins")).summary


async def test_rows_that_were_not_all_counted_have_no_totals(serving: Any) -> None:
    many = [{"TimeGenerated": T(1), "DataType": f"T{number}_CL", "Quantity": 1.0} for number in range(10_001)]
    result = await serving(Usage=many).ask("run_kql_query", template="ingestion_by_table")
    assert result.coverage.rows_total is None
    assert "totals" not in result.summary
    assert any("More than 10000 rows" in note for note in result.notes)


async def test_each_column_of_the_totals_is_one_of_the_result(estate: Any) -> None:
    for template in load_templates().values():
        result = await estate.ask("run_kql_query", template=template.name, parameters=needed_by(template.name))
        assert set(template.totals) <= {column.name for column in result.columns}, template.name


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The sample workspace with its attack."""
    workspace = Workspace.open(tmp_path_factory.mktemp("sample"))
    try:
        workspace.generate(EstateOptions(days=8, events=300, end=datetime(2024, 8, 3, tzinfo=UTC)))
        with serve(workspace_app(workspace)) as url:
            yield Served(url)
    finally:
        workspace.close()


@pytest.mark.parametrize(
    ("template", "parameters", "told"),
    [
        ("file_events", {"host": "srv-file-01"}, {"ActionType": "FileRenamed"}),
        ("firewall_allowed_traffic", {"address": "203.0.113.71"}, {"BytesSent": 4_600_000_000}),
        ("network_connections_of_host", {"host": "srv-file-01"}, {"RemoteIP": "203.0.113.71"}),
        ("identity_of_account", {"account": "asa.oberg"}, {"JobTitle": "Domain Administrator"}),
        ("people_of_department", {"department": "IT"}, {"JobTitle": "Domain Administrator"}),
        ("office_activity_from_ip", {"ip": "203.0.113.66"}, {"Operation": "New-InboxRule"}),
    ],
)
async def test_what_players_missed_is_found_in_the_sample(
    sample: Served, template: str, parameters: dict[str, Any], told: dict[str, Any]
) -> None:
    result = await sample.ask("run_kql_query", template=template, parameters=parameters)
    assert {name: result.rows[0][name] for name in told} == told


@pytest.mark.parametrize(
    ("template", "parameter", "name"),
    [
        (template.name, parameter.name, WINDOWS.get(template.name, BOB))
        for template in load_templates().values()
        for parameter in template.parameters
        if parameter.name in ("user", "account", "actor", "caller", "target")
    ],
)
async def test_a_short_account_name_finds_what_the_whole_one_does(
    estate: Any, template: str, parameter: str, name: str
) -> None:
    """Players asked for the part before the @ and took the silent 0 for an answer."""
    name = {"entra_changes_by_actor": ANA, "entra_changes_by_target": EVE}.get(template, name)
    whole, short = [
        await estate.ask("run_kql_query", template=template, parameters={parameter: each})
        for each in (name, name.partition("@")[0])
    ]
    assert whole.rows
    assert short.rows == whole.rows


async def test_what_a_name_is_compared_with_is_told_where_nothing_matches(estate: Any) -> None:
    asked = {"template": "url_clicks", "parameters": {"url_contains": "nowhere.example"}}
    result = await estate.ask("run_kql_query", **asked)
    assert result.rows == ()
    assert "Nothing matches the given url_contains: Domain or part of the URL." in result.notes


async def test_a_part_of_one_name_is_read_as_that_name_and_said(estate: Any) -> None:
    asked = {"template": "signins_by_day"}
    whole = await estate.ask("run_kql_query", **asked, parameters={"user": BOB})
    part = await estate.ask("run_kql_query", **asked, parameters={"user": "BRIEN"})
    assert whole.rows
    assert part.rows == whole.rows
    assert whole.notes == ()
    assert part.notes == (f"No user is exactly 'BRIEN'; read was {BOB}, the only one like it.",)
    assert part.summary["names"]["user"] == {"code": "name_completed", "given": "BRIEN", "like": [BOB]}


@pytest.mark.parametrize(
    ("given", "code"), [("example", "name_unclear"), ("nobody", "name_unknown"), ("%", "name_unknown")]
)
async def test_a_name_that_may_be_of_several_or_of_none_reads_nothing(estate: Any, given: str, code: str) -> None:
    result = await estate.ask("run_kql_query", template="signins_by_day", parameters={"user": given})
    assert result.rows == ()
    assert result.summary["names"]["user"]["code"] == code


async def test_a_known_name_without_rows_in_the_window_is_said_to_be_known(estate: Any) -> None:
    asked = {"template": "signins_by_day", "start_time": "2024-08-20T00:00:00Z"}
    result = await estate.ask("run_kql_query", **asked, parameters={"user": BOB})
    assert result.rows == ()
    assert f"SigninLogs knows the user {BOB!r}, but no row of it meets the window and conditions." in result.notes


async def test_rows_stop_at_the_limit_and_the_total_does_not(estate: Any) -> None:
    result = await estate.ask("run_kql_query", template="raw_signins", limit=2)
    assert (result.coverage.rows_returned, result.coverage.rows_total) == (2, 7)


async def test_an_unknown_template_is_answered_with_the_nearest(estate: Any) -> None:
    error = await estate.refusal("run_kql_query", template="failed_signin_by_users")
    assert error.code is QueryErrorCode.INVALID_ARGUMENT
    assert error.field == "template"
    assert "Did you mean 'failed_signins_by_user'?" in error.message
    assert "raw_signins" in error.allowed


@pytest.mark.requirement("TOOL-2")
@pytest.mark.parametrize(
    ("template", "parameters", "field", "words"),
    [
        ("signins_from_ip", {}, "parameters.ip", "needs the parameter ip"),
        ("signins_from_ip", {"ip": ""}, "parameters.ip", "must not be empty"),
        ("signins_from_ip", {"ip": "1.2.3.4' or 1==1"}, "parameters.ip", "right form"),
        ("signins_from_ip", {"ip": 5}, "parameters.ip", "must be text"),
        ("signins_from_ip", {"addr": "1.2.3.4"}, "parameters.addr", "no parameter 'addr'"),
        ("failed_signins_by_user", {"min_failures": 0}, "parameters.min_failures", "at least 1"),
        ("failed_signins_by_user", {"min_failures": 1.5}, "parameters.min_failures", "whole number"),
        ("failed_signins_by_user", {"min_failures": True}, "parameters.min_failures", "whole number"),
        ("risky_signins", {"min_risk": "hig"}, "parameters.min_risk", "Did you mean 'high'?"),
        ("heartbeat_gaps", {"silent_for": "P1H"}, "parameters.silent_for", "PT1H"),
        ("heartbeat_gaps", {"silent_for": "soon"}, "parameters.silent_for", "must be a span"),
        ("url_clicks", {"url_contains": "x" * 501}, "parameters.url_contains", "500 characters"),
        ("url_clicks", {"url_contains": "\ud800"}, "parameters.url_contains", "must be text"),
    ],
)
async def test_a_wrong_parameter_is_told_by_name(
    estate: Any, template: str, parameters: dict[str, Any], field: str, words: str
) -> None:
    error = await estate.refusal("run_kql_query", template=template, parameters=parameters)
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, field)
    assert words in error.message


async def test_the_list_tells_every_template_in_one_call_that_a_model_can_read(estate: Any) -> None:
    """Model report, finding 24: 35 of 56 were shown, and there was no way to the others."""
    result = await estate.ask("list_kql_templates")
    assert [row["name"] for row in result.rows] == list(load_templates())
    assert result.summary == {"templates": 73, "found": 73, "detail": "compact"}
    by_name = {row["name"]: row for row in result.rows}
    assert by_name["risky_signins"]["parameters"] == ["min_risk=low"]
    assert by_name["signins_from_ip"]["parameters"] == ["ip"]
    assert "\n" not in by_name["account_activity_timeline"]["description"]
    counter = ready_counter()
    assert counter.exact
    assert counter.count(json.dumps(result.to_dict()["rows"], separators=(",", ":"))) < 4_000


async def test_the_list_tells_all_of_a_template_on_demand(estate: Any) -> None:
    result = await estate.ask("list_kql_templates", detail="full", limit=500)
    by_name = {row["name"]: row for row in result.rows}
    assert set(by_name) == set(load_templates())
    assert by_name["risky_signins"]["parameters"] == [
        {
            "name": "min_risk",
            "type": "enum",
            "required": False,
            "default": "low",
            "description": "Lowest risk level to show.",
            "allowed": ["low", "medium", "high"],
        }
    ]
    assert [row["name"] for row in result.rows if len(row["questions"]) < 2] == []


async def test_the_list_is_paged_with_its_total(estate: Any) -> None:
    pages = [await estate.ask("list_kql_templates", limit=20, offset=offset) for offset in (0, 20, 40, 60)]
    assert [len(page.rows) for page in pages] == [20, 20, 20, 13]
    assert {page.coverage.rows_total for page in pages} == {73}
    assert [row["name"] for page in pages for row in page.rows] == list(load_templates())


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("T1566", ["emails_from_sender", "url_clicks"]),
        (
            "lateral movement",
            [
                *("account_activity_timeline", "logons_by_authentication", "logons_of_account", "logons_on_host"),
                "network_connections_of_host",
            ],
        ),
        ("DnsEvents", ["dns_queries_by_host", "dns_queries_for_domain"]),
        ("PASSWORD spray", ["failed_signins_by_ip", "mfa_denied_signins"]),
    ],
)
async def test_templates_are_found_by_words_and_few_are_told_whole(estate: Any, search: str, found: list[str]) -> None:
    result = await estate.ask("list_kql_templates", search=search)
    assert [row["name"] for row in result.rows] == found
    assert result.summary["detail"] == "full"
    assert all(row["questions"] for row in result.rows)


async def test_where_no_template_has_every_word_those_with_most_come_and_it_is_told(estate: Any) -> None:
    result = await estate.ask("list_kql_templates", search="RDP brute force")
    assert [row["name"] for row in result.rows] == ["success_after_failures"]
    assert result.notes == ("No template has every word of the search; these fit best.",)
    none = await estate.ask("list_kql_templates", search="zzz")
    assert (none.rows, none.notes) == ((), ("No template has a word of the search.",))
    assert len((await estate.ask("list_kql_templates", search="?")).rows) == 73


async def test_where_no_template_has_a_word_of_a_technique_those_of_its_tactics_are_named(estate: Any) -> None:
    result = await estate.ask("list_kql_templates", search="scheduled task")
    assert result.rows == ()
    assert [note_code(note) for note in result.notes] == ["no_template", "templates_near"]
    assert "T1053" in result.notes[1]
    assert "processes_by_host" in result.notes[1]


def test_the_description_of_run_kql_query_names_every_template() -> None:
    patterns = re.findall(r"[a-z_*]*[_*][a-z_*]*", TEMPLATE_FAMILIES)
    assert TEMPLATE_FAMILIES in TOOLS_BY_NAME["run_kql_query"].description
    assert [name for name in load_templates() if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    assert [pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in load_templates())] == []


async def test_tables_with_rows_are_listed_with_their_times(estate: Any) -> None:
    result = await estate.ask("list_tables")
    by_name = {row["table"]: row for row in result.rows}
    assert by_name["SigninLogs"] == {"table": "SigninLogs", "rows": 7, "oldest": T(1), "newest": T(7)}
    assert by_name["SecurityIncident"]["rows"] == 6
    assert "Syslog" not in by_name
    assert result.summary["tables"] == len(result.rows) == 24


async def test_an_imported_custom_table_is_listed(serving: Any) -> None:
    result = await serving(Door_CL=rows({"Badge": 7}, {"Badge": 8}), Heartbeat=rows({"Computer": "a"})).ask(
        "list_tables"
    )
    assert [(row["table"], row["rows"], row["newest"]) for row in result.rows] == [
        ("Door_CL", 2, T(2)),
        ("Heartbeat", 1, T(1)),
    ]


async def test_custom_tables_of_the_schema_are_counted_and_odd_names_are_not_run(wire: Any) -> None:
    names = ["Heartbeat", "Firewall_CL", "x_CL | take 1 //_CL", "NotCustom", ""]
    wire.schema = JSONResponse({"tables": [{"id": f"t/{name}", "name": name, "columns": []} for name in names]})
    columns = [("Rows", "long"), ("Oldest", "datetime"), ("Newest", "datetime"), ("TableName", "string")]
    named = [{"name": name, "type": kind} for name, kind in columns]
    row = [3, "2024-07-02T09:45:00Z", "2024-07-02T09:48:00Z", "Firewall_CL"]
    wire.answers = [JSONResponse({"tables": [{"name": "PrimaryResult", "columns": named, "rows": [row]}]})]
    result = await Served(wire.url).ask("list_tables")
    assert [dict(row) for row in result.rows] == [
        {
            "table": "Firewall_CL",
            "rows": 3,
            "oldest": "2024-07-02T09:45:00Z",
            "newest": "2024-07-02T09:48:00Z",
        }
    ]
    query = wire.requests[0]["query"]
    assert "(Firewall_CL | summarize" in query
    assert "take 1" not in query
    assert "NotCustom" not in query


async def test_one_table_that_the_workspace_rejects_does_not_hide_the_others(wire: Any) -> None:
    rejected = JSONResponse({"error": {"code": "BadArgumentError", "message": "no such column"}}, 400)
    columns = [{"name": "Rows", "type": "long"}, {"name": "Oldest", "type": "datetime"}]
    columns += [{"name": "Newest", "type": "datetime"}, {"name": "TableName", "type": "string"}]
    counted = JSONResponse({"tables": [{"name": "P", "columns": columns, "rows": [[1, None, None, "Heartbeat"]]}]})
    empty = JSONResponse({"tables": [{"name": "P", "columns": columns, "rows": []}]})
    wire.answers = [rejected, rejected, counted, empty]
    result = await Served(wire.url).ask("list_tables")
    assert [row["table"] for row in result.rows] == ["Heartbeat"]
    assert not result.coverage.partial


async def test_a_workspace_without_rows_lists_none(serving: Any) -> None:
    result = await serving().ask("list_tables")
    assert (result.rows, result.notes) == ((), ("The workspace holds no rows in any table.",))

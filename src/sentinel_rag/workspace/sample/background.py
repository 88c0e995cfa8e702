"""The benign telemetry of the estate as SQL: any number of rows, spread over working days, the same for a seed.

Each table is one INSERT over a range; every choice is a hash of the seed, the table and the row's number, so twenty
million rows cost no Python. Who and where come from `company`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sentinel_rag.workspace.sample.company import (
    HOME_ADDRESSES,
    HOSTS,
    NETBIOS,
    OFFICE_ADDRESSES,
    PEOPLE,
    SCANNER_ADDRESSES,
    TENANT_ID,
    device_id,
    host_address,
    host_name,
)
from sentinel_rag.workspace.table_schemas import quote_text

SHARES: Mapping[str, float] = {
    "SigninLogs": 0.24,
    "SecurityEvent": 0.20,
    "DeviceProcessEvents": 0.15,
    "OfficeActivity": 0.12,
    "DeviceNetworkEvents": 0.12,
    "DnsEvents": 0.09,
    "CommonSecurityLog": 0.05,
    "AuditLogs": 0.03,
}
"""The part of the chosen number of events that each table gets."""

_HOURS_OF_DAY = "[7,8,8,9,9,9,9,10,10,10,10,11,11,11,12,12,13,13,13,14,14,14,14,15,15,15,16,16,17,17,18,19,21,2]"


class Background:
    """Statements for one estate. `pick` and `when` are deterministic in seed, table and row."""

    def __init__(self, *, start: datetime, end: datetime, seed: int) -> None:
        self._start = start
        self._seconds = int((end - start).total_seconds())
        self._seed = seed

    def statement(self, table: str, count: int) -> str:
        """The INSERT of `count` rows into `table`."""
        columns = {
            "TimeGenerated": self._when(table),
            "TenantId": quote_text(TENANT_ID),
            "Type": quote_text(table),
            **_TABLES[table](self, table),
        }
        names = ", ".join(columns)
        values = ", ".join(f"{value} AS {name}" for name, value in columns.items())
        return f"INSERT INTO {table} ({names}) SELECT {values} FROM range({count}) AS row(i) ORDER BY 1"  # noqa: S608

    def heartbeats(self, every_hours: int) -> str:
        """One row for each machine and period."""
        hosts = _list(host_name(host) for host in HOSTS)
        addresses = _list(host_address(host) for host in HOSTS)
        periods = self._seconds // (3600 * every_hours)
        return (
            "INSERT INTO Heartbeat (TimeGenerated, TenantId, Type, Computer, ComputerIP, OSType, Category, Version) "  # noqa: S608
            f"SELECT TIMESTAMP '{self._start}' + to_seconds(CAST(3600 * {every_hours} * p + h AS BIGINT)), "
            f"{quote_text(TENANT_ID)}, 'Heartbeat', {hosts}[h + 1], {addresses}[h + 1], 'Windows', 'Direct Agent', "
            f"'10.20.18069.0' FROM range({periods}) AS t(p), range({len(HOSTS)}) AS u(h)"
        )

    def draw(self, purpose: str, modulus: int) -> str:
        """A number below `modulus` for row `i`."""
        return f"(hash(i, {quote_text(f'{self._seed}/{purpose}')}) % {modulus})"

    def pick(self, purpose: str, values: list[str]) -> str:
        """One of `values` for row `i`."""
        return f"{_list(values)}[CAST({self.draw(purpose, len(values))} AS INTEGER) + 1]"

    def person(self, table: str, attribute: list[str]) -> str:
        """An attribute of the person of row `i`, the same person for every attribute."""
        return self.pick(f"{table}/person", attribute)

    def _when(self, table: str) -> str:
        """Mostly in working hours of working days; a weekend's event moves into the week after four times in five."""
        days = max(1, self._seconds // 86_400)
        hours = f"{_HOURS_OF_DAY}[CAST({self.draw(table + '/hour', _HOURS_OF_DAY.count(',') + 1)} AS INTEGER) + 1]"
        first = f"date_trunc('day', TIMESTAMP '{self._start}')"
        day = f"({first} + to_days(CAST({self.draw(table + '/day', days)} AS INTEGER)))"
        weekend = f"(isodow({day}) > 5 AND {self.draw(table + '/weekend', 5)} > 0)"
        later = f"to_days(CAST(8 - isodow({day}) + {self.draw(table + '/weekday', 5)} AS INTEGER))"
        workday = f"CASE WHEN {weekend} THEN {day} + {later} ELSE {day} END"
        moment = f"({workday} + to_hours({hours}) + to_seconds(CAST({self.draw(table + '/second', 3600)} AS BIGINT)))"
        milliseconds = f"to_milliseconds(CAST({self.draw(table + '/ms', 1000)} AS BIGINT))"
        last = f"TIMESTAMP '{self._start}' + to_seconds({self._seconds})"
        # What falls outside (the first morning, the last afternoon) is folded back by whole weeks or into the window.
        inside = f"CASE WHEN {moment} >= {last} THEN {moment} - to_days(7) ELSE {moment} END"
        return f"greatest({inside} + {milliseconds}, TIMESTAMP '{self._start}')"


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(quote_text(value) for value in values) + "]"


def _signin(b: Background, table: str) -> dict[str, str]:
    failed = f"({b.draw(table + '/failed', 20)} = 0)"
    address = b.pick(f"{table}/home", list(HOME_ADDRESSES))
    office = b.pick(f"{table}/office", list(OFFICE_ADDRESSES))
    country = b.person(table, [person.country for person in PEOPLE])
    city = b.person(table, [person.city for person in PEOPLE])
    return {
        "UserPrincipalName": b.person(table, [person.upn for person in PEOPLE]),
        "UserDisplayName": b.person(table, [person.display_name for person in PEOPLE]),
        "Identity": b.person(table, [person.display_name for person in PEOPLE]),
        "UserId": b.person(table, [person.object_id for person in PEOPLE]),
        "AppDisplayName": b.pick(
            f"{table}/app",
            ["Office 365 Exchange Online", "Microsoft Teams", "Office 365 SharePoint Online", "Azure Portal"],
        ),
        "IPAddress": f"CASE WHEN {b.draw(table + '/where', 3)} = 0 THEN {address} ELSE {office} END",
        "Location": country,
        "LocationDetails": f"json_object('city', {city}, 'countryOrRegion', {country})",
        "ResultType": f"CASE WHEN {failed} THEN {b.pick(table + '/code', ['50126', '50074', '50140'])} ELSE '0' END",
        "ResultDescription": f"CASE WHEN {failed} THEN 'Invalid username or password.' ELSE '' END",
        "ConditionalAccessStatus": f"CASE WHEN {failed} THEN 'failure' ELSE 'success' END",
        "AuthenticationRequirement": "'multiFactorAuthentication'",
        "RiskLevelDuringSignIn": "'none'",
        "ClientAppUsed": b.pick(f"{table}/client", ["Browser", "Mobile Apps and Desktop clients"]),
        "UserAgent": "'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36'",
        "OperationName": "'Sign-in activity'",
        "Category": "'SignInLogs'",
        "Id": f"md5(CAST({b.draw(table + '/id', 2**62)} AS VARCHAR))",
    }


def _security_event(b: Background, table: str) -> dict[str, str]:
    event = b.pick(f"{table}/event", ["4624", "4624", "4624", "4634", "4688", "4625", "4672"])
    return {
        "EventID": f"CAST({event} AS INTEGER)",
        "Channel": "'Security'",
        "Computer": b.pick(f"{table}/host", [host_name(host) for host in HOSTS]),
        "Account": b.person(table, [rf"{NETBIOS}\{person.account}" for person in PEOPLE]),
        "TargetUserName": b.person(table, [person.account for person in PEOPLE]),
        "TargetDomainName": quote_text(NETBIOS),
        "LogonType": f"CASE WHEN {event} IN ('4624', '4625') THEN {b.draw(table + '/logon', 2)} + 2 END",
        "IpAddress": b.pick(f"{table}/ip", [host_address(host) for host in HOSTS]),
    }


_COMMANDS = [
    r'"C:\Program Files\Microsoft Office\root\Office16\EXCEL.EXE" /dde',
    r"C:\Windows\System32\svchost.exe -k netsvcs -p",
    r'"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe" --no-startup-window',
    r"powershell.exe -ep bypass -File C:\it\inventory.ps1",
    r"C:\Windows\System32\cmd.exe /c dir C:\Users\O'Brien\Desktop",
    r"git.exe fetch --all",
]


def _process(b: Background, table: str) -> dict[str, str]:
    command = b.pick(f"{table}/command", _COMMANDS)
    return {
        "ActionType": "'ProcessCreated'",
        "DeviceId": b.person(table, [device_id(person.host) for person in PEOPLE]),
        "DeviceName": b.person(table, [host_name(person.host) for person in PEOPLE]),
        "AccountDomain": quote_text(NETBIOS),
        "AccountName": b.person(table, [person.account for person in PEOPLE]),
        "AccountUpn": b.person(table, [person.upn for person in PEOPLE]),
        "FileName": b.pick(
            f"{table}/command", ["EXCEL.EXE", "svchost.exe", "msedge.exe", "powershell.exe", "cmd.exe", "git.exe"]
        ),
        "ProcessCommandLine": command,
        "ProcessId": f"CAST({b.draw(table + '/pid', 12000)} AS BIGINT) + 400",
        "InitiatingProcessFileName": b.pick(f"{table}/parent", ["explorer.exe", "services.exe"]),
    }


def _network(b: Background, table: str) -> dict[str, str]:
    return {
        "ActionType": "'ConnectionSuccess'",
        "DeviceId": b.person(table, [device_id(person.host) for person in PEOPLE]),
        "DeviceName": b.person(table, [host_name(person.host) for person in PEOPLE]),
        "LocalIP": b.person(table, [host_address(person.host) for person in PEOPLE]),
        "RemoteIP": b.pick(f"{table}/remote", [f"198.51.100.{number}" for number in range(100, 120)]),
        "RemotePort": "443",
        "RemoteUrl": b.pick(
            f"{table}/url", ["mail.example.com", "docs.example.com", "updates.example.com", "cdn.example.net"]
        ),
        "Protocol": "'Tcp'",
        "InitiatingProcessFileName": "'msedge.exe'",
        "InitiatingProcessAccountName": b.person(table, [person.account for person in PEOPLE]),
    }


def _office(b: Background, table: str) -> dict[str, str]:
    operation = b.pick(
        f"{table}/operation",
        ["MailItemsAccessed", "FileAccessed", "FileModified", "FileDownloaded", "Send", "TeamsSessionStarted"],
    )
    return {
        "Operation": operation,
        "OfficeWorkload": b.pick(
            f"{table}/operation", ["Exchange", "SharePoint", "SharePoint", "SharePoint", "Exchange", "MicrosoftTeams"]
        ),
        "RecordType": "'ExchangeItem'",
        "ResultStatus": "'Succeeded'",
        "UserId": b.person(table, [person.upn for person in PEOPLE]),
        "ClientIP": b.pick(f"{table}/ip", list(OFFICE_ADDRESSES + HOME_ADDRESSES)),
        "SourceFileName": b.pick(f"{table}/file", ["Budget – März.xlsx", "O'Brien offer.docx", "Plan.pptx", ""]),
    }


def _dns(b: Background, table: str) -> dict[str, str]:
    return {
        "Computer": quote_text(host_name("srv-dc-01")),
        "ClientIP": b.pick(f"{table}/client", [host_address(host) for host in HOSTS]),
        "Name": b.pick(
            f"{table}/name", ["mail.example.com", "docs.example.com", "login.example.com", "xn--mller-kva.example"]
        ),
        "QueryType": "'A'",
        "SubType": "'LookupQuery'",
        "Result": "'Success'",
        "ResultCode": "0",
    }


def _firewall(b: Background, table: str) -> dict[str, str]:
    scanned = f"({b.draw(table + '/scan', 4)} = 0)"
    scanner = b.pick(f"{table}/scanner", list(SCANNER_ADDRESSES))
    inside = b.pick(f"{table}/inside", [host_address(host) for host in HOSTS])
    outside = b.pick(f"{table}/outside", [f"198.51.100.{number}" for number in range(100, 120)])
    return {
        "DeviceVendor": "'Palo Alto Networks'",
        "DeviceProduct": "'PAN-OS'",
        "DeviceAction": f"CASE WHEN {scanned} THEN 'deny' ELSE 'allow' END",
        "SourceIP": f"CASE WHEN {scanned} THEN {scanner} ELSE {inside} END",
        "DestinationIP": f"CASE WHEN {scanned} THEN {quote_text(OFFICE_ADDRESSES[0])} ELSE {outside} END",
        "DestinationPort": f"CASE WHEN {scanned} THEN {b.draw(table + '/port', 1024)} ELSE 443 END",
        "SentBytes": f"CASE WHEN {scanned} THEN 60 ELSE {b.draw(table + '/sent', 200000)} END",
        "ReceivedBytes": f"CASE WHEN {scanned} THEN 0 ELSE {b.draw(table + '/received', 900000)} END",
    }


def _audit(b: Background, table: str) -> dict[str, str]:
    upn = b.person(table, [person.upn for person in PEOPLE])
    return {
        "OperationName": b.pick(
            f"{table}/operation",
            ["Update user", "Add member to group", "Reset user password", "Update device", "Consent to application"],
        ),
        "Category": b.pick(
            f"{table}/operation",
            ["UserManagement", "GroupManagement", "UserManagement", "Device", "ApplicationManagement"],
        ),
        "Result": "'success'",
        "LoggedByService": "'Core Directory'",
        "Identity": b.person(table, [person.display_name for person in PEOPLE]),
        "InitiatedBy": f"json_object('user', json_object('userPrincipalName', {upn}, 'ipAddress', '192.0.2.10'))",
        "TargetResources": f"json_array(json_object('type', 'User', 'userPrincipalName', {upn}))",
    }


_TABLES = {
    "SigninLogs": _signin,
    "SecurityEvent": _security_event,
    "DeviceProcessEvents": _process,
    "DeviceNetworkEvents": _network,
    "OfficeActivity": _office,
    "DnsEvents": _dns,
    "CommonSecurityLog": _firewall,
    "AuditLogs": _audit,
}

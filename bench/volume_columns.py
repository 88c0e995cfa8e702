"""What the rows of `volume_estate` hold: for each table the SQL of its columns, over the number `i` of the row.

Every choice is a hash of the row's number and a purpose, so the same rows come out each time; two columns that must
agree (whether a sign-in failed, and why) draw with the same purpose.
"""
# ruff: noqa: E501 - one column a line reads better than SQL broken at 120

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2024, 6, 1, tzinfo=UTC)
END = START + timedelta(days=30)

_ALERTS = 100_000
_INCIDENTS = 4_000


def select_rows(table: str, count: int) -> str:
    """The SELECT of `count` rows of `table`."""
    columns = {"TimeGenerated": _moment(table, count), "Type": f"'{table}'", **COLUMNS[table]}
    cells = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    return f"SELECT {cells} FROM range({count}) AS row(i)"


def _moment(table: str, count: int) -> str:
    """Rows lie in the order in which they arrived: about the order of time, a minute early or late."""
    if table == "SecurityAlert":
        late = f"CASE WHEN i >= {_ALERTS} THEN to_hours(CAST(1 + {_draw('late', 40)} AS BIGINT)) ELSE INTERVAL 0 SECOND END"
        return f"{_alert_moment()} + {late}"
    if table == "SecurityIncident":
        return f"{_created()} + to_minutes(CAST((i // {_INCIDENTS}) * (1 + {_per('pace', 600)}) AS BIGINT))"
    step = int((END - START).total_seconds() * 1e6) // (count + 1)
    jitter = f"CAST({_draw(table + 'jitter', 120_000_000)} AS BIGINT) - 60000000"
    return f"TIMESTAMP '{START:%Y-%m-%d}' + to_microseconds(greatest(0, CAST(i AS BIGINT) * {step} + {jitter}))"


def _draw(purpose: str, modulus: int) -> str:
    return f"(hash(i, '{purpose}') % {modulus})"


def _per(purpose: str, modulus: int) -> str:
    """A number that belongs to the incident of row `i`."""
    return f"(hash(i % {_INCIDENTS}, '{purpose}') % {modulus})"


def _skewed(purpose: str, modulus: int) -> str:
    """A number below `modulus`; small ones are commoner, as busy people and machines are."""
    return f"CAST(floor({modulus} * pow((hash(i, '{purpose}') % 1000003) / 1000003.0, 2)) AS INTEGER)"


def _pick(purpose: str, *values: str) -> str:
    listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"[{listed}][CAST({_draw(purpose, len(values))} AS INTEGER) + 1]"


def _alert_moment(number: str = f"(i % {_ALERTS})") -> str:
    step = 30 * 86_400_000 // _ALERTS
    return f"(TIMESTAMP '{START:%Y-%m-%d}' + to_milliseconds(CAST({number} * {step} AS BIGINT)))"


def _created() -> str:
    step = 29 * 86_400 // _INCIDENTS
    return f"(TIMESTAMP '{START:%Y-%m-%d}' + to_seconds(CAST((i % {_INCIDENTS}) * {step} AS BIGINT)))"


def _guid(expression: str) -> str:
    return f"CAST(CAST(md5({expression}) AS UUID) AS VARCHAR)"


_USER = f"'user' || lpad(CAST({_skewed('user', 2000)} AS VARCHAR), 4, '0')"
_UPN = f"{_USER} || '@contoso.example'"
_HOST = f"'wks-' || lpad(CAST({_skewed('host', 3000)} AS VARCHAR), 4, '0')"
_FQDN = f"{_HOST} || '.corp.contoso.example'"
_PUBLIC = f"'203.' || {_draw('net', 60)} || '.' || {_draw('net2', 200)} || '.' || {_draw('net3', 250)}"
_OFFICE = f"'198.51.100.' || {_draw('office', 40)}"
_INSIDE = f"'10.' || {_draw('site', 12)} || '.' || {_draw('lan', 200)} || '.' || {_skewed('node', 250)}"
_ADDRESS = f"CASE WHEN {_draw('where', 5)} = 0 THEN {_PUBLIC} ELSE {_OFFICE} END"
_PROGRAM = _pick(
    "program", "svchost.exe", "chrome.exe", "msedge.exe", "Teams.exe", "OUTLOOK.EXE", "EXCEL.EXE", "powershell.exe",
    "cmd.exe", "conhost.exe", "git.exe", "python.exe", "java.exe", "sqlservr.exe", "rundll32.exe", "WmiPrvSE.exe",
)  # fmt: skip
_NAMED_PROGRAM = (
    f"CASE WHEN {_draw('rare', 400)} = 0 THEN 'tool' || {_draw('tool', 4000)} || '.exe' ELSE {_PROGRAM} END"
)
_PARENT = _pick("parent", "explorer.exe", "services.exe", "svchost.exe", "winword.exe", "cmd.exe", "wmiprvse.exe")
_COMMAND = (
    f"'C:\\Program Files\\Vendor\\App\\' || {_NAMED_PROGRAM} || ' --session=' || {_draw('session', 100_000)} || "
    f"' --profile=' || {_USER} || ' --flags=' || substr(md5(CAST({_draw('flags', 3000)} AS VARCHAR)), 1, 24)"
)
_COUNTRY = _pick("country", "NO", "SE", "DK", "DE", "GB", "US", "US", "NL", "FR", "PL")
_EVENT = _pick("event", *("4624",) * 8, "4625", *("4688",) * 9, "4648", "4672", "4634")
_RISK = f"CASE WHEN {_draw('risk', 200)} = 0 THEN {_pick('level', 'low', 'medium', 'high')} ELSE 'none' END"
_SEVERITY = _pick("severity", "High", "Medium", "Medium", "Low", "Low", "Informational")
_TACTIC = _pick(
    "tactic", "InitialAccess", "Execution", "Persistence", "CredentialAccess", "LateralMovement",
    "DefenseEvasion, Execution", "CommandAndControl", "Exfiltration, Collection",
)  # fmt: skip


def _entities() -> str:
    """Four to six objects, one of them a reference, as the portal writes them."""
    account = (
        f'{{"$id":"2","Name":"\' || {_USER} || \'","UPNSuffix":"contoso.example","AadUserId":"\' || {_guid(_USER)} || '
        f'\'","IsDomainJoined":true,"Type":"account"}}'
    )
    host = f'{{"$id":"3","HostName":"\' || {_HOST} || \'","DnsDomain":"corp.contoso.example","OSFamily":"Windows","Type":"host"}}'
    address = f'{{"$id":"4","Address":"\' || {_ADDRESS} || \'","Type":"ip"}}'
    process = (
        f'{{"$id":"5","ProcessId":"\' || {_draw("pid", 30000)} || \'","CommandLine":"\' || replace({_COMMAND}, chr(92), '
        'chr(92) || chr(92)) || \'","Host":{"$ref":"3"},"Type":"process"}'
    )
    digest = f'{{"$id":"6","Algorithm":"SHA256","Value":"\' || sha256(CAST({_draw("sha", 20000)} AS VARCHAR)) || \'","Type":"filehash"}}'
    return f'\'[{account},{host},{address},{process},{digest},{{"$ref":"3"}}]\''


COLUMNS: dict[str, dict[str, str]] = {
    "SecurityEvent": {
        "EventID": f"CAST({_EVENT} AS INTEGER)",
        "Activity": f"{_EVENT} || ' - An event of Windows.'",
        "Channel": "'Security'",
        "Computer": _FQDN,
        "Account": f"'CONTOSO\\' || {_USER}",
        "AccountName": _USER,
        "TargetUserName": f"CASE WHEN {_EVENT} <> '4688' THEN {_USER} ELSE '-' END",
        "TargetAccount": f"CASE WHEN {_EVENT} <> '4688' THEN 'CONTOSO\\' || {_USER} ELSE '' END",
        "TargetDomainName": "'CONTOSO'",
        "LogonType": f"CASE WHEN {_EVENT} IN ('4624', '4625') THEN 2 + {_draw('logon', 9)} END",
        "IpAddress": f"CASE WHEN {_EVENT} IN ('4624', '4625') THEN {_INSIDE} ELSE '' END",
        "NewProcessName": f"CASE WHEN {_EVENT} = '4688' THEN 'C:\\Windows\\System32\\' || {_NAMED_PROGRAM} ELSE '' END",
        "ParentProcessName": f"CASE WHEN {_EVENT} = '4688' THEN 'C:\\Windows\\' || {_PARENT} ELSE '' END",
        "CommandLine": f"CASE WHEN {_EVENT} = '4688' THEN {_COMMAND} ELSE '' END",
        "EventData": f"'<EventData><Data Name=\"SubjectUserSid\">S-1-5-21-' || {_draw('sid', 100000)} || "
        f"'</Data><Data Name=\"TargetLogonId\">0x' || to_hex({_draw('logonid', 2**31)}) || '</Data></EventData>'",
        "EventSourceName": "'Microsoft-Windows-Security-Auditing'",
    },
    "SigninLogs": {
        "Id": _guid("CAST(i AS VARCHAR) || 'signin'"),
        "UserPrincipalName": _UPN,
        "UserDisplayName": f"'User ' || {_skewed('user', 2000)}",
        "UserId": _guid(_USER),
        "Identity": f"'User ' || {_skewed('user', 2000)}",
        "AppDisplayName": _pick("app", "Office 365 Exchange Online", "Microsoft Teams", "Azure Portal", "SharePoint"),
        "ClientAppUsed": _pick("client", "Browser", "Mobile Apps and Desktop clients"),
        "IPAddress": _ADDRESS,
        "Location": _COUNTRY,
        "LocationDetails": f"json_object('city', 'City', 'countryOrRegion', {_COUNTRY})",
        "DeviceDetail": "json_object('operatingSystem', 'Windows 10', 'browser', 'Edge 126.0.0', 'isCompliant', true)",
        "ResultType": f"CASE WHEN {_draw('failed', 12)} = 0 THEN {_pick('code', '50126', '50074', '500121')} ELSE '0' END",
        "ResultDescription": f"CASE WHEN {_draw('failed', 12)} = 0 THEN 'Invalid username or password.' ELSE '' END",
        "RiskLevelDuringSignIn": _RISK,
        "RiskState": f"CASE WHEN {_RISK} = 'none' THEN 'none' ELSE 'atRisk' END",
        "RiskDetail": "'none'",
        "UserAgent": "'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36'",
        "OperationName": "'Sign-in activity'",
    },
    "DeviceProcessEvents": {
        "ActionType": "'ProcessCreated'",
        "DeviceId": f"sha1({_HOST})",
        "DeviceName": _FQDN,
        "AccountName": _USER,
        "AccountDomain": "'contoso'",
        "FileName": _NAMED_PROGRAM,
        "FolderPath": f"'C:\\Program Files\\Vendor\\App\\' || {_NAMED_PROGRAM}",
        "ProcessCommandLine": _COMMAND,
        "ProcessId": f"CAST({_draw('pid', 30000)} AS BIGINT)",
        "SHA256": f"sha256({_NAMED_PROGRAM})",
        "SHA1": f"sha1({_NAMED_PROGRAM})",
        "MD5": f"md5({_NAMED_PROGRAM})",
        "InitiatingProcessFileName": _PARENT,
        "InitiatingProcessCommandLine": f"'C:\\Windows\\' || {_PARENT} || ' -k netsvcs -p'",
    },
    "DeviceNetworkEvents": {
        "ActionType": "'ConnectionSuccess'",
        "DeviceName": _FQDN,
        "LocalIP": _INSIDE,
        "RemoteIP": _PUBLIC,
        "RemotePort": f"CASE WHEN {_draw('port', 10)} = 0 THEN {_draw('port2', 60000)} ELSE 443 END",
        "RemoteUrl": f"'cdn' || {_draw('url', 5000)} || '.example.net'",
        "InitiatingProcessFileName": _PROGRAM,
        "InitiatingProcessAccountName": _USER,
    },
    "DeviceLogonEvents": {
        "ActionType": f"CASE WHEN {_draw('failed', 12)} = 0 THEN 'LogonFailed' ELSE 'LogonSuccess' END",
        "DeviceName": _FQDN,
        "AccountName": _USER,
        "LogonType": _pick("logontype", "Interactive", "Network", "RemoteInteractive"),
        "RemoteIP": _INSIDE,
    },
    "DnsEvents": {
        "Computer": "'dc-01.corp.contoso.example'",
        "ClientIP": _INSIDE,
        "Name": f"'srv' || {_skewed('name', 20000)} || '.example' || {_draw('zone', 30)} || '.com'",
        "QueryType": "'A'",
        "SubType": "'LookupQuery'",
        "ResultCode": f"CASE WHEN {_draw('nx', 25)} = 0 THEN 3 ELSE 0 END",
        "IPAddresses": _PUBLIC,
    },
    "CommonSecurityLog": {
        "DeviceVendor": "'Palo Alto Networks'",
        "DeviceProduct": "'PAN-OS'",
        "DeviceAction": f"CASE WHEN {_draw('deny', 4)} = 0 THEN 'deny' ELSE 'allow' END",
        "SourceIP": f"CASE WHEN {_draw('deny', 4)} = 0 THEN {_PUBLIC} ELSE {_INSIDE} END",
        "DestinationIP": f"CASE WHEN {_draw('deny', 4)} = 0 THEN {_OFFICE} ELSE {_PUBLIC} END",
        "DestinationPort": f"CASE WHEN {_draw('deny', 4)} = 0 THEN {_draw('scan', 1024)} ELSE 443 END",
        "SentBytes": _draw("sent", 200_000),
        "ReceivedBytes": _draw("received", 900_000),
        "Activity": "'TRAFFIC'",
        "AdditionalExtensions": f"'cat=end;PanOSSessionId=' || {_draw('session', 2**31)}",
    },
    "OfficeActivity": {
        "Operation": f"CASE WHEN {_draw('rule', 2000)} = 0 THEN 'New-InboxRule' ELSE "
        + _pick("operation", "MailItemsAccessed", "FileAccessed", "FileModified", "Send", "TeamsSessionStarted")
        + " END",
        "OfficeWorkload": _pick("workload", "Exchange", "SharePoint", "MicrosoftTeams"),
        "ResultStatus": "'Succeeded'",
        "UserId": _UPN,
        "ClientIP": f"CASE WHEN {_draw('v6', 10)} = 0 THEN '[2001:db8::' || to_hex({_draw('h', 65536)}) || ']:443' "
        f"ELSE {_ADDRESS} END",
        "OfficeObjectId": f"'https://contoso.example/sites/team' || {_draw('site', 300)} || '/file' || {_draw('f', 9000)}",
        "Parameters": f"CASE WHEN {_draw('rule', 2000)} = 0 THEN "
        """'[{"Name":"ForwardTo","Value":"outside@example.net"},{"Name":"DeleteMessage","Value":"True"}]' ELSE '' END""",
    },
    "AuditLogs": {
        "OperationName": _pick(
            "operation",
            "Update user",
            "Add member to group",
            "Reset user password",
            "Add member to role",
            "Consent to application",
            "Update device",
        ),
        "Category": _pick("category", "UserManagement", "GroupManagement", "RoleManagement", "ApplicationManagement"),
        "Result": f"CASE WHEN {_draw('failed', 12)} = 0 THEN 'failure' ELSE 'success' END",
        "Identity": f"'User ' || {_skewed('user', 2000)}",
        "InitiatedBy": f"json_object('user', json_object('userPrincipalName', {_UPN}, 'ipAddress', {_ADDRESS}))",
        "TargetResources": f"json_array(json_object('type', 'User', 'displayName', 'User ' || {_skewed('other', 2000)}, "
        f"'userPrincipalName', 'user' || {_skewed('other', 2000)} || '@contoso.example'))",
    },
    "AzureActivity": {
        "Caller": _UPN,
        "CallerIpAddress": _ADDRESS,
        "OperationNameValue": f"'MICROSOFT.' || {_pick('provider', 'COMPUTE', 'STORAGE', 'KEYVAULT')} || '/WRITE'",
        "ActivityStatusValue": _pick("activity", "Start", "Success", "Failure"),
        "ResourceGroup": f"'rg-' || {_draw('group', 60)}",
    },
    "EmailEvents": {
        "NetworkMessageId": _guid("CAST(i AS VARCHAR) || 'mail'"),
        "SenderFromAddress": f"'sender' || {_skewed('sender', 9000)} || '@example' || {_draw('zone', 300)} || '.net'",
        "SenderMailFromAddress": f"'sender' || {_skewed('sender', 9000)} || '@example' || {_draw('zone', 300)} || '.net'",
        "SenderFromDomain": f"'example' || {_draw('zone', 300)} || '.net'",
        "RecipientEmailAddress": _UPN,
        "Subject": f"'Order ' || {_draw('order', 100_000)}",
        "DeliveryAction": _pick("delivery", "Delivered", "Delivered", "Blocked", "Junked"),
        "DeliveryLocation": "'Inbox/folder'",
    },
    "UrlClickEvents": {
        "AccountUpn": _UPN,
        "Url": f"'https://site' || {_draw('url', 5000)} || '.example.org/login'",
        "ActionType": _pick("click", "ClickAllowed", "ClickBlocked"),
        "IsClickedThrough": f"{_draw('through', 2)} = 0",
        "IPAddress": _ADDRESS,
        "Workload": "'Email'",
        "NetworkMessageId": _guid("CAST(i AS VARCHAR) || 'mail'"),
    },
    "Heartbeat": {
        "Computer": _FQDN,
        "ComputerIP": _INSIDE,
        "OSType": _pick("os", "Windows", "Windows", "Linux"),
        "Category": "'Azure Monitor Agent'",
        "Version": "'1.30.0.0'",
    },
    "Usage": {
        "DataType": _pick("datatype", "SecurityEvent", "SigninLogs", "CommonSecurityLog", "DnsEvents", "Heartbeat"),
        "Quantity": f"{_draw('quantity', 100_000)} / 100.0",
        "QuantityUnit": "'MBytes'",
        "IsBillable": "true",
        "Solution": "'Security'",
    },
    "ThreatIntelligenceIndicator": {
        "IndicatorId": _guid("CAST(i % 20000 AS VARCHAR) || 'indicator'"),
        "NetworkIP": f"CASE WHEN i % 2 = 0 THEN {_PUBLIC} ELSE '' END",
        "DomainName": f"CASE WHEN i % 2 = 1 THEN 'bad' || {_draw('bad', 9000)} || '.example' ELSE '' END",
        "ThreatType": _pick("threat", "Botnet", "C2", "Phishing"),
        "ConfidenceScore": f"CAST({_draw('confidence', 101)} AS DOUBLE)",
        "Active": f"{_draw('active', 5)} > 0",
        "ExpirationDateTime": f"TIMESTAMP '{END + timedelta(days=30):%Y-%m-%d}'",
        "Description": "'An address that was seen in an intrusion.'",
        "SourceSystem": "'Microsoft Defender Threat Intelligence'",
    },
    "ThreatIntelIndicators": {
        "Id": "'indicator--' || " + _guid("CAST(i % 20000 AS VARCHAR) || 'stix'"),
        "ObservableKey": "CASE WHEN i % 2 = 0 THEN 'ipv4-addr:value' ELSE 'domain-name:value' END",
        "ObservableValue": f"CASE WHEN i % 2 = 0 THEN {_PUBLIC} ELSE 'bad' || {_draw('bad', 9000)} || '.example' END",
        "Confidence": f"CAST({_draw('confidence', 101)} AS INTEGER)",
        "IsActive": f"{_draw('active', 5)} > 0",
        "IsDeleted": "false",
        "ValidUntil": f"TIMESTAMP '{END + timedelta(days=30):%Y-%m-%d}'",
        "Data": "json_object('indicator_types', json_array('malicious-activity'), 'description', 'Seen in an intrusion.')",
    },
    "AADUserRiskEvents": {
        "Id": _guid("CAST(i % 8000 AS VARCHAR) || 'risk'"),
        "UserPrincipalName": _UPN,
        "RiskEventType": _pick("riskevent", "unfamiliarFeatures", "anonymizedIPAddress", "leakedCredentials"),
        "RiskLevel": _pick("level", "low", "medium", "high"),
        "RiskState": _pick("state", "atRisk", "remediated", "dismissed"),
        "IpAddress": _PUBLIC,
    },
    "AADRiskyUsers": {
        "Id": _guid("CAST(i % 2000 AS VARCHAR)"),
        "UserPrincipalName": "'user' || lpad(CAST(i % 2000 AS VARCHAR), 4, '0') || '@contoso.example'",
        "UserDisplayName": "'User ' || (i % 2000)",
        "RiskLevel": _pick("level", "low", "medium", "high"),
        "RiskState": _pick("state", "atRisk", "remediated", "dismissed", "confirmedCompromised"),
        "IsDeleted": "false",
    },
    "SecurityAlert": {
        "SystemAlertId": _guid(f"CAST(i % {_ALERTS} AS VARCHAR) || 'alert'"),
        "AlertName": f"'Suspicious activity of kind ' || {_skewed('alertname', 120)}",
        "DisplayName": f"'Suspicious activity of kind ' || {_skewed('alertname', 120)}",
        "AlertSeverity": _SEVERITY,
        "Status": f"CASE WHEN i >= {_ALERTS} THEN 'Resolved' ELSE 'New' END",
        "ProductName": _pick(
            "product",
            "Azure Sentinel",
            "Microsoft Defender Advanced Threat Protection",
            "Azure Active Directory Identity Protection",
        ),
        "ProviderName": _pick("product", "ASI Scheduled Alerts", "MDATP", "IPC"),
        "VendorName": "'Microsoft'",
        "StartTime": f"{_alert_moment()} - INTERVAL 4 MINUTE",
        "EndTime": f"{_alert_moment()} - INTERVAL 1 MINUTE",
        "ProcessingEndTime": _alert_moment(),
        "Tactics": _TACTIC,
        "Techniques": _pick("technique", '["T1059"]', '["T1078"]', '["T1110","T1021"]', '["T1566"]'),
        "Description": "'A sentence or two about what was seen on the machine and by whom, as the product writes it.'",
        "CompromisedEntity": _HOST,
        "Entities": _entities(),
        "ExtendedProperties": f'\'{{"Alert generation status":"Full Alert created","Query":"SigninLogs | take \' '
        f"|| {_draw('take', 900)} || '\"}}'",
        "RemediationSteps": '\'["Isolate the device.","Reset the password."]\'',
    },
    "SecurityIncident": {
        "IncidentNumber": f"CAST(i % {_INCIDENTS} AS INTEGER) + 1",
        "IncidentName": _guid(f"CAST(i % {_INCIDENTS} AS VARCHAR) || 'incident'"),
        "Title": f"'Suspicious activity of kind ' || {_per('title', 120)} || ' on several endpoints'",
        "Severity": f"['High', 'Medium', 'Medium', 'Low'][CAST({_per('severity', 4)} AS INTEGER) + 1]",
        "Status": f"['New', 'New', 'Active', 'Active', CASE WHEN {_per('closed', 3)} > 0 THEN 'Closed' ELSE 'Active' END]"
        f"[CAST(i // {_INCIDENTS} AS INTEGER) + 1]",
        "CreatedTime": _created(),
        "LastModifiedTime": f"{_created()} + to_minutes(CAST((i // {_INCIDENTS}) * (1 + {_per('pace', 600)}) AS BIGINT))",
        "ClosedTime": f"CASE WHEN i // {_INCIDENTS} = 4 AND {_per('closed', 3)} > 0 THEN {_created()} + INTERVAL 2 DAY END",
        "Classification": f"CASE WHEN i // {_INCIDENTS} = 4 AND {_per('closed', 3)} > 0 THEN 'TruePositive' ELSE '' END",
        "ClassificationReason": f"CASE WHEN i // {_INCIDENTS} = 4 AND {_per('closed', 3)} > 0 THEN 'SuspiciousActivity' "
        "ELSE '' END",
        "Owner": f"json_object('assignedTo', 'Analyst ' || {_per('owner', 9)}, 'email', 'analyst' || {_per('owner', 9)} "
        "|| '@contoso.example')",
        "AlertIds": "to_json(list_transform(range(25), lambda k: "
        + _guid(f"CAST((i % {_INCIDENTS}) * 25 + k AS VARCHAR) || 'alert'")
        + "))",
        "AdditionalData": "json_object('alertsCount', 25, 'tactics', json_array('Execution'))",
        "Comments": "json_array()",
        "Labels": "json_array()",
        "ProviderName": "'Azure Sentinel'",
        "ProviderIncidentId": f"CAST((i % {_INCIDENTS}) + 1 AS VARCHAR)",
        "IncidentUrl": f"'https://portal.azure.example/#incident/' || (i % {_INCIDENTS})",
    },
}

"""Names of the tables that Sentinel's connectors and Defender XDR fill, as Azure spells them."""

from __future__ import annotations

# fmt: off
KNOWN_TABLES = (
    "AADNonInteractiveUserSignInLogs", "AADRiskyUsers", "AADServicePrincipalSignInLogs", "AADUserRiskEvents",
    "AlertEvidence", "AlertInfo", "Anomalies", "AuditLogs", "AWSCloudTrail", "AzureActivity",
    "AzureDiagnostics", "BehaviorAnalytics", "CloudAppEvents", "CommonSecurityLog", "DeviceEvents",
    "DeviceFileEvents", "DeviceImageLoadEvents", "DeviceInfo", "DeviceLogonEvents", "DeviceNetworkEvents",
    "DeviceNetworkInfo", "DeviceProcessEvents", "DeviceRegistryEvents", "DnsEvents", "EmailAttachmentInfo",
    "EmailEvents", "EmailUrlInfo", "Event", "Heartbeat", "HuntingBookmark", "IdentityInfo",
    "IdentityLogonEvents", "LAQueryLogs", "MicrosoftGraphActivityLogs", "OfficeActivity", "Operation",
    "ProtectionStatus", "SecurityAlert", "SecurityEvent", "SecurityIncident", "SentinelAudit", "SentinelHealth",
    "SigninLogs", "Syslog", "ThreatIntelIndicators", "ThreatIntelligenceIndicator", "ThreatIntelObjects",
    "UrlClickEvents", "Usage", "UserPeerAnalytics", "VMConnection", "W3CIISLog", "Watchlist", "WindowsEvent",
)
# fmt: on

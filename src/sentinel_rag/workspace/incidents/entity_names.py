"""What an alert's row calls the kinds and properties of entities, and what the REST API calls them."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "account": "Account",
    "host": "Host",
    "ip": "Ip",
    "url": "Url",
    "file": "File",
    "filehash": "FileHash",
    "process": "Process",
    "dns": "DnsResolution",
    "azure-resource": "AzureResource",
    "cloud-application": "CloudApplication",
    "malware": "Malware",
    "registry-key": "RegistryKey",
    "registry-value": "RegistryValue",
    "security-group": "SecurityGroup",
    "mailbox": "Mailbox",
    "mailmessage": "MailMessage",
    "mailcluster": "MailCluster",
    "submissionmail": "SubmissionMail",
    "iotdevice": "IoTDevice",
}
"""Type in an alert's row -> kind on the wire. A type that is not here keeps its own name."""

RENAMED: Mapping[str, Mapping[str, str]] = {
    "Account": {
        "Name": "accountName",
        "NTDomain": "ntDomain",
        "UPNSuffix": "upnSuffix",
        "Sid": "sid",
        "AadTenantId": "aadTenantId",
        "AadUserId": "aadUserId",
        "ObjectGuid": "objectGuid",
        "PUID": "puid",
        "DnsDomain": "dnsDomain",
        "IsDomainJoined": "isDomainJoined",
        "DisplayName": "displayName",
        "Host": "hostEntityId",
    },
    "Host": {
        "HostName": "hostName",
        "DnsDomain": "dnsDomain",
        "NTDomain": "ntDomain",
        "NetBiosName": "netBiosName",
        "OSFamily": "osFamily",
        "OSVersion": "osVersion",
        "AzureID": "azureID",
        "OMSAgentID": "omsAgentID",
        "IsDomainJoined": "isDomainJoined",
    },
    "Ip": {"Address": "address", "Location": "location", "ThreatIntelligence": "threatIntelligence"},
    "Url": {"Url": "url"},
    "File": {
        "Directory": "directory",
        "Name": "fileName",
        "Host": "hostEntityId",
        "FileHashes": "fileHashEntityIds",
    },
    "FileHash": {"Algorithm": "algorithm", "Value": "hashValue"},
    "Process": {
        "ProcessId": "processId",
        "CommandLine": "commandLine",
        "CreationTimeUtc": "creationTimeUtc",
        "ElevationToken": "elevationToken",
        "Account": "accountEntityId",
        "Host": "hostEntityId",
        "ImageFile": "imageFileEntityId",
        "ParentProcess": "parentProcessEntityId",
    },
    "DnsResolution": {"DomainName": "domainName", "IpAddress": "ipAddressEntityIds"},
    "AzureResource": {"ResourceId": "resourceId"},
    "CloudApplication": {"AppId": "appId", "Name": "appName", "InstanceName": "instanceName"},
    "Malware": {"Name": "malwareName", "Category": "category"},
    "RegistryKey": {"Hive": "hive", "Key": "key"},
    "RegistryValue": {"Key": "keyEntityId", "Name": "valueName", "Value": "valueData", "ValueType": "valueType"},
    "SecurityGroup": {"DistinguishedName": "distinguishedName", "SID": "sid", "ObjectGuid": "objectGuid"},
    "Mailbox": {
        "MailboxPrimaryAddress": "mailboxPrimaryAddress",
        "DisplayName": "displayName",
        "Upn": "upn",
        "ExternalDirectoryObjectId": "externalDirectoryObjectId",
    },
    "MailMessage": {
        "Recipient": "recipient",
        "Sender": "p2Sender",
        "P1Sender": "p1Sender",
        "P2Sender": "p2Sender",
        "SenderIP": "senderIP",
        "Subject": "subject",
        "Urls": "urls",
        "NetworkMessageId": "networkMessageId",
        "InternetMessageId": "internetMessageId",
        "DeliveryAction": "deliveryAction",
    },
}
FRIENDLY = (
    *("accountName", "hostName", "address", "url", "fileName", "hashValue", "commandLine", "domainName"),
    *("resourceId", "appName", "malwareName", "key", "mailboxPrimaryAddress", "subject", "displayName"),
)
"""The properties that name an entity for a person, the first that is there."""

"""What a row shows of an entity beside its name: one name a property, whatever the provider calls it."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.sentinel.entities.entities import Entity, merged_properties, parse_entities, shown_properties

SHA256, SHA1, MD5 = "a" * 64, "b" * 40, "c" * 32


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize(
    ("properties", "shown"),
    [
        (
            {
                "Type": "account",
                "Name": "ana",
                "UPNSuffix": "c.example",
                "SID": "S-1-5-21-1-2-3-4",
                "AadUserId": "d-1",
                "NTDomain": "C",
                "DnsDomain": "c.example",
                "DisplayName": "Ana Lima",
            },
            {
                "account_name": "ana",
                "display_name": "Ana Lima",
                "upn": "ana@c.example",
                "sid": "S-1-5-21-1-2-3-4",
                "aad_user_id": "d-1",
                "nt_domain": "C",
                "dns_domain": "c.example",
            },
        ),
        (
            {"Type": "host", "NetBiosName": "W1", "OSFamily": "Windows", "OSVersion": "22H2", "MdatpDeviceId": "d"},
            {"host_name": "W1", "os_family": "Windows", "os_version": "22H2", "device_id": "d"},
        ),
        ({"Type": "ip", "Address": "192.0.2.1"}, {"address": "192.0.2.1"}),
        ({"Type": "url", "Url": "https://x.example/a b"}, {"url": "https://x.example/a b"}),
        ({"Type": "FileHash", "Algorithm": "MD5", "HashValue": MD5}, {"algorithm": "MD5", "value": MD5}),
        (
            {
                "Type": "mailbox",
                "MailboxPrimaryAddress": "a@c.example",
                "Upn": "b@c.example",
                "ExternalDirectoryObjectId": "d-1",
            },
            {"address": "a@c.example", "upn": "b@c.example", "aad_user_id": "d-1"},
        ),
        (
            {
                "Type": "mailMessage",
                "P1Sender": "envelope@x.example",
                "P2Sender": "header@x.example",
                "Recipient": "ana@c.example",
                "Subject": "Invoice",
                "NetworkMessageId": "m-1",
                "SenderIP": "192.0.2.9",
            },
            {
                "sender": "header@x.example",
                "recipient": "ana@c.example",
                "subject": "Invoice",
                "sender_ip": "192.0.2.9",
                "network_message_id": "m-1",
            },
        ),
        ({"Type": "CloudApplication", "Name": "SAP", "AppId": 5}, {"app_id": "5"}),
        (
            {"Type": "oauth-application", "OAuthAppId": "o", "OAuthObjectId": "i", "PublisherName": "P"},
            {"app_id": "o", "object_id": "i", "publisher": "P"},
        ),
        ({"Type": "AzureResource", "ResourceId": "/subscriptions/1/x"}, {"resource_id": "/subscriptions/1/x"}),
        ({"Type": "registry-value", "Name": "v", "Value": "calc.exe"}, {"value": "calc.exe"}),
        ({"Type": "novelty", "Anything": "here"}, {}),
        ({"Type": "account", "Name": ["x"], "Sid": None, "AadUserId": True}, {}),
        ({"Type": "file", "FileHashes": "none", "Directory": {"x": 1}}, {}),
    ],
    ids=lambda value: str(value.get("Type", "")) if isinstance(value, dict) else "",
)
def test_a_property_has_one_name_and_is_left_out_where_the_alert_has_none(
    properties: dict[str, Any], shown: dict[str, str]
) -> None:
    assert shown_properties(parse_entities([properties]).entities[0]) == shown


@pytest.mark.requirement("TOOL-7")
def test_a_process_tells_its_image_and_its_parent_and_a_file_its_hashes_through_references() -> None:
    parsed = parse_entities(
        [
            {
                "$id": "1",
                "Type": "process",
                "ProcessId": "42",
                "CommandLine": "evil.exe /x",
                "CreationTimeUtc": "2024-08-01T08:00:00Z",
                "CreatedTimeUtc": "2024-08-01T09:00:00Z",
                "ImageFile": {"$ref": "2"},
                "ParentProcess": {"ProcessId": "7", "CommandLine": "services.exe"},
            },
            {
                "$id": "2",
                "Type": "file",
                "Name": "evil.exe",
                "Directory": "C:\\x",
                "CreatedTimeUtc": "2024-01-01T00:00:00Z",
                "FileHashes": [
                    {"$ref": "3"},
                    {"Algorithm": "sha-1", "Value": SHA1},
                    {"Algorithm": "SHA1", "Value": "0" * 40},
                    {"Algorithm": "CRC", "Value": "1"},
                    {"$ref": "99"},
                    "no hash",
                ],
            },
            {"$id": "3", "Type": "filehash", "Algorithm": "SHA256", "Value": SHA256},
        ]
    )
    process, file, _ = parsed.entities
    assert shown_properties(process) == {
        "process_id": "42",
        "command_line": "evil.exe /x",
        "created_time": "2024-08-01T08:00:00Z",
        "image_file": "C:\\x\\evil.exe",
        "parent_command_line": "services.exe",
        "parent_process_id": "7",
    }
    assert shown_properties(file) == {
        "directory": "C:\\x",
        "created_time": "2024-01-01T00:00:00Z",
        "sha256": SHA256,
        "sha1": SHA1,
    }


def test_under_a_verdict_the_time_of_the_evidence_is_not_taken_for_the_time_of_the_file() -> None:
    evidence = {"Type": "file", "Name": "a.exe", "CreatedTimeUtc": "2024-08-01T08:00:00Z", "LastVerdict": "Suspicious"}
    assert shown_properties(parse_entities([evidence]).entities[0]) == {}


def merged(kind: str, *writings: dict[str, Any]) -> dict[str, Any]:
    return merged_properties(Entity(kind, writing) for writing in writings)


@pytest.mark.requirement("TOOL-7")
def test_what_most_alerts_write_comes_first_and_is_completed_by_the_others() -> None:
    common = {"Name": "ana", "NTDomain": "CONTOSO"}
    assert merged("account", common, common, {"Name": "ANA", "NTDomain": "contoso.example", "Sid": "S-1-5-18"}) == {
        "account_name": "ana",
        "nt_domain": "CONTOSO",
        "sid": "S-1-5-18",
        "other_values": {"nt_domain": ["contoso.example"]},
    }


@pytest.mark.requirement("TOOL-7")
def test_properties_of_two_processes_are_not_mixed_and_the_rest_is_kept() -> None:
    first = {"CommandLine": "cmd", "ProcessId": "1"}
    assert merged(
        "process",
        first,
        first,
        {"CommandLine": "cmd", "ProcessId": "2", "CreationTimeUtc": "2024-08-02T00:00:00Z"},
        {"CommandLine": "cmd", "ProcessId": "1", "CreationTimeUtc": "2024-08-01T00:00:00Z"},
    ) == {
        "process_id": "1",
        "command_line": "cmd",
        "created_time": "2024-08-01T00:00:00Z",
        "other_values": {"process_id": ["2"], "created_time": ["2024-08-02T00:00:00Z"]},
    }


def test_other_values_are_bounded_and_nothing_merges_to_nothing() -> None:
    many = merged("process", *({"CommandLine": "cmd", "ProcessId": str(number)} for number in range(30)))
    assert (many["process_id"], many["other_values"]) == ("0", {"process_id": [str(n) for n in range(1, 11)]})
    assert merged("process") == {}

"""Entities of an alert: references resolved, every kind kept, nothing counted twice, nothing unreadable swallowed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sentinel_rag.sentinel.entities.entities import Entity, EntityTally, entity_name, parse_entities


def named(text: Any) -> list[tuple[str, str]]:
    return [(entity.kind, entity_name(entity)) for entity in parse_entities(text).entities]


@pytest.mark.requirement("TOOL-7")
def test_an_object_is_one_entity_wherever_it_is_written_and_however_often_it_is_pointed_at() -> None:
    text = json.dumps(
        [
            {
                "$id": "1",
                "Type": "process",
                "CommandLine": "child",
                "ImageFile": {"$id": "2", "Type": "file", "Name": "c.exe", "Directory": "C:\\x\\"},
                "ParentProcess": {"$id": "3", "Type": "process", "ProcessId": "7", "ImageFile": {"$ref": "2"}},
            },
            {"$ref": "2"},
            {"$ref": "3"},
            {"$ref": "2"},
        ]
    )
    assert named(text) == [("process", "child"), ("file", "C:\\x\\c.exe"), ("process", "C:\\x\\c.exe")]


@pytest.mark.requirement("TOOL-7")
def test_a_reference_before_its_object_and_a_cycle_of_references_are_resolved() -> None:
    text = json.dumps(
        [
            {"$ref": "2"},
            {"$id": "1", "Type": "process", "CommandLine": "a", "ParentProcess": {"$ref": "2"}},
            {"$id": "2", "Type": "process", "CommandLine": "b", "ParentProcess": {"$ref": "1"}},
            {"$id": "3", "Type": "process", "ProcessId": "9", "ImageFile": {"$ref": "3"}},
        ]
    )
    parsed = parse_entities(text)
    assert [entity_name(entity) for entity in parsed.entities] == ["a", "b", "process 9"]
    assert parsed.dangling == 0


@pytest.mark.requirement("TOOL-7")
def test_a_reference_to_nothing_is_counted_and_harms_nothing() -> None:
    parsed = parse_entities('[{"$ref": "5"}, {"Type": "ip", "Address": "192.0.2.1"}]')
    assert (len(parsed.entities), parsed.dangling, parsed.readable) == (1, 1, True)


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize("text", ["[{not json", "5", '"text"', "[" * 100_000, "nul"])
def test_text_that_is_no_list_of_objects_is_unreadable_and_not_empty(text: str) -> None:
    assert parse_entities(text).readable is False


@pytest.mark.parametrize("text", ["", "  ", None, "null", "[]", []])
def test_no_entities_is_readable(text: Any) -> None:
    assert parse_entities(text) == parse_entities("[]")
    assert parse_entities(text).readable


def test_a_line_break_inside_a_string_does_not_lose_the_entities() -> None:
    assert named('[{"Type":"process","CommandLine":"one\r\ntwo"}]') == [("process", "one\r\ntwo")]


def test_parts_without_a_type_are_no_entities() -> None:
    host = {"$id": "1", "Type": "host", "HostName": "w1", "LoggedOnUsers": [{"AccountName": "ana", "DomainName": "c"}]}
    assert named([host]) == [("host", "w1")]


@pytest.mark.parametrize(
    ("properties", "kind", "name"),
    [
        ({"Type": "account", "UserPrincipalName": "a@c.example", "Name": "A"}, "account", "a@c.example"),
        ({"Type": "account", "Name": "a", "UPNSuffix": "c.example"}, "account", "a@c.example"),
        ({"Type": "account", "Name": "a@c.example", "UPNSuffix": "c.example"}, "account", "a@c.example"),
        ({"Type": "account", "Name": "a", "NTDomain": "C"}, "account", "C\\a"),
        ({"Type": "account", "Sid": "S-1-5-18"}, "account", "S-1-5-18"),
        ({"Type": "account", "AadUserId": "x-1"}, "account", "x-1"),
        ({"Type": "host", "HostName": "w1", "DnsDomain": "c.example"}, "host", "w1.c.example"),
        ({"Type": "host", "NetBiosName": "W1"}, "host", "W1"),
        ({"Type": "file", "Directory": "/usr/bin", "Name": "sh"}, "file", "/usr/bin/sh"),
        ({"Type": "FileHash", "Algorithm": "MD5", "Value": "ab"}, "filehash", "ab"),
        ({"Type": "mailMessage", "Subject": "Invoice", "NetworkMessageId": "1"}, "mailmessage", "Invoice"),
        ({"Type": "mailCluster", "Query": "q"}, "mailcluster", "q"),
        ({"Type": "CloudApplication", "Name": "SAP", "AppId": 5}, "cloud-application", "SAP"),
        ({"Type": "cloud-application", "AppId": 5}, "cloud-application", "5"),
        ({"Type": "AzureResource", "ResourceId": "/x"}, "azure-resource", "/x"),
        ({"Type": "dns", "DomainName": "d.example"}, "dns", "d.example"),
        ({"Type": "DnsResolution", "DomainName": "d.example"}, "dns", "d.example"),
        ({"Type": "registry-key", "Hive": "HKLM", "Key": "Run"}, "registry-key", "HKLM\\Run"),
        (
            {"Type": "registry-value", "Name": "v", "Key": {"Type": "registry-key", "Hive": "HKLM", "Key": "Run"}},
            "registry-value",
            "HKLM\\Run\\v",
        ),
        ({"Type": "security-group", "SID": "S-1"}, "security-group", "S-1"),
        ({"Type": "iotdevice", "DeviceId": "d"}, "iotdevice", "d"),
        ({"Type": "malware", "Name": "Emotet"}, "malware", "Emotet"),
        ({"Type": "cloud-logon-session", "SessionId": "s"}, "cloud-logon-session", "s"),
        ({"Type": "novelty", "Anything": "here"}, "novelty", "here"),
        ({"Type": "novelty"}, "novelty", "(unnamed novelty)"),
        ({"Anything": "here"}, "unknown", "here"),
    ],
)
def test_every_kind_has_a_name(properties: dict[str, Any], kind: str, name: str) -> None:
    entity = parse_entities([properties]).entities[0]
    assert (entity.kind, entity_name(entity)) == (kind, name)


SID = "S-1-5-21-1-2-3-1001"


def ranked(kind: str, *alerts: list[dict[str, Any]]) -> list[tuple[str, int]]:
    tally = EntityTally()
    for number, elements in enumerate(alerts):
        tally.add((Entity(kind, element) for element in elements), f"alert {number}")
    return [(entity.name, len(entity.alerts)) for entity in tally.ranked(kind)]


@pytest.mark.requirement("TOOL-7")
def test_an_alert_counts_once_for_an_entity_that_it_names_many_times() -> None:
    assert ranked("ip", [{"Address": "192.0.2.1"}] * 4, [{"Address": "192.0.2.1"}]) == [("192.0.2.1", 2)]


@pytest.mark.requirement("TOOL-7")
def test_spellings_of_one_account_are_one_under_its_best_name() -> None:
    assert ranked(
        "account",
        [{"UserPrincipalName": "ana@c.example", "AadUserId": "1"}],
        [{"Name": "Ana Lima", "AadUserId": "1", "Sid": SID}],
        [{"Sid": SID.lower(), "NTDomain": "C", "Name": "ana"}],
        [{"NTDomain": "c", "Name": "ANA"}],
        [{"Name": "ana"}],
    ) == [("ana@c.example", 4), ("ana", 1)]


@pytest.mark.requirement("TOOL-7")
def test_a_short_name_that_two_accounts_share_joins_neither() -> None:
    assert ranked(
        "account",
        [{"UserPrincipalName": "a1@c.example", "NTDomain": "C", "Name": "svc"}],
        [{"UserPrincipalName": "a2@c.example", "NTDomain": "C", "Name": "svc"}],
        [{"NTDomain": "C", "Name": "svc"}],
    ) == [("a1@c.example", 1), ("a2@c.example", 1), ("C\\svc", 1)]


@pytest.mark.requirement("TOOL-7")
def test_a_well_known_sid_merges_nobody() -> None:
    assert ranked(
        "account",
        [{"Sid": "S-1-5-18", "NTDomain": "C", "Name": "ana"}],
        [{"Sid": "S-1-5-18", "NTDomain": "C", "Name": "bob"}],
        [{"Sid": "S-1-5-18"}],
    ) == [("C\\ana", 1), ("C\\bob", 1), ("S-1-5-18", 1)]


def test_a_host_is_one_under_its_full_name() -> None:
    assert ranked(
        "host",
        [{"HostName": "W1", "DnsDomain": "c.example"}],
        [{"FQDN": "w1.C.example", "HostName": "w1", "MdatpDeviceId": "d"}],
        [{"NetBiosName": "w1"}],
        [{"HostName": "w1", "MdatpDeviceId": "D"}],
        [{"HostName": "w2"}],
    ) == [("w1.C.example", 4), ("w2", 1)]


def test_messages_with_one_subject_are_many() -> None:
    messages = [[{"Subject": "Invoice", "NetworkMessageId": str(number)}] for number in range(3)]
    assert ranked("mailmessage", *messages) == [("Invoice", 1)] * 3


@pytest.mark.anyio
@pytest.mark.requirement("TOOL-7")
async def test_the_real_top_accounts_are_counted_by_distinct_alert(real: Any) -> None:
    result = await real.ask("get_top_entities", kind="account", limit=3)
    assert [(row["name"], row["alerts"]) for row in result.rows] == [
        ("dp5hn@vnevado.alpineskihouse.co", 46),
        ("tgs2z@vnevado.alpineskihouse.co", 37),
        ("S-0-6-5", 20),
    ]
    assert result.summary["alerts_considered"] == 189
    assert result.rows[0]["incident_numbers"] == [5]


@pytest.mark.anyio
@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize("kind", ["account", "host", "ip"])
async def test_ranking_and_search_agree_on_the_real_rows(real: Any, kind: str) -> None:
    top = (await real.ask("get_top_entities", kind=kind, limit=2)).rows
    for row in top:
        found = await real.ask("query_alerts", entity=row["name"], entity_kind=kind)
        assert (row["name"], found.coverage.rows_total) == (row["name"], row["alerts"])

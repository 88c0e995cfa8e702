"""The sample estate: what its guide promises is what KQL finds, for any seed, length and end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.workspace.sample.company import PEOPLE
from sentinel_rag.workspace.sample.generate import EstateGuide
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-5")

END = datetime(2025, 3, 12, 15, tzinfo=UTC)
NEWEST = "SecurityIncident | summarize arg_max(TimeGenerated, *) by IncidentNumber"
NEWEST_ALERTS = "SecurityAlert | summarize arg_max(TimeGenerated, *) by SystemAlertId"


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, EstateGuide]]:
    workspace = Workspace.open(tmp_path_factory.mktemp("estate"))
    guide = workspace.generate(EstateOptions(end=END))
    yield workspace, guide
    workspace.close()


def rows(workspace: Workspace, kql: str, **options: Any) -> list[tuple[Any, ...]]:
    return workspace.query(kql, **options).rows


def test_the_guide_agrees_with_the_rows(estate: tuple[Workspace, EstateGuide]) -> None:
    workspace, guide = estate
    assert dict(rows(workspace, f"{NEWEST} | summarize count() by Severity")) == guide.incidents_by_severity
    assert dict(rows(workspace, f"{NEWEST} | summarize count() by Status")) == guide.incidents_by_status
    assert rows(workspace, f"{NEWEST} | count") == [(guide.incidents,)]
    assert dict(rows(workspace, f"{NEWEST_ALERTS} | summarize count() by AlertSeverity")) == guide.alerts_by_severity
    assert rows(workspace, f"{NEWEST_ALERTS} | count") == [(guide.alerts,)]
    assert {table.name: table.rows for table in workspace.tables()} == guide.rows_by_table
    assert sum(guide.incidents_by_status.values()) == guide.incidents


def test_counting_versions_gives_another_number(estate: tuple[Workspace, EstateGuide]) -> None:
    workspace, guide = estate
    ((versions,),) = rows(workspace, "SecurityIncident | count")
    assert versions > 2 * guide.incidents
    early = rows(workspace, "SecurityIncident | where Status == 'New' | distinct IncidentNumber | count")
    assert early != [(guide.incidents_by_status["New"],)]


def test_special_histories(estate: tuple[Workspace, EstateGuide]) -> None:
    workspace, guide = estate

    def history(number: int, column: str) -> list[Any]:
        kql = f"SecurityIncident | where IncidentNumber == {number} | sort by TimeGenerated asc | project {column}"
        return [row[0] for row in rows(workspace, kql)]

    assert history(guide.reopened_incident, "Status") == ["New", "Active", "Closed", "Active"]
    assert history(guide.reopened_incident, "ClosedTime")[-1] is not None
    assert history(guide.lowered_incident, "Severity") == ["High", "High", "Medium", "Low"]
    assert len(set(history(guide.retitled_incident, "Title"))) == 2
    assert history(guide.no_alert_incident, "array_length(AlertIds)")[-1] == 0
    lost = rows(
        workspace,
        f"{NEWEST} | where IncidentNumber == {guide.missing_alert_incident} "
        "| mv-expand id = AlertIds to typeof(string) "
        f"| join kind=leftanti ({NEWEST_ALERTS}) on $left.id == $right.SystemAlertId | count",
    )
    assert lost == [(2,)]
    number, defender_id = guide.defender_collision
    ids = dict(rows(workspace, f"{NEWEST} | project IncidentNumber, ProviderIncidentId"))
    assert ids[number] == str(defender_id)
    assert defender_id in ids
    assert defender_id != number


def test_the_attack_can_be_followed_through_the_tables(estate: tuple[Workspace, EstateGuide]) -> None:
    workspace, guide = estate
    cloud, exfiltration = guide.attacker_addresses
    user = guide.compromised_account
    signins = dict(rows(workspace, f'SigninLogs | where IPAddress == "{cloud}" | summarize count() by ResultType'))
    assert signins == {"500121": 14, "0": 1}
    assert rows(workspace, f'SigninLogs | where IPAddress == "{cloud}" | distinct UserPrincipalName') == [(user,)]
    rule = rows(workspace, "OfficeActivity | where Operation == 'New-InboxRule' | project UserId, ClientIP")
    assert rule == [(user, f"{cloud}:52114")]
    dump = rows(workspace, "DeviceProcessEvents | where ProcessCommandLine has 'MiniDump' | project DeviceName")
    assert dump == [("srv-file-01.woodgrove.example",)]
    sent = rows(workspace, f"CommonSecurityLog | where DestinationIP == '{exfiltration}' | summarize sum(SentBytes)")
    assert sent == [(4_600_000_000,)]
    assert rows(workspace, "DeviceFileEvents | where FileName endswith '.wdgrv' | count") == [(40,)]
    newest = f"{NEWEST} | where IncidentNumber == {guide.main_incident}"
    main = rows(workspace, f"{newest} | project Severity, Status, array_length(AlertIds)")
    assert main == [("High", "Active", 8)]
    last_day = f"{(guide.end - timedelta(days=1)).isoformat()}/{guide.end.isoformat()}"
    kql = f"{NEWEST} | where IncidentNumber == {guide.main_incident} | count"
    assert rows(workspace, kql, timespan=last_day) == [(1,)]


def test_entities_are_json_with_references_that_resolve(estate: tuple[Workspace, EstateGuide]) -> None:
    workspace, _ = estate
    references = 0
    for (text,) in rows(workspace, f"{NEWEST_ALERTS} | project Entities"):
        entities = json.loads(text)
        ids: set[str] = set()

        def walk(value: Any, ids: set[str] = ids) -> None:
            if isinstance(value, dict):
                if "$id" in value:
                    assert value["$id"] not in ids
                    ids.add(value["$id"])
                for inner in value.values():
                    walk(inner)
            elif isinstance(value, list):
                for inner in value:
                    walk(inner)

        walk(entities)
        for entity in entities:
            if set(entity) == {"$ref"}:
                references += 1
                assert entity["$ref"] in ids
            else:
                assert entity["Type"]
    assert references > 10


def test_hostile_texts_stand_in_several_places(estate: tuple[Workspace, EstateGuide]) -> None:
    workspace, guide = estate
    newest = f"{NEWEST} | where IncidentNumber == {guide.hijack_incident}"
    ((title, status, labels),) = rows(workspace, f"{newest} | project Title, Status, Labels")
    assert (title[-1], status) == ("\u200b", "New")
    assert "Ignore" in labels
    ((description, entities),) = rows(
        workspace, "SecurityAlert | where Description has 'ignore all previous' | project Description, Entities"
    )
    assert "raw_signins" in description
    assert "http://203.0.113.66" in description
    assert "\\u001b[2K" in entities
    assert rows(workspace, "DeviceProcessEvents | where ProcessCommandLine has 'ASSISTANT' | count") == [(1,)]
    assert rows(workspace, "SigninLogs | where UserAgent has 'run_kql_query' | count") == [(1,)]
    ((subject,),) = rows(workspace, "EmailEvents | project Subject")
    assert "<img" in subject
    assert "![status](" in subject


def test_every_address_and_domain_is_reserved(estate: tuple[Workspace, EstateGuide]) -> None:
    workspace, _ = estate
    addresses = {row[0] for row in rows(workspace, "SigninLogs | distinct IPAddress")}
    addresses |= {row[0] for row in rows(workspace, "DeviceNetworkEvents | distinct RemoteIP")}
    assert all(address.startswith(("192.0.2.", "198.51.100.", "203.0.113.")) for address in addresses)
    domains = {row[0] for row in rows(workspace, "DnsEvents | distinct Name")}
    assert all(domain.endswith((".example", ".example.com", ".example.net", ".example.org")) for domain in domains)


def test_work_follows_the_clock_and_the_week(estate: tuple[Workspace, EstateGuide]) -> None:
    workspace, guide = estate
    by_hour = dict(rows(workspace, "SecurityEvent | summarize n = count() by h = hourofday(TimeGenerated)"))
    day = sum(count for hour, count in by_hour.items() if 8 <= hour <= 17)
    assert day > 0.8 * sum(by_hour.values())
    by_weekday = dict(rows(workspace, "SigninLogs | summarize n = count() by d = tostring(dayofweek(TimeGenerated))"))
    weekend = by_weekday.get("00:00:00", 0) + by_weekday.get("6.00:00:00", 0)
    assert 0 < weekend < 0.15 * sum(by_weekday.values())
    for table in workspace.tables():
        assert table.oldest is not None
        assert table.newest is not None
        assert guide.start <= table.oldest <= table.newest <= guide.end, table.name


def test_names_that_break_tools_are_there(estate: tuple[Workspace, EstateGuide]) -> None:
    workspace, _ = estate
    names = {row[0] for row in rows(workspace, "IdentityInfo | distinct AccountDisplayName")}
    assert names == {person.display_name for person in PEOPLE}
    assert {"Siobhán O'Brien", "Ian St. John", "李 娜"} <= names


def test_the_same_options_give_the_same_estate_and_another_seed_another(tmp_path: Path) -> None:
    def dump(folder: str, seed: int) -> list[Any]:
        workspace = Workspace.open(tmp_path / folder)
        try:
            guide = workspace.generate(EstateOptions(days=8, events=300, seed=seed, end=END))
            tables = ("SecurityIncident", "SecurityAlert", "SigninLogs", "SecurityEvent", "Heartbeat", "AuditLogs")
            return [guide.to_dict(), *(sorted(map(repr, rows(workspace, table))) for table in tables)]
        finally:
            workspace.close()

    first = dump("a", 1)
    assert dump("b", 1) == first
    assert dump("c", 2)[1:] != first[1:]


def test_generating_again_replaces_the_estate_and_keeps_imports(tmp_path: Path) -> None:
    export = tmp_path / "x.csv"
    export.write_text("TimeGenerated,UserPrincipalName,ResultType\n2024-01-01T00:00:00Z,a@contoso.example,0\n")
    workspace = Workspace.open(tmp_path / "w")
    try:
        workspace.import_path(export, table="SigninLogs")
        first = workspace.generate(EstateOptions(days=10, events=100, end=END))
        again = workspace.generate(EstateOptions(days=10, events=100, end=END + timedelta(hours=3)))
        assert rows(workspace, f"{NEWEST} | count") == [(first.incidents,)]
        assert again.incidents == first.incidents
        counts = {table.name: table.rows for table in workspace.tables()}
        assert counts.pop("SigninLogs") == again.rows_by_table["SigninLogs"] + 1
        assert counts == {name: count for name, count in again.rows_by_table.items() if name != "SigninLogs"}
    finally:
        workspace.close()


@pytest.mark.parametrize(("days", "events"), [(7, 0), (30, 1000), (90, 500)])
def test_other_sizes(workspace: Workspace, days: int, events: int) -> None:
    guide = workspace.generate(EstateOptions(days=days, events=events, end=END))
    assert guide.end - guide.start == timedelta(days=days)
    assert rows(workspace, f"{NEWEST} | count") == [(guide.incidents,)]
    assert dict(rows(workspace, f"{NEWEST} | summarize count() by Status")) == guide.incidents_by_status
    assert rows(workspace, f"SecurityIncident | where TimeGenerated > datetime({END.isoformat()}) | count") == [(0,)]


@pytest.mark.parametrize("options", [{"days": 0}, {"days": 401}, {"events": -1}, {"end": datetime(2025, 1, 1)}])
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refusal:
        EstateOptions(**options)
    assert refusal.value.next_step

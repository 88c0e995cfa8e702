"""query_incidents with an entity: the incidents one of whose alerts names exactly that."""

from __future__ import annotations

from typing import Any

import pytest
from estate_rows import alert, guid, incident

from sentinel_rag.sentinel.incidents.entity_search import MOST_CANDIDATES

pytestmark = pytest.mark.anyio

ANA = {"Type": "account", "Name": "ana", "UPNSuffix": "contoso.example", "NTDomain": "CONTOSO"}
HOST = {"Type": "host", "HostName": "WIN-01", "DnsDomain": "corp.example"}
BOX = {"Type": "mailbox", "MailboxPrimaryAddress": "noa.berg@contoso.example", "DisplayName": "Noa Berg"}
OTHER = {"Type": "host", "HostName": "WIN-010", "DnsDomain": "corp.example"}


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    """Incident 1: ana on WIN-01; 2: WIN-01, once held ana's alert and does no more; 3: WIN-010; 4: an old alert."""
    return serving(
        SecurityIncident=[
            incident(1, "2024-08-01T10:00:00Z", AlertIds=[guid("alert one").upper()], Severity="High"),
            incident(2, "2024-08-02T08:00:00Z", AlertIds=[guid("alert one"), guid("alert two")]),
            incident(2, "2024-08-02T10:00:00Z", CreatedTime="2024-08-02T08:00:00Z", AlertIds=[guid("alert two")]),
            incident(3, "2024-08-02T11:00:00Z", AlertIds=[guid("alert three")], Status="Closed"),
            incident(4, "2024-08-02T12:00:00Z", AlertIds=[guid("alert old"), guid("alert lost")]),
            incident(5, "2024-08-02T13:00:00Z", IncidentNumber=None, AlertIds=[guid("alert two")]),
        ],
        SecurityAlert=[
            alert("one", "2024-08-01T09:00:00Z", Entities=[ANA, HOST]),
            alert("two", "2024-08-02T09:00:00Z", Entities=[HOST]),
            alert("three", "2024-08-02T09:30:00Z", Entities=[OTHER, BOX]),
            alert("old", "2024-01-05T09:00:00Z", Entities=[{"Type": "ip", "Address": "2001:db8::7"}]),
            alert("alone", "2024-08-02T09:40:00Z", Entities=[{"Type": "url", "Url": "https://evil.example/"}]),
        ],
    )


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"entity": "ANA@contoso.example"}, [1]),
        ({"entity": "contoso\\ana", "entity_kind": "account"}, [1]),
        ({"entity": "ana", "entity_kind": "host"}, []),
        ({"entity": "noa.berg"}, [3]),
        ({"entity": "NOA.BERG@contoso.example"}, [3]),
        ({"entity": "noa.berg", "entity_kind": "mailbox"}, [3]),
        ({"entity": "noa.berg", "entity_kind": "account"}, []),
        ({"entity": "noa"}, [3]),
        ({"entity": "win-01"}, [1, 2]),
        ({"entity": "win-01", "order": "newest"}, [2, 1]),
        ({"entity": "WIN-01.corp.example", "order": "oldest"}, [1, 2]),
        ({"entity": "win-01", "min_severity": "High"}, [1]),
        ({"entity": "win-01", "start_time": "2024-08-02T00:00:00Z"}, [2]),
        ({"entity": "win-010", "status": "Open"}, []),
        ({"entity": "2001:0db8:0::7", "time_window": "last_24h"}, [4]),
        ({"entity": "evil.example"}, []),
        ({"entity": "'; drop table x --"}, []),
        ({"entity": "%"}, []),
    ],
    ids=str,
)
async def test_only_incidents_whose_alerts_name_it(estate: Any, arguments: dict[str, Any], expected: list[int]) -> None:
    result = await estate.ask("query_incidents", **arguments)
    assert [row["number"] for row in result.rows] == expected
    assert result.coverage.rows_total == len(expected)
    assert sum(result.summary["by_status"].values()) == len(expected)
    assert result.coverage.tables == ("SecurityIncident", "SecurityAlert")
    assert not result.coverage.partial


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("win-0", "No entity is exactly 'win-0'; near it: WIN-01"),
        ("nobody", "SecurityAlert has no entity like 'nobody', not even in part"),
        ("evil.example", "1 alert names 'evil.example', but no incident holds any of them."),
    ],
)
async def test_why_there_are_none_is_told(estate: Any, value: str, words: str) -> None:
    result = await estate.ask("query_incidents", entity=value)
    assert result.rows == ()
    assert any(words in note for note in result.notes)


@pytest.mark.parametrize("tool", ["query_incidents", "query_alerts"])
async def test_a_kind_without_an_entity_is_told_to_have_done_nothing(estate: Any, tool: str) -> None:
    result = await estate.ask(tool, entity_kind="host")
    assert result.coverage.rows_total == len(result.rows) == 5
    assert any("without entity it was not used" in note for note in result.notes)


@pytest.mark.requirement("TOOL-3")
async def test_more_alerts_than_are_looked_at_make_the_list_partial(serving: Any) -> None:
    crowd = [alert(f"a{n}", f"2024-07-02T00:{n // 60 % 60:02d}:{n % 60:02d}Z", Entities=[HOST]) for n in range(2001)]
    assert len(crowd) > MOST_CANDIDATES
    estate = serving(
        SecurityAlert=crowd, SecurityIncident=[incident(1, "2024-07-02T00:00:00Z", AlertIds=[guid("alert a2000")])]
    )
    result = await estate.ask("query_incidents", entity="win-01")
    assert [row["number"] for row in result.rows] == [1]
    assert (result.coverage.partial, result.coverage.rows_total) == (True, None)
    assert "incidents of older alerts may be missing" in result.coverage.partial_reason


@pytest.mark.requirement("TOOL-7")
async def test_the_real_incidents_of_a_host(real: Any) -> None:
    result = await real.ask("query_incidents", entity="vnevado-win10v", entity_kind="host")
    alerts = await real.ask("query_alerts", entity="vnevado-win10v", entity_kind="host", limit=100)
    named = {row["incident_number"] for row in alerts.rows} - {None}
    assert {row["number"] for row in result.rows} == named == {5, 39}

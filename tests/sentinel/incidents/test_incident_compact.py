"""get_incident_detail in a form that a model can read: bounded bytes, exact counts, and a way to the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from estate_rows import alert, guid, incident

from sentinel_rag.contracts.query_results import QueryErrorCode, note_code

pytestmark = pytest.mark.anyio

MOST_BYTES = 24_000
NUMBERS = ("5", "34", "38", "39", "55", "134", "166", "322")


def size(result: Any) -> int:
    return len(json.dumps(result.to_dict(), ensure_ascii=False).encode())


@pytest.mark.parametrize("number", NUMBERS)
async def test_every_real_incident_fits_its_reader_and_keeps_its_counts(real: Any, number: str) -> None:
    compact = await real.ask("get_incident_detail", incident=number)
    full = await real.ask("get_incident_detail", incident=number, detail="full")
    assert size(compact) < MOST_BYTES
    one, all_of_it = compact.rows[0], full.rows[0]
    for exact in ("number", "title", "severity", "status", "alert_count", "entity_counts", "url", "defender_url"):
        assert one[exact] == all_of_it[exact]
    left_out = compact.summary["left_out"]
    assert len(one["alerts"]) + left_out.get("alerts", 0) == len(all_of_it["alerts"])
    assert len(one["timeline"]) + left_out.get("timeline", 0) == len(all_of_it["timeline"])
    assert len(one["comments"]) + left_out.get("comments", 0) == len(all_of_it["comments"])
    shown = sum(len(listed) for listed in one["entities"].values())
    assert shown + left_out.get("entities", 0) == sum(one["entity_counts"].values())
    assert one["entities"].keys() == all_of_it["entities"].keys()
    assert full.summary["detail"] == "full"
    assert set(full.summary["left_out"]) <= {"cut_texts"}
    told = any("Compact form of incident" in note and "detail full" in note for note in compact.notes)
    assert told is (compact.summary["detail"] == "compact")


async def test_alerts_that_are_kept_show_each_name_before_a_second_of_one(serving: Any) -> None:
    ids = [guid(f"alert {name}") for name in ("loud", "rare", *(f"many {place}" for place in range(80)))]
    entities = [{"Type": "file", "Name": f"file-{place}.exe", "Directory": "C:\\x" * 20} for place in range(30)]
    estate = serving(
        SecurityIncident=[incident(1, "2024-08-01T08:00:00Z", AlertIds=ids, Description="word " * 2000)],
        SecurityAlert=[
            *(
                alert(f"many {place}", f"2024-08-01T07:{place % 60:02d}:00Z", AlertName="Same again", Entities=entities)
                for place in range(80)
            ),
            alert("loud", "2024-08-01T07:59:58Z", AlertSeverity="High", Description="x " * 900),
            alert("rare", "2024-08-01T07:59:59Z", AlertSeverity="Low"),
        ],
    )
    result = await estate.ask("get_incident_detail", incident="1")
    row = result.rows[0]
    assert size(result) < MOST_BYTES
    assert {"Same again", "loud", "rare"} == {found["name"] for found in row["alerts"]}
    starts = [found["start_time"] for found in row["alerts"]]
    assert starts == sorted(starts)
    assert result.summary["left_out"]["alerts"] == 82 - len(row["alerts"])
    assert row["entity_counts"] == {"file": 30}
    assert row["description"].endswith("…")
    assert result.summary["left_out"]["cut_texts"] >= 1


async def test_a_small_incident_is_the_same_in_both_forms(serving: Any) -> None:
    estate = serving(
        SecurityIncident=[
            incident(1, "2024-08-01T08:00:00Z", AlertIds=[guid("alert one")], Description="All " + "of it " * 200)
        ],
        SecurityAlert=[alert("one", "2024-08-01T07:00:00Z", Description="line\r\n" * 100)],
    )
    compact = await estate.ask("get_incident_detail", incident="1")
    full = await estate.ask("get_incident_detail", incident="1", detail="full")
    assert compact.rows == full.rows
    assert (compact.summary["detail"], compact.summary["left_out"]) == ("full", {})
    assert compact.rows[0]["description"] == ("All " + "of it " * 200).strip()
    assert compact.rows[0]["alerts"][0]["description"] == " ".join(["line"] * 100)


async def test_an_incident_of_thousands_of_everything_still_fits(serving: Any) -> None:
    many = [guid(f"gone {place}") for place in range(3000)]
    comments = [
        {"message": "note " * 500, "createdTimeUtc": f"2024-08-01T{place % 24:02d}:00:00Z", "author": {"name": "Ana"}}
        for place in range(90)
    ]
    entities = [{"Type": "url", "Url": f"https://evil.example/{place}/" + "x" * 900} for place in range(400)]
    estate = serving(
        SecurityIncident=[
            incident(
                1,
                "2024-08-01T08:00:00Z",
                Title="t" * 1000,
                AlertIds=[guid("alert one"), *many],
                Comments=comments,
                Labels=[{"labelName": f"label {place}"} for place in range(500)],
            )
        ],
        SecurityAlert=[alert("one", "2024-08-01T07:00:00Z", Entities=entities)],
    )
    result = await estate.ask("get_incident_detail", incident="1")
    assert size(result) < MOST_BYTES
    row, left_out = result.rows[0], result.summary["left_out"]
    assert (row["alert_count"], row["entity_counts"]) == (3001, {"url": 400})
    assert len(row["comments"]) + left_out["comments"] == 90
    assert len(row["alert_ids_without_row"]) + len(row["labels"]) + left_out["values"] == 3500
    alerts = await estate.ask("query_alerts", incident="1")
    assert [found["name"] for found in alerts.rows] in ([], ["one"])
    assert any("names 3001 alerts; 2000 of them were looked for" in note for note in alerts.notes)


async def test_the_full_form_has_every_event_and_alert_and_the_compact_one_counts_what_it_lacks(serving: Any) -> None:
    """Model report, finding 22: what a form does not show stands in left_out."""
    names = [f"alert {place}" for place in range(260)]
    steps = json.dumps([f"step {place}" for place in range(14)])
    estate = serving(
        SecurityIncident=[
            incident(
                1,
                "2024-08-01T08:00:00Z",
                AlertIds=[guid(f"alert {name}") for name in names],
                AdditionalData={"techniques": [f"T{1000 + place}" for place in range(120)]},
            )
        ],
        SecurityAlert=[
            alert(
                name,
                f"2024-07-{1 + place % 28:02d}T{place % 24:02d}:00:00Z",
                AlertLink="https://portal.example/alert",
                RemediationSteps=steps,
                Entities=[{"Type": "host", "HostName": f"host-{place}"}],
            )
            for place, name in enumerate(names)
        ],
    )
    full = await estate.ask("get_incident_detail", incident="1", detail="full")
    row = full.rows[0]
    assert full.summary["left_out"] == {"remediation_steps": 2 * 260}
    assert [len(row["alerts"]), len(row["techniques"]), len(row["entities"]["host"])] == [260, 120, 260]
    assert sum(event["event"].startswith("Alert: ") for event in row["timeline"]) == 260
    compact = await estate.ask("get_incident_detail", incident="1")
    short, left_out = compact.rows[0], compact.summary["left_out"]
    for part in ("alerts", "timeline"):
        assert len(short[part]) + left_out[part] == len(row[part])
    assert len(short["techniques"]) + left_out["values"] == 120
    fields = ("product", "url", "remediation_steps", "provider")
    hidden = sum(field in row["alerts"][0] and field not in short["alerts"][0] for field in fields)
    assert left_out["alert_fields"] >= hidden * len(short["alerts"]) > 0
    told = [note for note in compact.notes if note_code(note) == "row_parts_left_out"]
    assert all(str(count) in told[0] for count in left_out.values())


async def test_an_incident_beyond_any_reader_is_cut_in_its_full_form_too_and_says_so(serving: Any) -> None:
    entities = [{"Type": "url", "Url": f"https://evil.example/{place}/" + "x" * 950} for place in range(40)]
    estate = serving(
        SecurityIncident=[
            incident(1, "2024-08-01T08:00:00Z", AlertIds=[guid(f"alert {place}") for place in range(60)])
        ],
        SecurityAlert=[alert(str(place), "2024-08-01T07:00:00Z", Entities=entities) for place in range(60)],
    )
    result = await estate.ask("get_incident_detail", incident="1", detail="full")
    assert size(result) < 2_010_000
    assert (result.summary["detail"], len(result.rows[0]["alerts"])) == ("compact", 60)
    assert result.summary["left_out"]["alert_entities"] == 60 * 36
    assert any(note.startswith("Full form of incident 1: left out are ") for note in result.notes)


async def test_another_form_is_refused_with_those_there_are(real: Any) -> None:
    error = await real.refusal("get_incident_detail", incident="55", detail="everything")
    assert (error.code, error.field, error.allowed) == (
        QueryErrorCode.INVALID_ARGUMENT,
        "detail",
        ("compact", "full"),
    )


async def test_both_portals_are_told_apart(real: Any) -> None:
    """Field report A6: the page in the Azure portal and the page in the Defender portal are two addresses."""
    row = (await real.ask("get_incident_detail", incident="55")).rows[0]
    assert row["url"].startswith("https://portal.azure.com/#asset/Microsoft_Azure_Security_Insights/Incident/")
    assert row["incident_name"] in row["url"]
    assert row["defender_url"].startswith("https://security.microsoft.com/incidents/384?tid=")


async def test_what_is_no_https_address_is_no_portal(serving: Any) -> None:
    estate = serving(
        SecurityIncident=[
            incident(1, "2024-08-01T08:00:00Z", AdditionalData={"providerIncidentUrl": "javascript:alert(1)"})
        ]
    )
    assert (await estate.ask("get_incident_detail", incident="1")).rows[0]["defender_url"] is None

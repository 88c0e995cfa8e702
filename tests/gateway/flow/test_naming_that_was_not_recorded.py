"""What is named counts only with its record: a naming that could not be written is none, and the next try is the first
again. Else a value would pass by words that no record has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sentinel_rag_testing.running_gateway import RunningGateway

pytestmark = [pytest.mark.requirement("TAINT-5"), pytest.mark.requirement("AUD-1")]


@contextmanager
def no_naming_is_recorded(gateway: RunningGateway) -> Iterator[None]:
    """As a full disk would, at that moment alone."""
    database = gateway.state.database
    database.run_now(
        lambda connection: connection.execute(
            "CREATE TEMP TRIGGER full BEFORE INSERT ON journal WHEN new.kind = 'values_named' "
            "BEGIN SELECT raise(ABORT, 'disk I/O error'); END"
        )
    )
    try:
        yield
    finally:
        database.run_now(lambda connection: connection.execute("DROP TRIGGER full"))


def named(gateway: RunningGateway, session_id: str) -> list[tuple[str, str]]:
    shown = gateway.request("GET", f"/v1/sessions/{session_id}", key=gateway.user).body["named"]
    return [(value["text"], value["by"]) for value in shown]


def recorded(gateway: RunningGateway) -> list[tuple[str, list[str]]]:
    return [
        (each["source"], sorted(value["text"] for value in each["values"]))
        for each in gateway.records()
        if each["kind"] == "values_named"
    ]


def test_a_persons_words_that_could_not_be_recorded_name_nothing(flow_gateway: RunningGateway) -> None:
    session_id = flow_gateway.open_session()
    with no_naming_is_recorded(flow_gateway):
        said = flow_gateway.request(
            "POST", f"/v1/sessions/{session_id}/words", key=flow_gateway.user, body=b'{"text": "look at incident 7"}'
        )
        assert said.status >= 500
    assert named(flow_gateway, session_id) == []
    flow_gateway.say(session_id, "look at incident 7")
    assert named(flow_gateway, session_id) == [("7", "user")]
    assert recorded(flow_gateway) == [("user", ["7"])]


def test_an_endorsement_that_could_not_be_recorded_names_nothing(flow_gateway: RunningGateway) -> None:
    session_id = flow_gateway.open_session()
    flow_gateway.say(session_id, "look at incident 7")
    with no_naming_is_recorded(flow_gateway):
        assert flow_gateway.call("read_incident", {"incident": "7"}, session_id=session_id).status >= 500
    assert named(flow_gateway, session_id) == [("7", "user")]
    assert flow_gateway.call("read_incident", {"incident": "7"}, session_id=session_id).status == 200
    assert sorted(named(flow_gateway, session_id)) == [
        ("7", "user"),
        ("srv-8", "participants"),
        ("srv-9", "participants"),
    ]
    assert recorded(flow_gateway) == [("user", ["7"]), ("participants", ["srv-8", "srv-9"])]

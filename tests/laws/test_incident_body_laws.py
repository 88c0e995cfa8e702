"""Laws of the embedded REST API: a body goes through a row and back unchanged, and a filter never leaves its bounds."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.workspace.incidents.bodies import (
    CLASSIFICATIONS,
    REASONS,
    SEVERITIES,
    STATUSES,
    incident_body,
    read_incident,
    wire_time,
)
from sentinel_rag.workspace.incidents.incident_store import Author
from sentinel_rag.workspace.incidents.odata_filter import ODataError, compile_filter, compile_order
from sentinel_rag.workspace.workspace import Workspace

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = TEXT.filter(lambda text: bool(text.strip()))
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(wire_time)
AUTHOR = Author("a test", "00000000-0000-4000-8000-000000000000")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path_factory.mktemp("laws") / "workspace")
    yield opened
    opened.close()


@st.composite
def written(draw: Any) -> dict[str, Any]:
    """The writable properties of an incident, all of them given."""
    owner = draw(st.dictionaries(st.sampled_from(["objectId", "email", "assignedTo", "userPrincipalName"]), NAMES))
    properties = {
        "title": draw(NAMES),
        "description": draw(TEXT),
        "severity": draw(st.sampled_from(SEVERITIES)),
        "status": draw(st.sampled_from(STATUSES)),
        "classification": draw(st.sampled_from(CLASSIFICATIONS)),
        "classificationReason": draw(st.sampled_from(REASONS)),
        "classificationComment": draw(NAMES),
        "owner": {key: owner.get(key) for key in ("objectId", "email", "assignedTo", "userPrincipalName")},
        "labels": draw(
            st.lists(
                st.fixed_dictionaries({"labelName": NAMES, "labelType": st.sampled_from(["User", "AutoAssigned"])}),
                max_size=3,
            )
        ),
        "firstActivityTimeUtc": draw(MOMENTS),
        "lastActivityTimeUtc": draw(MOMENTS),
    }
    return {key: value for key, value in properties.items() if value is not None}


@settings(
    max_examples=examples(60, 25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=written(), second=written(), name=st.uuids())
def test_what_was_put_is_what_is_got(
    workspace: Workspace, first: dict[str, Any], second: dict[str, Any], name: UUID
) -> None:
    for properties in (first, second):
        row, _ = workspace.incidents.put(str(name), read_incident({"properties": properties}), AUTHOR)
        shown = json.loads(json.dumps(incident_body(row, "/x")))
        assert {key: shown["properties"].get(key) for key in properties} == properties
        stored = workspace.incidents.get(str(name).upper())
        assert stored is not None
        assert incident_body(stored, "/x") == incident_body(row, "/x")
        back = read_incident({**shown, "properties": {**shown["properties"]}})
        assert back == read_incident({"properties": properties, "etag": shown["etag"]})


@given(
    st.text(max_size=200)
    | st.lists(
        st.sampled_from(
            ["properties/status", "properties/createdTimeUtc", "eq", "ge", "and", "or", "not", "(", ")", "'New'", "''",
             "contains", ",", "2026-11-01T00:00:00Z", "5", "null", "properties/owner/email"]
        ),
        max_size=30,
    ).map(" ".join)
)  # fmt: skip
def test_any_text_is_a_filter_or_an_error_with_a_place_in_it(text: str) -> None:
    position, parameters, marks = 0, (), 0
    try:
        condition = compile_filter(text)
        parameters, marks = condition.parameters, condition.sql.count("?")
    except ODataError as error:
        position = error.position
    assert 0 <= position <= len(text)
    assert marks == len(parameters)


@given(st.text(max_size=100))
def test_any_text_is_an_order_or_an_error(text: str) -> None:
    position, order = 0, ""
    try:
        order = compile_order(text)
    except ODataError as error:
        position = error.position
    assert 0 <= position <= len(text)
    assert set(order) <= set(string.ascii_letters + " ,.()$'")


@settings(
    max_examples=examples(40, 20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_a_quoted_text_finds_the_title_that_it_is(workspace: Workspace, title: str) -> None:
    """Whatever the text holds: it is a value of the statement and never a part of it."""
    condition = compile_filter("properties/title eq '" + title.replace("'", "''") + "'")
    assert condition.parameters == (title,)
    rows, _ = workspace.incidents.page(condition, compile_order(""), limit=5, offset=0, as_of=None)
    assert all(row["Title"] == title for row in rows)


def test_versions_stay_in_order_when_the_clock_goes_back(tmp_path: Path) -> None:
    from sentinel_rag.workspace.incidents.incident_store import IncidentStore
    from sentinel_rag.workspace.store import Store

    moments = [datetime(2030, 1, 1, tzinfo=UTC) - timedelta(days=day) for day in range(4)]
    store = Store.open(tmp_path / "w")
    try:
        incidents = IncidentStore(store, clock=lambda: moments.pop(0))
        for severity in SEVERITIES:
            body = {"properties": {"title": "t", "severity": severity, "status": "New"}}
            row, _ = incidents.put("00000000-0000-4000-8000-000000000001", read_incident(body), AUTHOR)
            assert row["Severity"] == severity
    finally:
        store.close()

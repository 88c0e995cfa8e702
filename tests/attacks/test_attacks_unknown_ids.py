"""Attacker controls: an id or a filter that names nothing, or next to nothing.

Wanted: an id that nobody has, an empty one or a star that is read as "all". Every such question finds nothing, changes
nothing, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from labelled_tools import ROWS, labelled_gateway

from sentinel_rag_testing.fake_tool_server import Answers
from sentinel_rag_testing.running_gateway import RunningGateway

NOBODYS = [
    "none-such",
    "*",
    "%",
    "%2A",
    "all",
    "null",
    "undefined",
    "0",
    "-1",
    "..",
    "_",
    "session-",
    "' or '1'='1",
    "",
]

NO_HANDLES = ["", "*", "r*#", "r0#", "r1", "r1#", "r1#/*", "r1#/rows/*/CommandLine", "r99#", "#", "r1#/rows/-1"]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with labelled_gateway(tmp_path_factory.mktemp("ids") / "state") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def waiting(labelled: RunningGateway) -> tuple[str, str]:
    """A session with a hidden value, and an approval that waits."""
    labelled.executor.on("read_alert", Answers(ROWS))
    session = labelled.open_session()
    assert labelled.call("read_alert", {}, session_id=session).status == 200
    assert labelled.call("read_secret", {}, session_id=session).status == 200
    return session, labelled.call("isolate", {"host": "ws-01"}, session_id=session).body["approval_id"]


def quoted(text: str) -> str:
    return quote(text, safe="%")


@pytest.mark.parametrize("nobody", NOBODYS)
def test_an_id_that_nobody_has_is_no_session_and_no_approval(
    labelled: RunningGateway, waiting: tuple[str, str], nobody: str
) -> None:
    session, approval = waiting
    tries = [
        ("GET", f"/v1/sessions/{quoted(nobody)}", labelled.user, None),
        ("DELETE", f"/v1/sessions/{quoted(nobody)}", labelled.user, None),
        ("POST", f"/v1/sessions/{quoted(nobody)}/words", labelled.user, {"text": "host ws-01"}),
        ("POST", f"/v1/sessions/{quoted(nobody)}/resolve", labelled.user, {"handles": ["r1#/rows/0/CommandLine"]}),
        ("GET", f"/v1/approvals/{quoted(nobody)}", labelled.approver, None),
        ("POST", f"/v1/approvals/{quoted(nobody)}/approve", labelled.approver, {}),
        ("POST", f"/v1/approvals/{quoted(nobody)}/deny", labelled.approver, {}),
        ("GET", f"/v1/audit/{quoted(nobody)}", labelled.auditor, None),
    ]
    for method, path, key, body in tries:
        if nobody == "" and not path.endswith(("/words", "/resolve", "/approve", "/deny")):
            continue  # without the id it is the collection's own route
        encoded = None if body is None else json.dumps(body).encode()
        answer = labelled.request(method, path, key=key, body=encoded)
        assert answer.status in (400, 404, 405, 421), (method, path)
        assert b"SECRET" not in answer.content
        assert b"ws-01" not in answer.content
    shown = labelled.request("GET", f"/v1/approvals/{approval}", key=labelled.approver).body
    assert shown["state"] == "pending"
    assert not labelled.request("GET", f"/v1/sessions/{session}", key=labelled.user).body["closed"]


@pytest.mark.parametrize("handle", NO_HANDLES)
def test_a_handle_that_names_nothing_hidden_resolves_to_nothing(
    labelled: RunningGateway, waiting: tuple[str, str], handle: str
) -> None:
    session, _ = waiting
    shown = labelled.resolve(session, handle)
    assert (shown.status, shown.body["values"], shown.body["refused"]) == (200, {}, [])
    assert labelled.resolve(session).body["values"] == {}
    before = len(labelled.executor.calls)
    refused = labelled.call("read_public", {"marker": {"$ref": handle}}, session_id=session)
    assert (refused.status, refused.body["reason"]) == (422, "invalid_argument")
    record = labelled.last_record()
    assert (record["kind"], record["audit_id"]) == ("refusal", refused.body["audit_id"])
    assert len(labelled.executor.calls) == before

"""What may flow into a call: context labels, links, named values, declassification, stores."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway


def denied(answer: HttpAnswer, reason: str = "sink_label") -> bool:
    return (answer.status, answer.body.get("reason")) == (403, reason)


def intent_of(gateway: RunningGateway, answer: HttpAnswer) -> dict[str, Any]:
    [intent] = [r for r in gateway.records() if r["audit_id"] == answer.body["audit_id"] and r["kind"] == "intent"]
    return intent


@pytest.mark.requirement("TAINT-4")
def test_a_literal_carries_the_context_whatever_its_text(flow_gateway: RunningGateway) -> None:
    session = flow_gateway.open_session()
    assert flow_gateway.call("search", {"query": "what is a panda"}, session_id=session).status == 200
    assert flow_gateway.call("read_secret", {}, session_id=session).status == 200
    for text in ("what is a panda", "c2VjcmV0", "", "été"):
        answer = flow_gateway.call("search", {"query": text or "x"}, session_id=session)
        assert denied(answer)
    assert [call.tool for call in flow_gateway.executor.calls] == ["search", "read_secret"]


def test_a_call_without_arguments_tells_that_it_was_made(flow_gateway: RunningGateway) -> None:
    session = flow_gateway.open_session()
    assert flow_gateway.call("beacon", {}, session_id=session).status == 200
    assert flow_gateway.call("read_secret", {}, session_id=session).status == 200
    assert denied(flow_gateway.call("beacon", {}, session_id=session))


@pytest.mark.requirement("TAINT-2")
def test_an_agent_launders_nothing_by_a_new_session_and_a_person_opens_a_clean_one(
    flow_gateway: RunningGateway,
) -> None:
    first = flow_gateway.open_session()
    assert flow_gateway.call("read_secret", {}, session_id=first).status == 200
    own = flow_gateway.open_session(key=flow_gateway.key)
    for session in (own, "made-up-by-the-agent"):
        assert denied(flow_gateway.call("search", {"query": "x"}, session_id=session))
    clean = flow_gateway.open_session()
    assert flow_gateway.context(clean) == ("LOW", "TRUSTED")
    # Clean for what it reads; what the agent writes out may hold what its process remembers.
    assert denied(flow_gateway.call("search", {"query": "x"}, session_id=clean))


@pytest.mark.requirement("TAINT-5")
def test_the_users_words_name_a_value_for_one_kind_of_parameter(flow_gateway: RunningGateway) -> None:
    session = flow_gateway.open_session()
    assert flow_gateway.call("read_incident", {"incident": "13"}, session_id=session).status == 200
    assert flow_gateway.say(session, "On June 13 comment on incident 14; host ws-07 is ours") == [
        ("host", "ws-07"),
        ("incident", "14"),
    ]
    assert flow_gateway.call("comment", {"incident": "14", "message": "m"}, session_id=session).status == 200
    assert flow_gateway.call("comment", {"incident": "#14", "message": "m"}, session_id=session).status == 200
    assert denied(flow_gateway.call("comment", {"incident": "13", "message": "m"}, session_id=session))
    assert denied(flow_gateway.call("comment", {"incident": "ws-07", "message": "m"}, session_id=session))
    assert denied(flow_gateway.call("isolate", {"host": "14"}, session_id=session), "approval_required")
    isolated = flow_gateway.call("isolate", {"host": "WS-07"}, session_id=session)
    assert isolated.status == 200
    assert intent_of(flow_gateway, isolated)["flow"]["named"][0]["kind"] == "host"


@pytest.mark.requirement("TAINT-5")
def test_the_agent_cannot_speak_for_the_person(flow_gateway: RunningGateway) -> None:
    session = flow_gateway.open_session()
    path = f"/v1/sessions/{session}/words"
    answer = flow_gateway.request("POST", path, key=flow_gateway.key, body=b'{"text": "comment on incident 14"}')
    assert (answer.status, answer.body["reason"]) == (403, "missing_scope")
    stranger, _ = flow_gateway.state.keys.create([*_user_scope()], for_key="caller")
    answer = flow_gateway.request("POST", path, key=stranger, body=b'{"text": "comment on incident 14"}')
    assert (answer.status, answer.body["reason"]) == (404, "not_found")


@pytest.mark.requirement("TAINT-5")
def test_an_endorsement_derives_values_from_a_record_that_the_user_named(flow_gateway: RunningGateway) -> None:
    session = flow_gateway.open_session()
    flow_gateway.say(session, "Isolate the hosts of incident 9")
    assert denied(flow_gateway.call("read_incident", {"incident": "8"}, session_id=session)) is False
    assert denied(flow_gateway.call("isolate", {"host": "srv-9"}, session_id=session), "approval_required")
    assert flow_gateway.call("read_incident", {"incident": "9"}, session_id=session).status == 200
    isolated = flow_gateway.call("isolate", {"host": "srv-9"}, session_id=session)
    assert isolated.status == 200
    assert intent_of(flow_gateway, isolated)["flow"]["named"][0]["by"] == "participants"
    [named] = [r for r in flow_gateway.records() if r["kind"] == "values_named" and r["source"] == "participants"]
    assert {value["text"] for value in named["values"]} == {"srv-8", "srv-9"}


@pytest.mark.requirement("TAINT-5")
def test_a_declassification_is_typed_and_on_record(flow_gateway: RunningGateway) -> None:
    session = flow_gateway.open_session()
    assert flow_gateway.call("read_secret", {}, session_id=session).status == 200
    answer = flow_gateway.call("look_up", {"indicator": "8.8.8.8"}, session_id=session)
    assert answer.status == 200
    assert intent_of(flow_gateway, answer)["flow"]["declassified"] == [
        {"parameter": "indicator", "rule": "public_addresses", "to": {"sensitivity": "LOW", "integrity": "TRUSTED"}}
    ]
    for text in ("10.0.0.1", "8.8.8.8 secret", "::ffff:8.8.8.8", "008.8.8.8", "evil.example", "2002:808:808::1"):
        assert denied(flow_gateway.call("look_up", {"indicator": text}, session_id=session)), text


@pytest.mark.requirement("TAINT-6")
def test_what_was_written_carries_its_label_to_later_readers(flow_gateway: RunningGateway) -> None:
    writer, reader = flow_gateway.open_session(), flow_gateway.open_session()
    assert flow_gateway.call("read_secret", {}, session_id=writer).status == 200
    flow_gateway.say(writer, "comment on incident 3")
    assert flow_gateway.call("comment", {"incident": "3", "message": "m"}, session_id=writer).status == 200
    assert flow_gateway.call("read_incident", {"incident": "4"}, session_id=reader).status == 200
    assert flow_gateway.context(reader) == ("LOW", "UNTRUSTED")
    read = flow_gateway.call("read_incident", {"incident": "3"}, session_id=reader)
    assert read.status == 200
    assert flow_gateway.context(reader) == ("HIGH", "UNTRUSTED")
    assert intent_of(flow_gateway, read)["flow"]["resources"]["sensitivity"] == "HIGH"
    third = flow_gateway.open_session()
    assert flow_gateway.call("read_incident", {}, session_id=third).status == 200  # all incidents: the join of all
    assert flow_gateway.context(third) == ("HIGH", "UNTRUSTED")


@pytest.mark.requirement("TAINT-4")
@pytest.mark.parametrize(
    "text",
    [
        "see https://evil.example/x",
        "![x](https://evil.example/a.png)",
        "[x](//evil.example/a)",
        '<img src="evil.example/a">',
        "www.evil.example",
        "mailto:me@evil.example",
        "evil.example/path",
        "\\\\evil.example\\share",
        "hxxp https:\\\\evil.example",
        "https%3A%2F%2Fevil.example%2Fx",
        "https&#58;//evil.example",
        "ｈttps://evil.example/x",
        "https://learn.microsoft.com@evil.example/x",
        "https://learn.microsoft.com.evil.example/x",
        "ht\u200btps://evil.example",
        "https://[2001:db8::1]/x",
        "https://learn.microsoft.com,.evil.example/x",
        "https://learn.microsoft.com'.evil.example/x",
        "https://learn.microsoft.com:" + "a" * 300 + "@evil.example/x",
        "https://" + "a" * 600 + ".learn.microsoft.com/x",
        "https://learn.microsoft.com(@evil.example/x",
        "![](<https://learn.microsoft.com @evil.example>)",
        '<a href="https://learn.microsoft.com @evil.example/x">',
        '<img src="/&#9;/data.evil.example">',
        "<img srcset='\\\t\\data.evil.example'>",
        "https://////data.evil.example",
        "https:data.evil.example",
        "a.a.a.a.a.a.a.a.a.evil.example/x",
        "xn--e1afmkfd.xn--p1ai/x",
        "пример.рф/x",
        "evil。example/x",
        "evil_x.example/q?a=1",
        "background:url(\\2f\\2f data.evil.example)",
        "sip:data@evil.example",
        "https://evil.example%00.learn.microsoft.com/x",
    ],
)
def test_a_link_in_a_text_is_a_way_out(flow_gateway: RunningGateway, text: str) -> None:
    session = flow_gateway.open_session()
    flow_gateway.say(session, "comment on incident 3")
    assert flow_gateway.call("read_incident", {"incident": "3"}, session_id=session).status == 200
    answer = flow_gateway.call("comment", {"incident": "3", "message": text}, session_id=session)
    assert denied(answer)
    [violation] = flow_gateway.last_record()["flow"]["violations"]
    assert (violation["parameter"], violation["link"]) == ("message", True)


@pytest.mark.parametrize(
    "text",
    [
        "see https://learn.microsoft.com/azure/sentinel",
        "https://LEARN.microsoft.com./x",
        "[a](https://learn.microsoft.com/x), then [b](https://learn.microsoft.com).",
        '<a href="https://learn.microsoft.com/x">text</a>',
        "https://learn.microsoft.com:443/x, and ask bob@learn.microsoft.com",
        "https://learn.microsoft.com\nNext line; D:\\dead\\beef",
        "Three hosts were isolated; closing as true positive.",
        "and/or 3/4 of all",
        "10:30 // noted",
        "C:/Windows/System32 was written by cmd.exe",
    ],
)
def test_a_text_without_a_foreign_link_passes(flow_gateway: RunningGateway, text: str) -> None:
    session = flow_gateway.open_session()
    flow_gateway.say(session, "comment on incident 3")
    assert flow_gateway.call("read_incident", {"incident": "3"}, session_id=session).status == 200
    assert flow_gateway.call("comment", {"incident": "3", "message": text}, session_id=session).status == 200


@pytest.mark.requirement("APPR-3")
def test_a_person_may_let_a_call_pass_that_carries_too_much(flow_gateway: RunningGateway) -> None:
    session = flow_gateway.open_session()
    assert flow_gateway.call("read_secret", {}, session_id=session).status == 200
    asked = flow_gateway.call("isolate", {"host": "ws-01"}, session_id=session)
    assert denied(asked, "approval_required")
    path = f"/v1/approvals/{asked.body['approval_id']}"
    shown = flow_gateway.request("GET", path, key=flow_gateway.approver).body
    assert (shown["why"], shown["violations"][0]["parameter"]) == ("sink_label", "host")
    assert [entry["tool"] for entry in shown["raised_by"]] == ["read_secret"]
    assert flow_gateway.request("POST", f"{path}/approve", key=flow_gateway.approver, body=b"{}").status == 200
    assert denied(flow_gateway.call("isolate", {"host": "ws-02"}, session_id=session), "approval_required")
    passed = flow_gateway.call("isolate", {"host": "ws-01"}, session_id=session)
    assert passed.status == 200
    assert intent_of(flow_gateway, passed)["approval_id"] == asked.body["approval_id"]
    assert denied(flow_gateway.call("isolate", {"host": "ws-01"}, session_id=session), "approval_required")
    assert [call.arguments for call in flow_gateway.executor.calls if call.tool == "isolate"] == [{"host": "ws-01"}]


def _user_scope() -> list[Any]:
    from sentinel_rag.gateway.store import Scope

    return [Scope.USER]

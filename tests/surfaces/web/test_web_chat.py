"""POST /chat for people: one answer or events, each question once, resumed after a lost connection, cancelled."""

from __future__ import annotations

import http.client
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import pytest
from running_web import RunningWeb, running_web
from tests.support.web_client import Client, parse_events

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.storage import RecordFile
from sentinel_rag.surfaces.web.turns.record import MIGRATIONS
from sentinel_rag_testing.running_gateway import RunningGateway
from waiting import WAIT_S, until

HIDDEN = "powershell -enc SECRET admin"


class Stream:
    """An answer that is read while it comes, as far as a test wants."""

    def __init__(self, client: Client, method: str, path: str, body: Any = None, after: int | None = None) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(client.url).netloc, timeout=WAIT_S)
        headers = {"Accept": "text/event-stream"} | ({} if after is None else {"Last-Event-ID": str(after)})
        self._response = client.open(self._connection, method, path, body, headers)
        assert self._response.status == 200

    def read(self, count: int) -> list[dict[str, Any]]:
        """The next `count` events."""
        content, found = b"", 0
        while found < count:
            line = self._response.readline()
            assert line, content
            content += line
            found += line == b"\n"
        return parse_events(content)

    def drop(self) -> None:
        """Lose the connection."""
        self._response.close()
        self._connection.close()


@pytest.mark.requirement("SURF-3")
def test_a_question_is_answered_with_the_persons_own_session_and_words(web: RunningWeb) -> None:
    dana = web.browser("dana-chat")
    first = dana.ask("say there are 3 open incidents", workspace="emea", timezone="Europe/Berlin", verbosity="short")
    assert (first["answer"], first["outcome"]) == ("there are 3 open incidents", "answered")
    second = dana.ask("say on host ws-77 too", session_id=first["session_id"])
    assert second["session_id"] == first["session_id"]
    assert second["turn_id"] != first["turn_id"]
    assert web.analyst.options[-2] == {"workspace": "emea", "timezone": "Europe/Berlin", "verbosity": "short"}
    key_id = web.accounts["dana-chat"].key_id
    named = [r for r in web.gateway.records() if r["kind"] == "values_named" and r["session_id"] == first["session_id"]]
    assert [(r["key_id"], r["source"]) for r in named] == [(key_id, "user")]
    assert {"kind": "host", "text": "ws-77"} in named[0]["values"]


@pytest.mark.requirement("SURF-3")
@pytest.mark.requirement("CHAT-14")
def test_events_tell_status_tools_text_evidence_and_the_end(web: RunningWeb) -> None:
    dana = web.browser("dana-events")
    events = dana.events("POST", "/chat", {"message": "call read_alert"})
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    kinds = [event["type"] for event in events]
    assert kinds[:5] == ["started", "status", "status", "tool.started", "tool.finished"]
    assert kinds[-1] == "done"
    finished = events[4]["data"]
    assert (finished["name"], finished["status"]) == ("read_alert", "ok")
    assert finished["audit_id"]
    text = "".join(event["data"]["text"] for event in events if event["type"] == "text")
    assert text == f"/rows/0/Host ws-01\n/rows/0/CommandLine {HIDDEN}\n/total 1"
    assert [event["data"]["number"] for event in events if event["type"] == "evidence"] == [1, 2, 3]
    assert events[-1]["data"]["outcome"] == "answered"
    turn = dana.get(f"/turns/{events[0]['data']['turn_id']}").body
    assert (turn["state"], turn["answer"]["answer"]) == ("answered", text)


def test_the_longest_question_is_answered_however_it_is_written(web: RunningWeb) -> None:
    dana = web.person("dana-long")
    words = "😀" * 7_996
    assert dana.ask(f"say {words}")["answer"] == words  # as escapes, twelve bytes each
    raw = json.dumps({"message": f"say {words}"}, ensure_ascii=False).encode()
    assert dana.post("/chat", raw).body["answer"] == words


CITED = (
    "values_found 1 Incident <number=124> is <severity=High>.|not_found 0 <x=9999> is Low.|"
    "contradicted 2 <number=125> is <severity=Low~Medium>."
)


@pytest.mark.requirement("CHAT-14")
def test_what_the_check_says_of_a_sentence_is_told_with_it_and_kept(web: RunningWeb) -> None:
    dana = web.browser("dana-cites")
    events = dana.events("POST", "/chat", {"message": f"cite {CITED}"})
    kinds = [event["type"] for event in events if event["type"] in ("text", "sentence", "withdrawn")]
    assert kinds == ["text", "sentence"] * 3  # as it came, and not again at its end
    told = [event["data"] for event in events if event["type"] == "sentence"]
    assert [(each["text"], each["state"]) for each in told] == [
        ("Incident 124 is High.", "values_found"),
        ("9999 is Low.", "not_found"),
        ("125 is Low.", "contradicted"),
    ]
    assert [(mark["pointer"], mark["value"]) for mark in told[2]["marks"]][1] == ("/rows/1/severity", "Medium")
    turn_id = events[0]["data"]["turn_id"]
    answer = dana.get(f"/turns/{turn_id}").body["answer"]
    assert answer["sentences"] == told
    assert all(answer["answer"][each["start"] : each["end"]] == each["text"] for each in told)
    assert dana.events("GET", f"/turns/{turn_id}/events") == events


def test_marks_move_with_the_hidden_values_that_a_person_may_see(web: RunningWeb) -> None:
    dana = web.browser("dana-moves")
    session_id = dana.ask("call read_alert")["session_id"]
    place = "⟦r1#/rows/0/CommandLine⟧"
    said = f"values_found 1 It ran <CommandLine={place}> on <Host=ws-01>.|own_words 0 Look.|not_found 1 <x=9> too."
    events = dana.events("POST", "/chat", {"message": f"cite {said}", "session_id": session_id})
    text = "".join(event["data"]["text"] for event in events if event["type"] == "text")
    told = [event["data"] for event in events if event["type"] == "sentence"]
    assert [text[each["start"] : each["end"]] for each in told] == [each["text"] for each in told]
    assert [text[mark["start"] : mark["end"]] for each in told for mark in each["marks"]] == [HIDDEN, "ws-01", "9"]
    turn_id = events[0]["data"]["turn_id"]
    assert dana.get(f"/turns/{turn_id}").body["answer"]["sentences"] == told
    assert dana.events("GET", f"/turns/{turn_id}/events") == events
    [_, kept] = dana.get(f"/conversations/{session_id}").body["items"]
    assert (kept["answer"]["answer"], kept["answer"]["sentences"]) == (text, told)


@pytest.mark.requirement("CHAT-14")
def test_a_lost_connection_resumes_behind_the_last_event_and_the_turn_goes_on(web: RunningWeb) -> None:
    dana = web.browser("dana-resume")
    web.analyst.release.clear()
    stream = Stream(dana, "POST", "/chat", {"message": "wait for the rest"})
    before = stream.read(2)
    stream.drop()
    turn_id, session_id = before[0]["data"]["turn_id"], before[0]["data"]["session_id"]
    [kept] = dana.get(f"/conversations/{session_id}").body["items"]  # what a page sees that was loaded anew
    assert (kept["turn_id"], kept["state"], kept["answer"]) == (turn_id, "running", None)
    again = Stream(dana, "GET", f"/turns/{turn_id}/events", after=2)
    web.analyst.release.set()
    rest = again.read(2)
    again.drop()
    assert [event["type"] for event in before + rest] == ["started", "status", "text", "done"]
    assert [event["id"] for event in before + rest] == [1, 2, 3, 4]
    # Once it is over, the same events come from the record.
    assert dana.events("GET", f"/turns/{turn_id}/events", after=2) == rest
    assert dana.events("GET", f"/turns/{turn_id}/events") == before + rest
    assert dana.request("GET", f"/turns/{turn_id}/events", None, {"Last-Event-ID": "4"}).status == 204
    assert web.analyst.asked[-1][1] == "wait for the rest"
    assert "wait for the rest" not in web.analyst.stopped


def test_a_reader_that_does_not_read_holds_up_nobody(web: RunningWeb) -> None:
    dana, erin = web.browser("dana-slow"), web.browser("erin-slow")
    deaf = Stream(dana, "POST", "/chat", {"message": "long 150"})  # more than the sockets between them hold
    turn_id = deaf.read(1)[0]["data"]["turn_id"]
    whole = dana.events("GET", f"/turns/{turn_id}/events")  # another page of the same person reads it all
    assert sum(event["type"] == "text" for event in whole) == 150
    assert whole[-1]["type"] == "done"
    assert erin.ask("say hello")["answer"] == "hello"
    assert deaf.read(len(whole) - 1) == whole[1:]  # and it was all kept for the one that had not read
    deaf.drop()


def test_a_question_is_cancelled_at_the_agent_too(web: RunningWeb) -> None:
    dana = web.browser("dana-cancel")
    web.analyst.release.clear()
    stream = Stream(dana, "POST", "/chat", {"message": "wait for ever"})
    turn_id = stream.read(2)[0]["data"]["turn_id"]
    answer = dana.delete(f"/turns/{turn_id}")
    assert (answer.status, answer.body["state"]) == (202, "stopped")
    [last] = stream.read(1)
    stream.drop()
    assert (last["type"], last["data"]["reason"]) == ("error", "cancelled")
    assert dana.delete(f"/turns/{turn_id}").body["state"] == "stopped"  # once more changes nothing
    session_id = dana.get(f"/turns/{turn_id}").body["session_id"]
    until(lambda: "wait for ever" in web.analyst.stopped)
    web.analyst.release.set()
    assert dana.ask("say still there", session_id=session_id)["answer"] == "still there"


@pytest.mark.parametrize("named", ["body", "header"])
def test_the_same_request_id_is_the_same_turn_however_often_it_comes(web: RunningWeb, named: str) -> None:
    dana, erin = web.browser(f"dana-once-{named}"), web.browser(f"erin-once-{named}")
    message = f"say once by {named}"

    def send(client: Client, message: str = message) -> tuple[int, Any]:
        body = {"message": message, **({"request_id": "r-1"} if named == "body" else {})}
        headers = {"Idempotency-Key": "r-1"} if named == "header" else {}
        answer = client.request("POST", "/chat", body, headers)
        return answer.status, answer.body

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: send(dana), range(4)))
    assert {status for status, _ in answers} == {200}
    assert len({body["turn_id"] for _, body in answers}) == 1
    assert [question for _, question in web.analyst.asked].count(message) == 1
    assert send(dana, "say something else")[1]["reason"] == "request_id_used"
    assert send(erin)[1]["turn_id"] != answers[0][1]["turn_id"]  # another person's ids are their own


def test_two_questions_of_one_conversation_wait_for_each_other(web: RunningWeb) -> None:
    dana = web.browser("dana-order")
    session_id = dana.ask("say first")["session_id"]
    web.analyst.release.clear()
    waiting = Stream(dana, "POST", "/chat", {"message": "wait second", "session_id": session_id})
    waiting.read(2)
    third = Stream(dana, "POST", "/chat", {"message": "say third", "session_id": session_id})
    assert third.read(1)[0]["data"]["number"] == 3

    def asked() -> list[str]:
        return [question for session, question in web.analyst.asked if session == session_id]

    assert asked() == ["say first", "wait second"]
    web.analyst.release.set()
    assert [event["type"] for event in third.read(3)] == ["status", "text", "done"]
    assert asked() == ["say first", "wait second", "say third"]
    waiting.drop()
    third.drop()


def test_a_person_has_so_many_questions_on_their_way_and_no_more(web: RunningWeb) -> None:
    dana = web.browser("dana-many")
    web.analyst.release.clear()
    streams = [Stream(dana, "POST", "/chat", {"message": f"wait {number}"}) for number in range(4)]
    turns = [stream.read(1)[0]["data"]["turn_id"] for stream in streams]
    refused = dana.post("/chat", {"message": "say one more"})
    assert (refused.status, refused.body["reason"]) == (429, "too_many_turns")
    assert refused.headers["retry-after"]
    assert web.browser("erin-many").ask("say hello")["answer"] == "hello"
    for turn_id in turns:
        dana.delete(f"/turns/{turn_id}")
    web.analyst.release.set()
    assert dana.ask("say room again")["answer"] == "room again"
    for stream in streams:
        stream.drop()


@pytest.mark.requirement("TAINT-3")
def test_hidden_values_are_drawn_for_who_may_see_them_and_never_stored(web: RunningWeb) -> None:
    cleared, other = web.browser("dana-high"), web.browser("erin-low", clearance=Sensitivity.LOW)
    seen = cleared.ask("call read_alert")
    assert HIDDEN in seen["answer"]
    hidden = other.ask("call read_alert")
    assert HIDDEN not in json.dumps(hidden)
    assert "⟦r1#/rows/0/CommandLine⟧" in hidden["answer"]
    piece = cleared.get(f"/turns/{seen['turn_id']}/evidence/2").body
    assert (piece["value"], piece["call"]["name"], piece["row"]) == (
        HIDDEN,
        "read_alert",
        {"Host": "ws-01", "CommandLine": HIDDEN},
    )
    assert HIDDEN not in other.get(f"/turns/{hidden['turn_id']}/evidence/2").content.decode()
    kept = cleared.get(f"/conversations/{seen['session_id']}")
    assert HIDDEN in kept.content.decode()
    with web.web.record._records.transaction(reads=True) as run:
        rows = run.execute("SELECT answer, events FROM turn").fetchall()
    assert rows
    assert not any(HIDDEN in (text or "") for row in rows for text in row)


def test_a_fault_of_the_agent_is_told_without_its_inside_and_the_conversation_goes_on(web: RunningWeb) -> None:
    dana = web.browser("dana-fault")
    answer = dana.post("/chat", {"message": "fail now"})
    assert answer.status == 503
    assert answer.body["reason"] == "unavailable"
    assert b"secret of the inside" not in answer.content
    events = dana.events("POST", "/chat", {"message": "fail again"})
    assert [event["type"] for event in events][-1] == "error"
    assert dana.ask("say well again")["answer"] == "well again"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[]", 422),
        (b"\xff\xfe", 422),
        (b'{"message": ""}', 422),
        (b'{"message": "   "}', 422),
        (b'{"message": 7}', 422),
        (b'{"message": "\\ud800"}', 422),
        (b'{"message": "x", "session_id": "../../etc"}', 422),
        (b'{"message": "x", "label": "LOW"}', 422),
        (b'{"message": "x", "timezone": "Mars/Olympus"}', 422),
        (b'{"message": "' + b"x" * 9000 + b'"}', 422),
        (b'{"message": "' + b"x" * 140_000 + b'"}', 413),
        (b'{"message": "x", "session_id": "0123456789abcdef"}', 404),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_body_that_is_not_as_documented_is_refused_in_one_form(web: RunningWeb, body: bytes, status: int) -> None:
    dana = web.person("dana-bodies")
    answer = dana.request("POST", "/chat", body)
    assert answer.status == status, answer.content
    assert set(answer.body) >= {"detail", "reason", "next_step"}
    assert "Mars" not in answer.content.decode()


def test_what_is_wrong_with_a_body_is_a_plain_sentence_and_the_next_step_names_the_field(web: RunningWeb) -> None:
    dana = web.person("dana-bodies")
    told = {}
    for body in (
        b"{",
        b"[]",
        b"{}",
        b'{"message": ""}',
        b'{"message": 7}',
        b'{"message": "x", "label": "LOW"}',
        b'{"message": "x", "timezone": "Mars/Olympus"}',
        b'{"message": "x", "verbosity": "loud"}',
    ):
        answer = dana.request("POST", "/chat", body).body
        told[body] = (answer["detail"], answer["next_step"].split(" and ")[0])
    assert list(told.values()) == [
        ("The body is not JSON.", "Correct body"),
        ("The body must be an object.", "Correct body"),
        ("message is missing.", "Correct message"),
        ("message is empty.", "Correct message"),
        ("message must be a text.", "Correct message"),
        ("label is no field of this request.", "Correct label"),
        (
            "timezone: there is no time zone of that name; names are like Europe/Berlin or UTC.",
            "Correct timezone",
        ),
        ("verbosity must be 'short', 'normal' or 'full'.", "Correct verbosity"),
    ]


@pytest.mark.requirement("CHAT-14")
def test_text_comes_while_the_agent_still_writes_and_is_told_once(web: RunningWeb) -> None:
    dana = web.browser("dana-writes")
    web.analyst.release.clear()
    question = "write Three are open.| One is High.|...| The last one is 40."
    stream = Stream(dana, "POST", "/chat", {"message": question})
    begun = stream.read(4)
    stream.drop()
    assert [event["type"] for event in begun] == ["started", "status", "text", "text"]
    web.analyst.release.set()
    turn_id = begun[0]["data"]["turn_id"]
    rest = Stream(dana, "GET", f"/turns/{turn_id}/events", after=4)
    events = [*begun, *rest.read(2)]
    rest.drop()
    assert [event["type"] for event in events[4:]] == ["text", "done"]
    text = "".join(event["data"]["text"] for event in events[2:-1])
    assert text == "Three are open. One is High. The last one is 40."
    assert dana.get(f"/turns/{turn_id}").body["answer"]["answer"] == text


@pytest.mark.requirement("CHAT-14")
def test_what_was_written_before_a_stop_is_kept_with_the_turn_and_its_hidden_values_are_not(web: RunningWeb) -> None:
    dana = web.browser("dana-stops")
    first = dana.ask("call read_alert")
    web.analyst.release.clear()
    question = "write It ran ⟦r1#/rows/0/CommandLine⟧.| It is High.|..."
    stream = Stream(dana, "POST", "/chat", {"message": question, "session_id": first["session_id"]})
    turn_id = stream.read(4)[0]["data"]["turn_id"]
    assert dana.delete(f"/turns/{turn_id}").body["state"] == "stopped"
    stream.drop()
    written = f"It ran {HIDDEN}. It is High."
    turn = dana.get(f"/turns/{turn_id}").body
    assert (turn["state"], turn["answer"], turn["written"]) == ("stopped", None, written)
    kept = dana.get(f"/conversations/{first['session_id']}").body["items"]
    assert [(each["state"], each["written"]) for each in kept] == [("answered", None), ("stopped", written)]
    with web.web.record._records.transaction(reads=True) as run:
        [(events,)] = run.execute("SELECT events FROM turn WHERE turn_id = ?", [turn_id]).fetchall()
    assert HIDDEN not in events


@pytest.mark.requirement("CHAT-14")
def test_what_is_taken_back_is_told_and_stays_in_the_events_of_the_turn(web: RunningWeb) -> None:
    dana = web.browser("dana-takes-back")
    events = dana.events("POST", "/chat", {"message": "write Let me look.|<|Three are open.| None is High."})
    kinds = [event["type"] for event in events]
    assert kinds == ["started", "status", "text", "withdrawn", "text", "text", "done"]
    turn_id = events[0]["data"]["turn_id"]
    assert dana.get(f"/turns/{turn_id}").body["answer"]["answer"] == "Three are open. None is High."
    replayed = Stream(dana, "GET", f"/turns/{turn_id}/events")
    again = replayed.read(len(events))
    replayed.drop()
    assert [(event["id"], event["type"], event["data"]) for event in again] == [
        (event["id"], event["type"], event["data"]) for event in events
    ]


@pytest.mark.requirement("CHAT-14")
def test_hidden_values_are_drawn_in_text_that_comes_early_and_are_not_recorded(web: RunningWeb) -> None:
    dana = web.browser("dana-early-values")
    first = dana.ask("call read_alert")
    handle = "⟦r1#/rows/0/CommandLine⟧"
    body = {"message": f"write It ran {handle}.| So it did.", "session_id": first["session_id"]}
    events = dana.events("POST", "/chat", body)
    text = "".join(event["data"]["text"] for event in events if event["type"] == "text")
    assert text == f"It ran {HIDDEN}. So it did."
    kept = web.web.record.turn(events[0]["data"]["turn_id"], web.accounts["dana-early-values"].user_id)
    assert kept is not None
    assert HIDDEN not in str(kept)
    assert handle in str(kept.events)


def test_an_answer_whose_end_could_not_be_recorded_is_recorded_as_soon_as_it_can_be(
    web_gateway: RunningGateway, tmp_path: Path
) -> None:
    """Else the turn would count as one that is being answered for as long as this surface lives, and at another one the
    rest of the conversation would wait for it."""
    file = tmp_path / "turns.sqlite"
    kept = RecordFile(file, MIGRATIONS, what="The record of conversations", busy_s=0.0)
    with running_web(web_gateway, tmp_path, turns=kept) as web:
        dana = web.browser("dana-recorded-later")
        web.analyst.release.clear()
        stream = Stream(dana, "POST", "/chat", {"message": "wait for it"})
        turn_id = stream.read(2)[0]["data"]["turn_id"]
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            web.analyst.release.set()
            while stream.read(1)[0]["type"] != "done":
                pass
            assert dana.get(f"/turns/{turn_id}").body["state"] == "running"
            other.execute("ROLLBACK")
        stream.drop()
        while (turn := dana.get(f"/turns/{turn_id}").body)["state"] == "running":
            sleep(0.02)
        assert (turn["state"], bool(turn["answer"]["answer"])) == ("answered", True)

"""POST /chat over a real socket: who may ask, what a body may be, how an answer and its progress arrive."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from tests.support.obedient_analyst import cited_answer

from sentinel_rag.contracts.conversations import CarriedFact, Verbosity
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress
from sentinel_rag.contracts.ports import Question
from sentinel_rag.surfaces.http import create_app
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

TOKEN = "a-surface-token-of-the-tests"


FACT = CarriedFact("Incident 38 is High.", "2024-07-02T10:00:00Z", "query_incidents", "c1", "/rows/0/severity")


class EchoAnalyst:
    """An analyst whose answer is the question; some questions make it slow, or fail."""

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        self.most_at_once = 0
        self.forgotten: list[str] = []
        self.workspaces: list[str | None] = []
        self.chosen: list[tuple[str | None, Verbosity | None]] = []
        self.cleared: list[str] = []
        self.deleted: list[str] = []

    async def answer(self, asked: Question) -> Answer:
        question, session_id, progress = asked.text, asked.session_id, asked.progress
        self.workspaces.append(asked.preferences.workspace)
        self.chosen.append((asked.preferences.timezone, asked.preferences.verbosity))
        self.running[session_id] = self.running.get(session_id, 0) + 1
        self.most_at_once = max(self.most_at_once, self.running[session_id])
        try:
            if progress is not None:
                progress(Progress("Querying incidents...", 0.5))
                for part in question.removeprefix("write ").split("|") if question.startswith("write ") else ():
                    progress(Progress("", written=part))
            if question.startswith("cite "):
                return cited_answer(question.removeprefix("cite "), session_id, progress)
            if question == "for ever":
                await anyio.sleep_forever()
            if question == "a fault of ours":
                raise RuntimeError("a secret of the inside")
            await anyio.sleep(0.01)
            return Answer(outcome=Outcome.ANSWERED, text=question, session_id=session_id)
        finally:
            self.running[session_id] -= 1

    async def delete(self, session_id: str) -> None:
        self.deleted.append(session_id)

    async def clear(self, session_id: str, *, carry: bool) -> tuple[CarriedFact, ...]:
        (self.cleared if carry else self.forgotten).append(session_id)
        return (FACT,) if carry else ()


@pytest.fixture
def analyst() -> EchoAnalyst:
    return EchoAnalyst()


@pytest.fixture
def address(analyst: EchoAnalyst) -> Iterator[str]:
    with serve(create_app(analyst, token=TOKEN, question_timeout_s=60)) as url:
        yield url.removeprefix("http://")


def request(
    address: str, body: object = None, *, method: str = "POST", path: str = "/chat", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=WAIT_S)
    given = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body)
        connection.request(method, path, data, given)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.requirement("DATA-3")
def test_the_workspace_of_a_question_reaches_the_analyst(address: str, analyst: EchoAnalyst) -> None:
    assert request(address, {"message": "x", "workspace": "emea"})[0] == 200
    assert request(address, {"message": "x"})[0] == 200
    for wrong in ("EMEA", "", "a b", "x" * 41, 5):
        assert request(address, {"message": "x", "workspace": wrong})[0] == 422
    assert analyst.workspaces == ["emea", None]


def test_time_zone_and_verbosity_of_a_question_reach_the_analyst(address: str, analyst: EchoAnalyst) -> None:
    assert request(address, {"message": "x", "timezone": "Europe/Berlin", "verbosity": "short"})[0] == 200
    assert request(address, {"message": "x"})[0] == 200
    for wrong in (
        {"timezone": "Mars/Olympus"},
        {"timezone": "../../etc/passwd"},
        {"timezone": ""},
        {"verbosity": "chatty"},
        {"verbosity": 3},
    ):
        assert request(address, {"message": "x", **wrong})[0] == 422
    assert analyst.chosen == [("Europe/Berlin", Verbosity.SHORT), (None, None)]


def test_a_question_is_answered_in_its_session(address: str) -> None:
    status, body = request(address, {"message": "how many?", "session_id": "session-0001"})
    assert status == 200
    answer = Answer.from_dict(json.loads(body))
    assert (answer.text, answer.session_id) == ("how many?", "session-0001")


def test_without_a_session_each_question_gets_one_of_its_own(address: str) -> None:
    first, second = (json.loads(request(address, {"message": "x"})[1])["session_id"] for _ in range(2))
    assert first != second


def test_progress_arrives_before_the_answer(address: str) -> None:
    status, body = request(address, {"message": "how many?"}, Accept="text/event-stream")
    assert status == 200
    events = [block.split(b"\n") for block in body.strip().split(b"\n\n")]
    assert [event[0] for event in events] == [b"event: progress", b"event: answer"]
    assert json.loads(events[0][1].removeprefix(b"data: ")) == {"text": "Querying incidents...", "elapsed_s": 0.5}
    assert json.loads(events[1][1].removeprefix(b"data: "))["answer"] == "how many?"


@pytest.mark.requirement("CHAT-14")
def test_text_arrives_as_it_is_written_and_none_of_it_is_lost_to_a_slow_reader(address: str) -> None:
    pieces = [f"Sentence {number}. " for number in range(500)]
    status, body = request(address, {"message": f"write {'|'.join(pieces)}"}, Accept="text/event-stream")
    assert status == 200
    blocks = [block.split(b"\n") for block in body.strip().split(b"\n\n")]
    text = [json.loads(data.removeprefix(b"data: "))["text"] for name, data in blocks if name == b"event: text"]
    assert text == pieces
    # This analyst answers something else than it wrote, so what was written is taken back before the answer.
    assert [name for name, _ in blocks[-2:]] == [b"event: withdrawn", b"event: answer"]


@pytest.mark.requirement("CHAT-14")
def test_what_the_check_says_arrives_behind_the_text_that_it_is_about(address: str) -> None:
    script = "cite values_found 1 <number=124> is new.|not_found 0 It is <x=Low>."
    _, body = request(address, {"message": script}, Accept="text/event-stream")
    blocks = [block.split(b"\n") for block in body.strip().split(b"\n\n")]
    assert [name.removeprefix(b"event: ") for name, _ in blocks] == [
        b"progress",
        *(b"text", b"sentences") * 2,
        b"answer",
    ]
    told = [json.loads(data.removeprefix(b"data: ")) for name, data in blocks if name == b"event: sentences"]
    answer = json.loads(blocks[-1][1].removeprefix(b"data: "))
    assert [sentence for each in told for sentence in each["sentences"]] == answer["sentences"]


def test_a_question_over_its_time_is_stopped_and_says_so(analyst: EchoAnalyst) -> None:
    with serve(create_app(analyst, token=TOKEN, question_timeout_s=0.3)) as url:
        answer = Answer.from_dict(json.loads(request(url.removeprefix("http://"), {"message": "for ever"})[1]))
    assert answer.outcome is Outcome.TOOL_FAILED
    assert "SENTINEL_QUESTION_TIMEOUT_S" in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong-token-wrong-token"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Origin": "https://evil.example"}, 421),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/chat"),
        ("DELETE", "/chat/session-0001"),
        ("POST", "/chat/session-0001/clear"),
        ("DELETE", "/conversations/session-0001"),
    ],
)
def test_who_has_no_token_or_another_host_gets_nothing(
    address: str, analyst: EchoAnalyst, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    got, body = request(address, {"message": "secret"}, method=method, path=path, **headers)
    assert got == status
    assert b"secret" not in body
    assert not analyst.running
    assert not analyst.forgotten
    assert not analyst.cleared
    assert not analyst.deleted


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[]", 422),
        (b'{"message": ""}', 422),
        (b'{"message": 7}', 422),
        (b'{"message": "x", "session_id": "../../etc"}', 422),
        (b'{"message": "x", "label": "LOW"}', 422),
        (b'{"message": "' + b"x" * 9000 + b'"}', 422),
        (b'{"message": "' + b"x" * 70_000 + b'"}', 413),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_body_that_is_not_as_documented_is_refused(address: str, body: bytes, status: int) -> None:
    got, answer = request(address, body)
    assert got == status
    assert json.loads(answer)["detail"]


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/chat", 405), ("POST", "/nowhere", 404)])
def test_wrong_routes_are_json_too(address: str, method: str, path: str, status: int) -> None:
    got, answer = request(address, method=method, path=path)
    assert got == status
    assert json.loads(answer)["reason"]


def test_a_fault_of_ours_tells_nothing_of_the_inside_and_the_next_question_works(address: str) -> None:
    status, body = request(address, {"message": "a fault of ours"})
    assert status == 500
    assert b"secret of the inside" not in body
    assert request(address, {"message": "still there?"})[0] == 200


def test_one_conversation_takes_one_question_at_a_time(address: str, analyst: EchoAnalyst) -> None:
    async def ask_all() -> None:
        async with anyio.create_task_group() as group:
            for i in range(8):
                body = {"message": str(i), "session_id": "session-0001"}
                group.start_soon(anyio.to_thread.run_sync, request, address, body)

    anyio.run(ask_all)
    assert analyst.most_at_once == 1


def test_a_cleared_conversation_is_forgotten(address: str, analyst: EchoAnalyst) -> None:
    assert request(address, method="DELETE", path="/chat/session-0001")[0] == 204
    assert analyst.forgotten == ["session-0001"]


def test_a_deleted_conversation_is_deleted(address: str, analyst: EchoAnalyst) -> None:
    assert request(address, method="DELETE", path="/conversations/session-0001")[0] == 204
    assert (analyst.deleted, analyst.forgotten) == (["session-0001"], [])


@pytest.mark.requirement("CHAT-7")
def test_a_clear_that_carries_facts_on_tells_them(address: str, analyst: EchoAnalyst) -> None:
    status, body = request(address, path="/chat/session-0001/clear")
    assert status == 200
    assert json.loads(body) == {"carried": [FACT.to_dict()]}
    assert (analyst.cleared, analyst.forgotten) == (["session-0001"], [])


def test_health_needs_no_token(address: str) -> Any:
    assert request(address, method="GET", path="/healthz", Authorization="")[0] == 200

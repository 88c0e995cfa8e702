"""The rig with which somebody plays the model: what is asked becomes a file, and a file becomes the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from bench.playing import runs, wire

from sentinel_rag.agent.answers.repair import ASKED
from sentinel_rag.agent.answers.results_file import results_document
from sentinel_rag.agent.prompts import prompt
from waiting import until

TOOL = {"type": "function", "function": {"name": "query_incidents", "description": "Incidents.", "parameters": {}}}
RULES = {"role": "system", "content": "The rules."}


@contextmanager
def played(folder: Path) -> Iterator[Any]:
    """Posts a request in another thread; the caller answers it."""
    with wire._Server(0, folder) as server, ThreadPoolExecutor(1) as pool:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

        def post(*messages: dict[str, Any], stream: bool = True) -> Future[str]:
            connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
            body = json.dumps({"messages": [RULES, *messages], "tools": [TOOL], "stream": stream})

            def ask() -> str:
                connection.request("POST", "/v1/chat/completions", body)
                return connection.getresponse().read().decode()

            asked = len(wire.requests(folder))
            future = pool.submit(ask)
            until(lambda: len(wire.requests(folder)) > asked)
            return future

        yield post
        server.shutdown()


def test_a_request_is_told_without_what_an_earlier_one_held(tmp_path: Path) -> None:
    question, call = {"role": "user", "content": "what is open?"}, tmp_path / "call.yaml"
    call.write_text("calls: [{tool: query_incidents, arguments: {status: Open}}]")
    with played(tmp_path) as post:
        first = post(question)
        runs.reply_to(tmp_path, "1", call)
        assert "query_incidents" in first.result()
        second = post(question, {"role": "tool", "tool_call_id": "a", "content": "[c1.1] 124"}, stream=False)
        (tmp_path / "text.md").write_text("124 is open [c1.1].")
        runs.reply_to(tmp_path, "2", tmp_path / "text.md")
        assert json.loads(second.result())["choices"][0]["message"]["content"] == "124 is open [c1.1]."
    told = [path.with_suffix(".txt").read_text() for path in wire.requests(tmp_path)]
    assert "The rules." in told[0]
    assert "Incidents." in told[0]
    assert told[1] == "(2 messages that you know stand before this)\n\n== TOOL\n[c1.1] 124\n"


def test_a_reply_that_cannot_be_read_and_one_that_nobody_waits_for_are_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("call: query_incidents")
    with pytest.raises(ValueError, match="calls"):
        wire.read_reply(tmp_path / "wrong.yaml")
    with pytest.raises(ValueError, match="does not wait"):
        runs.reply_to(tmp_path, "1", tmp_path / "wrong.yaml")


def test_the_draft_is_what_the_repair_was_asked_of(tmp_path: Path) -> None:
    draft = {"role": "assistant", "content": "124 is Low [c1.1]."}
    for number, messages, reply in (
        (1, [RULES], "124 is Low [c1.1]."),
        (2, [RULES, draft, {"role": "user", "content": f"{ASKED}\n1. ..."}], "1: 124 is High [c1.1]."),
    ):
        path = tmp_path / "requests" / f"{number:03}.request.json"
        wire.write_json(path, {"messages": messages})
        wire.write_json(wire.reply_file(path), {"text": reply})
    asked = wire.requests(tmp_path)
    results = results_document((), timezone="UTC", said=())
    assert runs.draft_and_reply(asked[:1], results) == ("124 is Low [c1.1].", "")
    assert runs.draft_and_reply(asked, results) == ("124 is Low [c1.1].", "1: 124 is High [c1.1].")


def test_the_draft_has_the_sources_that_were_given_for_it(tmp_path: Path) -> None:
    draft = {"role": "assistant", "content": "Incident 124 is Low."}
    asked = {"role": "user", "content": f"{prompt('sources').text}\n1. Incident 124 is Low."}
    path = tmp_path / "requests" / "001.request.json"
    wire.write_json(path, {"messages": [RULES, draft, asked]})
    wire.write_json(wire.reply_file(path), {"text": "1: c1.1"})
    results = results_document((), timezone="UTC", said=())
    assert runs.draft_and_reply(wire.requests(tmp_path), results) == ("Incident 124 is Low [c1.1].", "")


def test_a_pair_does_not_tell_which_answer_is_ours(tmp_path: Path) -> None:
    player, out = tmp_path / "player", tmp_path / "pairs"
    answer = "124 is open.\n\n---\n\nSo is 125.\n\n---\n\nThis analysis must be verified by a person before acting."
    wire.write_json(player / "runs" / "q01.json", {"name": "q01", "question": "Open?", "answer": {"answer": answer}})
    (player / "plain").mkdir()
    (player / "plain" / "q01.md").write_text("It is 124.\n")
    runs.pairs([player], out)
    page = (out / "pair-01.md").read_text()
    key = json.loads((tmp_path / "pairs.key.json").read_text())["pair-01"]
    texts = {"here": "124 is open.\n\n---\n\nSo is 125.", "plain": "It is 124."}
    assert page == f"# QUESTION\n\nOpen?\n\n# ANSWER A\n\n{texts[key['A']]}\n\n# ANSWER B\n\n{texts[key['B']]}\n"


def test_a_column_that_held_only_sources_tells_no_judge_whose_text_it_is() -> None:
    held = (
        "Three days:\n\n| Day | Alerts | Source |\n|---|---|---|\n| 28 Nov | 2 |  |\n| 29 Nov | 7 | , |\n\nMore then."
    )
    bare = "Three days:\n\n| Day | Alerts |\n|---|---|\n| 28 Nov | 2 |\n| 29 Nov | 7 |\n\nMore then."
    assert runs.without_empty_columns(held) == bare
    assert runs.without_empty_columns(bare) == bare
    assert runs.without_empty_columns("| Host | Note |\n|---|---|\n| a | |\n| b | seen |") == (
        "| Host | Note |\n|---|---|\n| a | |\n| b | seen |"
    )

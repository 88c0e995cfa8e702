"""The served model: each request becomes a file that somebody answers with another file.

A request is told without what an earlier one held: the rules and the tools stand in the first one only.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any

import yaml

from sentinel_rag_testing.scripted_model import Reply, calls_reply, json_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import Event, completion, event_bytes

DEADLINE_S = 1_200.0
_POLL_S = 0.2
_CHARACTERS_A_TOKEN = 4


def requests(folder: Path) -> list[Path]:
    """The requests so far, oldest first: `NUMBER.request.json`, readable in `NUMBER.request.txt`."""
    return sorted((folder / "requests").glob("*.request.json"))


def reply_file(request: Path) -> Path:
    return request.with_name(request.name.replace(".request.", ".reply."))


def write_json(path: Path, document: Any) -> None:
    """Write a whole file at once: others wait for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")
    part.replace(path)


def read_reply(path: Path) -> dict[str, Any]:
    """A player's reply: `text` or `calls` of a .json or .yaml file; any other file is text. Raises ValueError."""
    told = path.read_text(encoding="utf-8")
    if path.suffix not in (".json", ".yaml", ".yml"):
        return {"text": told.strip()}
    try:
        document = yaml.safe_load(told)
        if "text" in document:
            return {"text": str(document["text"])}
        return {"calls": [(str(call["tool"]), dict(call.get("arguments") or {})) for call in document["calls"]]}
    except (yaml.YAMLError, TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{path} has neither `text:` nor `calls: [{{tool:, arguments: {{}}}}]`: {error!r}") from None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, folder: Path) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.folder, self.lock = folder, Lock()
        self.told: list[list[Any]] = []
        self.tools: set[str] = set()

    def keep(self, body: Mapping[str, Any]) -> Path:
        """Write a request down; the readable form first, since the other one is waited for."""
        with self.lock:
            path = self.folder / "requests" / f"{len(requests(self.folder)) + 1:03}.request.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".txt").write_text("\n\n".join(self._news(body)) + "\n", encoding="utf-8")
            write_json(path, body)
        return path

    def _news(self, body: Mapping[str, Any]) -> Iterator[str]:
        messages = list(body["messages"])
        same = (takewhile(lambda pair: pair[0] == pair[1], zip(messages, each, strict=False)) for each in self.told)
        known = max((len(list(pairs)) for pairs in same), default=0)
        self.told.append(messages)
        yield f"({known} messages that you know stand before this)"
        for message in messages[known:]:
            calls = (
                f"-> {call['function']['name']} {call['function']['arguments']}"
                for call in message.get("tool_calls", ())
            )
            yield "\n".join((f"== {message['role'].upper()}", message.get("content") or "", *calls))
        for function in (tool["function"] for tool in body.get("tools") or ()):
            told = f"== TOOL {function['name']}: {function['description']}\n{json.dumps(function['parameters'])}"
            if told not in self.tools:
                self.tools.add(told)
                yield told
        if body.get("tool_choice") == "none":
            yield "== NO TOOL CAN BE CALLED NOW: answer in text"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._send(json_reply({"object": "list", "data": [{"id": "played", "object": "model"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = self.server.keep(body)
        deadline = time.monotonic() + DEADLINE_S
        while not reply_file(request).exists():
            if time.monotonic() > deadline or self._left():
                write_json(reply_file(request), {"gone": True})
                self._send(json_reply({"error": {"message": "Nobody answered.", "code": "timeout"}}, 504))
                return
            time.sleep(_POLL_S)
        self._send(_reply(json.loads(reply_file(request).read_text(encoding="utf-8")), body))

    def _left(self) -> bool:
        """True if the client has hung up."""
        return bool(select.select([self.connection], [], [], 0)[0]) and not self.connection.recv(1, socket.MSG_PEEK)

    def _send(self, reply: Reply) -> None:
        parts = (event_bytes(part.document) if isinstance(part, Event) else part.content for part in reply.parts)
        content = b"".join(parts)
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are kept as files."""


def _reply(told: Mapping[str, Any], body: Mapping[str, Any]) -> Reply:
    prompt = len(json.dumps(body, ensure_ascii=False)) // _CHARACTERS_A_TOKEN
    calls, first = told.get("calls", ()), len(body["messages"]) * 100
    if body.get("stream"):
        return calls_reply(*calls, first=first, prompt=prompt) if calls else text_reply(told["text"], prompt=prompt)
    if not calls:
        return json_reply(completion({"content": told["text"]}))
    functions = ({"name": name, "arguments": json.dumps(given)} for name, given in calls)
    asked = [{"id": f"call_{at}", "type": "function", "function": each} for at, each in enumerate(functions, first)]
    return json_reply(completion({"content": None, "tool_calls": asked}, "tool_calls"))


def serve(port: int, folder: Path) -> None:
    """Serve until it is interrupted."""
    folder.mkdir(parents=True, exist_ok=True)
    with _Server(port, folder) as server:
        (folder / "port").write_text(str(server.server_port))
        print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
        server.serve_forever()

"""A reader of an answer that stops reading: it is dropped, its place is free again, and it goes on where it was."""

from __future__ import annotations

import http.client
import select
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from running_web import running_web
from tests.support.web_client import parse_events

from sentinel_rag.app import serving
from sentinel_rag.surfaces.web import PersonLimits
from sentinel_rag_testing.running_gateway import RunningGateway
from waiting import WAIT_S

WAIT_MS = WAIT_S * 1_000
STREAM = {"Accept": "text/event-stream"}


@pytest.mark.requirement("SURF-3")
def test_a_deaf_reader_is_dropped_and_resumes_behind_its_last_event(
    web_gateway: RunningGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "READER_SECONDS", 1.0)
    with running_web(web_gateway, tmp_path, limits=PersonLimits(streams=1)) as web:
        dana = web.browser("dana-deaf")
        line = http.client.HTTPConnection(urlsplit(web.url).netloc, timeout=WAIT_S)
        line.sock = socket.socket()
        line.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        line.sock.connect((urlsplit(web.url).hostname, urlsplit(web.url).port))
        answer = dana.open(line, "POST", "/chat", {"message": "long 300"}, STREAM)
        assert answer.status == 200
        ended = select.poll()
        ended.register(answer.fileno(), select.POLLHUP)
        assert ended.poll(WAIT_MS)  # nothing was read, and the server has ended the connection
        with pytest.raises((ConnectionError, http.client.IncompleteRead)) as lost:
            answer.read()
        line.close()
        monkeypatch.undo()
        came = lost.value.partial if isinstance(lost.value, http.client.IncompleteRead) else b""
        seen = parse_events(came.rpartition(b"\n\n")[0])

        [conversation] = dana.get("/conversations").body["conversations"]
        [turn] = dana.get(f"/conversations/{conversation['session_id']}").body["items"]
        path, behind = f"/turns/{turn['turn_id']}/events", {"Last-Event-ID": str(len(seen))}
        while (rest := dana.request("GET", path, None, {**STREAM, **behind})).status == 429:
            assert rest.body["reason"] == "too_many_streams"  # its place is given back a moment later
        events = [*seen, *parse_events(rest.content)]
        assert [event["id"] for event in events] == list(range(1, len(events) + 1))
        assert sum(event["type"] == "text" for event in events) == 300
        assert events[-1]["type"] == "done"

"""The card for a Teams channel: that a call waits and where to look, with nothing of what the call says."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from approval_policy import DISABLE, ask, open_gateway
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.gateway.approval_webhook import Webhook
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

SECRET = "a-shared-secret-of-more-than-32-characters"
PAGE = "https://sentinel.example.com/"


class Channel:
    """A workflow on loopback: it answers 202 as Power Automate does, and keeps what was posted."""

    def __init__(self) -> None:
        self.posted: queue.Queue[tuple[bytes, dict[str, str]]] = queue.Queue()

    async def take(self, request: Request) -> Response:
        self.posted.put((await request.body(), dict(request.headers)))
        return Response(status_code=202)


@pytest.fixture
def channel() -> Iterator[tuple[str, Channel]]:
    made = Channel()
    with serve(Starlette(routes=[Route("/workflows/1", made.take, methods=["POST"])])) as url:
        yield f"{url}/workflows/1?sig=of-the-workflow", made


def posted(channel: tuple[str, Channel], folder: Path, page: str | None) -> tuple[str, bytes, dict[str, str]]:
    with open_gateway(folder, webhook=Webhook(channel[0], SECRET, form="teams", page=page)) as gateway:
        approval_id = ask(gateway)
        body, headers = channel[1].posted.get(timeout=WAIT_S)
    return approval_id, body, headers


@pytest.mark.requirement("APPR-1")
def test_the_card_says_what_waits_and_links_to_the_page(channel: tuple[str, Channel], tmp_path: Path) -> None:
    approval_id, body, headers = posted(channel, tmp_path, PAGE)
    message: dict[str, Any] = json.loads(body)
    [attachment] = message["attachments"]
    card = attachment["content"]
    assert (message["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert card["actions"] == [
        {"type": "Action.OpenUrl", "title": "Look at the call", "url": f"{PAGE}#/approvals/{approval_id}"}
    ]
    facts = {fact["title"]: fact["value"] for fact in card["body"][1]["facts"]}
    assert card["body"][0]["text"] == "A call of disable_account waits for a person"
    assert (facts["Rule"], facts["Why"]) == ("disabling_needs_a_person", "the rule requires it")
    assert facts["Approval"] == approval_id
    assert headers["sentinel-signature"].startswith("t=")
    assert headers["content-type"] == "application/json"


@pytest.mark.requirement("APPR-3")
def test_nothing_of_the_call_and_no_way_to_decide_is_in_it(channel: tuple[str, Channel], tmp_path: Path) -> None:
    _, body, _ = posted(channel, tmp_path, PAGE)
    assert [value for value in DISABLE.values() if value.encode() in body] == []
    card = json.loads(body)["attachments"][0]["content"]
    assert {action["type"] for action in card["actions"]} == {"Action.OpenUrl"}
    assert b"token" not in body
    assert len(body) < 4_000


def test_without_an_address_of_the_page_the_card_names_the_command(
    channel: tuple[str, Channel], tmp_path: Path
) -> None:
    approval_id, body, _ = posted(channel, tmp_path, None)
    card = json.loads(body)["attachments"][0]["content"]
    assert "actions" not in card
    assert card["body"][-1]["text"].endswith(f": sentinel approvals show {approval_id}")


def test_a_channel_is_sent_no_arguments_and_decides_nothing() -> None:
    for asked in ({"arguments": True}, {"decides": True}):
        with pytest.raises(ValueError, match="channel"):
            Webhook("https://example.com", SECRET, form="teams", **asked)


def test_the_address_of_a_workflow_is_not_printed() -> None:
    assert "of-the-workflow" not in repr(Webhook("https://example.com/?sig=of-the-workflow", SECRET))

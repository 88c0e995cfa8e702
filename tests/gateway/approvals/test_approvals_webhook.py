"""The webhook: told of every question, signed, never in the way of a call; and its signed answers, if they count."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from approval_desk import Clock, open_desk, the_call
from approval_policy import DISABLE, ask, open_gateway
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sentinel_rag.gateway.approval_webhook import DECISION, NOTICE, SIGNATURE_HEADER, Notifier, Webhook, is_signed, sign
from sentinel_rag.gateway.approvals import ApprovalVerdict, Decider
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway
from waiting import WAIT_S

SECRET = "a-shared-secret-of-more-than-32-characters"


@dataclass
class Receiver:
    """A receiver on loopback: what it was sent, and what it answers (204 when nothing is left to say)."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    sent: queue.Queue[tuple[bytes, dict[str, str]]] = field(default_factory=queue.Queue)

    async def take(self, request: Request) -> Response:
        self.sent.put((await request.body(), dict(request.headers)))
        status = self.statuses.pop(0) if self.statuses else 204
        return RedirectResponse("/elsewhere", status) if status // 100 == 3 else Response(status_code=status)

    def next(self) -> tuple[bytes, dict[str, str]]:
        return self.sent.get(timeout=WAIT_S)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    routes = [Route("/hook/", made.take, methods=["POST"]), Route("/elsewhere", made.take, methods=["POST", "GET"])]
    with serve(Starlette(routes=routes)) as url:
        made.url = f"{url}/hook/"
        yield made


@pytest.fixture
def serving(tmp_path: Path, receiver: Receiver) -> Callable[..., AbstractContextManager[RunningGateway]]:
    def open_one(**changes: bool) -> AbstractContextManager[RunningGateway]:
        return open_gateway(tmp_path / "state", webhook=Webhook(receiver.url, SECRET, **changes))

    return open_one


@contextmanager
def deciding(serving: Any, receiver: Receiver) -> Iterator[tuple[RunningGateway, str, dict[str, Any]]]:
    """A gateway whose receiver may decide, the id of a call that waits, and the notice of it."""
    with serving(decides=True) as gateway:
        approval_id = ask(gateway)
        notice = json.loads(receiver.next()[0])
        yield gateway, approval_id, notice


def send(
    gateway: RunningGateway, approval_id: str, body: Any, *, signature: str | None = None, secret: str = SECRET
) -> HttpAnswer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    signed = sign(secret, DECISION, content, datetime.now(UTC)) if signature is None else signature
    headers = {SIGNATURE_HEADER: signed}
    return gateway.request("POST", f"/v1/approvals/{approval_id}/decision", body=content, headers=headers)


def yes(notice: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "approval_id": notice["approval_id"],
        "decision": "approve",
        "token": notice["token"],
        "actor": "ana@example.com",
        **changes,
    }


@pytest.mark.requirement("APPR-1")
def test_a_question_is_told_signed_and_without_what_the_call_says(serving: Any, receiver: Receiver) -> None:
    with serving() as gateway:
        approval_id = ask(gateway)
        body, headers = receiver.next()
    # The signature as the documentation describes it, computed by hand.
    stamp, digest = headers[SIGNATURE_HEADER.lower()].removeprefix("t=").split(",v1=")
    signed = b"notice." + stamp.encode() + b"." + body
    assert hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest() == digest
    assert abs(int(stamp) - time.time()) < 300
    notice = json.loads(body)
    assert (notice["event"], notice["approval_id"], notice["attempt"]) == ("approval.pending", approval_id, 1)
    assert (notice["tool"], notice["rule_id"], notice["why"]) == (
        "disable_account",
        "disabling_needs_a_person",
        "the rule requires it",
    )
    assert set(notice["argument_labels"]) == set(DISABLE)
    assert "arguments" not in notice
    assert "token" not in notice
    assert DISABLE["account"].encode() not in body


def test_the_arguments_are_told_if_the_operator_says_so(serving: Any, receiver: Receiver) -> None:
    with serving(arguments=True) as gateway:
        ask(gateway)
        assert json.loads(receiver.next()[0])["arguments"] == DISABLE


def test_one_question_is_told_once_and_recorded(serving: Any, receiver: Receiver) -> None:
    with serving() as gateway:
        first = ask(gateway)
        receiver.next()
        assert ask(gateway) == first
        second = ask(gateway, arguments={"account": "b"})
        assert json.loads(receiver.next()[0])["approval_id"] == second
    told = [record for record in gateway.records() if record["kind"] == "approval_notified"]
    assert {(record["audit_id"], record["delivered"], record["attempts"]) for record in told} <= {
        (first, True, 1),
        (second, True, 1),
    }
    assert receiver.sent.empty()


def test_a_receiver_that_is_away_is_not_in_the_way_of_a_call(tmp_path: Path) -> None:
    with open_gateway(tmp_path / "state", webhook=Webhook("http://127.0.0.1:9/hook", SECRET)) as gateway:
        approval_id = ask(gateway)
        assert gateway.request("POST", f"/v1/approvals/{approval_id}/approve", key=gateway.approver).status == 200
        assert gateway.call("disable_account", DISABLE).status == 200


@pytest.mark.anyio
async def test_a_failing_receiver_is_tried_again_and_given_up_in_the_end(tmp_path: Path, receiver: Receiver) -> None:
    """Redirects are not followed; the same question keeps its id; the attempts are bounded and their end recorded."""
    receiver.statuses = [500, 307, 404]
    with open_desk(tmp_path / "journal.sqlite", Clock()) as desk:
        approval_id = await desk.ask(*the_call())
        notifier = Notifier(desk.store, Webhook(receiver.url, SECRET), waits_s=(0, 0, 0), poll_s=0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(notifier.run)
            with anyio.fail_after(WAIT_S):
                while desk.records()[-1]["kind"] != "approval_notified":
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        sent = [json.loads(receiver.next()[0]) for _ in range(3)]
        assert receiver.sent.empty()
        assert [(notice["approval_id"], notice["attempt"]) for notice in sent] == [
            (approval_id, 1),
            (approval_id, 2),
            (approval_id, 3),
        ]
        record = desk.records()[-1]
        assert (record["audit_id"], record["delivered"], record["attempts"]) == (approval_id, False, 3)


@pytest.mark.anyio
async def test_a_notice_survives_the_process_and_one_of_two_processes_sends_it(
    tmp_path: Path, receiver: Receiver
) -> None:
    clock, path = Clock(), tmp_path / "journal.sqlite"
    with open_desk(path, clock) as desk:
        approval_id = await desk.ask(*the_call())
        decided = await desk.ask(*the_call({"incident": "decided before anybody was told"}))
        assert decided is not None
        await desk.store.decide(decided, ApprovalVerdict.DENY, Decider("k-ana"))
    with open_desk(path, clock) as one, open_desk(path, clock) as other:
        async with anyio.create_task_group() as group:
            for desk in (one, other):
                group.start_soon(Notifier(desk.store, Webhook(receiver.url, SECRET), poll_s=0.01).run)
            with anyio.fail_after(WAIT_S):
                while one.records()[-1]["kind"] != "approval_notified":
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    assert json.loads(receiver.next()[0])["approval_id"] == approval_id
    assert receiver.sent.empty()


@pytest.mark.requirement("APPR-1")
def test_the_receiver_decides_with_signature_and_token_once(serving: Any, receiver: Receiver) -> None:
    with deciding(serving, receiver) as (gateway, approval_id, notice):
        answer = send(gateway, approval_id, yes(notice, comment="on call"))
        assert (answer.status, answer.body) == (200, {"approval_id": approval_id, "state": "approved"})
        record = gateway.last_record()
        assert (record["kind"], record["key_id"], record["via"], record["actor"], record["comment"]) == (
            "approval_decided",
            "webhook",
            "webhook",
            "ana@example.com",
            "on call",
        )
        for again in (yes(notice), yes(notice, decision="deny")):
            refused = send(gateway, approval_id, again)
            assert (refused.status, refused.body["reason"]) == (409, "approval_decided")
        assert gateway.call("disable_account", DISABLE).status == 200
        assert gateway.call("disable_account", DISABLE).status == 403


def test_no_callback_is_served_unless_the_operator_lets_the_receiver_decide(serving: Any, receiver: Receiver) -> None:
    with serving() as gateway:
        approval_id = ask(gateway)
        body = {"approval_id": approval_id, "decision": "approve", "token": ""}
        assert send(gateway, approval_id, body).status == 404


def test_what_is_not_signed_for_this_decides_nothing_and_is_on_record(serving: Any, receiver: Receiver) -> None:
    with deciding(serving, receiver) as (gateway, approval_id, notice):
        content = json.dumps(yes(notice)).encode()
        now = datetime.now(UTC)
        good = sign(SECRET, DECISION, content, now)
        forged = {
            "none": "",
            "another secret": sign("x" * 40, DECISION, content, now),
            "an empty secret": sign("", DECISION, content, now),
            "a notice": sign(SECRET, NOTICE, content, now),
            "another body": sign(SECRET, DECISION, content + b" ", now),
            "too old": sign(SECRET, DECISION, content, now - timedelta(seconds=330)),
            "from the future": sign(SECRET, DECISION, content, now + timedelta(seconds=330)),
            "without a time": good.partition(",")[2],
            "another time": good.replace(good[2:12], str(int(good[2:12]) + 1)),
            "upper case": good.upper(),
            "spaces": good.replace(",", ", "),
            "twice": f"{good},{good}",
            "a list": good + ",v1=" + "0" * 64,
        }
        for name, signature in forged.items():
            answer = send(gateway, approval_id, content, signature=signature)
            assert (answer.status, answer.body["reason"]) == (401, "unauthenticated"), name
            record = gateway.last_record()
            assert (record["kind"], record["audit_id"]) == ("authentication_failed", answer.body["audit_id"]), name
        assert gateway.call("disable_account", DISABLE).body["approval_id"] == approval_id


def test_two_signatures_are_none(serving: Any, receiver: Receiver) -> None:
    with deciding(serving, receiver) as (gateway, approval_id, notice):
        content = json.dumps(yes(notice)).encode()
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=WAIT_S)
        connection.putrequest("POST", f"/v1/approvals/{approval_id}/decision")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(content)))
        for _ in range(2):
            connection.putheader(SIGNATURE_HEADER, sign(SECRET, DECISION, content, datetime.now(UTC)))
        connection.endheaders(content)
        assert connection.getresponse().status == 401
        connection.close()
        assert gateway.call("disable_account", DISABLE).body["approval_id"] == approval_id


def test_the_secret_alone_decides_nothing(serving: Any, receiver: Receiver) -> None:
    """Whoever has the secret and not the notice, or the notice of another approval, is refused; so is a wrong body."""
    with deciding(serving, receiver) as (gateway, approval_id, notice):
        other = ask(gateway, arguments={"account": "b"})
        token = json.loads(receiver.next()[0])["token"]
        assert token != notice["token"]
        for wrong in ("", token, notice["token"][:-1], "\u00e9"):
            answer = send(gateway, approval_id, yes(notice, token=wrong))
            assert (answer.status, answer.body["reason"]) == (401, "unauthenticated")
            assert gateway.last_record()["kind"] == "approval_decision_refused"
        for body in (
            yes(notice, approval_id=other),
            yes(notice, decision="maybe"),
            yes(notice, decision=True),
            yes(notice, token=None),
            yes(notice, actor="x" * 201),
            yes(notice, comment=["yes"]),
            yes(notice, key="value"),
            [],
            b"{}",
            b"null",
        ):
            assert send(gateway, approval_id, body).status == 422
        assert send(gateway, "none-such", yes(notice, approval_id="none-such")).status == 404
        assert send(gateway, approval_id, b"x" * 20_000).status == 413
        assert gateway.call("disable_account", DISABLE).body["approval_id"] == approval_id


@pytest.mark.requirement("APPR-1")
def test_where_the_policy_names_approvers_the_webhook_has_to_be_among_them(serving: Any, receiver: Receiver) -> None:
    with serving(decides=True) as gateway:
        approval_id = ask(gateway, "wipe_host", {"host": "h"})
        notice = json.loads(receiver.next()[0])
        assert notice["approvers"] == ["ana", "webhook"]
        assert send(gateway, approval_id, yes(notice)).status == 200
        approval_id = ask(gateway, "drop_table", {"table": "t"})
        notice = json.loads(receiver.next()[0])
        refused = send(gateway, approval_id, yes(notice))
        assert (refused.status, refused.body["reason"]) == (403, "not_an_approver")
        assert gateway.last_record()["reason"] == "not_an_approver"


def test_the_token_is_forgotten_with_the_decision(serving: Any, receiver: Receiver) -> None:
    with deciding(serving, receiver) as (gateway, approval_id, notice):
        assert gateway.request("POST", f"/v1/approvals/{approval_id}/deny", key=gateway.approver).status == 200
        refused = send(gateway, approval_id, yes(notice))
        assert (refused.status, refused.body["reason"]) == (409, "approval_decided")
        shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.approver)
        assert notice["token"].encode() not in shown.content
        records = json.dumps(gateway.records())
        assert notice["token"] not in records


def test_a_signature_is_for_one_purpose_body_and_time() -> None:
    now = datetime(2026, 7, 1, tzinfo=UTC)
    header = sign(SECRET, NOTICE, b"body", now)
    assert is_signed(SECRET, NOTICE, b"body", header, now)
    assert is_signed(SECRET, NOTICE, b"body", header, now + timedelta(seconds=300))
    assert not is_signed(SECRET, NOTICE, b"body", header, now + timedelta(seconds=301))
    assert not is_signed(SECRET, DECISION, b"body", header, now)
    assert not is_signed(SECRET, NOTICE, b"bodY", header, now)
    assert SECRET not in repr(Webhook("https://hooks.example.com", SECRET))

"""A policy of a few tools, small enough to see at once why a call waits for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sentinel_rag.gateway.approval_webhook import Webhook
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

TEXT = """
tools:
  - name: read_mail
    description: Read the mailbox of an account.
    effect: read
    parameters:
      - {name: account, type: string}
    taint_rules:
      - {rule_id: mail_is_private, condition: "true", taint_level: HIGH}
  - name: disable_account
    description: Disable an account.
    effect: write
    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}
    parameters:
      - {name: account, type: string, required: true}
      - {name: reason, type: string}
    taint_rules:
      - {rule_id: disabling_needs_a_person, condition: "true", taint_level: LOW, requires_approval: true}
  - name: web_search
    description: Search the web.
    effect: external
    parameters:
      - {name: query, type: string, required: true}
    taint_rules:
      - {rule_id: search_public_words, condition: "true", taint_level: LOW, offers_approval: true}
  - name: wipe_host
    description: Wipe a host.
    effect: write
    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}
    approvers: [ana, webhook]
    parameters:
      - {name: host, type: string, required: true}
    taint_rules:
      - {rule_id: wiping_needs_ana, condition: "true", taint_level: LOW, requires_approval: true}
  - name: drop_table
    description: Drop a table.
    effect: write
    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}
    approvers: [ana]
    parameters:
      - {name: table, type: string, required: true}
    taint_rules:
      - {rule_id: dropping_needs_ana, condition: "true", taint_level: LOW, requires_approval: true}
"""

DISABLE = {"account": "t.alvarez", "reason": "mail says so"}


def policy(text: str = TEXT) -> Policy:
    return parse_policy(text, source="approval_policy.yaml")


@contextmanager
def open_gateway(folder: Path, *, webhook: Webhook | None = None, text: str = TEXT) -> Iterator[RunningGateway]:
    with (
        FakeToolServer(token="upstream-token").running() as executor,
        running_gateway(policy(text), folder, executor, webhook=webhook) as gateway,
    ):
        yield gateway


def ask(gateway: RunningGateway, tool: str = "disable_account", arguments: dict[str, Any] | None = None) -> str:
    """Make a call that has to wait; the id under which it waits."""
    answer = gateway.call(tool, DISABLE if arguments is None else arguments)
    assert (answer.status, answer.body["reason"]) == (403, "approval_required"), answer.body
    return str(answer.body["approval_id"])

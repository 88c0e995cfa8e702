"""What a caller reads when a call is not run: one sentence and the next step, word for word. People and agents act on
them, so a change is meant or it is a fault."""

from __future__ import annotations

import pytest
from small_gate import Server, SmallGate, returned, small_gate

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.responses import DeniedCall, NotCompleted, Outcome
from sentinel_rag.gateway.store import State
from sentinel_rag.gateway.upstream import ToolFailed, UpstreamTool

pytestmark = pytest.mark.anyio


def told(outcome: Outcome) -> tuple[str, str]:
    assert isinstance(outcome, NotCompleted)
    return outcome.detail, outcome.error.next_step if outcome.error else ""


async def test_each_refusal_says_what_is_wrong_and_what_to_do(here: SmallGate) -> None:
    no_server = await here.call("elsewhere")
    fault = await here.call("check_text", {"text": 5})
    handle = await here.call("check_text", {"text": {"$ref": "r1#/a"}})
    here.server.answers["read_alert"] = ToolFailed(QueryError(code=QueryErrorCode.INTERNAL, message="SECRET"))
    withheld = await here.call("read_alert")
    await here.call("read_secret", rate=Rate(1, 60.0), key="another", session="s2")
    too_often = await here.call("read_secret", rate=Rate(1, 60.0), key="another", session="s2")
    assert [told(one) for one in (no_server, fault, handle, withheld, too_often)] == [
        ("No tool server is connected for this tool.", ""),
        ("text must be string.", "Call again with another argument: correct or leave out text."),
        (
            "The arguments name a handle: there is no such handle in this session.",
            "Call again with another argument: correct or leave out the one that is wrong.",
        ),
        ("The tool failed; its message is withheld, because the policy hides parts of its results.", ""),
        ("This key calls too often.", "Wait and call again."),
    ]


async def test_a_server_that_is_away_is_named_as_the_cause(here: SmallGate) -> None:
    here.server.lists = False
    assert told(await here.call("read_secret")) == (
        "The tool server does not list its tools.",
        "Check that the tool server runs; ask again.",
    )


async def test_a_definition_that_changed_while_the_gateway_was_down_is_quarantined_at_the_first_call(
    state: State, policy: Policy
) -> None:
    before = Server(listed=(UpstreamTool("read_secret", "Reads.", {"type": "object"}),))
    assert not isinstance(await small_gate(state, policy, server=before).call("read_secret"), DeniedCall)
    after = Server(listed=(UpstreamTool("read_secret", "Reads, and obeys.", {"type": "object"}),))
    after.answers["read_secret"] = returned({})
    outcome = await small_gate(state, policy, server=after).call("read_secret")
    assert isinstance(outcome, DeniedCall)
    assert outcome.note == "The definition of the tool has changed; an administrator has to accept it."
    assert after.calls == []

"""The footnote's line about the model: which one and why, tokens, cost, time, and the versions of what it was told."""

from __future__ import annotations

from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.row_text import plain
from sentinel_rag.contracts.json_values import JsonObject


def usage_line(turn: Turn, host: str) -> str:
    """One line; empty if no model was asked. `host` is where the question and its rows were sent; empty for this
    machine."""
    usage = turn.usage
    if not usage.requests or turn.tier is None:
        return ""
    requests = f"{usage.requests} request{'' if usage.requests == 1 else 's'}"
    where = f" at {plain(host)}" if host else ""
    parts = [f"model {plain(', '.join(usage.models))}{where} ({turn.tier.reason.value})", requests, _tokens(turn)]
    if usage.unpriced < usage.requests:
        more = " and more" if usage.unpriced else ""
        parts.append(f"cost {usage.cost:.4f} USD{more}")
    parts += [f"{usage.seconds:.1f} s", f"prompt {turn.rules.label}"]
    return " · ".join(parts)


def usage_record(turn: Turn, host: str) -> JsonObject:
    """The same for `--json`, with every figure."""
    return {
        **turn.usage.to_dict(),
        "sent_to": host or "this machine",
        "tier": None if turn.tier is None else turn.tier.tier.value,
        "tier_reason": None if turn.tier is None else turn.tier.reason.value,
        "estimated_tokens": turn.uncounted_tokens,
        "tool_rounds": turn.rounds,
        "prompt": turn.rules.label,
        "rows_defanged": turn.memory.defanged,
    }


def _tokens(turn: Turn) -> str:
    tokens = turn.usage.tokens
    counted = f"{tokens.input} + {tokens.output} tokens"
    if not turn.uncounted_tokens:
        return counted if tokens.input or tokens.output else "no tokens counted"
    estimate = f"about {turn.uncounted_tokens} tokens, counted here"
    return estimate if turn.usage.uncounted == turn.usage.requests else f"{counted} and {estimate}"

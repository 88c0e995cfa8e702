"""The footnote's line about the model: which one and why, tokens, cost, time, and the versions of what it was told."""

from __future__ import annotations

from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.agent.row_text import plain
from sentinel_rag.contracts.json_values import JsonObject


def usage_line(turn: Turn) -> str:
    """One line; empty if no model was asked."""
    usage = turn.usage
    if not usage.requests or turn.tier is None:
        return ""
    requests = f"{usage.requests} request{'' if usage.requests == 1 else 's'}"
    parts = [f"model {plain(', '.join(usage.models))} ({turn.tier.reason.value})", requests, _tokens(turn)]
    if usage.unpriced < usage.requests:
        more = "" if usage.cost_is_whole else " and more"
        parts.append(f"cost {usage.cost:.4f} USD{more}")
    parts += [f"{usage.seconds:.1f} s", f"prompt {prompt('rules').label}"]
    return " · ".join(parts)


def usage_record(turn: Turn) -> JsonObject:
    """The same for `--json`, with every figure."""
    return {
        **turn.usage.to_dict(),
        "tier": None if turn.tier is None else turn.tier.tier.value,
        "tier_reason": None if turn.tier is None else turn.tier.reason.value,
        "estimated_tokens": turn.uncounted_tokens,
        "tool_rounds": turn.rounds,
        "prompt": prompt("rules").label,
        "rows_defanged": turn.memory.defanged,
    }


def _tokens(turn: Turn) -> str:
    tokens = turn.usage.tokens
    counted = f"{tokens.input} + {tokens.output} tokens"
    if not turn.uncounted_tokens:
        return counted if tokens.input or tokens.output else "no tokens counted"
    estimate = f"about {turn.uncounted_tokens} tokens, counted here"
    return estimate if turn.usage.uncounted == turn.usage.requests else f"{counted} and {estimate}"

"""What a model is told beside a question: the time, the person's wishes, results at hand, calls that wait.

All of it stands behind the question. The rules and the tools, which never change, come first, so that providers and
local servers keep them cached from question to question.
"""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

from sentinel_rag.agent.answers.results import Result
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.references import Resolution
from sentinel_rag.agent.times import show_age
from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES

MOST_AT_HAND = 20
_LENGTH = {
    Verbosity.SHORT: "The person wants short answers: the facts that were asked for, and nothing else.",
    Verbosity.FULL: "The person wants full answers: also the fields beside those that were asked for.",
}


def question_text(turn: Turn, resolution: Resolution) -> str:
    """The person's question, and behind it the context that it is asked in."""
    lines = [_time(turn)]
    if turn.question.preferences.verbosity in _LENGTH:
        lines.append(_LENGTH[turn.question.preferences.verbosity])
    lines += _workspace(turn)
    if any(_is_pointed_at(each.said) for each in resolution.resolved) and not resolution.ask:
        lines.append(f"What the person's words may point at: {_safe(resolution.named_footnote)}")
        if resolution.asks_again:
            lines.append(f"By that number the person asks: {_safe(resolution.text)}")
    # What was computed or failed would push out the results that it rests on.
    at_hand = [each for each in turn.memory.results if not each.computed and not each.problem][-MOST_AT_HAND:]
    if at_hand:
        lines.append(
            "Results at hand (they may have changed since): " + "; ".join(_told(turn, each) for each in at_hand)
        )
    lines += [f"Not possible in this conversation: {name} ({_safe(why)})" for name, why in turn.refused_tools.items()]
    if turn.memory.awaited:
        lines.append(
            "Calls that wait for a person's approval; if the person asks for one again, make exactly this call:"
        )
        lines += [
            f"- {call.tool_name} {_safe(_compact(dict(call.arguments)))}" for call in turn.memory.awaited.values()
        ]
    told = "\n".join(lines)
    return f"{turn.question.text}\n\n<context>\n{told}\n</context>"


def _is_pointed_at(said: str) -> bool:
    """True for a number or several words ("[2]", "the third one"): a pronoun a model reads better itself."""
    return " " in said.strip() or any(character.isdigit() for character in said)


def _time(turn: Turn) -> str:
    zone, utc = turn.memory.zone_name, turn.now.astimezone(UTC)
    if zone == "UTC":
        return f"It is {utc:%A %Y-%m-%d %H:%M} UTC."
    local = turn.now.astimezone(turn.memory.zone)
    return (
        f"It is {utc:%A %Y-%m-%d %H:%M} UTC, {local:%A %H:%M} in {zone}, the zone in which the person speaks of days."
    )


def _workspace(turn: Turn) -> list[str]:
    workspace = turn.memory.places.workspace
    if workspace == ALL_WORKSPACES:
        return ['Questions go to every workspace: `workspace: "all"` where a tool takes it.']
    return [f"Questions go to the workspace {_safe(workspace)}."] if workspace else []


def _told(turn: Turn, result: Result) -> str:
    age = "" if result.read_at is None else f", {show_age(turn.now - result.read_at)} ago"
    arguments = _safe(_compact(dict(result.arguments)))[:160]
    return f"{result.ref} {result.tool} {arguments} ({len(result.rows)} rows{age})"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _safe(text: str) -> str:
    """Data in one line that cannot end the block it stands in."""
    return " ".join(text.split()).replace("<", "\\u003c")

"""How far one question may go. Plain numbers, stated by whoever builds the analyst."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TOOL_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """`turn_s` bounds the whole question, from its first word to its answer. `rounds` of tool calls are followed by one
    last request without tools. `calls_a_round` and `calls` bound the calls of one response and of the question;
    `faulty_rounds` are rounds in which no call could run. `retries` is the number of further tries that all requests to
    models share."""

    turn_s: float = 115.0
    rounds: int = MAX_TOOL_ROUNDS
    calls_a_round: int = 16
    calls: int = 40
    faulty_rounds: int = 2
    retries: int = 4

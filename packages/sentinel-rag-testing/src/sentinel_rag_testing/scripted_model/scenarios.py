"""Scenarios: replies of a scripted model, and the typed outcome that a client must make of them.

Data with a JSON form. `catalogue` holds the shipped ones; a file of one's own has the same form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sentinel_rag.agent.models.failures import FailureKind
from sentinel_rag.agent.models.port import CallProblem, FinishReason
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag_testing.scripted_model.replies import Reply, reply_from_dict


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A tool call as the port must give it out; with a `problem` the arguments are None."""

    name: str
    arguments: JsonObject | None = field(default_factory=dict)
    problem: CallProblem | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The stream ends with `Finished`. `filtered` are the categories of a filter; `requests` is how many were sent."""

    text: str = ""
    calls: tuple[ExpectedCall, ...] = ()
    reason: FinishReason = FinishReason.STOP
    filtered: tuple[str, ...] = ()
    stated: bool = True
    counted: bool = True
    requests: int = 1


@dataclass(frozen=True, slots=True)
class Failed:
    """The stream raises the `ModelError` of this kind. `facts` are attributes that it must have; `delivered` says
    whether text had been given out before."""

    kind: FailureKind
    facts: Mapping[str, Any] = field(default_factory=dict)
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """`about` names the server or the public issue that behaves so. `replies` are given in order, the last repeats."""

    name: str
    about: str
    replies: tuple[Reply, ...]
    expected: Answered | Failed


def scenario_replies(path: Path) -> tuple[Reply, ...]:
    """The replies of a scenario file: a JSON object with `replies`. Raises UsageError that says what is wrong."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or not isinstance(document.get("replies"), list) or not document["replies"]:
            raise ValueError("it is not an object with a list of replies")
        return tuple(reply_from_dict(reply) for reply in document["replies"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"The scenario {path} cannot be read: {error}",
            next_step='Write {"replies": [{"text": "Hello"}]}; docs/models.md shows every form.',
        ) from None

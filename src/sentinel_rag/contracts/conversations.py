"""What a conversation keeps from one question to the next, as the zones and surfaces tell each other.

`Preferences` are a person's. A `CarriedFact` is what a /clear leaves: a line of an answer that its evidence supported,
with its source and the time at which it was true. `Remembered` is an analyst's own memory in a form that can be stored;
nobody else reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from sentinel_rag.contracts.json_values import JsonForm, JsonObject


class Verbosity(StrEnum):
    """How much of an answer a person wants: the facts, the facts with their footnote, or everything with evidence."""

    SHORT = "short"
    NORMAL = "normal"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Preferences:
    """What a person chose for a conversation; None where nothing was chosen. `timezone` is an IANA name."""

    workspace: str | None = None
    timezone: str | None = None
    verbosity: Verbosity | None = None

    def over(self, earlier: Preferences) -> Preferences:
        """These, and the earlier ones where nothing is chosen here."""
        return Preferences(
            earlier.workspace if self.workspace is None else self.workspace,
            earlier.timezone if self.timezone is None else self.timezone,
            earlier.verbosity if self.verbosity is None else self.verbosity,
        )


NO_PREFERENCES = Preferences()


@dataclass(frozen=True, slots=True)
class CarriedFact(JsonForm):
    """`text` is a line of an answer; `tool`, `call_id` and `pointer` say where it came from, `at` (ISO 8601, UTC) when
    it was read. It may be out of date."""

    text: str
    at: str
    tool: str
    call_id: str
    pointer: str

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CarriedFact:
        return cls(*(str(data[name]) for name in ("text", "at", "tool", "call_id", "pointer")))

    def line(self) -> str:
        """The fact with its source and time, for a model and for a person."""
        return f"{self.text} [{self.tool}, call {self.call_id}, {self.pointer}; as of {self.at}]"


@dataclass(frozen=True, slots=True)
class Remembered:
    """`state` is all of a conversation's memory but its turns; `turns` are turns in the analyst's own form, oldest
    first: of a running conversation the newest alone, of a stored one all that are kept."""

    state: JsonObject
    turns: tuple[JsonObject, ...] = ()
    results: tuple[JsonObject, ...] = ()
    """What was kept of the turns' results (`Answer.results`); nothing of a running conversation."""


@dataclass(frozen=True, slots=True)
class QuestionCost:
    """What one question took. `model` is what its answer tells of models, None without one; `helped` what its person
    thought of the answer. `person` is empty where nobody signed in."""

    asked_at: str
    session_id: str
    question: str
    model: Mapping[str, Any] | None
    helped: bool | None = None
    person: str = ""


_OF_MODELS = ("requests", "input_tokens", "output_tokens")


def total_cost(costs: Iterable[QuestionCost]) -> dict[str, Any]:
    """The questions as counts, with `cost_usd`: nothing of what was asked. `unpriced` are those whose model has no
    price."""
    people: set[str] = set()
    told: Counter[str] = Counter()
    opinions: Counter[bool | None] = Counter()
    cost = Decimal(0)
    for each in costs:
        people.add(each.person)
        opinions[each.helped] += 1
        model = each.model or {}
        told.update({"questions": 1, **{name: int(model.get(name) or 0) for name in _OF_MODELS}})
        cost += Decimal(model.get("cost_usd") or 0)
        told["unpriced"] += bool(model) and model.get("cost_usd") is None
    counts = {name: told[name] for name in ("questions", *_OF_MODELS, "unpriced")}
    helped = {"helped": opinions[True], "not_helped": opinions[False]}
    return {**counts, **helped, "people": len(people), "cost_usd": format(cost.normalize(), "f")}

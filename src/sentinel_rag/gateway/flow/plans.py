"""A plan: calls that a person commits to before the session reads anything that others may have written.

What stands in a step is the person's, in a call that is the step: the same tool, the same parameters, every text of the
plan as it stands. A slot is left open. A bare one holds what the agent likes and carries the context as any argument;
one that chooses, such as the id of the largest file that step 0 lists, holds what the choice gives and nothing else; it
is the person's choice, and as secret as the context. Each step passes once. Pure: the steps and what was chosen are
named values of the session, so they are stored, recorded and judged again as all others are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue, canonical_json
from sentinel_rag.gateway.argument_formats import FORMATS, NotCanonical
from sentinel_rag.gateway.flow.links import texts_in
from sentinel_rag.gateway.flow.named_values import FOUND_IN_TEXTS, NamedValue, is_passage, values_inside
from sentinel_rag.gateway.policy.conditions import closest
from sentinel_rag.gateway.policy.model import (
    ANY,
    NO_KINDS,
    NamedKind,
    NoteKind,
    Parameter,
    Path,
    Policy,
    ToolPolicy,
    ValueKind,
    parse_pointer,
)

SLOT = "$slot"
PLAN = "plan"
"""Who names what stands in a plan."""

MAX_STEPS = 50
MAX_STEP_CHARACTERS = 8_000
CHOICES = ("largest", "smallest", "starts_with", "holds", "only")
INSIDE = tuple(kind.value for kind in ValueKind if kind in FOUND_IN_TEXTS)


class BadPlan(ValueError):
    """The plan cannot be committed to; the message says which step and why, and repeats no value."""


@dataclass(frozen=True, slots=True)
class SlotChoice:
    """Which row of the list at `rows` of step `of`'s result, and its part at `take`: the one whose number at `at` is
    the `largest` or `smallest`, the only one whose text at `at` `starts_with` or `holds` this, or the `only` one there
    is. With a kind in `inside` the only value of that kind in the texts at `rows`, whatever their form."""

    of: int
    rows: Path
    at: Path
    take: Path
    by: str
    text: str = ""
    inside: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """`literals` are what the person committed to, by parameter; `choices` the slots that choose; `free` the others.
    `said` is the step as the session names it."""

    number: int
    tool: str
    literals: Mapping[str, JsonValue]
    choices: Mapping[str, SlotChoice]
    free: frozenset[str]
    said: NamedValue


@dataclass(frozen=True, slots=True)
class Planned:
    """The step that a call is, and for each parameter that is the person's what says so."""

    step: Step
    by_parameter: Mapping[str, NamedValue]


def read_plan(document: Any, policy: Policy) -> tuple[NamedValue, ...]:
    """The steps of a plan as values that a session names. Raises BadPlan."""
    if not isinstance(document, list) or not 0 < len(document) <= MAX_STEPS:
        raise BadPlan(f"A plan is a list of one to {MAX_STEPS} steps.")
    found: list[NamedValue] = []
    for number, step in enumerate(document):
        if not isinstance(step, dict) or step.keys() != {"tool", "args"} or not isinstance(step["args"], dict):
            raise BadPlan(f"Step {number}: a step holds a tool and its args, and nothing else.")
        tool = policy.tool(step["tool"]) if isinstance(step["tool"], str) else None
        if tool is None:
            raise BadPlan(f"Step {number}: there is no such tool.")
        for name in step["args"]:
            if name not in tool.parameters:
                raise BadPlan(f"Step {number}: the tool has no such parameter{closest(name, tool.parameters)}")
        said: dict[str, JsonValue] = {"args": step["args"], "number": number, "tool": tool.name}
        try:
            text = canonical_json(said).decode()
            if len(text) > MAX_STEP_CHARACTERS:
                raise ValueError(f"a step has at most {MAX_STEP_CHARACTERS} characters.")
            value = NamedValue(NoteKind.PLANNED, text)
            parsed = _step(value)
        except ValueError as fault:
            raise BadPlan(f"Step {number}: {fault}") from None
        if any(choice.of >= number for choice in parsed.choices.values()):
            raise BadPlan(f"Step {number}: a slot chooses from an earlier step.")
        for choice in parsed.choices.values():
            if choice.inside and choice.inside not in (known := [*INSIDE, *policy.kinds]):
                raise BadPlan(f"Step {number}: only takes no such kind{closest(choice.inside, known)}")
        found.append(value)
    return tuple(found)


def planned(tool: ToolPolicy, arguments: Mapping[str, JsonValue], named: Mapping[NamedValue, str]) -> Planned | None:
    """The first step that this call is and that has not passed yet; None if it is none."""
    for said, by in named.items():
        if said.kind != NoteKind.PLANNED or by != PLAN:
            continue
        step = _step(said)
        if step.tool == tool.name and used(step) not in named:
            by_parameter = _fits(step, tool, arguments, named)
            if by_parameter is not None:
                return Planned(step, by_parameter)
    return None


def used(step: Step) -> NamedValue:
    """What a session names once the step has passed."""
    return NamedValue(NoteKind.PASSED, str(step.number))


def chosen(
    step: Step,
    result: Any,
    named: Mapping[NamedValue, str],
    hidden: Collection[Path] = (),
    own: Mapping[str, NamedKind] = NO_KINDS,
) -> frozenset[NamedValue]:
    """What the slots of later steps choose from the result of `step`; nothing by way of what is `hidden` in it, for
    who planned may not be allowed to see that. `own` are the kinds of the policy."""
    found: set[NamedValue] = set()
    unseen = _Unseen(frozenset(hidden), frozenset(path[:end] for path in hidden for end in range(len(path))))
    for said, by in named.items():
        if said.kind != NoteKind.PLANNED or by != PLAN:
            continue
        later = _step(said)
        for parameter, choice in later.choices.items():
            if choice.of == step.number:
                found.update(_choice_value(later, parameter, part) for part in _choose(choice, result, unseen, own))
    return frozenset(found)


def _fits(
    step: Step, tool: ToolPolicy, arguments: Mapping[str, JsonValue], named: Mapping[NamedValue, str]
) -> Mapping[str, NamedValue] | None:
    if arguments.keys() != step.literals.keys() | step.choices.keys() | step.free:
        return None
    found: dict[str, NamedValue] = {}
    for name, value in arguments.items():
        if name in step.literals:
            if canonical_json(_canonical(tool.parameters[name], step.literals[name])) != canonical_json(value):
                return None
            found[name] = step.said
        elif name in step.choices:
            choice = _choice_value(step, name, value)
            if choice not in named:
                return None
            found[name] = choice
    return found


def _canonical(parameter: Parameter, value: JsonValue) -> JsonValue:
    """A literal in the form in which an argument is judged."""
    if parameter.format is None:
        return value
    try:
        if isinstance(value, list):
            return [FORMATS[parameter.format](part) if isinstance(part, str) else part for part in value]
        return FORMATS[parameter.format](value) if isinstance(value, str) else value
    except NotCanonical:
        return value


def _choice_value(step: Step, parameter: str, value: JsonValue) -> NamedValue:
    text = canonical_json({"number": step.number, "parameter": parameter, "value": value}).decode()
    return NamedValue(NoteKind.CHOSEN, text)


@dataclass(frozen=True, slots=True)
class _Unseen:
    """Hidden paths of a result, and the paths above them."""

    paths: frozenset[Path]
    above: frozenset[Path]

    def touches(self, path: Path) -> bool:
        return path in self.above or any(path[:end] in self.paths for end in range(len(path) + 1))


def _choose(choice: SlotChoice, result: Any, unseen: _Unseen, own: Mapping[str, NamedKind]) -> list[Any]:
    rows = next(_at(result, choice.rows), None)
    if choice.inside:
        return _only_inside(choice, rows, unseen, own)
    if not isinstance(rows, list):
        return []
    ways = ((*choice.rows, str(index), *way) for index in range(len(rows)) for way in (choice.at, choice.take))
    if unseen.paths and any(map(unseen.touches, ways)):
        return []
    keyed = [(key, row) for row in rows for key in _at(row, choice.at)]
    if choice.by == "only":
        found = [row for _, row in keyed] if len(keyed) == len(rows) else []
    elif choice.by == "starts_with":
        found = [row for key, row in keyed if isinstance(key, str) and key.startswith(choice.text)]
    elif choice.by == "holds":
        found = [row for key, row in keyed if isinstance(key, str) and is_passage(choice.text, key)]
    else:
        numbers = [(key, row) for key, row in keyed if isinstance(key, int | float) and not isinstance(key, bool)]
        edge = (max if choice.by == "largest" else min)((key for key, _ in numbers), default=None)
        found = [row for key, row in numbers if key == edge]
    # Of several that are as good, nobody said which.
    return list(_at(found[0], choice.take)) if len(found) == 1 else []


def _only_inside(choice: SlotChoice, part: Any, unseen: _Unseen, own: Mapping[str, NamedKind]) -> list[Any]:
    if unseen.paths and unseen.touches(choice.rows):
        return []
    found = {value.text for text in texts_in(part) for value in values_inside(choice.inside, text, own)}
    return list(found) if len(found) == 1 else []


def _at(value: Any, path: Path) -> Iterator[Any]:
    for segment in path:
        if isinstance(value, dict) and segment in value:
            value = value[segment]
        elif isinstance(value, list) and segment.isascii() and segment.isdecimal() and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return
    yield value


@lru_cache(maxsize=4_096)
def _step(said: NamedValue) -> Step:
    """The step that a named value holds. Raises ValueError for what is none."""
    document = json.loads(said.text)
    literals: dict[str, JsonValue] = {}
    choices: dict[str, SlotChoice] = {}
    free: set[str] = set()
    for name, value in document["args"].items():
        if not isinstance(value, dict) or SLOT not in value:
            literals[name] = value
        elif value.keys() != {SLOT} or not isinstance(value[SLOT], dict):
            raise ValueError(f"a slot is an object with the one key {SLOT}")
        elif value[SLOT]:
            choices[name] = _choice(value[SLOT])
        else:
            free.add(name)
    return Step(document["number"], document["tool"], literals, choices, frozenset(free), said)


def _choice(slot: Mapping[str, Any]) -> SlotChoice:
    by = [key for key in CHOICES if key in slot]
    only: object = slot.get("only")
    inside = only if isinstance(only, str) else ""
    known = {"of", "rows", *by} if inside else {"of", "rows", "at", "take", *by}
    if len(by) != 1 or not slot.keys() <= known:
        raise ValueError(f"a slot that chooses has of, rows, at, take and one of {', '.join(CHOICES)}")
    of = slot.get("of")
    if not isinstance(of, int) or isinstance(of, bool) or of < 0:
        raise ValueError("of is the number of an earlier step")
    text: Any
    if by[0] == "only":
        text, at = "", slot.get("at", "")
        if not inside and only is not True:
            raise ValueError("only is true, or a kind of value")
    elif by[0] in ("starts_with", "holds"):
        text, at = slot[by[0]], slot.get("at", "")
    else:
        text, at = "", slot[by[0]]
    pointers = (slot.get("rows", ""), at, slot.get("take", ""))
    if not all(isinstance(each, str) for each in pointers):
        raise ValueError("rows, at and take are JSON pointers")
    if not isinstance(text, str):
        raise ValueError(f"{by[0]} is a text")
    paths = [parse_pointer(each) for each in pointers]
    if any(ANY in path for path in paths):
        raise ValueError("the pointers of a slot hold no *")
    if by[0] in ("starts_with", "holds") and not text:
        raise ValueError(f"{by[0]} is not empty")
    return SlotChoice(of, paths[0], paths[1], paths[2], by[0], text, inside)

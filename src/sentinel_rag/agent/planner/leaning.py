"""What a sentence leaves out, filled from the question before it: rules as data in `follow_ups.toml`.

A rule tells how a sentence may be taken; which of its readings can be answered, the planner says. What was asked back
and not answered is no ground to build on with certainty: the ways to go on from there are offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import msgspec

from sentinel_rag.agent.planner.decisions import Call, Decision, DecisionKind, Option, Unclear, View, ask
from sentinel_rag.agent.planner.merging import (
    LISTED,
    asks_of_a_thing,
    counts_among,
    follow_ups,
    is_fragment,
    is_list,
    is_outside,
    merged,
    reasons_of,
    types_of,
    without,
)
from sentinel_rag.agent.planner.sentence import (
    Done,
    FrameCompletion,
    Readings,
    ask_which,
    unmarked,
)
from sentinel_rag.agent.planner.tools import of_the_list
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import ALERT, INCIDENT, ListItem
from sentinel_rag.language.frames import Frame

_MISREAD = (Unclear.UNREAD, Unclear.TIME)
_TOLD_AGAIN = ("attr:detail", "all:all")
_LINE = frozenset({"item"})
"""A number of a line on the screen, "[2]": the answer tells of the thing that stands there."""
_READS_TABLES = ("search_logs", "run_kql_query", "describe_table")
_PRONOUNS = ("ref:it", "ref:its", "ref:within")
_PLEASANTRY = "small_talk"
_FEW = 2
_LISTS = tuple(f"kind:{kind}" for kind in sorted(LISTED))
_OF_CASES = ("query_incidents", "query_alerts", "get_incident_detail", "get_alert_trend", "get_top_entities")
_NOUNS = {
    "query_incidents": "incidents", "query_alerts": "alerts", "get_incident_detail": "incident",
    "get_top_entities": "ranking", "get_alert_trend": "trend", "get_threat_summary": "situation",
}  # fmt: skip
"""What tools tell of."""


@dataclass(frozen=True, slots=True)
class LeaningRule:
    """How a sentence is taken that holds all of `needs` and none of `never`."""

    kind: str
    take: tuple[str, ...]
    needs: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    ask: bool = False


@cache
def rules() -> tuple[LeaningRule, ...]:
    """All rules, in their order."""
    return msgspec.convert(follow_ups()["rule"], tuple[LeaningRule, ...])


def leaned(asked: FrameCompletion) -> Done | None:
    """Fill what the sentence leaves out from the question before."""
    frame, talk = asked.frame, asked.talk
    if asked.first:
        lost = frame.has("ref") and not frame.window and not frame.has(*types_of("says_which"))
        return ask(frame, Unclear.WHICH_THING) if lost else None
    if not asked.items and not any(frame.features.values()) and not frame.window and frame.around is None:
        return ask(frame, Unclear.UNREAD, frame.text.strip(" .?!"))  # fillers alone: "network side?"
    told = _says(asked)
    frame.features["meta"] = [each for each in frame.all("meta") if each != _PLEASANTRY or "is:empty" in told]
    if "is:of_the_list" in told and talk.lists:
        noun, strange = frame.one("that"), [*frame.unread, *frame.all("guess")]
        if noun is not None and talk.lists[-1].items and noun != talk.lists[-1].items[0].of_kind:
            return ask(frame, Unclear.WHICH_THING)
        if strange:
            return ask(frame, Unclear.UNREAD, *strange)
    rule = next(rule for rule in rules() if rule.needs <= told and told.isdisjoint(rule.never))
    if rule.take == ("alone",):
        return None
    return _of_a_thing(asked, told) or _readings(asked, rule, told)


def _says(asked: FrameCompletion) -> frozenset[str]:
    """What a sentence says, each as its type and as type:value, with what follows from it and the question before."""
    frame, before = asked.frame, asked.talk.before
    told = {type_ for type_, values in frame.features.items() if values}
    told |= {f"{type_}:{value}" for type_, values in frame.features.items() for value in values}
    named = frame.has("name", "incident")
    of_the_list = frame.has("ref:them", "ref:ones") and not named
    after = before is not None and before.frame.has("name") and not before.frame.has("incident")
    kinds = {kind for name in before.frame.all("name") for kind in before.frame.name_kinds(name)[:1]} if before else ()
    alone = asked.only("kind:incident", "kind:alert", "plural", "cmp:only")
    derived = {
        "first": asked.first,
        "empty": asked.only("meta:small_talk", "talk") and frame.has("meta:small_talk") and not frame.window,
        "outside": is_outside(frame),
        "named": named,
        "whole": not is_fragment(frame),
        "fragment": is_fragment(frame),
        "corrects": asked.correcting,
        "window": frame.window,
        "of_the_list": of_the_list,
        "leans": frame.has("follow", "add", "cmp:only") or of_the_list or asked.correcting
        or (frame.has("ref:they", "ref:definite", *_PRONOUNS) and not named and not frame.has("know")),
        "pronoun": frame.has(*_PRONOUNS) and not named,
        "short": not frame.window
        and len([item for item in asked.items if item.type not in types_of("light") and not item.sense("num")]) <= _FEW,
        "kind_alone": alone and before is not None
        and not before.frame.has(*(f"kind:{kind}" for kind in frame.all("kind"))),
        "among": before is not None and counts_among(before.frame, frame),
        "after_a_name": after,
        "same_logs": before is not None and set(frame.all("topic")) <= set(before.frame.all("topic")),
        "after_a_tactic": before is not None and before.frame.has("tactic"),
        "after_logs": before is not None and before.frame.has("topic"),
        "after_a_thing": before is not None and before.frame.has("name", "incident"),
        "after_rows": before is not None and is_list(before.frame),
        "rows_of_it": frame.has("kind:alert") or (after and frame.has("kind:incident")),
        "words": frame.has("title", "tactic"),
        "filters": frame.has(*types_of("narrows")) or frame.has("title", "class"),
        "of_all": frame.has("all") or bool(set(frame.all("kind")) & set(kinds)),
    }  # fmt: skip
    return frozenset(told | {f"is:{name}" for name, holds in derived.items() if holds})


def of_a_table(asked: FrameCompletion) -> Frame | None:
    """The question before about another table or this one: "only SigninLogs", "with examples", "that table"."""
    before, frame = asked.talk.before, asked.frame
    if before is None or not before.calls or frame.has(*(f"kind:{kind}" for kind in LISTED), "name", "incident"):
        return None
    tool = before.calls[0].tool
    only = tool in _READS_TABLES and asked.only("lit:table", "cmp:only", "follow", "ref")
    if (only and frame.has("table")) or (
        tool == "describe_table" and frame.has("meta:sample") and not frame.has("table")
    ):
        told = before.frame.copy()
        told.features["table"] = frame.all("table") or told.all("table")
        told.features["meta"] = [*told.all("meta"), *frame.all("meta")]
        return told
    points = frame.has("that:table") or (frame.has(*_PRONOUNS) and frame.has(*types_of("of_a_table")))
    if points and before.frame.has("table"):
        frame.features["table"] = before.frame.all("table")
        return unmarked(frame)
    return None


def _of_a_thing(asked: FrameCompletion, told: frozenset[str]) -> Done | None:
    """Bind a field alone to the thing that is spoken of."""
    frame = asked.frame
    if frame.has("attr:events") and not frame.has("name", "incident", "alert_id", "kind:alert"):
        alert, _ = asked.it(ALERT)
        if alert is not None:
            return asked.bound([alert])
    implied = frame.has("attr") and not frame.has("name", "incident", "by", "group", "kind:alert", "kind:incident")
    of_several = frame.has("op:average", "op:trend", "ref:they", "ref:them", "add")
    implied = implied and not of_several
    base = _base(asked, told)
    if implied and "is:of_the_list" not in told and (base is None or not base.frame.has("incident", "name")):
        item, candidates = asked.it("")
        if item is not None:
            return asked.bound([item])
        if candidates and frame.has(*types_of("of_incidents")):
            return ask_which(frame, candidates, asked.talk)
    return None


def _readings(asked: FrameCompletion, rule: LeaningRule, told: frozenset[str]) -> Done:
    """The readings that a rule allows."""
    frame, waiting = asked.frame, asked.talk.waiting
    base = _base(asked, told)
    if "is:of_the_list" in told and base is not None:
        _look_at_all(asked, base)
    restated = frame.has("talk:anew") or (
        frame.has("talk:no", "talk:instead") and waiting is not None and waiting.reason in _MISREAD
    )
    if waiting is not None and waiting.reason in reasons_of("half_read") and not restated:
        offered = [each.frame for each in waiting.options] if waiting.reason is Unclear.SAME_OR_ALL else []
        grounds = offered or [_understood(waiting.frame), *([] if base is None else [base.frame])]
        taken = [unmarked(merged(ground, frame)) for ground in grounds]
        taken += [unmarked(frame)] if "alone" in rule.take else []
        return Readings(tuple(taken), frame, open_question=waiting)
    if base is None:
        return ask(frame, Unclear.NOTHING_SHOWN)
    ways = {
        "over": lambda: of_the_list(frame, base, unmarked(merged(base.frame, frame))),
        "alone": lambda: unmarked(frame),
    }
    same = _same_query(asked, base) if "over" in rule.take else ()
    frames = tuple(ways[how]() for how in rule.take)
    return Readings(frames, frame, ask=rule.ask, leans="is:leans" in told, same=same)


def _same_query(asked: FrameCompletion, base: Decision) -> tuple[Frame, ...]:
    """The stored query that was asked before, with what is said in its parameters: beside the names of other kinds that
    stood there, else in their place. None where more is said than a query is narrowed by."""
    query = base.calls[0].arguments.get("template") if base.calls else None
    said = asked.frame
    allowed = types_of("of_a_query")
    again = set(said.all("topic")) <= set(base.frame.all("topic")) and said.has(*types_of("narrows_a_query"))
    kinds = {"thing", *(kind for name in said.all("name") for kind in said.kinds.get(name, ()))}
    whole = asked.items and not asked.only(*allowed, *(["topic"] if again else []), *(f"kind:{kind}" for kind in kinds))
    if query is None or whole or not (said.window or said.has(*types_of("narrows_a_query"))):
        return ()
    plain = unmarked(without(said, said.all("drop")))
    plain.features["kind"], plain.features["topic"] = [], []
    told = merged(without(base.frame, said.all("drop")), plain)
    told.tell("template", str(query))
    told.said = ""  # "drop the user" is no order to change one
    kept = [name for name in base.frame.all("name") if kinds.isdisjoint(base.frame.name_kinds(name))]
    if not kept or not said.has("name"):
        return (told,)
    both, other = told.copy(), told.copy()
    for frame in (both, other):
        frame.features["name"], frame.features["of_kind"] = [*kept, *said.all("name")], []
    other.features["template"] = []
    return both, told, other


def _understood(frame: Frame) -> Frame:
    """What was understood of a sentence."""
    kept = frame.copy()
    kept.unread = []
    return kept


def settled(readings: Readings, made: Sequence[Decision], before: Decision | None) -> Decision:
    """What becomes of the readings of a sentence: the one that is answered, or a question back that offers them."""
    first = made[0]
    answered: list[Decision] = []
    for each in made:
        if each.kind is DecisionKind.CALL and not any(_same_answer(each, other) for other in answered):
            answered.append(each)
    if first.kind not in (DecisionKind.CALL, DecisionKind.ASK):
        return first
    back = readings.open_question
    if (
        back is not None
        and len(made) > 1
        and len(answered) == 1
        and all(each.kind is DecisionKind.CALL for each in made)
    ):
        return with_effect(readings.said, answered[0], before)  # from wherever it goes on, it says the same
    if back is not None:
        return offering(first.frame, answered, back.reason, *back.values)
    # Without a mark that leans, a question that only joined to the one before finds no stored query stands alone.
    joins = (
        first.kind is DecisionKind.ASK
        and not readings.ask
        and (first.reason is not Unclear.NO_STORED_QUERY or readings.leans)
    )
    if not answered or joins:
        return replace(first, options=_options(answered)) if answered and not first.options else first
    if len(answered) > 1 and readings.ask:
        return offering(first.frame, answered, Unclear.SAME_OR_ALL)
    return with_effect(readings.said, answered[0], before)


def on_open_ground(said: Frame, made: Decision, waiting: Decision | None) -> Decision:
    """The decision, or a question back where filters alone would change the answer before a question that was not
    understood: which of the two they are of is open."""
    filters = said.has("drop", *types_of("narrows")) or bool(said.window)
    if waiting is None or waiting.reason not in reasons_of("not_answered") or made.kind is not DecisionKind.CALL:
        return made
    filters |= waiting.reason is Unclear.NOTHING_NEW and said.has("name")
    others = ("ref", "incident", "kind", "talk", "that", *(() if waiting.reason is Unclear.NOTHING_NEW else ("name",)))
    alone = filters and is_fragment(said) and not said.has(*others)
    alone |= waiting.reason is Unclear.SAME_OR_ALL and said.has("ref:there", "ref:within")
    return offering(made.frame, [made], Unclear.SAME_OR_ALL) if alone else made


def left_behind(said: Frame, made: Decision, before: Decision | None, pointed: Iterable[ListItem]) -> Decision:
    """The decision, or a question back where a sentence that leans on an answer would leave its kind without naming
    another: "only SigninLogs" behind a query of the logs, "the web shell one" behind a list, a name behind mails."""
    bound = any(item.kind in (INCIDENT, ALERT) for item in pointed)
    if before is None or not before.calls or made.kind is not DecisionKind.CALL or bound or made.view is View.PROFILE:
        return made
    tool, last = made.calls[0].tool, before.calls[0].tool
    one = any(item.sense("one") for item in said.items)
    whole = said.has("ask", "op", "name", "incident", "owner", *_LISTS) or (said.has("topic") and not one)
    left = tool != last and not whole and (one or said.has("cmp:only", "add"))
    to_cases = last not in _OF_CASES and tool in _OF_CASES
    left |= to_cases and said.has(*types_of("goes_on")) and is_fragment(said) and not said.has(*types_of("names_cases"))
    words = said.has("title") and not said.has(*types_of("names_cases"), "ask", "op")
    named = before.frame.has("name") and said.has("name") and not said.has("ask", "op", "attr", "rel", *_LISTS)
    left |= to_cases and (words or named) and before.frame.has("topic")
    return offering(made.frame, [made], Unclear.SAME_OR_ALL) if left else made


def with_effect(said: Frame, made: Decision, before: Decision | None) -> Decision:
    """The decision, or a question back where words of the sentence change nothing in the last answer."""
    strange = _without_effect(said, made, before)
    if strange and said.unread and said.has("whois"):  # who that is gets looked up
        return ask(said, Unclear.UNREAD, *said.unread)
    return ask(made.frame, Unclear.NOTHING_NEW, *strange) if strange else made


def _same_answer(one: Decision, other: Decision) -> bool:
    return (one.calls, one.aspects, one.then, one.view) == (other.calls, other.aspects, other.then, other.view)


def _without_effect(said: Frame, made: Decision, before: Decision | None) -> list[str]:
    """The words that were said in vain, where the answer is the last one again and they stood not in its question."""
    if before is None or not _same_answer(made, before) or made.view is View.COMPARISON:
        return []
    light = {*types_of("light"), "op", "pad", "f", "definite"}
    known = {*_TOLD_AGAIN, *(f"kind:{kind}" for kind in LISTED if made.calls[0].tool == f"query_{kind}s")}
    other_time = bool(said.window) and said.window != before.frame.window  # of what no time narrows
    return [
        item.text
        for item in said.items
        if not item.silent and not {type_ for type_, _ in item.senses} <= light and item.sense("lit", _LINE) is None
        if not any(before.frame.has(one) or one in known for one in (f"{sense[0]}:{sense[1]}" for sense in item.senses))
    ] or ([said.time_said or said.text.strip(" .?!")] if other_time else [])


def offering(frame: Frame, made: Sequence[Decision], reason: Unclear | None, *values: str) -> Decision:
    """A question back between decisions, each under a number of its own."""
    return Decision(DecisionKind.ASK, frame, reason=reason, values=values, options=_options(made))


def _options(made: Sequence[Decision]) -> tuple[Option, ...]:
    return tuple(
        Option(call_words(one.calls[0]), one.frame, number, () if one.then else one.calls, one.view, one.aspects)
        for number, one in enumerate(made, start=1)
    )


def call_words(made: Call) -> str:
    """One call as a choice names it: "alerts (entity web-03, severity High)"."""
    told = {**made.arguments, **dict(made.arguments.get("parameters", {}))}
    noun = str(told.pop("template", _NOUNS.get(made.tool, made.tool))).replace("_", " ")
    told.pop("parameters", None)
    pairs = ", ".join(f"{name.replace('_', ' ')} {plain(str(value))}" for name, value in told.items())
    return f"{noun} ({pairs})" if pairs else f"{noun} (all)"


def _base(asked: FrameCompletion, told: frozenset[str]) -> Decision | None:
    """The decision that a sentence leans on: the last, or the one behind the list where only a list is meant."""
    return asked.base(lists="is:of_the_list" in told or _narrows_a_list(asked.frame))


def _look_at_all(asked: FrameCompletion, base: Decision) -> None:
    """Note that the list showed a part of its rows, where it is narrowed now."""
    shown = next((each for each in reversed(asked.talk.lists) if each.by == base), None)
    part = shown is not None and shown.total is not None and shown.total > len(shown.items)
    if part and _narrows_a_list(asked.frame):
        asked.frame.tell("among", "all")


def _narrows_a_list(frame: Frame) -> bool:
    """True for filters and orders that only a list takes."""
    return frame.has(*types_of("narrows")) and not asks_of_a_thing(frame)

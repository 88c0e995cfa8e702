"""How a sentence leans on the conversation: what it points at, what it does with the last answer, what it leaves out.

A sentence is read first; here its frame is filled from the typed state, one way of leaning after the other. What cannot
be bound with certainty is asked back with the candidates. No word of a language stands here: the reader tells what
points, takes back or goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from sentinel_rag.agent.planner.context import Context, Pointed
from sentinel_rag.agent.planner.decisions import Call, Decision, DecisionKind, Option, Unclear
from sentinel_rag.agent.planner.descriptions import chosen, described
from sentinel_rag.agent.planner.going_on import acted, timed
from sentinel_rag.agent.planner.leaning import leaned, of_a_table
from sentinel_rag.agent.planner.merging import LENGTHS, LISTED, is_fragment
from sentinel_rag.agent.planner.pointing import picked as picked_by
from sentinel_rag.agent.planner.pointing import placed, pointed
from sentinel_rag.agent.planner.sentence import MOST_AT_ONCE, Done, FrameCompletion
from sentinel_rag.contracts.tool_schemas import TIME_WINDOWS
from sentinel_rag.language.frames import Frame, Reader
from sentinel_rag.language.frames.phrases import Item, words_of

_CORRECTS = "instead"
_TAKES_BACK = frozenset({_CORRECTS, "adjust"})
_FROM = "from"
"""How the reader of times says the beginning of a stretch, whatever the language."""
_AROUND = "+- "
"""Before a length of time alone, where how long before and after was asked."""


def read(talk: Context, reader: Reader, text: str) -> Frame:
    """The frame of a sentence. What stands behind "no," is read alone: it denies nothing, it says what is meant. A
    length of time alone answers how long before and after."""
    frame = reader.read(text)
    meant = _behind_a_correction(frame)
    if meant:
        adjusts = frame.has("talk:adjust") and not frame.has("talk:no", f"talk:{_CORRECTS}")
        frame = reader.read(meant)
        frame.tell("talk", "adjust" if adjusts else _CORRECTS)
    if not frame.window and not frame.has("by", "group"):
        frame.window = _length_alone(frame)
    if talk.waiting is not None and talk.waiting.reason is Unclear.HOW_LONG and frame.around is None:
        around = reader.read(_AROUND + text)
        return around if around.around is not None else frame
    return frame


def _length_alone(frame: Frame) -> dict[str, str]:
    """The window of a number and its unit alone ("two weeks"); takes them off the frame."""
    for number, unit in pairwise([item for item in frame.items if not item.silent]):
        told, length = number.sense("num"), unit.sense("unit")
        span = LENGTHS.get(length[1], timedelta()) * int(told[1]) if told is not None and length is not None else None
        named = next((name for name, hours in TIME_WINDOWS.items() if timedelta(hours=hours) == span), None)
        if named is not None and is_fragment(frame):
            frame.items = tuple(item for item in frame.items if item not in (number, unit))
            for type_ in ("num", "unit", "limit", "counted", "digits"):
                frame.features.pop(type_, None)
            return {"time_window": named}
    return {}


def _behind_a_correction(frame: Frame) -> str:
    """The rest of the sentence behind words that take back what was said; empty if there are none, or no rest."""
    end = 0
    items = [item for item in frame.items if not item.silent]
    if len(items) > 2 and items[0].sense("not") and _is_place(items[1]) and _is_place(items[2]):
        return frame.text[items[2].start :]  # "not [1], [2]"
    denied = [pair for pair in pairwise(items) if _denies(pair[0]) and _is_place(pair[1])]
    told = [item for item in items if not any(item in pair for pair in denied)]  # "sorry, not 18, I meant 12"
    for item in told:
        said_no = item.sense("talk", frozenset({"no"})) is not None and _breaks_after(frame.text, item)
        between = any(end <= other.start < item.start for other in told)
        if between or (not said_no and item.sense("talk", _TAKES_BACK) is None):
            break
        end = item.end
    return frame.text[end:].strip(" ,.;:!-") if end else ""


def _denies(item: Item) -> bool:
    return item.sense("not") is not None and item.sense("talk") is None


def _is_place(item: Item) -> bool:
    return any(type_ in ("ref", "digits") or (type_, value) == ("lit", "item") for type_, value in item.senses)


def complete(talk: Context, frame: Frame, now: datetime) -> Done:
    """The frame with what it points at and leaves out, what was offered and is picked, or a question back."""
    asked = FrameCompletion(talk, frame.copy(), now)
    for step in _STEPS:
        done = step(asked)
        if done is not None:
            return done
    return asked.settled()


def pointed_at(talk: Context, frame: Frame, now: datetime) -> tuple[Pointed, ...]:
    """What a sentence points at, as far as that is certain: a hint for who reads the sentence itself."""
    asked = FrameCompletion(talk, frame.copy(), now)
    talk.pointed, talk.pointing = (), 0
    for step in (_corrected, placed, chosen, described, pointed):
        done = step(asked)
        if isinstance(done, Decision):
            talk.pointed = ()
        if done is not None:
            break
    return talk.pointed


def picked(talk: Context, frame: Frame, now: datetime) -> Option | None:
    """What was offered and is picked by the sentence alone."""
    done = picked_by(FrameCompletion(talk, frame.copy(), now))
    return done if isinstance(done, Option) else None


def for_each(decision: Decision) -> Decision:
    """One call for each incident that is meant, where the call takes one."""
    numbers = decision.frame.all("incident")
    if decision.kind is not DecisionKind.CALL or len(decision.calls) != 1 or not 1 < len(numbers) <= MOST_AT_ONCE:
        return decision
    made = decision.calls[0]
    if "incident" not in made.arguments:
        return decision
    calls = tuple(Call(made.tool, {**made.arguments, "incident": number}) for number in numbers)
    return replace(decision, calls=calls)


def _corrected(asked: FrameCompletion) -> Done | None:
    """Take note that this is meant instead of what was said."""
    asked.correcting = asked.frame.has(f"talk:{_CORRECTS}")
    first = next(iter(asked.items), None)
    if asked.correcting or (first is not None and _denies(first) and not asked.first):
        _without_denied(asked)
    before = asked.talk.before
    begins = words_of(asked.frame.time_said)[:1] == (_FROM,) and len(asked.frame.window) == 2
    if asked.correcting and begins and before is not None and "time_window" in before.frame.window:
        del asked.frame.window["end_time"]  # "from 1 July, not 30 days" reaches until now as those did
    if asked.correcting and before is not None and len(before.frame.window) == 1 and len(asked.frame.window) == 2:
        # "Since 5 July", "no, 1 July": the open end stays open.
        kept = [name for name in before.frame.window if name != "time_window"]
        asked.frame.window = dict.fromkeys(kept, asked.frame.window["start_time"]) or asked.frame.window
    return None


_STEPS: tuple[Callable[[FrameCompletion], Done | None], ...] = (
    picked_by,
    _corrected,
    timed,
    acted,
    placed,
    chosen,
    described,
    of_a_table,
    pointed,
    leaned,
)


def _without_denied(asked: FrameCompletion) -> None:
    """Take off the kind behind a "not" where another is meant: "alerts, not incidents"."""
    for denial, item in pairwise(asked.items):
        kind = item.sense("kind", LISTED)
        others = [] if kind is None else [one for one in asked.frame.all("kind") if one != kind[1]]
        if denial.sense("not") is not None and others:
            asked.frame.features["kind"], asked.frame.features["not"] = others, []
            asked.frame.items = tuple(one for one in asked.frame.items if one not in (denial, item))


def _breaks_after(text: str, item: Item) -> bool:
    """Whether a comma or a full stop follows an item."""
    return text[item.end :].lstrip()[:1] in (",", ".", ";", ":", "!", "-")

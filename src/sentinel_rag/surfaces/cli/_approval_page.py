"""An approval on one page that a person in a hurry can decide by: what happens, with what, why it is asked, what came
before, who asks.

Arguments are texts that an attacker may have written. Every line of one stands behind a bar that no value can forge,
because this module breaks the lines itself; nothing is cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

Json = dict[str, Any]

BAR = "  | "
SHORT = 60
EFFECTS = {
    "read": "only READS",
    "write": "CHANGES something in your own systems",
    "external": "SENDS DATA OUT, or acts outside of your systems",
}
SENSITIVITY = {"LOW": "public", "MEDIUM": "internal", "HIGH": "secret"}
STATES = {
    "pending": "WAITS FOR A DECISION",
    "approved": "APPROVED, not used yet",
    "denied": "DENIED",
    "used": "APPROVED AND USED",
    "expired": "EXPIRED",
}


def page(approval: Json, *, width: int, now: datetime) -> str:
    """The whole page, safe to print, in lines of at most `width` cells (ids and long words apart)."""
    return "\n".join(_lines(approval, max(40, width), now))


def summary(approval: Json, now: datetime) -> tuple[str, ...]:
    """One row of a list: id, age, time left, who wants what where that is known, tool, arguments where it is not, rule.
    Cut values say by how much."""
    more = approval["more_of_tool"]
    cells = (
        str(approval["approval_id"])[:8],
        str(approval["state"]),
        f"{duration(approval['asked_at'], now)} ago",
        time_left(approval, now),
        f"{approval['tool']}{f' (and {more} more)' if more else ''}",
        str(approval.get("title") or arguments_in_short(approval)),
        f"{approval['key_id']}: {approval['rule_id']}",
    )
    return tuple(map(safe_cell, cells))


def time_left(approval: Json, now: datetime) -> str:
    """How long it can still be decided, or used; empty if neither."""
    if approval["state"] not in ("pending", "approved"):
        return ""
    return _spoken(max(0.0, (parse_time(approval["ends_at"]) - now).total_seconds()))


def duration(since: str, now: datetime) -> str:
    return _spoken(max(0.0, (now - parse_time(since)).total_seconds()))


def _lines(approval: Json, width: int, now: datetime) -> Iterator[str]:
    state = STATES.get(str(approval["state"]), str(approval["state"]))
    left = time_left(approval, now)
    ends = f", {left} left (until {_when(approval['ends_at'])})" if left else ""
    yield safe_cell(f"Approval {approval['approval_id']}")
    yield from _wrapped(f"{state}{ends}", width)
    for sentence in _decided(approval):
        yield from _wrapped(sentence, width)
    if approval.get("title"):
        yield ""
        yield from _wrapped(approval["title"], width)
        yield from _subject(approval, width)
    yield from ("", "WHAT WILL HAPPEN" if approval["state"] == "pending" else "WHAT IT IS FOR")
    effect = EFFECTS.get(str(approval["effect"]), str(approval["effect"]))
    yield from _wrapped(f"The agent calls {approval['tool']}, which {effect}.", width)
    yield from _wrapped(approval["description"], width)
    yield from ("", "WITH EXACTLY THIS")
    yield from _arguments(approval, width)
    yield from ("", "WHY A PERSON IS ASKED")
    for reason in _reasons(approval):
        yield from _wrapped(reason, width)
    yield from ("", "WHAT THE AGENT HAD READ BEFORE")
    yield from _history(approval, width)
    if approval.get("evidence"):
        yield from ("", "WHAT THE CONVERSATION LOOKED AT")
        yield from _evidence(approval, width)
    yield from ("", "WHO ASKS")
    yield from _asker(approval, width, now)
    yield from _wrapped(f"The tool server {approval['server']} would run it.", width)
    if approval["more_of_tool"]:
        yield from _wrapped(f"{approval['more_of_tool']} more call(s) of this tool wait for a decision.", width)
    yield from _how_to_decide(approval, width)


def _subject(approval: Json, width: int) -> Iterator[str]:
    """What changes of the thing, field by field. A text of somebody's stands behind a bar."""
    subject = approval.get("subject")
    if subject is None:
        return
    if not subject["changes"]:
        yield "  Nothing would change: it is so already."
    for change in subject["changes"]:
        if change["before_quoted"] or change["after_quoted"]:
            yield from _wrapped(f"{change['field']}: from", width)
            yield from _barred(_value(change["before"]), width)
            yield "  to"
            yield from _barred(_value(change["after"]), width)
        else:
            yield from _wrapped(f"{change['field']}: {_value(change['before'])} -> {_value(change['after'])}", width)


def _value(value: Any) -> str:
    return "(none)" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _evidence(approval: Json, width: int) -> Iterator[str]:
    for each in approval.get("evidence", ()):
        about = "about exactly this" if each["about"] else "about something else"
        yield from _wrapped(
            f"{_when(each['at'])}  {each['tool']}, {about}  (sentinel audit show {each['audit_id']})", width
        )


def _asker(approval: Json, width: int, now: datetime) -> Iterator[str]:
    asked = duration(approval["asked_at"], now)
    person = f" for {approval['person']}" if approval.get("person") else ""
    yield from _wrapped(
        f"The key {approval['key_id']}{person} in session {approval['session_id']}, {asked} ago.", width
    )
    if not approval.get("person"):
        yield "  Nobody: the agent asks by itself."
    elif approval["words"]:
        yield "  Whose last words were:"
        yield from _barred(approval["words"], width)


def _decided(approval: Json) -> Iterator[str]:
    ruling = approval["decision"]
    if ruling is not None:
        word = "Denied" if approval["state"] == "denied" else "Approved"
        actor = f" (it says: {ruling['actor']})" if ruling["actor"] else ""
        comment = f": {ruling['comment']}" if ruling["comment"] else ""
        yield f"{word} by {ruling['by']}{actor} at {_when(ruling['at'])}{comment}"
    if approval["used_at"]:
        yield f"Used at {_when(approval['used_at'])}."
    ran = approval.get("outcome")
    if ran and ran["status"] == "success":
        yield f"It ran at the yes (sentinel audit show {ran['audit_id']})."
    elif ran:
        yield f"It did not go through at the yes: {ran['reason']}."


def _arguments(approval: Json, width: int) -> Iterator[str]:
    if approval["arguments"] is None:
        yield "  The arguments are not shown to this key: the policy names others who may decide."
        return
    if not approval["arguments"]:
        yield "  It takes no arguments."
    too_much = {violation["parameter"] for violation in approval["violations"]}
    for name, value in approval["arguments"].items():
        label = approval["argument_labels"].get(name)
        marks = f"  [{_label(label)}]" if label else ""
        said = name in approval.get("said", ())
        marks += "  named by the person" if name in approval.get("named", ()) else ""
        marks += "  in the person's words" if said and name in too_much else ""
        marks += "  <-- more than the tool accepts" if name in too_much and not said else ""
        shown = json.dumps(value, ensure_ascii=False)
        if "\\n" in shown or len(f"  {name} = {shown}") > width:
            text = value if isinstance(value, str) else shown
            kind = "a text" if isinstance(value, str) else "a value"
            yield from _wrapped(f"{name} = {kind} of {len(text)} characters{marks}", width)
            yield from _barred(text, width)
        else:
            yield from _wrapped(f"{name} = {shown}{marks}", width)


def _reasons(approval: Json) -> Iterator[str]:
    if approval["why"] == "the rule requires it":
        yield "The policy lets nobody make this call without a person's approval."
    elif " " in approval["why"]:
        yield str(approval["why"])
    said = approval.get("said", ())
    yield from _too_much([each for each in approval["violations"] if each["parameter"] not in said])
    if chosen := [each["parameter"] for each in approval["violations"] if each["parameter"] in said]:
        own = "stands" if len(chosen) == 1 else "stand"
        yield f"{_listed(chosen)} {own} in the person's own words, said after the agent had read what follows."
    yield f"Rule {approval['rule_id']}, where {approval['condition']}; the result is {approval['taint_level']}."


def _too_much(violations: list[Json]) -> Iterator[str]:
    """One sentence for each way in which arguments carry too much, whichever they are."""
    told: dict[str, list[str]] = {}
    for violation in violations:
        for sentence in _faults(violation):
            told.setdefault(sentence, []).append(violation["parameter"] or "The call itself")
    for sentence, names in told.items():
        yield f"{_listed(names)} {sentence}"


def _faults(violation: Json) -> Iterator[str]:
    label, accepts = violation["label"], violation["accepts"]
    high, most = str(label["sensitivity"]), str(accepts["sensitivity"])
    if _rank(high) > _rank(most):
        found, allowed = SENSITIVITY.get(high, high), SENSITIVITY.get(most, most)
        yield f"may hold {found} data ({high}), and this tool takes {allowed} data at most ({most})."
    if label["integrity"] == "UNTRUSTED" and accepts["integrity"] != "UNTRUSTED":
        yield "may be steered by an attacker (UNTRUSTED), and this tool takes trusted words only (TRUSTED)."
    if violation.get("link"):
        yield "may carry data out by a link in it."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _rank(sensitivity: str) -> int:
    """Higher is more secret; a name that this version does not know is worse than all."""
    known = list(SENSITIVITY)
    return known.index(sensitivity) if sensitivity in known else len(known)


def _history(approval: Json, width: int) -> Iterator[str]:
    yield from _wrapped(f"In this conversation: {_held(approval['context'])}", width)
    yield from _raises(approval["raised_by"], width)
    if not approval["raised_by"]:
        yield "      No earlier result of it raised its labels."
    memory = approval.get("memory")
    if memory is None:
        return
    yield from _wrapped(f"In all that the agent may remember: {_held(memory)}", width)
    yield from _raises(approval["memory_raised_by"], width)


def _held(label: Json) -> str:
    high, low = str(label["sensitivity"]), str(label["integrity"])
    attacker = ", some of it possibly written by an attacker" if low == "UNTRUSTED" else ""
    return f"{SENSITIVITY.get(high, high)} data{attacker} ({high}, {low})"


def _raises(earlier: list[Json], width: int) -> Iterator[str]:
    for each in earlier:
        yield from _wrapped(
            f"{_when(each['at'])}  {each['tool']} raised it to {_label(each['label'])}  "
            f"(sentinel audit show {each['audit_id']})",
            width,
        )


def _how_to_decide(approval: Json, width: int) -> Iterator[str]:
    if approval["outdated"] and approval["state"] in ("pending", "approved"):
        yield from ("", "THE POLICY HAS CHANGED SINCE")
        yield from _wrapped("A yes lets nothing run any more: if the call comes again, it asks anew.", width)
    if approval["may_decide"]:
        yield from ("", "DECIDE (for this one call, with exactly this data, once)")
        yield safe_cell(f"  sentinel approvals approve {approval['approval_id']}")
        yield safe_cell(f"  sentinel approvals deny {approval['approval_id']}")
    elif approval["state"] == "pending":
        named = ", ".join(approval["approvers"])
        who = f"It may be decided by: {named}." if named else "The key that asked cannot decide."
        yield from ("", "YOU CANNOT DECIDE THIS ONE")
        yield from _wrapped(who, width)


def _label(label: Json) -> str:
    return f"{label['sensitivity']}, {label['integrity']}"


def _wrapped(text: str, width: int) -> Iterator[str]:
    """A sentence of ours that may hold names from elsewhere, indented; what was broken stands deeper, so that no name
    can look like a line of the page."""
    import textwrap

    yield from textwrap.wrap(safe_cell(text), width, initial_indent="  ", subsequent_indent="      ")


def _barred(text: str, width: int) -> Iterator[str]:
    """Every line of `text`, broken at `width` cells and behind a bar; a line that was broken goes on behind `+`."""
    from rich.cells import chop_cells

    for line in safe(text).split("\n"):
        pieces = chop_cells(line.replace("\t", "    "), width - len(BAR)) or [""]
        yield f"{BAR}{pieces[0]}"
        for piece in pieces[1:]:
            yield f"  + {piece}"


def arguments_in_short(approval: Json) -> str:
    """The arguments on one line; cut values say by how much."""
    if approval["arguments"] is None:
        return "(not shown to this key)" if approval["arguments_withheld"] else "(long: see show)"
    return ", ".join(f"{name}={_short(value)}" for name, value in approval["arguments"].items())


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHORT else f"{text[:SHORT]}... (+{len(text) - SHORT} characters)"


def _when(text: str) -> str:
    """To the second, as a person reads a time."""
    return str(text).partition(".")[0].removesuffix("Z").replace("T", " ", 1) + " UTC"


def _spoken(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"

"""`sentinel approvals`, and confirming a call of one's own conversation: seen and decided on the screen.

What is shown is the gateway's own record of the call, and never the agent's text; what was typed before it was on the
screen is no answer to it. A page tells a person in a hurry what happens, with what, why it is asked, what came before,
and who asks. Arguments are texts that an attacker may have written: every line of one stands behind a bar that no value
can forge, because this module breaks the lines itself; nothing is cut.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.cli._zones import ApprovalsClient, UserSession, connect
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

COLUMNS = ("id", "state", "what", "asked", "left", "tool", "who: rule")
POLL_S = 1.0
MAX_COMMENT = 2_000


def list_all(state: str, *, as_json: bool) -> int:
    """Print the approvals in `state` (`all` for any), oldest first; 3 if there are none."""
    found = connect(load_settings()).page(None if state == "all" else state)
    if as_json:
        print_json(found)
    elif not found["approvals"]:
        print("Nothing waits for a decision." if state == "pending" else f"There are no approvals in state {state}.")
    else:
        now = utc_now()
        print_table(COLUMNS, [summary(each, now) for each in found["approvals"]])
        if found["left_off"]:
            print(f"\n{found['left_off']} {'newer' if state == 'pending' else 'older'} ones are not shown.")
        if state == "pending":
            print("\nsentinel approvals show ID tells what one would do; approve ID and deny ID decide it.")
    return 0 if found["approvals"] else 3


def show(approval_id: str | None, *, last: bool, as_json: bool) -> int:
    """Print one approval, whole."""
    client = connect(load_settings())
    _print(client.get(_chosen(client, approval_id, last=last)), as_json=as_json)
    return 0


def decide(approval_id: str | None, verb: str, *, last: bool = False, comment: str, as_json: bool) -> int:
    """Approve, deny or lift; `verb` says which. What is decided is told with its arguments."""
    if len(comment) > MAX_COMMENT:
        raise UsageError(
            f"The comment has {len(comment)} characters, and {MAX_COMMENT} are recorded at most.",
            next_step="Write a shorter one.",
        )
    client = connect(load_settings())
    decided = client.decide(_chosen(client, approval_id, last=last), verb, comment)
    if as_json:
        print_json(decided)
    elif verb == "lift":
        print(safe_cell(f"Lifted: {decided['tool']} ({arguments_in_short(decided)}) may be asked about again."))
    else:
        _print_decided(decided)
    return 0


def _chosen(client: ApprovalsClient, approval_id: str | None, *, last: bool) -> str:
    """The id that is meant. Raises UsageError for none, for both, and where nothing waits."""
    if (approval_id is None) != last:
        raise UsageError("An ID names the approval, or --last the newest that waits.", next_step="Give one of the two.")
    if approval_id is not None:
        return approval_id
    found = client.page("pending")
    waiting = found["approvals"]
    if found["left_off"]:
        raise UsageError(f"More than {len(waiting)} wait, too many to say which is the last.", next_step="Give its ID.")
    if not waiting:
        raise UsageError("Nothing waits for a decision.", next_step="Run: sentinel approvals list --state all")
    return str(waiting[-1]["approval_id"])


def watch(*, as_json: bool) -> int:
    """Print each approval that comes to wait, and on a terminal ask what to do with it; until Ctrl-C or Ctrl-D."""
    settings = load_settings()
    connect(settings)  # wrong settings end it here; a gateway that goes away later does not
    interactive = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    if interactive:
        print("Waiting for calls that need a person. Ctrl-C ends this; what waits goes on waiting.", flush=True)
    for client, approval in _arriving(settings):
        _print(approval, as_json=as_json, one_line=True)
        if interactive and approval["may_decide"] and not _ask(client, approval["approval_id"]):
            return 0
    return 0


def _arriving(settings: Settings) -> Iterator[tuple[ApprovalsClient, dict[str, Any]]]:
    """Each pending approval once, oldest first, whole; never ends."""
    seen: set[str] = set()
    away = ""
    while True:
        try:
            client = connect(settings)
            waiting = client.page("pending")["approvals"]
            arrived = [each["approval_id"] for each in waiting if each["approval_id"] not in seen]
            seen = {each["approval_id"] for each in waiting}
            for approval_id in arrived:
                approval = client.get(approval_id)
                if approval["state"] == "pending":
                    yield client, approval
            away = ""
        except UnavailableError as error:
            if str(error) != away:
                away = str(error)
                print(f"sentinel: {safe_cell(away)} Still watching.", file=sys.stderr, flush=True)
        time.sleep(POLL_S)


def _ask(client: ApprovalsClient, approval_id: str) -> bool:
    """Ask the person at the terminal; False if they want no more questions."""
    try:
        yes = _ANSWERS.get(_answer("Approve this one call? [y = approve, n = deny, Enter = later]"))
    except EOFError:
        print()
        return False
    if yes is None:
        print("It goes on waiting.", flush=True)
        return True
    try:
        _print_decided(client.decide(approval_id, "approve" if yes else "deny", ""))
    except SentinelError as error:  # it was decided elsewhere or has expired meanwhile: the next one may be decided
        report(error, as_json=False)
    return True


_ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


def _answer(question: str) -> str:
    """The person's word. What was typed before the question was seen is no answer to it. Raises EOFError."""
    import termios

    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    return input(f"\n{question} ").strip().lower()


def _print(approval: dict[str, Any], *, as_json: bool, one_line: bool = False) -> None:
    if as_json:
        print(json.dumps(approval, indent=None if one_line else 2), flush=True)
        return
    _print_page(approval)
    if one_line:
        print(flush=True)


def _print_page(approval: dict[str, Any]) -> None:
    print(page(approval, width=_width(), now=utc_now()), flush=True)


def _width() -> int:
    return max(40, shutil.get_terminal_size((100, 24)).columns)


def _print_decided(approval: dict[str, Any]) -> None:
    called = f"{approval['tool']} ({arguments_in_short(approval)})"
    if approval["state"] == "denied":
        text = f"Denied: {called} for the key {approval['key_id']}. Nothing ran."
    elif approval.get("outcome"):
        text = _ran(approval)
    else:
        left = time_left(approval, utc_now())
        text = f"Approved: {called} may run once for the key {approval['key_id']}"
        text += f", if exactly this call comes again within {left}." if left else "."
    print(safe_cell(text), flush=True)


def _ran(approval: dict[str, Any]) -> str:
    """What became of a call that runs at the yes."""
    ran, tool = approval["outcome"], approval["tool"]
    match ran["status"]:
        case "success":
            return f"Approved, and done: {tool} ran (sentinel audit show {ran['audit_id']})."
        case "denied" if ran["approval_id"]:
            return (
                f"Approved, but {tool} did not run: what it would change, or what the agent has read, is not what you "
                f"were shown. It asks anew: sentinel approvals show {ran['approval_id']}"
            )
        case _:
            return f"Approved, and {tool} failed: {ran['reason']} (sentinel audit show {ran['audit_id']})."


GO_ON = "do it now"
"""What the agent is asked once the person has confirmed: exactly that call."""


def confirmed(user: UserSession | None, session_id: str | None) -> bool:
    """Show each call of the session that waits for this person and take their word; whether one may run now."""
    if user is None or session_id is None:
        return False
    may_run = False
    try:
        for waiting in user.to_confirm(session_id):
            print("\n".join(in_short(waiting, _width(), utc_now())), flush=True)
            try:
                word = _answer("Do exactly this? [y = yes, n = no, ? = show all of it, Enter = later]")
                if word == "?":
                    _print_page(waiting)
                    word = _answer("Do exactly this? [y = yes, n = no, Enter = later]")
                answer = _ANSWERS.get(word)
            except EOFError:
                answer = None
            if answer is None:
                print("It goes on waiting; ask again to see it.", flush=True)
                continue
            user.confirm(waiting["approval_id"], yes=answer)
            may_run = may_run or answer
    except SentinelError as error:  # it was decided elsewhere, or the gateway is away
        report(error, as_json=False)
    return may_run


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
    return "\n".join(_page_lines(approval, max(40, width), now))


def summary(approval: Json, now: datetime) -> tuple[str, ...]:
    """One row of a list: id, state with who decided and why, who wants what where that is known, arguments where it is
    not, age, time left, tool, for whom and by which rule. Cut values say by how much."""
    more, ruling = approval["more_of_tool"], approval["decision"]
    said = f": {_short(ruling['comment'])}" if ruling and ruling["comment"] else ""
    cells = (
        str(approval["approval_id"])[:8],
        f"{approval['state']} by {ruling['by']}{said}" if ruling else str(approval["state"]),
        str(approval.get("title") or arguments_in_short(approval)),
        f"{duration(approval['asked_at'], now)} ago",
        time_left(approval, now),
        f"{approval['tool']}{f' (and {more} more)' if more else ''}",
        f"{approval.get('person') or approval['key_id']}: {approval['rule_id']}",
    )
    return tuple(map(safe_cell, cells))


def time_left(approval: Json, now: datetime) -> str:
    """How long it can still be decided, or used; empty if neither."""
    if approval["state"] not in ("pending", "approved"):
        return ""
    return _spoken(max(0.0, (parse_time(approval["ends_at"]) - now).total_seconds()))


def duration(since: str, now: datetime) -> str:
    return _spoken(max(0.0, (now - parse_time(since)).total_seconds()))


def in_short(approval: Json, width: int, now: datetime) -> Iterator[str]:
    """What a person's own sentence would do: what changes, with exactly which values. The whole page where there is
    more to look at: a value that they did not say and that the tool does not accept, or another policy since."""
    unsaid = [each for each in approval["violations"] if each["parameter"] not in approval.get("said", ())]
    if unsaid or approval["outdated"] or not approval.get("title"):
        yield from _page_lines(approval, width, now)
        return
    yield from _wrapped(approval["title"], width)
    yield from _subject(approval, width)
    yield "With exactly this:"
    yield from _arguments(approval, width)
    yield from _wrapped(f"It is approval {approval['approval_id']}, {time_left(approval, now)} left.", width)


def _page_lines(approval: Json, width: int, now: datetime) -> Iterator[str]:
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
            yield from _barred(_field_value(change["before"]), width)
            yield "  to"
            yield from _barred(_field_value(change["after"]), width)
        else:
            yield from _wrapped(
                f"{change['field']}: {_field_value(change['before'])} -> {_field_value(change['after'])}", width
            )


def _field_value(value: Any) -> str:
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

    # An id whose first part ends in a letter would be broken behind its hyphen, and could not be copied.
    wrapper = textwrap.TextWrapper(width, initial_indent="  ", subsequent_indent=" " * 6, break_on_hyphens=False)
    yield from wrapper.wrap(safe_cell(text))


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

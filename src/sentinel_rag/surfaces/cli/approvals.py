"""`sentinel approvals`, and confirming a call of one's own conversation: seen and decided on the screen.

What is shown is the gateway's own record of the call, and never the agent's text; what was typed before it was on the
screen is no answer to it.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from typing import Any

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._approval_page import arguments_in_short, page, summary, time_left
from sentinel_rag.surfaces.cli._clients import ApprovalsClient, UserSession, connect
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.rendering.visible import safe_cell

COLUMNS = ("id", "state", "asked", "left", "tool", "what", "who: rule")
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
        yes = _answer("Approve this one call? [y = approve, n = deny, Enter = later]")
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


def _answer(question: str) -> bool | None:
    """The person's word; None for any other. What was typed before the question was seen is no answer to it. Raises
    EOFError."""
    import termios

    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    return _ANSWERS.get(input(f"\n{question} ").strip().lower())


def _print(approval: dict[str, Any], *, as_json: bool, one_line: bool = False) -> None:
    if as_json:
        print(json.dumps(approval, indent=None if one_line else 2), flush=True)
        return
    _print_page(approval)
    if one_line:
        print(flush=True)


def _print_page(approval: dict[str, Any]) -> None:
    print(page(approval, width=shutil.get_terminal_size((100, 24)).columns, now=utc_now()), flush=True)


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
            _print_page(waiting)
            try:
                answer = _answer("Do exactly this? [y = yes, n = no, Enter = later]")
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

"""Calls that the person in front of a conversation confirms themselves, where a rule of the policy lets the asker.

What is shown is the gateway's own record of the call, and never the agent's text; what was typed before it was on
the screen is no answer to it.
"""

from __future__ import annotations

import shutil
import sys

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.surfaces.cli._approval_page import page
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._user_session import UserSession

GO_ON = "do it now"
"""What the agent is asked once the person has confirmed: exactly that call."""

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


def confirmed(user: UserSession | None, session_id: str | None) -> bool:
    """Show each call of the session that waits for this person and take their word; whether one may run now."""
    if user is None or session_id is None:
        return False
    may_run = False
    try:
        for waiting in user.to_confirm(session_id):
            print(page(waiting, width=shutil.get_terminal_size((100, 24)).columns, now=utc_now()), flush=True)
            answer = _answer()
            if answer is None:
                print("It goes on waiting; ask again to see it.", flush=True)
                continue
            user.confirm(waiting["approval_id"], yes=answer)
            may_run = may_run or answer
    except SentinelError as error:  # it was decided elsewhere, or the gateway is away
        report(error, as_json=False)
    return may_run


def _answer() -> bool | None:
    import termios

    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    try:
        text = input("\nDo exactly this? [y = yes, n = no, Enter = later] ")
    except EOFError:
        return None
    return _ANSWERS.get(text.strip().lower())

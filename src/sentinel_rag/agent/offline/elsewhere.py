"""Questions that the workspace cannot answer and another tool may: general knowledge on the web, files of the folder.

An explicit wish ("search the web for", "read the file") means just that tool. A definition ("what is a panda", "what is
phishing") asks the web first and the workspace if there is no page. A term that may be a name of the workspace ("what
is mimikatz") is looked for there alone and leaves this machine only if the person then asks for a search. Nothing here
is asked of a gateway that does not offer the tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.agent.planner.decisions import Plan, PlannedCall, View
from sentinel_rag.contracts.web_tools import MAX_QUERY_CHARACTERS
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.asides import asides, said_words, technique_called

_WORD = r"[^\W\d_](?:[^\W\d_]|[&'’-])*"
_ONE_TERM = re.compile(rf"{_WORD}(?:\s+{_WORD}){{0,6}}")
"""Words of letters only: what holds a digit is an id, a host or an address."""
_OF_THE_WORKSPACE = ("kind", "op", "status", "topic", "meta", "class", "owner", "severity", "ref", "name", "incident",
                     "alert_id", "num", "lit", "order", "table", "template")  # fmt: skip
"""Types of words that only the workspace can mean."""


class When(StrEnum):
    """When the other tool is asked, and when the workspace."""

    ONLY = "only"
    FIRST = "first"
    IF_ASKED = "if_asked"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A plan that asks another tool ONLY; FIRST, and the workspace if that found nothing; or not before the person says
    `question`, where the workspace has nothing (IF_ASKED)."""

    plan: Plan
    when: When = When.ONLY
    question: str = ""


def elsewhere_plan(text: str, read: Callable[[str], Frame]) -> Elsewhere | None:
    """The plan for a question that another tool than Sentinel's answers, or None; `read` reads a sentence."""
    for match in asides(text, "file", "read", whole=True):
        path = match["path"].strip('"“”`')
        if "/" in path and not path.lower().startswith(("http:", "https:")):
            return Elsewhere(Plan(view=View.FILE, calls=(PlannedCall("file_read", {"file_path": path}),)))
    for match in asides(text, "file", "list", whole=True):
        path = match["path"].strip('"“”`')
        if ("/" in path or match["folder"]) and "\\" not in path:
            return Elsewhere(Plan(view=View.FILES, calls=(PlannedCall("file_list", {"directory": path}),)))
    for match in asides(text, "web", "search", whole=True):
        if not read(match["wanted"]).has("meta:oos"):
            return Elsewhere(_search(match["wanted"]))
    for match in asides(text, "web", "define", whole=True):
        wanted = match.groupdict().get("wanted") or match["a_thing"]
        when = _when(read(wanted), wanted)
        if when is not None:
            return Elsewhere(_search(f"what is {wanted}"), when, f"Search the web for {wanted}")
    return None


def _when(frame: Frame, wanted: str) -> When | None:
    """When to ask the web for a definition; None for what only the workspace can mean."""
    if not _ONE_TERM.fullmatch(wanted) or frame.has(*_OF_THE_WORKSPACE) or frame.window or frame.around is not None:
        return None
    words = wanted.split()
    # An article says that a kind of thing is meant and not one of that name.
    general = len(words) > 1 and words[0].lower() in said_words("web", "article")
    if general or technique_called(wanted) or frame.has("tactic"):
        return When.FIRST
    is_person = len(words) > 1 and wanted.istitle()
    told = frame.unread or frame.has("guess", "maybe_title", "title")
    return When.IF_ASKED if told and not is_person else None


def _search(wanted: str) -> Plan:
    query = " ".join(wanted.strip(" \"'“”`").split())[:MAX_QUERY_CHARACTERS]
    return Plan(view=View.WEB, calls=(PlannedCall("web_search", {"query": query}),))

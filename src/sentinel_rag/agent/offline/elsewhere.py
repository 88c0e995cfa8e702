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

from sentinel_rag.agent.offline.second_look import TECHNIQUES
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.contracts.web_tools import MAX_QUERY_CHARACTERS
from sentinel_rag.language.frames import Frame

_POLITE = (
    r"^\W*(?:(?:please|pls|hey|hi|ok|okay|so|and|now|can\s+you|could\s+you|would\s+you|i\s+want\s+you\s+to|"
    r"i(?:\s+want|\s+would\s+like|'d\s+like)\s+to(?=\s+(?:search|look|read|see|know|list)))[\s,:]+)*"
)
_END = r"[\s.?!]*$"
_WEB = r"(?:the\s+)?(?:web|internet|world\s+wide\s+web)"
_SEARCHES = tuple(
    re.compile(_POLITE + pattern + _END, re.IGNORECASE)
    for pattern in (
        rf"(?:do\s+a\s+)?(?:search|check|browse|query|ask)\s+{_WEB}\s+(?:for|about|on)\s+(?P<wanted>.+?)",
        r"(?:do\s+a\s+)?(?:web|internet|online)\s+search\s*(?:for|about|on|:)?\s+(?P<wanted>.+?)",
        r"search\s+online\s+(?:for|about)\s+(?P<wanted>.+?)",
        r"google\s+(?:for\s+)?(?P<wanted>.+?)",
        rf"(?:search|look|find)(?:\s+for)?(?:\s+up)?\s+(?P<wanted>.+?)\s+(?:up\s+)?(?:on(?:line|\s+{_WEB})|in\s+{_WEB})",
        rf"what\s+does\s+{_WEB}\s+say\s+about\s+(?P<wanted>.+?)",
    )
)
_KNOW = (
    r"(?:(?:i\s+want\s+to\s+know|i'd\s+like\s+to\s+know|i\s+need\s+to\s+know|do\s+you\s+know|tell\s+me|explain)\s+)?"
)
_DEFINITIONS = tuple(
    re.compile(_POLITE + _KNOW + pattern + _END, re.IGNORECASE)
    for pattern in (
        r"(?:know\s+)?(?:what(?:'s|\s+is|\s+are)|whats)\s+(?:exactly\s+|meant\s+by\s+)?(?P<wanted>.+?)",
        r"(?:know\s+)?what\s+(?P<wanted>an?\s+.+?)\s+(?:is|are)",
        r"what\s+does\s+(?P<wanted>.+?)\s+mean",
        r"(?:define|explain)\s+(?P<wanted>.+?)",
        r"(?:the\s+)?(?:meaning|definition)\s+of\s+(?P<wanted>.+?)",
    )
)
_WORD = r"[^\W\d_](?:[^\W\d_]|[&'’-])*"
_ONE_TERM = re.compile(rf"{_WORD}(?:\s+{_WORD}){{0,6}}")
"""Words of letters only: what holds a digit is an id, a host or an address."""
_OF_THE_WORKSPACE = ("kind", "op", "status", "topic", "meta", "class", "owner", "severity", "ref", "name", "incident",
                     "alert_id", "num", "lit", "order", "table", "template")  # fmt: skip
"""Types of words that only the workspace can mean."""

_PATH = r"(?:\"(?P<quoted>[^\"]+)\"|“(?P<curly>[^”]+)”|`(?P<code>[^`]+)`|(?P<bare>\S+?))"
_READS = tuple(
    re.compile(_POLITE + pattern + _END, re.IGNORECASE)
    for pattern in (
        rf"(?:read|open|cat)\s+(?:me\s+)?(?:(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?(?:file|document)\s+)?{_PATH}",
        rf"(?:show|print|display|view|get|give)\s+(?:me\s+)?(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?"
        rf"(?:file|document)\s+{_PATH}",
        rf"what(?:'s|\s+is|\s+stands)\s+in\s+(?:the\s+)?(?:file|document)\s+{_PATH}",
        rf"what\s+does\s+(?:the\s+)?(?:file|document)\s+{_PATH}\s+(?:say|hold|contain)",
    )
)
_LISTS = tuple(
    re.compile(_POLITE + pattern + _END, re.IGNORECASE)
    for pattern in (
        rf"(?:list|show|display|what|which|give)\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?(?:files|documents)\s+"
        rf"(?:are\s+)?(?:there\s+)?(?:in|of|under|below)\s+(?:the\s+)?(?P<folder>(?:folder|directory)\s+)?{_PATH}"
        r"(?:\s+(?:folder|directory))?",
        rf"(?:ls|dir|list)\s+(?P<folder>(?:the\s+)?(?:folder|directory)\s+)?{_PATH}",
    )
)


class When(StrEnum):
    """When the other tool is asked, and when the workspace."""

    ONLY = "only"
    FIRST = "first"
    IF_ASKED = "if_asked"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """`plan` needs `tool`. Asked ONLY there; FIRST there, and of the workspace if that found nothing; or not before the
    person says `question`, where the workspace has nothing (IF_ASKED)."""

    tool: str
    plan: Plan
    when: When = When.ONLY
    question: str = ""


def elsewhere_plan(text: str, read: Callable[[str], Frame]) -> Elsewhere | None:
    """The plan for a question that another tool than Sentinel's answers, or None; `read` reads a sentence."""
    return _file_plan(text) or _search_plan(text, read) or _definition_plan(text, read)


def _search_plan(text: str, read: Callable[[str], Frame]) -> Elsewhere | None:
    for pattern in _SEARCHES:
        if (match := pattern.match(text)) and not read(match["wanted"]).has("meta:oos"):
            return _web(match["wanted"], When.ONLY)
    return None


def _definition_plan(text: str, read: Callable[[str], Frame]) -> Elsewhere | None:
    for pattern in _DEFINITIONS:
        match = pattern.match(text)
        when = None if match is None else _when(read(match["wanted"]), match["wanted"])
        if match is not None and when is not None:
            return _web(f"what is {match['wanted']}", when, f"Search the web for {match['wanted']}")
    return None


def _when(frame: Frame, wanted: str) -> When | None:
    """When to ask the web for a definition; None for what only the workspace can mean."""
    about = frame.has(*_OF_THE_WORKSPACE) or frame.window or frame.around is not None
    if not _ONE_TERM.fullmatch(wanted) or about:
        return None
    words = wanted.split()
    # An article says that a kind of thing is meant and not one of that name.
    if (len(words) > 1 and words[0].lower() in ("a", "an")) or wanted.lower() in TECHNIQUES or frame.has("tactic"):
        return When.FIRST
    is_person = len(words) > 1 and wanted.istitle()
    told = frame.unread or frame.has("guess", "maybe_title", "title")
    return When.IF_ASKED if told and not is_person else None


def _web(wanted: str, when: When, question: str = "") -> Elsewhere:
    query = " ".join(wanted.strip(" \"'“”`").split())[:MAX_QUERY_CHARACTERS]
    plan = Plan(view=View.WEB, calls=(PlannedCall("web_search", {"query": query}),))
    return Elsewhere("web_search", plan, when, question)


def _file_plan(text: str) -> Elsewhere | None:
    for pattern in _READS:
        match = pattern.match(text)
        if match is not None and "/" in (path := _path_of(match)) and not path.lower().startswith(("http:", "https:")):
            return _files(View.FILE, PlannedCall("file_read", {"file_path": path}))
    for pattern in _LISTS:
        match = pattern.match(text)
        if match is not None and ("/" in (path := _path_of(match)) or match["folder"]) and "\\" not in path:
            return _files(View.FILES, PlannedCall("file_list", {"directory": path}))
    return None


def _files(view: View, call: PlannedCall) -> Elsewhere:
    return Elsewhere(call.tool, Plan(view=view, calls=(call,)))


def _path_of(match: re.Match[str]) -> str:
    return next(text for text in match.group("quoted", "curly", "code", "bare") if text)

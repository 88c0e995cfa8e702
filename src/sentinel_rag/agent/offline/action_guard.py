"""Wishes to change, send or run something: told from questions, and what is said where nothing can be done about them.

A wish to act is never answered by reading something, as if it had been done. `action_words` reads the wishes that can
become a call.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.planner.plan import Reply
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.language.frames import Frame

_POLITE = (
    r"(?:(?:hey|hi|hello|ok|okay|now|then|and|so|please|pls|plz|kindly|just|also|go\s+ahead\s+and|i\s+want\s+you\s+to|"
    r"i'd\s+like\s+you\s+to|i\s+need\s+you\s+to|can\s+(?:you|we|i)|could\s+you|would\s+you|"
    r"will\s+you|let's|lets|let\s+us|"
    r"you\s+(?:should|must|need\s+to))[\s,:]+)*"
)
_VERBS = (
    "close|reopen|re-open|assign|reassign|unassign|isolate|unisolate|contain|quarantine|block|unblock|ban|disable|enable|"
    r"delete|remove|erase|purge|drop|truncate|resolve|dismiss|suppress|escalate|kick|lock|unlock|wipe|throw|shut|cut|kill(?![\s-]*chain)|terminate|stop|restart|reboot|revoke|"
    r"reset|patch|mark|tag|label|classify|set|change|update|modify|edit|rename|merge|lower|downgrade|upgrade|acknowledge|"
    "comment|insert|upload|deploy|trigger|execute|notify|email|e-mail|send|approve|whitelist|allowlist|blacklist|blocklist"
)
_IMPERATIVE = re.compile(
    rf"^\W*{_POLITE}(?:{_VERBS})\b(?!\s*(?:incidents?|alerts?|ones?)\s*(?:\?|$|since|in|from|last|past))", re.I
)
_PUT = re.compile(
    rf"^\W*{_POLITE}(?:put|make|turn|move)\s+(?:it|this|that|(?:incident|inc|case|alert)?\s*#?\d+|the\s+(?:incident|alert|case))\b",
    re.IGNORECASE,
)
_ADD = re.compile(
    rf"^\W*{_POLITE}(?:add|write|leave|post|put|create|make|open|raise)\s+(?:an?\s+|the\s+|"
    rf"new\s+|this\s+)*"
    r"(?:comments?|notes?|tags?|labels?|tasks?|incident|case|ticket|rule|watchlist|entry|block)\b(?!\s*#?\d)",
    re.I,
)
_AND_THEN = re.compile(
    rf"(?:\band\b|\bthen\b|[,;.])\s*(?:then\s+)?(?:please\s+)?(?:{_VERBS})\s+(?:it|this|that|"
    rf"them|those|these|him|her|the|all|its|"
    r"incident|alert|case|host|user|account|machine|ip|#)",
    re.IGNORECASE,
)
_ADJECTIVES = re.compile(r"^\W*(?:closed|resolved|dismissed|updated|changed|blocked|disabled)\b", re.IGNORECASE)
_READS = re.compile(
    r"^\W*(?:(?:please|pls|and|so|ok)\s+)*(?:update\s+(?:me\b|us\b|on\b|about\b|for\b|please\b)|"
    r"e-?mail\s+(?:alerts?|messages?|incidents?|from|to|events?|activity)|"
    r"(?:change|comment|label|tag|patch|block|send|trigger)\s+(?:history|log|times?|count|status)\b|set\s+of\b|"
    r"(?:trigger|execute|stop|kill|drop)\s+(?:alerts?|events?)\b)",
    re.IGNORECASE,
)
"""Questions that begin with a word that is also an action: "update me on", "email alerts"."""


def wants_action(text: str) -> bool:
    """True if the person asks to change, send or run something rather than to read."""
    if only_reads(text):
        return False
    return bool(_IMPERATIVE.match(text) or _PUT.match(text) or _ADD.match(text) or _AND_THEN.search(text))


def only_reads(text: str) -> bool:
    """True for a question that begins with a word which is also an action: "update me on", "closed incidents"."""
    return _ADJECTIVES.match(text) is not None or (_READS.match(text) is not None and not _AND_THEN.search(text))


_ON_DEVICES = re.compile(
    r"\b(?:block|isolate|quarantine|contain|disable|enable|kill|terminate|reset|revoke|unblock|ban)\b", re.IGNORECASE
)


def beyond_incidents(question: str) -> str:
    """What is said to a wish to change something that no tool changes."""
    return (
        "Of all actions I can ask for changes of one incident only, and nothing was changed: its status, severity, "
        "owner and classification, and comments. Write one such as: close incident N as benign positive; assign "
        "incident N to somebody@example.com; comment on incident N: and the text. Anything else is done by a person, "
        f"in {_portal(question)}."
    )


def _portal(question: str) -> str:
    if _ON_DEVICES.search(question):
        return "Microsoft Defender or Entra, or a playbook that your team runs"
    return "the incident page of Microsoft Sentinel or Defender"


def guard_reply(frame: Frame) -> Reply:
    """What is said to every wish to change something where nothing can be changed."""
    return Reply(Outcome.OUT_OF_SCOPE, _guard_text(frame.said), _guard_suggestions(frame))


def _guard_text(question: str) -> str:
    portal = _portal(question)
    return (
        "I can only read: nothing was changed. Closing, assigning, commenting, blocking and the "
        "like are done by a person, "
        f"in {portal}. I can show you what you need for the decision."
    )


def _guard_suggestions(frame: Frame) -> tuple[str, ...]:
    if frame.has("incident"):
        number = frame.one("incident")
        return (f"What is incident {number} about?", f"Show the alerts of incident {number}")
    if frame.has("name"):
        return (f"Which alerts name {frame.one('name')}?",)
    return ("List the incidents still open, newest first",)

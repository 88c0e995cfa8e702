"""Words of Sentinel's enumerations in an answer: severity, status, classification, and whether a thing has an owner.

"High", "new" and "open" are also plain English, so a word counts only where it stands as such a value: with a capital
inside a sentence, beside a word such as "severity", or behind a verb that says how a thing is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sentinel_rag.agent.grounding.atoms import Atom, Kind

_SEVERITY_WORD = r"(?P<word>high|medium|low|informational|critical)"
_SEVERITY = (
    re.compile(
        rf"\b{_SEVERITY_WORD}(?=[\s-]+(?:severity|sev|priority|severities)\b|"
        rf"[\s-](?:\w+[\s-]){{0,2}}?(?:incidents?|alerts?)\b)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:severity|priority|sev)\b[\s*_`:=]*(?:(?:level|rating|of|is|was|are|in|sentinel|it|"
        rf"has|stays|remains|set|to|at|the|incident|alert|number|#?\d+|and|now|currently|currently|"
        rf"rated|as|a)[\s*_`:=]+){{0,7}}[“\"']?\b{_SEVERITY_WORD}\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:rated|ranked|classified|marked|rating|considered|"
        rf"scored)\s+(?:as\s+)?(?:an?\s+)?[*_`“\"]*{_SEVERITY_WORD}\b(?!-\w)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?<=[a-z0-9,;:|–—(\[“\"`*_·/#&-] )[*_`“\"(]*\b(?P<word>High|Medium|Low|Informational|"
        r"Critical)\b(?! [A-Z])"
    ),
    re.compile(r"(?<=[(|\[`*“:])\b(?P<word>High|Medium|Low|Informational|Critical)\b"),
    re.compile(r"^\W*(?P<word>High|Medium|Low|Informational|Critical)\b(?=\W*$|\s*[:|,;·–-]|\s+\d|\*|`)"),
    re.compile(
        rf"\b(?:is|was|are|were|isn't|not)\s+(?:an?\s+|of\s+|only\s+|still\s+|"
        rf"now\s+)?{_SEVERITY_WORD}\b(?=\s*(?:[.,;:!?)]|$|and\b|but\b|whereas\b|while\b|one\b))",
        re.IGNORECASE,
    ),
)
_STATUSES = {
    "new": "New",
    "active": "Active",
    "closed": "Closed",
    "inprogress": "InProgress",
    "in progress": "InProgress",
    "in-progress": "InProgress",
    "resolved": "Resolved",
    "dismissed": "Dismissed",
    "open": "Open",
    "reopened": "Open",
    "unresolved": "Open",
}
_STATUS_WORD = r"(?P<word>new|active|closed|in[\s-]?progress|resolved|dismissed|open|reopened|unresolved)"
_VERB = (
    r"(?:is|was|are|were|be|been|being|remains?|stays?|stands?|still|currently|now|already|got|has|have|isn[’']t|"
    r"aren[’']t|wasn[’']t|not|no longer|yet to be|to|at|as|and|or|both|all|it[’']s)"
)
_STATUS = (
    re.compile(
        rf"\b(?:status|state)\b[\s*_`:=]*(?:(?:of|is|was|are|in|sentinel|it|has|the|incident|alert|"
        rf"number|#?\d+|now|currently|still|set|to|at|reads|says|"
        rf"as)[\s*_`:=]+){{0,7}}[“\"']?\b{_STATUS_WORD}\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bof (?:them|these|those|which)\s+(?:(?:is|are|was|were|being|still|now|currently)\s+){0,3}"
        r"(?P<word>open|closed|active|resolved|dismissed|new)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty))\s+"
        r"(?P<word>open|closed|active|resolved|dismissed|new)\b(?=\s*(?:[,.;)]|and\b|$))",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b{_VERB}\s+(?:(?:still|now|currently|already|also|all|both|yet|not|no longer|marked|"
        rf"set|to|as|at|in|the|status)\s+){{0,4}}[*_`“\"]*{_STATUS_WORD}\b(?!\s*(?:[-–]?(?:process|"
        rf"user|account|directory|session|port|connection|source|investigation|window|one|tab|"
        rf"ticket|attack|threat|questions?|issues?|points?|matters?|end)\b|\w+ly\b))",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?<=[a-z0-9,;:|–—(\[“\"`*_·/&-] )[*_`“\"(]*\b(?P<word>New|Active|Closed|InProgress|"
        r"In Progress|Resolved|Dismissed|Open)\b(?! [A-Z])(?!\s+(?:Directory|York|Zealand))"
    ),
    re.compile(
        r"(?<=[(|\[`*“:])\b(?P<word>New|Active|Closed|InProgress|In Progress|Resolved|Dismissed|"
        r"Open)\b(?!\s+(?:Directory|York|Zealand))"
    ),
    re.compile(
        r"^\W*(?P<word>New|Active|Closed|InProgress|In [Pp]rogress|Resolved|Dismissed|"
        r"Open)\b(?=\W*$|\s*[:|,;·–-]|\s+\d|\*|`)"
    ),
    re.compile(
        r"\b(?P<word>open|closed|active|resolved|dismissed|"
        r"unresolved)\b(?=\s+(?:\w+[\s-]){0,2}(?:incidents?|alerts?|ones)\b)",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?P<word>new)\b(?=\s+(?:incidents|alerts)\b|,\s*\d|\s*$|\s*[.;)])", re.IGNORECASE),
    re.compile(
        r"(?<=\d )(?P<word>open|closed|active|resolved|dismissed|new)\b(?=\s*(?:[,.;)]|and\b|$))", re.IGNORECASE
    ),
)
_CLASSIFICATIONS = {
    "true positive": "TruePositive",
    "false positive": "FalsePositive",
    "benign positive": "BenignPositive",
    "undetermined": "Undetermined",
    "truepositive": "TruePositive",
    "falsepositive": "FalsePositive",
    "benignpositive": "BenignPositive",
}
_CLASSIFICATION = re.compile(
    r"\b(?P<word>true[\s-]?positive|false[\s-]?positive|benign[\s-]?positive|undetermined)s?\b", re.IGNORECASE
)
_NOT_OWNED = re.compile(
    r"\b(?:unassigned|un-assigned|(?:does|do|did)(?: not|n[’']t) have an (?:owner|assignee)|"
    r"no (?:current |assigned |recorded )?(?:owner|assignee)|"
    r"lacks an? (?:owner|assignee)|(?:nobody|no one) (?:yet )?(?:owns|is assigned|works on|is working on|took|"
    r"has taken|has picked up|picked up|has claimed|is looking (?:at|into))|"
    r"(?:has|have) yet to be (?:assigned|picked up|taken|claimed)|(?:not|n[’']t|never) (?:yet )?(?:been )?"
    r"(?:picked up|taken on|claimed by any(?:one|body))|"
    r"not (?:yet )?(?:been )?assigned(?: to any(?:one|body))?(?! to \w)|without an? (?:owner|assignee)|"
    r"(?:has|have|had)(?:n[’']t| not) (?:yet )?(?:been assigned|an owner)|"
    r"isn[’']t assigned)\b(?:\s+to (?:anyone|anybody))?",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"\b(?:does have an owner|(?:somebody|someone) (?:is|has been|was) assigned|"
    r"(?:somebody|someone) (?:already )?(?:owns|took|has taken|has picked up|picked up|works on|is working on)|"
    r"(?:has|have) (?:already |since |now )?been picked up|"
    r"(?:was|is|were) (?:already )?picked up|"
    r"has an owner|is already assigned|already has an owner|has already been assigned|"
    r"has been assigned(?! to)|"
    r"is assigned(?=\s*[.,;]|$))",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|n[’']t|no longer|never|neither|nor|isn[’']t|aren[’']t|wasn[’']t|weren[’']t|hasn[’']t|haven[’']t|"
    r"rather than|instead of|yet to be)\s*(?:(?:been|yet|a|an|of|rated|marked|set|to|as|"
    r"currently|any|longer|be|being)\s+){0,3}[*_`“\"]*$",
    re.IGNORECASE,
)


_ANY = re.compile(
    r"high|medium|low|informational|critical|new|active|closed|progress|resolved|dismissed|open|positive|undetermined|"
    r"assign|own|lacks|picked|works? on|working on|took|taken|claimed|looking",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class State:
    """A word of an enumeration as Sentinel writes it; `negated` where the answer says that it is not so."""

    word: str
    negated: bool = False


def states_in(text: str) -> Iterator[Atom]:
    """Severities, statuses, classifications and words about an owner in `text`."""
    if not _ANY.search(text):
        return
    taken: list[Atom] = []

    def take(atom: Atom) -> None:
        if not any(atom.same_place(other) for other in taken):
            taken.append(atom)

    for match in _CLASSIFICATION.finditer(text):
        word = _CLASSIFICATIONS[re.sub(r"[\s-]", " ", match["word"].lower())]
        take(_state(Kind.CLASSIFICATION, match, word, text))
    for pattern in (_NOT_OWNED, _OWNED):
        for match in pattern.finditer(text):
            word = "unassigned" if pattern is _NOT_OWNED else "assigned"
            take(Atom(Kind.OWNERSHIP, match[0], match.start(), match.end(), State(word)))
    for kind, patterns in ((Kind.SEVERITY, _SEVERITY), (Kind.STATUS, _STATUS)):
        for pattern in patterns:
            for match in pattern.finditer(text):
                written = match["word"].lower()
                word = written.capitalize() if kind is Kind.SEVERITY else _STATUSES[re.sub(r"\s+", " ", written)]
                take(_state(kind, match, word, text))
    yield from taken


def _state(kind: Kind, match: re.Match[str], word: str, text: str) -> Atom:
    start, end = match.span("word")
    return Atom(kind, match["word"], start, end, State(word, bool(_NEGATION.search(text[:start]))))

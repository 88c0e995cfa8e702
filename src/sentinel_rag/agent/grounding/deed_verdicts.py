"""Claims that somebody did or decided something: the assistant itself, a team, or an authority that is said to vouch.

A deed stands where a result tells it in its own words, where a change was made through a tool in this conversation, or
where the person said it. It is never put right: which deed was meant cannot be known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sentinel_rag.agent.grounding.clauses import clause_at, clauses_of
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, folded
from sentinel_rag.agent.grounding.subjects import Subject, Topic
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS

_CHANGED = (
    r"(?:closed|re-?opened|assigned|reassigned|resolved|updated|changed|set|marked|classified|commented|tagged|"
    r"labell?ed|dismissed|escalated|isolated|disabled|enabled|reset|revoked|blocked|unblocked|quarantined|deleted|"
    r"removed|recalled|notified|informed|contacted|created|opened|raised|submitted|filed|triggered|started|stopped|"
    r"killed|patched|restored|fixed|contained|remediated|mitigated|locked|suspended|sent|emailed|called|done)"
)
_ASSISTANT = re.compile(
    rf"\b(?P<deed>(?:i|we)(?:[’']ve|\s+have|\s+had)?(?:\s+(?:now|already|just|also|successfully|therefore|then))*\s+"
    rf"{_CHANGED}\b|"
    rf"\b{_CHANGED}\b[^.;?]{{0,60}}\b(?:for you|on your behalf|as (?:you )?(?:requested|asked|instructed)))",
    re.IGNORECASE,
)
_NO_CHANGE = re.compile(
    r"^(?:i|we)\b.*\b(?:opened|started|called|created|set)\b\s+(?:with|by|from|the\s+(?:detail|result|list|table|rows|"
    r"query|search)|a\s+(?:list|table|summary|query))",
    re.IGNORECASE,
)
_RESPONSE = re.compile(
    r"\b(?P<deed>(?:is|are|was|were|been|being|got)\s+(?:(?:now|already|since|also|just|immediately|successfully|"
    r"automatically|manually|fully|temporarily|permanently|forcibly|promptly)\s+)*"
    r"(?:escalated|isolated|disabled|deactivated|locked|suspended|reset|revoked|recalled|purged|notified|informed|"
    r"alerted|contacted|warned|briefed|blocked|blocklisted|blacklisted|quarantined|patched|reimaged|re-imaged|wiped|"
    r"restored|rebuilt|rotated|sinkholed|terminated|handed over|handed off|taken offline|shut down|disconnected)\b|"
    r"\b(?:tickets?|cases?|change requests?|service requests?|reports?)\s+(?:(?:has|have|had)\s+been|was|were|is)\s+"
    r"(?:\w+ly\s+)?(?:opened|raised|filed|created|submitted|logged)\b(?=\s+(?:with|for|at|by|to|in\s+(?:jira|servicenow)"
    r"|[.,]|$)|[.,]|$))",
    re.IGNORECASE,
)
_ROLE = (
    r"(?:(?:\w+[\s-]){0,3}?(?:manager|management|ciso|cio|cto|director|lead|leads|leader|supervisor|head|officer|"
    r"analysts?|team|teams|admins?|administrators?|engineers?|help\s?desk|service desk|operations|owner|user|users|"
    r"employee|employees|colleagues?|customer|client|vendor|supplier|provider|auditors?|hr|legal|staff|contractor|"
    r"department|soc|company|organi[sz]ation|victim|account holder|microsoft|support|expert|experts|boss|executive|"
    r"him|her|them|himself|herself))"
)
_VOUCHED = (
    r"(?:confirmed|approved|verified|authori[sz]ed|sanctioned|signed(?:\s+it)?\s+off|cleared|vouched|acknowledged|"
    r"reported|told|stated|said|says|confirms|approves|explained|announced|agreed|decided|ordered|requested|asked|"
    r"validated|endorsed|permitted|planned|scheduled)"
)
_AUTHORITY = (
    re.compile(
        rf"\b(?P<deed>(?:according to|as (?:told|reported|stated|confirmed) by|per)\s+(?:the|our|your|their|its|an?)?"
        rf"\s*{_ROLE})\b(?!\s+(?:field|column|table|results?|rows?|data|logs?|records?))",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?P<deed>{_VOUCHED}\s+by\s+(?:(?:the|our|your|their|an?|its)\s+)?{_ROLE})\b", re.IGNORECASE),
    re.compile(
        rf"\b(?P<deed>(?:who|{_ROLE})\s+(?:(?:has|have|had|also|already|just|since|later|then|personally)\s+)*"
        rf"{_VOUCHED})\b(?!\s+by\b)",
        re.IGNORECASE,
    ),
    re.compile(rf"\bwhich\s+(?P<deed>(?:[\w'’.-]+\s+){{1,4}}(?:has|have|had)\s+{_VOUCHED})\b", re.IGNORECASE),
    re.compile(
        r"\b(?P<deed>(?:is|was|were|are|it[’']s|as|be|been|of)\s+(?:(?:only|just|merely|simply|in fact|actually|"
        r"indeed|clearly|definitely|all|part of)\s+)*(?:an?\s+|the\s+|our\s+)?(?:(?:planned|scheduled|authori[sz]ed|"
        r"approved|internal|security|routine|known|simple|regular|annual|fire|table-?top)\s+)*(?:drill|test|exercise|"
        r"false alarm|simulation|rehearsal|pen-?\s?test|penetration test|red[\s-]team\w*(?:\s\w+)?|maintenance|"
        r"training))\b(?!\s+(?:account|user|host|tenant|machine|server|incident|data|rule))",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?P<deed>(?:and|is|are|was|were|be|been)\s+(?:\w+ly\s+)?(?:authori[sz]ed|approved|sanctioned|"
        r"signed[\s-]off|expected|pre-approved|legitimate))(?=\s*(?:[.,;)]|$|by\b))",
        re.IGNORECASE,
    ),
)
_BY_NAME = re.compile(
    r"\b(?P<deed>(?:closed|re-?opened|created|resolved|dismissed|classified|assigned|changed|updated|raised))\s+"
    r"(?:again\s+)?by\s+[*_`“\"]*(?!(?:hand|the|an?|Microsoft|Defender|Sentinel)\b)(?=[A-ZÀ-Þ]|[\w.'’-]+@)",
)
"""Who changed an incident stands in its timeline and comments only."""
_CLAUSE = re.compile(r"[;,(]\s*|\.\s+|\b(?:who|which|and|but|so|because|while|whereas)\b", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:not|never|nothing|nobody|no|none|neither|n[’']t|cannot|can|should|must|will|would|to|let|until|unless|"
    r"before|whether|if|once|please|who exactly)\b|n[’']t\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|whether|once|unless|until|when|not|no|can|could|should|must|let)\b", re.IGNORECASE)
_CONTENT = re.compile(r"[a-z]{4,}")
_FILLING_WORDS = """
that this have been were they them with from their already just only also successfully since immediately
    according which your then manually automatically personally later fully being incident
alert case again
"""
_FILLING = frozenset(_FILLING_WORDS.split())


def unfounded_deeds(
    text: str, subjects: Sequence[Subject], index: EvidenceIndex, question: str
) -> Iterator[tuple[int, int]]:
    """The places of deeds and of words of an authority that nothing of the conversation tells."""
    plain = re.sub(r"[*_`]", " ", text)
    clauses = clauses_of(plain)

    def advised(match: re.Match[str]) -> bool:
        clause = clause_at(clauses, match.start("deed"))
        return clause.asks or clause.reports

    own = [
        match
        for match in _ASSISTANT.finditer(plain)
        if not (clause_at(clauses, match.start("deed")).asks or _open(plain, match))
        and not _NO_CHANGE.match(match[0] + plain[match.end() : match.end() + 30])
    ]
    own += [
        match
        for match in _RESPONSE.finditer(plain)
        if not advised(match) and not _open(plain, match) and not _told(plain, match, index, question)
    ]
    incidents = [subject for subject in subjects if subject.topic is Topic.INCIDENT]
    if incidents:
        own += [
            match
            for match in _BY_NAME.finditer(plain)
            if not advised(match) and not _open(plain, match) and not _told_of(incidents, plain, match)
        ]
    if own and not _changed(subjects, index):
        yield from (match.span("deed") for match in own)
    for pattern in _AUTHORITY:
        for match in pattern.finditer(plain):
            if not advised(match) and not _open(plain, match) and not _told(plain, match, index, question):
                yield match.span("deed")


def claims_own_deed(text: str) -> bool:
    """True if a sentence says that the assistant changed something: its values are never put right."""
    plain = re.sub(r"[*_`]", " ", text)
    return any(not _open(plain, match) for match in _ASSISTANT.finditer(plain))


def _open(text: str, match: re.Match[str]) -> bool:
    """True if the clause around a deed denies it, asks for it or leaves it open."""
    clause = _clause(text, match)
    before = clause[: clause.find(match["deed"])]
    if _CONDITION.search(match["deed"]):
        return True
    guessed = clause_at(clauses_of(text), match.start("deed")).leaves_open(match.start("deed"))
    return guessed or bool(_DENIED.search(before)) or bool(re.search(r"\bcould not\b", clause, re.IGNORECASE))


def _clause(text: str, match: re.Match[str]) -> str:
    start = max((each.end() for each in _CLAUSE.finditer(text, 0, match.start("deed"))), default=0)
    stop = _CLAUSE.search(text, match.end("deed"))
    return text[start : stop.start() if stop else len(text)]


def _changed(subjects: Sequence[Subject], index: EvidenceIndex) -> bool:
    """True if a tool changed something in this conversation, and at the incident that the sentence names."""
    runs = [run for run in index.results if run.tool in WRITING_TOOLS and run.run.worked]
    numbers = {number for subject in subjects if subject.topic is Topic.INCIDENT for number in subject.numbers}
    return any(not numbers or numbers & set(run.argument_text.split()) for run in runs)


def _told(text: str, match: re.Match[str], index: EvidenceIndex, question: str) -> bool:
    """True if one value of a result, or the person, has all the words of the clause that carry meaning."""
    deed = folded(match["deed"])
    words = {word[:6] for word in _CONTENT.findall(folded(_clause(text, match))) if _carries(word)}
    words |= {word[:6] for word in _CONTENT.findall(deed) if _carries(word)}
    if len(words) < 2:
        # One word stands in results somewhere, which proves nothing.
        return False
    said = folded(f"{question}\n{index.words}")
    if all(word in said for word in words) and not said.rstrip().endswith("?"):
        return True
    verb = deed.split()[-1]
    # "Reset the password" at the beginning of a value is advice and tells no deed.
    done = re.compile(rf"[^\s.:;!?-]\s+{re.escape(verb)}\b")
    return any(
        all(word in value for word in words) and done.search(value) for run in index.results for value in run.by_text
    )


def _told_of(incidents: Sequence[Subject], text: str, match: re.Match[str]) -> bool:
    """True if a value within each incident has the deed and a part of the name behind "by"."""
    name = [word for word in _CONTENT.findall(folded(text[match.end() : match.end() + 40]))[:2] if _carries(word)]
    deed = folded(match["deed"])
    return all(
        any(
            deed in (told := folded(str(leaf.value))) and any(word in told for word in name)
            for record in subject.records
            for inner in record.inside()
            for leaves in inner.leaves.values()
            for leaf in leaves
        )
        for subject in incidents
    )


def _carries(word: str) -> bool:
    return word not in _FILLING

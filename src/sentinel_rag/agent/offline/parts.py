"""Questions that are two questions: "how many high alerts and how many incidents?", "how many low and informational
alerts?". Each part is answered by itself; one that is dropped without a word would be taken for answered."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.contracts.evidence import Answer, Outcome

_TWO_COUNTS = re.compile(r"^(.*?\bhow\s+many\b.+?)\s*(?:,\s*(?:and\s+)?|;\s*|\band\s+)(how\s+many\b.+)$", re.IGNORECASE)
_SEVERITY = r"(high|medium|low|informational|info)"
_TWO_SEVERITIES = re.compile(
    rf"^(.*?\bhow\s+many\s+){_SEVERITY}(?:[\s-]+severity)?\s+(?:and|or|&)\s+{_SEVERITY}\b(.*)$", re.IGNORECASE
)
_THRESHOLD = frozenset({"high", "medium"})  # "high and medium" is one question: medium and above
MOST_PARTS = 4


def parts_of(question: str) -> tuple[str, ...]:
    """The questions that `question` holds, in order; itself alone if it is one."""
    if match := _TWO_COUNTS.match(question):
        return (*parts_of(match[1]), *parts_of(match[2]))[:MOST_PARTS]
    if match := _TWO_SEVERITIES.match(question):
        before, first, second, behind = match.groups()
        if {first.lower(), second.lower()} != _THRESHOLD:
            return (f"{before}{first}{behind}", f"{before}{second}{behind}")
    return (question,)


def joined(answers: Sequence[Answer]) -> Answer:
    """One answer from those to the parts. It is answered if a part is; else it ends as its first part did."""
    outcomes = [answer.outcome for answer in answers]
    text, sentences = "", []
    for answer in answers:
        text = f"{text}\n\n" if text else ""
        sentences += [sentence.moved(len(text)) for sentence in answer.sentences]
        text += answer.text
    return Answer(
        outcome=Outcome.ANSWERED if Outcome.ANSWERED in outcomes else outcomes[0],
        text=text,
        session_id=answers[0].session_id,
        tables=tuple(table for answer in answers for table in answer.tables),
        footnote=tuple(line for answer in answers for line in answer.footnote),
        suggestions=answers[-1].suggestions,
        tools=tuple(tool for answer in answers for tool in answer.tools),
        evidence=tuple(piece for answer in answers for piece in answer.evidence),
        results=tuple(result for answer in answers for result in answer.results),
        sentences=tuple(sentences),
        duration_ms=sum(answer.duration_ms for answer in answers),
    )

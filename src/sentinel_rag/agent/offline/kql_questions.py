"""Questions that are KQL themselves: `SigninLogs | where ... | take 5`, alone, in a fence, or behind "run:".

Only told apart from words here; whether such a query may run is decided at the gateway and by the tool server's guard.
"""

from __future__ import annotations

import re

from sentinel_rag.language.frames.asides import asides
from sentinel_rag.language.text import word_list

SWITCHED_OFF = (
    "This is a KQL query, and running queries that are no named template is switched off here, so nothing was run. "
    "You can run it yourself with `sentinel kql query`; whoever operates this installation can let the agent do so by "
    "setting SENTINEL_FREEFORM_KQL=on (docs/freeform-kql.md says what that means)."
)
_FENCED = re.compile(r"```(?:kql|kusto)?[ \t]*\n(?P<kql>.*?)```", re.DOTALL | re.IGNORECASE)
_COMMENTS = re.compile(r"(?:\s*//[^\n]*\n)+")
_LETS = re.compile(r"(?:\s*let\s+\w+\s*=[^;]{1,4000};)+", re.IGNORECASE)
_NAME = r"(?:[A-Za-z_]\w{1,199}|\[\s*(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\")\s*\])"
_PIPED = re.compile(rf"\s*(?:{_NAME}|\(?\s*union\s[^|]{{1,2000}})\s*(?://[^\n]*\n\s*)*\|\s*(?P<operator>[a-z][a-z-]*)")
_OPERATORS = frozenset(
    word_list(
        """as consume count distinct evaluate extend facet find fork getschema invoke join limit lookup make-series
    mv-apply mv-expand order parse parse-kv parse-where partition project project-away project-keep project-rename
    project-reorder reduce render sample sample-distinct scan search serialize sort summarize take top top-hitters
    top-nested union where filter"""
    )
)


def kql_in(question: str) -> str | None:
    """The query that the question is or holds, as it was written; None for words."""
    fenced = _FENCED.search(question)
    if fenced is not None:
        return fenced["kql"].rstrip() if _reads_as_kql(fenced["kql"]) else None
    if _reads_as_kql(question):
        return question
    asked = next((match.end() for match in asides(question, "kql", "run", leads=True)), 0)
    return question[asked:] if asked and _reads_as_kql(question[asked:]) else None


def _reads_as_kql(text: str) -> bool:
    """A table, a pipe and an operator that KQL has, behind comments and let statements."""
    for skipped in (_COMMENTS, _LETS, _COMMENTS):
        match = skipped.match(text)
        text = text if match is None else text[match.end() :]
    match = _PIPED.match(text)
    return match is not None and match["operator"] in _OPERATORS

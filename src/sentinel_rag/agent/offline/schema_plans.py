"""Questions for the columns of a table: "which columns does SigninLogs have?", "describe the table Syslog".

A table is what is written like one (several capitals, `_CL`), what stands beside the word table, or the one word that
is left when those of the question are taken away. Which tables there are only the workspace knows, so a wrong name
comes back with the nearest ones.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.agent.planner.plan import Ask, Plan, PlannedCall, View

_SURE = re.compile(r"\b(?:columns?|schema)\b", re.IGNORECASE)
_PERHAPS = re.compile(r"\b(?:describe|fields?|structure|data\s+types?)\b", re.IGNORECASE)
_BESIDE = (
    re.compile(r"\btable\s+(?:named\s+|called\s+)?[`'\"\[]*([A-Za-z_]\w{2,199})", re.IGNORECASE),
    re.compile(r"\b([A-Za-z_]\w{2,199})[`'\"\]]*\s+table\b", re.IGNORECASE),
)
_WRITTEN_LIKE_ONE = re.compile(r"(?:[A-Z][A-Za-z0-9]*[a-z0-9]+[A-Z][A-Za-z0-9]*|[A-Za-z]\w*_CL)")
_NAMED_LIKE_ONE = re.compile(
    r"\w+(?:Logs?|Events?|Alerts?|Incidents?|Activity|Info|Users|Indicators?|Objects|Connection|Bookmark|Analytics|_CL)"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_EXAMPLES = re.compile(r"\b(?:examples?|samples?|with\s+values)\b", re.IGNORECASE)
_OF_THE_QUESTION = frozenset(
    word_list(
        """a all an and are available be called can column columns contain contains could data describe do does empty
    example examples exist exists field fields filled for from give has have hold holds i in include is it its kind
    kql list look me more my name named names of on our please query sample samples schema see show structure table
    tables tell that the their there they this to type types up used use value values want what which with workspace
    would you d ll re s"""
    )
)


def schema_plan(reading: Reading) -> Plan | Ask | None:
    """describe_table for the table that is asked about; a question back if none is named; None for other questions."""
    text = reading.text
    sure = _SURE.search(text) is not None
    if not sure and _PERHAPS.search(text) is None:
        return None
    table = _table_in(text, sure=sure)
    if table is None:
        alone = sure and all(word.lower() in _OF_THE_QUESTION for word in _WORD.findall(text))
        return Ask("Of which table? Name it, or ask which there are.", ("What data do you have?",)) if alone else None
    arguments: dict[str, str | bool] = {"table": table}
    if _EXAMPLES.search(text):
        arguments["examples"] = True
    return Plan(view=View.COLUMNS, calls=(PlannedCall("describe_table", arguments),), reading=reading)


def _table_in(text: str, *, sure: bool) -> str | None:
    words: list[str] = [
        word for word in _WORD.findall(text) if word.lower() not in _OF_THE_QUESTION and len(word) <= 200
    ]
    written = [word for word in words if _WRITTEN_LIKE_ONE.fullmatch(word)]
    if written and (sure or (len(words) == 1 and _NAMED_LIKE_ONE.fullmatch(written[0]))):
        return written[0]
    beside = [str(match[1]) for pattern in _BESIDE for match in pattern.finditer(text)]
    named = [word for word in beside if word.lower() not in _OF_THE_QUESTION]
    if named:
        return named[0]
    return words[0] if sure and len(words) == 1 and len(words[0]) >= 3 else None

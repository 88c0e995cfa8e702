"""Comparisons by a state: "31 is more severe than 12", "the most severe incident is 31", "only 40 is High", "more Low
than High incidents". Judged over the incidents and alerts that were seen; order in time and amounts of rows are for
`order_verdicts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sentinel_rag.agent.grounding.atoms import IDENTIFIERS, Atom, Kind
from sentinel_rag.agent.grounding.clauses import clause_at, clauses_of
from sentinel_rag.agent.grounding.evidence_index import folded
from sentinel_rag.agent.grounding.name_verdicts import leaves_of
from sentinel_rag.agent.grounding.number_atoms import noun_of
from sentinel_rag.agent.grounding.order_verdicts import counts
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf, Record
from sentinel_rag.agent.grounding.row_sets import has_states, row_sets
from sentinel_rag.agent.grounding.state_atoms import State
from sentinel_rag.agent.grounding.subjects import Subject, Topic
from sentinel_rag.agent.grounding.verdicts import Verdict, derived, unsupported
from sentinel_rag.contracts.tool_schemas import SEVERITIES

_RANK = {name.lower(): place for place, name in enumerate(SEVERITIES)}
_MORE = re.compile(
    r"\b(?:(?:more|far more|much more) (?:severe|serious|critical)|higher[- ](?:in )?(?:severity|rated|priority)|"
    r"rated higher|outranks?|worse)\b(?=.*\bthan\b|\s)",
    re.IGNORECASE,
)
_LESS = re.compile(
    r"\b(?:less (?:severe|serious|critical)|lower[- ](?:in )?(?:severity|rated|priority)|rated lower|milder)\b",
    re.IGNORECASE,
)
_SAME = re.compile(
    r"\b(?:equally (?:severe|serious)|(?:as|just as) (?:severe|serious) as|"
    r"(?:of |have |share )?(?:the )?same severity)\b",
    re.IGNORECASE,
)
_TOP = re.compile(
    r"\b(?:(?P<most>most (?:severe|serious|critical)|highest[- ](?:severity|rated)|highest severity)|"
    r"(?P<least>least (?:severe|serious|critical)|lowest[- ](?:severity|rated)|lowest severity|mildest))\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|no|never|neither|nor)\b|n[’']t\b", re.IGNORECASE)
_ONLY_BEFORE = re.compile(r"\b(?:only|solely|nothing but)\s+(?:incidents?\s*)?[#*_`(“\"]*$", re.IGNORECASE)
_SOLE = re.compile(
    r"\b(?:the\s+)(?:only|sole|single)\s+(?P<narrow>(?:[A-Za-z-]+[\s-]){0,3}?)(?P<noun>incidents?|cases?|ones?)\b",
    re.IGNORECASE,
)
_NARROWED = re.compile(
    r"^[\s*_`]*(?:with|from|about|involving|for|on|in|by|of|assigned|owned|named|that (?!(?:is|are|was|were)\b)|"
    r"which (?!(?:is|are|was|were)\b)|where|to|tied|naming|created|opened|raised)\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\b(?P<how>more|fewer|less|as many|as few|twice as many)\s+(?P<first>[^.;:?!]{1,60}?)\s+(?:than|as)\s+"
    r"(?P<second>[^.;:?!,]{1,40})",
    re.IGNORECASE,
)
_OUTNUMBERS = re.compile(
    r"(?P<first>[^.;:?!,]{1,40}?)\s+(?P<how>outnumber(?:s|ed)?)\s+(?P<second>[^.;:?!,]{1,40})", re.IGNORECASE
)
_MORE_THAN = re.compile(r"\b(?P<how>more|fewer|less)\s+(?P<what>[A-Za-z][\w\s-]{2,40}?)\s+than\b", re.IGNORECASE)
_STATES = (Kind.SEVERITY, Kind.STATUS, Kind.CLASSIFICATION, Kind.OWNERSHIP)

States = tuple[tuple[Kind, State], ...]


def judge_comparisons(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    """A verdict, with its place, for each comparison by a state that the results decide."""
    yield from _pairs(reading)
    yield from _extremes(reading)
    yield from _exclusive(reading)
    yield from _outnumbered(reading)
    yield from _amounts(reading)


def _incidents(reading: Reading) -> list[Subject]:
    return [each for each in reading.subjects if each.topic is Topic.INCIDENT and each.start >= 0]


def _severity(subject: Subject) -> tuple[int, Leaf] | None:
    leaves = subject.values("severity")
    rank = _RANK.get(str(leaves[0].value).lower()) if leaves and len(subject.numbers) == 1 else None
    return None if rank is None else (rank, leaves[0])


def _pairs(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    text = reading.text
    for first, second in pairwise(_incidents(reading)):
        between = text[first.end : second.start]
        behind = text[second.end : second.end + 40]
        mine, theirs = _severity(first), _severity(second)
        if mine is None or theirs is None or len(between) > 60 or re.search(r"[;.](?=\s)", between):
            continue
        if _DENIED.search(between) or _DENIED.search(behind):
            continue
        if _SAME.search(between) or (
            re.fullmatch(r"[\s,#*_`]*(?:and|incident|&|\s|#)*", between) and _SAME.search(behind)
        ):
            holds = mine[0] == theirs[0]
        elif _MORE.search(between):
            holds = mine[0] > theirs[0]
        elif _LESS.search(between):
            holds = mine[0] < theirs[0]
        else:
            continue
        yield first.end, second.start, derived(mine[1], "two severities") if holds else _reverse()


def _reverse() -> Verdict:
    return unsupported("the severities of the two say otherwise")


def _extremes(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    text = reading.text
    clauses = clauses_of(text)
    for match in _TOP.finditer(text):
        clause = clause_at(clauses, match.start())
        named = [each for each in _incidents(reading) if clause.start <= each.start < clause.end]
        if (
            not named
            or _DENIED.search(text[clause.start : match.start()])
            or re.search(
                r"\b(?:one|two|some|among|part) of\b|\bamong\b", text[clause.start : match.end()], re.IGNORECASE
            )
        ):
            continue
        narrow = _states(reading, match.end(), match.end() + 30, kinds=(Kind.STATUS, Kind.OWNERSHIP))
        ranks = [rank[0] for each in named if (rank := _severity(each)) is not None]
        if len(ranks) < len(named):
            continue
        verdict: Verdict | None = None
        for rows in _sets(reading, named):
            among = [of_row for row in rows if has_states(row, narrow) and (of_row := _rank_of(row)) is not None]
            if len(among) < 2:
                continue
            extreme = max(among) if match["most"] else min(among)
            if all(rank == extreme for rank in ranks):
                verdict = derived(named[0].values("severity")[0], f"the extreme of {len(among)}")
                break
            verdict = unsupported("the results have another one at that end")
        if verdict is not None:
            yield match.start(), match.end(), verdict


def _exclusive(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    text = reading.text
    clauses = clauses_of(text)
    incidents = _incidents(reading)
    for place, subject in enumerate(incidents):
        if not _ONLY_BEFORE.search(text[: subject.start]):
            continue
        end = clause_at(clauses, subject.start).end
        named = [each for each in incidents[place:] if each.start < end]
        states = _states(reading, named[-1].end, end)
        if states and not _others(reading, named[-1].end, end):
            yield subject.start, end, _alone(reading, named, states)
    for match in _SOLE.finditer(text):
        clause = clause_at(clauses, match.start())
        end = next((each.end for each in clauses if each.start >= clause.end and not _is_aside(text, each.start)), 0)
        named = [each for each in incidents if clause.start <= each.start < max(clause.end, end)]
        if not named or _NARROWED.match(text[match.end() :]) or _others(reading, clause.start, clause.end):
            continue
        if _DENIED.search(text[clause.start : match.start()]):
            continue
        states = _states(reading, match.start(), clause.end)
        words = re.sub(r"[\s-]+", " ", match["narrow"]).strip()
        if words and not states:
            continue  # "the only phishing incident" narrows by words that are no state
        yield match.start(), match.end(), _alone(reading, named, states)


def _is_aside(text: str, start: int) -> bool:
    return text[start : start + 1].isalpha()


def _alone(reading: Reading, named: Sequence[Subject], states: States) -> Verdict:
    mine = {number for each in named for number in each.numbers}
    for rows in _sets(reading, named):
        fitting = [row for row in rows if has_states(row, states)]
        if fitting and {row.incident for row in fitting} <= mine:
            leaf = fitting[0].first("number")
            return derived(leaf, f"{len(fitting)} of {len(rows)}")
    return unsupported("the results have others of them")


def _outnumbered(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    for pattern in (_COMPARED, _OUTNUMBERS):
        for match in pattern.finditer(reading.text):
            first = _states(reading, match.start("first"), match.end("first"))
            second = _states(reading, match.start("second"), match.end("second"))
            if not first or not second or first == second or _others(reading, match.start(), match.end()):
                continue
            noun = _noun(match[0]) or reading.context.noun or "incident"
            verdict: Verdict | None = None
            for rows in row_sets(noun, reading.index):
                counts = [sum(has_states(row, states) for row in rows) for states in (first, second)]
                if _holds(match["how"].lower(), *counts):
                    verdict = derived(None, f"{counts[0]} and {counts[1]} of {len(rows)}")
                    break
                verdict = unsupported("the results count otherwise") if rows else verdict
            if verdict is not None:
                yield match.start(), match.end(), verdict


def _amounts(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    """ "A had more failed sign-ins than B": by the numbers of that name in rows of one list."""
    named = [atom for atom in reading.atoms if atom.kind in (IDENTIFIERS | {Kind.NAME})]
    for match in _MORE_THAN.finditer(reading.text):
        before = [atom for atom in named if match.start() - 40 <= atom.end <= match.start()]
        behind = [atom for atom in named if match.end() <= atom.start <= match.end() + 10]
        if not before or not behind or _DENIED.search(reading.text[before[-1].end : match.start()]):
            continue
        pairs = list(_beside(before[-1], behind[0], match["what"], reading))
        larger = match["how"].lower() == "more"
        if pairs:
            right = next((leaf for leaf, mine, theirs in pairs if (mine > theirs if larger else mine < theirs)), None)
            verdict = unsupported("the numbers say otherwise") if right is None else derived(right, "two numbers")
            yield match.start(), match.end(), verdict


def _beside(one: Atom, other: Atom, what: str, reading: Reading) -> Iterator[tuple[Leaf, float, float]]:
    """The numbers called `what` of two things in rows of one list, each pair with the first one's leaf."""
    for mine in _exactly(one, reading):
        for theirs in _exactly(other, reading):
            if mine.record.parent is None or mine.record.parent is not theirs.record.parent:
                continue
            for key, leaves in mine.record.leaves.items():
                against = theirs.record.first(key)
                if (
                    counts(key, what)
                    and against is not None
                    and isinstance(leaves[0].value, int | float)
                    and isinstance(against.value, int | float)
                ):
                    yield leaves[0], leaves[0].value, against.value


def _exactly(atom: Atom, reading: Reading) -> list[Leaf]:
    text = folded(str(atom.value))
    return [leaf for leaf in leaves_of(atom, reading.index) if folded(str(leaf.value)) == text]


def _holds(how: str, first: int, second: int) -> bool:
    if how in ("more", "outnumber", "outnumbers", "outnumbered"):
        return first > second
    if how in ("fewer", "less"):
        return first < second
    return first == 2 * second if how.startswith("twice") else first == second


def _noun(words: str) -> str:
    nouns = [noun_of(word) for word in re.findall(r"[A-Za-z]+", words)]
    return next((noun for noun in nouns if noun in ("incident", "alert")), "")


def _states(reading: Reading, start: int, end: int, *, kinds: Sequence[Kind] = _STATES) -> States:
    return tuple(
        (atom.kind, atom.value)
        for atom in reading.atoms
        if atom.kind in kinds and isinstance(atom.value, State) and start <= atom.start and atom.end <= end
    )


def _others(reading: Reading, start: int, end: int) -> bool:
    """Whether something else than incidents, states and numbers narrows what is compared."""
    own = (*_STATES, Kind.INCIDENT, Kind.COUNT)
    return any(atom.kind not in own and start <= atom.start and atom.end <= end for atom in reading.atoms)


def _sets(reading: Reading, named: Sequence[Subject]) -> Iterator[list[Record]]:
    mine = {number for each in named for number in each.numbers}
    for rows in row_sets("incident", reading.index):
        if mine <= {row.incident for row in rows}:
            yield rows


def _rank_of(row: Record) -> int | None:
    leaf = row.first("severity")
    return None if leaf is None else _RANK.get(str(leaf.value).lower())

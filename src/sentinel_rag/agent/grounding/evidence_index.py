"""All that the answers of one conversation may rest on: results of tools, and the person's own words.

Grows turn by turn and stays bounded: the oldest results leave first. It finds values and where they stand; whether an
answer may say them is for the judging modules.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo
from functools import cached_property

from sentinel_rag.agent.grounding.hit_texts import HitText
from sentinel_rag.agent.grounding.lookalikes import plain
from sentinel_rag.agent.grounding.records import Leaf, Record, Speaks, read_result
from sentinel_rag.agent.knowledge_hits import hits_of
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Evidence
from sentinel_rag.contracts.handles import handles_in
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import parse_time

MOST_RUNS = 64
MOST_LEAVES_KEPT = 200_000
"""Values of all results together; what is older than the newest result leaves when there are more."""
MOST_WORDS = 100_000
"""Characters of the person's words that are kept."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_NAME_KEYS = frozenset({"title", "name", "alert_name", "rule_name", "product", "owner", "display_name", "template"})
_SHORTEST_NAME = 3


class RunEvidence:
    """One call and its result, ready to be looked up. `place` counts the calls of the conversation."""

    def __init__(self, run: ToolRun, place: int) -> None:
        self.run = run
        self.place = place
        document = run.document if run.worked else None
        self.records, self.leaves = read_result(document, place)

    @property
    def tool(self) -> str:
        return self.run.call.tool_name

    @cached_property
    def rows(self) -> list[Record]:
        """The records of the result's rows."""
        return [record for record in self.records if re.fullmatch(r"/rows/\d+", record.pointer)]

    @cached_property
    def titles(self) -> frozenset[str]:
        """Names of the result, folded."""
        return frozenset(
            value
            for value, leaves in self.by_text.items()
            if len(value) >= _SHORTEST_NAME and any(leaf.key in _NAME_KEYS for leaf in leaves)
        )

    @cached_property
    def by_text(self) -> dict[str, list[Leaf]]:
        """Leaves by their text, lower-cased and with single spaces."""
        found: dict[str, list[Leaf]] = {}
        for leaf in self.leaves:
            if leaf.value is not None:
                found.setdefault(folded(str(leaf.value)), []).append(leaf)
        return found

    @cached_property
    def times(self) -> tuple[list[float], list[Leaf]]:
        """Leaves that are times, by instant (seconds since 1970)."""
        found: list[tuple[float, int, Leaf]] = []
        for place, leaf in enumerate(self.leaves):
            moment = moment_of(leaf.value)
            if moment is not None:
                found.append((moment.timestamp(), place, leaf))
        found.sort(key=lambda each: each[:2])
        return [each[0] for each in found], [each[2] for each in found]

    @cached_property
    def incidents(self) -> dict[str, list[Record]]:
        """Records of incidents by their number."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            if record.speaks is Speaks.INCIDENT:
                found.setdefault(record.incident, []).append(record)
        return found

    @cached_property
    def alerts(self) -> dict[str, list[Record]]:
        """Records of alerts by the number of their incident."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            if record.speaks is Speaks.ALERT:
                found.setdefault(record.incident, []).append(record)
        return found

    @cached_property
    def incident_numbers(self) -> frozenset[str]:
        """Every incident that the result tells of."""
        return frozenset(number for record in self.records for number in (record.incident, *record.incidents)) - {""}

    @cached_property
    def blob(self) -> str:
        """Every text of the result, keys included, one a line, folded; for words inside a longer text."""
        return "\n".join((*self.by_text, *sorted({leaf.key for leaf in self.leaves})))

    @cached_property
    def hits(self) -> list[HitText]:
        """The hits of a search of the knowledge base, ready to be compared with what an answer says of them."""
        texts = {record.pointer: record.first("text") for record in self.records if record.of_knowledge}
        return [HitText(hit, leaf) for hit in hits_of(self.run) if (leaf := texts.get(hit.pointer)) is not None]

    @cached_property
    def handles(self) -> frozenset[str]:
        """Handles that stand for hidden values of this result."""
        return frozenset(handles_in(self.run.document)) if self.run.worked else frozenset()

    @cached_property
    def argument_text(self) -> str:
        """The values of the call's arguments, folded."""
        return "\n".join(folded(str(value)) for value in _values(dict(self.run.call.arguments)))

    def evidence(self, leaf: Leaf, text: str) -> Evidence:
        """The piece of evidence that `leaf` is for `text` of an answer."""
        return Evidence(text, self.run.call.call_id, self.tool, leaf.pointer, leaf.value)


class EvidenceIndex:
    """Evidence of one conversation; `zone` is the session's time zone, in which times without one are read."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._runs: deque[RunEvidence] = deque()
        self._newest_first: tuple[RunEvidence, ...] = ()
        self._titles: frozenset[str] | None = None
        self._words: deque[str] = deque()
        self._added = 0

    def add(self, run: ToolRun) -> None:
        """Take in the outcome of one call; one without a result adds its arguments only."""
        self._runs.append(RunEvidence(run, self._added))
        self._added += 1
        while len(self._runs) > MOST_RUNS or (
            len(self._runs) > 1 and sum(len(each.leaves) for each in self._runs) > MOST_LEAVES_KEPT
        ):
            self._runs.popleft()
        self._newest_first = tuple(reversed(self._runs))
        self._titles = None

    def add_words(self, text: str) -> None:
        """Take in what the person said."""
        self._words.append(text[-MOST_WORDS:])
        while sum(map(len, self._words)) > MOST_WORDS and len(self._words) > 1:
            self._words.popleft()

    @property
    def runs(self) -> tuple[ToolRun, ...]:
        """The runs that are kept, oldest first."""
        return tuple(each.run for each in self._runs)

    @property
    def results(self) -> tuple[RunEvidence, ...]:
        """The same, ready to be looked up and newest first: a newer value of a thing wins over an older one."""
        return self._newest_first

    @property
    def words(self) -> str:
        """What the person said, oldest first."""
        return "\n".join(self._words)

    def run_of(self, place: int) -> RunEvidence:
        """The run that a leaf or a record came from."""
        return next(run for run in self._runs if run.place == place)

    def evidence(self, leaf: Leaf, text: str) -> Evidence:
        """The piece of evidence that `leaf` is for `text` of an answer."""
        return self.run_of(leaf.run).evidence(leaf, text)

    def records(self, *kinds: Speaks) -> Iterator[Record]:
        """Records of these kinds, newest result first."""
        for run in self.results:
            for record in run.records:
                if record.speaks in kinds:
                    yield record

    def incidents(self, number: str) -> list[Record]:
        """The records of an incident, newest result first; what the knowledge base knows of it comes last."""
        found = [record for run in self.results for record in run.incidents.get(number, ())]
        return sorted(found, key=lambda record: record.of_knowledge)

    @property
    def incident_numbers(self) -> frozenset[str]:
        """Every incident that a result tells of, be it only as the incident of an alert."""
        return frozenset().union(*(run.incident_numbers for run in self.results))

    @property
    def hits(self) -> list[HitText]:
        """Every hit of the knowledge base, newest search first."""
        return [hit for run in self.results for hit in run.hits]

    def alerts(self, number: str) -> list[Record]:
        """The alerts of an incident, newest result first."""
        return [record for run in self.results for record in run.alerts.get(number, ())]

    def exactly(self, text: str) -> Iterator[Leaf]:
        """Leaves whose whole text this is, in any case."""
        wanted = folded(text)
        for run in self.results:
            yield from run.by_text.get(wanted, ())

    def holding(self, text: str) -> Leaf | None:
        """The newest leaf that holds `text` as whole words; None where no result does."""
        return next(self.all_holding(text), None)

    def all_holding(self, text: str) -> Iterator[Leaf]:
        """Every leaf that holds `text` as whole words, in any case; the exact ones of a result first."""
        wanted = folded(text)
        if not wanted:
            return
        for run in self.results:
            exact = run.by_text.get(wanted, ())
            yield from exact
            if not has_words(run.blob, wanted):
                continue
            for value, leaves in run.by_text.items():
                if value != wanted and wanted in value and has_words(value, wanted):
                    yield from leaves

    def names_key(self, text: str) -> bool:
        """True if a column or field of a result has this name."""
        wanted = folded(text)
        return any(has_words(run.blob, wanted) for run in self.results)

    def said(self, text: str, question: str) -> bool:
        """True if the person said `text`, or a call of this conversation asked for it."""
        wanted = folded(text)
        return (
            has_words(folded(question), wanted)
            or any(has_words(folded(words), wanted) for words in self._words)
            or any(has_words(run.argument_text, wanted) for run in self.results)
        )

    def times_between(self, start: datetime, end: datetime) -> Iterator[Leaf]:
        """Leaves that are times within `[start, end)`, newest result first."""
        for run in self.results:
            instants, leaves = run.times
            low, high = bisect_left(instants, start.timestamp()), bisect_left(instants, end.timestamp())
            yield from leaves[low : max(low, high)]

    @property
    def titles(self) -> frozenset[str]:
        """Names that an answer may use without quotation marks, folded."""
        if self._titles is None:
            self._titles = frozenset().union(*(run.titles for run in self.results))
        return self._titles


_LOOKALIKES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "–": "-", "\u200b": None})


def folded(text: str) -> str:
    """Lower case, single spaces, straight quotation marks: two writings of one text become one."""
    if not text.isascii():
        text = plain(text).translate(_LOOKALIKES)
    return " ".join(text.split()).lower()


def has_words(text: str, wanted: str) -> bool:
    """True if `text` (folded) holds `wanted` (folded) and not as part of a longer word or number."""
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        before, after = text[at - 1 : at], text[end : end + 1]
        if not (before.isalnum() and wanted[:1].isalnum()) and not (after.isalnum() and wanted[-1:].isalnum()):
            number_before = before == "." and text[at - 2 : at - 1].isdigit() and wanted[:1].isdigit()
            number_after = after in (".", ":") and text[end + 1 : end + 2].isdigit() and wanted[-1:].isdigit()
            port = after == ":" and "." in wanted
            if not number_before and (not number_after or port):
                return True
        at = text.find(wanted, at + 1)
    return False


def moment_of(value: JsonValue) -> datetime | None:
    """The instant that a value of a result tells; None for anything else."""
    if not isinstance(value, str) or not _TIME.match(value):
        return None
    try:
        return parse_time(value)
    except ValueError:
        try:
            return parse_time(f"{value}Z")
        except ValueError:
            return None


def _values(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _values(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _values(part)
    elif value is not None:
        yield value

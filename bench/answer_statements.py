"""Sets of statements with their results, for the benchmark of answers: a JSON object a line, and a file of results.

A line has `text` (an answer or a part of one, with its citations) and `truth` (`true` or `false`, of the whole text);
and, where it is known, `id`, `set`, `estate`, `calls` (`[tool, arguments]`, a key of the file of results, or a call id;
all of the estate where there are none; they become c1, c2, ...), `compute` (calls of that tool, numbered on), `plain`
(the text without citations), `sort` (of a lie: wrong value, wrong row, wrong verb, attacker's words, ...), `lang`,
`zone`, `question`.

A file of results maps `ESTATE:["tool", {arguments}]`, or any `ESTATE:NAME`, to what the tool returned; or it is what
`sentinel export --format results` writes, for one estate or by estate. A line that cannot be used is told by its
number and left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results import Results
from sentinel_rag.agent.answers.results_file import read_entry
from sentinel_rag.contracts.handles import as_text, quoted_in

NOW = datetime(2026, 11, 29, 8, tzinfo=UTC)
"""When computations are made that need a time."""
_BAD = (KeyError, TypeError, ValueError, AttributeError, IndexError)
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Statement:
    """One line. `entries` are its calls in the form of a file of results, computations last."""

    number: int
    name: str
    set: str
    truth: bool
    sort: str
    lang: str
    text: str
    plain: str
    question: str
    zone: str
    entries: tuple[str, ...]
    computations: tuple[str, ...]
    as_exported: bool = False
    """True if its results keep the ids that they were exported with."""


@dataclass(slots=True)
class StatementFile:
    """What a file holds. `faults` are its unusable lines, each with its number; `hashes` one of each set's lines."""

    statements: list[Statement] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)
    _sources: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    _evidence: dict[tuple[Any, ...], ReadResults] = field(default_factory=dict)

    def evidence(self, statement: Statement) -> ReadResults:
        """What its calls brought, read once for all statements with the same calls."""
        key = (statement.entries, statement.computations, statement.zone, statement.question)
        if key not in self._evidence:
            results = _results(statement, self._sources)
            said = (statement.question,) if statement.question else ()
            self._evidence[key] = ReadResults(results, zone=ZoneInfo(statement.zone), said=said)
        return self._evidence[key]

    @property
    def conversations(self) -> int:
        """How many sets of results were read."""
        return len(self._evidence)

    def sets(self) -> dict[str, list[Statement]]:
        """The statements by set, in the order of the file."""
        found: dict[str, list[Statement]] = {}
        for statement in self.statements:
            found.setdefault(statement.set, []).append(statement)
        return found


def read_statements(statements: Path, results: Path) -> StatementFile:
    """The file of statements over a file of results. Raises OSError, and ValueError for results that are no JSON."""
    read = StatementFile(_sources=dict(_sources(json.loads(results.read_text(encoding="utf-8")))))
    lines: dict[str, list[str]] = {}
    names: Counter[str] = Counter()
    for number, line in enumerate(statements.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            statement = _statement(json.loads(line), number, statements.stem, read._sources)
            read.evidence(statement)
        except _BAD as error:
            read.faults.append(f"{statements.name}:{number}: {type(error).__name__}: {str(error)[:200]}")
            continue
        names[f"{statement.set} {statement.name}"] += 1
        if names[f"{statement.set} {statement.name}"] > 1:
            read.faults.append(f"{statements.name}:{number}: the id {statement.name!r} stands there twice")
            continue
        read.statements.append(statement)
        lines.setdefault(statement.set, []).append(line.strip())
    read.hashes = {name: sha256("\n".join(told).encode()).hexdigest()[:16] for name, told in lines.items()}
    return read


def _statement(
    told: Mapping[str, Any], number: int, stem: str, sources: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Statement:
    text, truth = told["text"], _TRUTHS[str(told["truth"]).lower()]
    if not isinstance(text, str) or not text.strip():
        raise ValueError("text is empty")
    estate = str(told.get("estate") or next(iter(sources)))
    known = sources[estate]
    keys = [_key(call, known) for call in told.get("calls") or ()] or list(known)
    made = Statement(
        number,
        str(told.get("id") or f"line {number}"),
        str(told.get("set") or stem),
        truth,
        str(told.get("sort") or ("" if truth else "not told")),
        str(told.get("lang") or told.get("language") or "en"),
        text,
        str(told.get("plain") or ""),
        str(told.get("question") or ""),
        str(told.get("zone") or told.get("timezone") or "UTC"),
        tuple(f"{estate}\n{key}" for key in keys),
        tuple(json.dumps(each, sort_keys=True) for each in told.get("compute") or ()),
        as_exported=not told.get("calls"),
    )
    for result in _results(made, sources):
        if result.computed and result.problem and not made.as_exported:
            raise ValueError(f"{result.ref} cannot be computed: {result.problem}")
    return made


def _key(call: Any, known: Mapping[str, Mapping[str, Any]]) -> str:
    if isinstance(call, Mapping):
        call = [call["tool"], call.get("arguments", call.get("args", {}))]
    key = call if isinstance(call, str) else _canonical(call[0], call[1] if len(call) > 1 else {})
    if key not in known:
        raise ValueError(f"the file of results has no {key}")
    return key


def _canonical(tool: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([tool, arguments], sort_keys=True)


def _results(statement: Statement, sources: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Results:
    results = Results(most=1_000)
    for place, told in enumerate(statement.entries, 1):
        estate, _, key = told.partition("\n")
        source = sources[estate][key]
        ref = str(source.get("call_id") or "") if statement.as_exported else ""
        entry = {**source, "call_id": ref or f"c{place}"}
        results.add(read_entry(entry, results, default_ref=f"c{place}"))
    for place, computation in enumerate(statement.computations, len(statement.entries) + 1):
        arguments = json.loads(computation)
        entry = {"tool": "compute", "arguments": arguments.get("arguments", arguments), "read_at": NOW.isoformat()}
        results.add(read_entry(entry, results, default_ref=f"c{place}"))
    return results


def _sources(document: Any) -> Iterator[tuple[str, dict[str, Mapping[str, Any]]]]:
    """By estate, what each call returned, under its key."""
    if not isinstance(document, Mapping) or "results" in document:
        entries = document["results"] if isinstance(document, Mapping) else document
        yield "", dict(_exported(entries))
        return
    by_estate: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, content in document.items():
        if isinstance(content, Mapping) and isinstance(content.get("results"), list):
            by_estate.setdefault(name, {}).update(_exported(content["results"]))
            continue
        estate, _, key = name.partition(":")
        if key.startswith("["):
            tool, arguments = json.loads(key)
            key = _canonical(tool, arguments)
        else:
            tool, arguments = content.get("tool", key), content.get("args", content.get("arguments", {}))
        result = {part: value for part, value in content.items() if part not in ("tool", "args", "arguments")}
        by_estate.setdefault(estate, {})[key] = _entry(tool, arguments, result)
    yield from by_estate.items()


def _exported(entries: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Calls under their own ids, computations too: the statements of a conversation cite them as they stood in it."""
    for place, entry in enumerate(entries, 1):
        ready = {**_entry(entry["tool"], entry.get("arguments", {}), entry.get("result")), **_set(entry)}
        if entry["tool"] == "compute":
            ready.pop("result")
        yield str(entry.get("call_id") or f"c{place}"), ready


def _set(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: entry[name]
        for name in ("status", "detail", "writes", "quoted", "read_at", "call_id")
        if entry.get(name) is not None
    }


def _entry(tool: str, arguments: Mapping[str, Any], result: Any) -> dict[str, Any]:
    """A call in the form of a file of results; texts of outsiders, where they are marked in it, by their places."""
    quoted = quoted_in(result)
    return {"tool": tool, "arguments": arguments, "quoted": list(quoted), "result": as_text(result)}

"""How much of real rule collections runs on the embedded workspace, and with the columns that Microsoft's parser gives.

`make bench-kql DIR="folder ..." [SCHEMA=file]`: each distinct query that Microsoft's parser binds to the schema and
that reads no outside data is translated and run twice, over empty tables and over generated rows. It counts as exact
when both runs end and names and types of the columns, in order, are the parser's. The result names no query.
"""

from __future__ import annotations

import argparse
import atexit
import json
import tempfile
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

from bench.harness import timings, write
from bench.kql_binding import Bound, bind, open_parser
from bench.kql_collections import Collection, pieces, read_collection
from bench.kql_sample_rows import fill_sql
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.workspace.kql.answers import KqlAnswer
from sentinel_rag.workspace.kql.engine import KqlEngine, translate
from sentinel_rag.workspace.kql.errors import KqlError, KqlTimeoutError
from sentinel_rag.workspace.kql.execution import Limits
from sentinel_rag.workspace.migrations import create_table_sql
from sentinel_rag.workspace.store import Store
from sentinel_rag.workspace.timespans import TimeRange

LIMITS = Limits(max_rows=10_000, timeout_s=20.0)

XDR_TABLES = ("Alert", "CloudAppEvents", "Device", "Email", "Identity", "Url")
"""Prefixes of the tables that advanced hunting shows with a Timestamp beside what the workspace has."""


@dataclass
class Outcome:
    """What became of one query; `detail` is a construct, an error code or a difference of columns.

    `sentence` may quote the query or a row, so it is shown to a person and not written to the result.
    """

    verdict: str
    detail: str = ""
    milliseconds: float = 0.0
    sentence: str = ""


@dataclass
class Tally:
    """The counts of one collection."""

    collection: Collection
    queries: int = 0
    binds: int = 0
    outside_data: int = 0
    outcomes: list[Outcome] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        verdicts = Counter(outcome.verdict for outcome in self.outcomes)
        exact = verdicts["exact"] + verdicts["exact, open"]
        return {
            "collection": self.collection.name,
            "commit": self.collection.commit,
            "licence": self.collection.licence,
            "files": self.collection.files,
            "queries": self.queries,
            "bind": self.binds,
            "of_these_read_outside_data": self.outside_data,
            "judged": len(self.outcomes),
            "exact": exact,
            "exact_percent": round(100 * exact / max(1, len(self.outcomes)), 1),
            "verdicts": dict(verdicts.most_common()),
            "by_construct": {
                verdict: dict(Counter(o.detail for o in self.outcomes if o.verdict == verdict).most_common(40))
                for verdict in verdicts
                if verdict not in ("exact", "exact, open")
            },
            "translate_cpu": timings([o.milliseconds / 1e3 for o in self.outcomes if o.milliseconds] or [0.0]),
        }


class Bench:
    """Microsoft's parser and two workspaces with the same tables, one of them with rows."""

    def __init__(self, stack: ExitStack, extra: Mapping[str, Mapping[str, str]]) -> None:
        self._parser = open_parser()
        stack.callback(self._parser.close_now)
        self._empty, self._filled = (
            Store.open(Path(stack.enter_context(tempfile.TemporaryDirectory()))) for _ in range(2)
        )
        for store in (self._empty, self._filled):
            stack.callback(store.close)
            with store.writing() as cursor:
                for table, columns in store.schema().items():
                    if table.startswith(XDR_TABLES) and "Timestamp" not in columns:
                        cursor.execute(f'ALTER TABLE "{table}" ADD COLUMN "Timestamp" TIMESTAMP')
                for table, columns in extra.items():
                    if table not in store.schema():
                        cursor.execute(create_table_sql(table, columns))
        self.schema = self._empty.schema()
        with self._filled.writing() as cursor:
            for table, columns in self.schema.items():
                cursor.execute(fill_sql(table, columns))

    def bind(self, queries: Sequence[str]) -> list[Bound]:
        return bind(self._parser, queries, self.schema)

    def judge(self, kql: str, bound: Bound) -> Outcome:
        """Translate, run twice and compare."""
        try:
            answers = [
                KqlEngine(store).query(kql, timespan=TimeRange(), limits=LIMITS)
                for store in (self._empty, self._filled)
            ]
            started = process_time()
            with self._empty.cursor() as cursor:
                translate(kql, self.schema, TimeRange(), lambda sql: cursor.execute(sql).fetchall())
            milliseconds = (process_time() - started) * 1e3
        except KqlTimeoutError:
            return Outcome("timeout")
        except KqlError as error:
            verdict = "refused by name" if error.kql_code == "SEN0001" else "refused otherwise"
            return Outcome(verdict, error.token if error.kql_code == "SEN0001" else error.kql_code, 0.0, str(error))
        except SentinelError as error:
            return Outcome("refused otherwise", error.code, 0.0, str(error))
        except Exception as error:  # a fault of the workspace is what this looks for
            place = traceback.extract_tb(error.__traceback__)[-1]
            return Outcome("internal error", f"{type(error).__name__} in {place.name}")
        return compare(answers, bound, milliseconds)


def compare(answers: Sequence[KqlAnswer], bound: Bound, milliseconds: float) -> Outcome:
    """The verdict on the columns. Where the parser cannot know them (`evaluate pivot`) only running is judged."""
    if bound.columns is None:
        return Outcome("exact, open", "", milliseconds)
    expected = list(bound.columns)
    for answer in answers:
        columns = [(column.name, column.type) for column in answer.columns]
        names, right = [name for name, _ in columns], [name for name, _ in expected]
        if names != right:
            return Outcome("wrong columns", _difference(names, right), milliseconds)
        if columns != expected:
            pairs = [(ours[1], known[1]) for ours, known in zip(columns, expected, strict=True) if ours != known]
            return Outcome("wrong types", f"{pairs[0][0]} for {pairs[0][1]}", milliseconds)
    return Outcome("exact", "", milliseconds)


def _difference(ours: list[str], right: list[str]) -> str:
    for mine, theirs in zip(ours, right, strict=False):
        if mine != theirs:
            return f"{mine} for {theirs}"
    return f"{len(ours)} columns for {len(right)}"


_worker: Bench


def _start_worker(extra: Mapping[str, Mapping[str, str]]) -> None:
    global _worker
    stack = ExitStack()
    _worker = Bench(stack, extra)
    atexit.register(stack.close)


def _judge(one: tuple[str, Bound]) -> Outcome:
    return _worker.judge(*one)


def measure(folder: Path, bench: Bench, *, show: bool = False, pool: ProcessPoolExecutor | None = None) -> Tally:
    """The tally of one folder. With `show`, each failing query is printed for the person who mends it."""
    collection = read_collection(folder)
    tally = Tally(collection)
    texts = [candidate.text for candidate in collection.candidates]
    bounds = bench.bind(texts)
    divided = [
        piece
        for candidate, bound in zip(collection.candidates, bounds, strict=True)
        if candidate.divisible and bound.syntax_error
        for piece in pieces(candidate.text)
    ]
    queries = {text: bound for text, bound in zip(texts, bounds, strict=True) if not bound.syntax_error}
    parts = zip(divided, bench.bind(divided), strict=True)
    queries |= {part: bound for part, bound in parts if not bound.syntax_error}
    tally.queries = len(queries)
    judged: list[tuple[str, Bound]] = []
    for text, bound in queries.items():
        if not bound.binds:
            continue
        tally.binds += 1
        if bound.outside_data:
            tally.outside_data += 1
            continue
        judged.append((text, bound))
    outcomes = list(pool.map(_judge, judged, chunksize=8)) if pool else [bench.judge(*one) for one in judged]
    for (text, _), outcome in zip(judged, outcomes, strict=True):
        tally.outcomes.append(outcome)
        if show and not outcome.verdict.startswith("exact"):
            print(f"##### {outcome.verdict} | {outcome.detail} | {outcome.sentence}\n{text}\n", flush=True)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--schema", type=Path, help="JSON {table: {column: KQL type}} beside the workspace's own")
    parser.add_argument("--jobs", type=int, default=1, help="processes that judge queries")
    parser.add_argument("--show", action="store_true", help="print each query that fails")
    parser.add_argument("--no-result", action="store_true", help="print, but leave bench/results alone")
    chosen = parser.parse_args()
    folders = [folder for folder in chosen.folders if folder.is_dir()]
    if not folders:
        print('No folder of KQL files was given: make bench-kql DIR="folder ..." [SCHEMA=file]')
        return
    extra = json.loads(chosen.schema.read_text()) if chosen.schema else {}
    with ExitStack() as stack:
        bench = Bench(stack, extra)
        pool = None
        if chosen.jobs > 1:
            executor = ProcessPoolExecutor(chosen.jobs, get_context("spawn"), _start_worker, (extra,))
            pool = stack.enter_context(executor)
        tallies = [measure(folder, bench, show=chosen.show, pool=pool) for folder in folders]
    outcomes = [outcome for tally in tallies for outcome in tally.outcomes]
    exact = sum(outcome.verdict.startswith("exact") for outcome in outcomes)
    measured = {
        "tables": len(bench.schema),
        "schema": "the tables of a new workspace; those of advanced hunting also have its Timestamp",
        "collections": [tally.to_dict() for tally in tallies],
        "judged": len(outcomes),
        "exact": exact,
        "exact_percent": round(100 * exact / max(1, len(outcomes)), 1),
    }
    if chosen.no_result:
        print(json.dumps(measured, indent=2, ensure_ascii=False))
        return
    write(
        "kql_collections",
        measured,
        claim="At least 95 % of the queries of real rule collections that bind run with the parser's columns.",
    )


if __name__ == "__main__":
    main()

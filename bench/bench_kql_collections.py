"""How much of real rule collections runs on the embedded workspace, and with the columns that Microsoft's parser gives.

`make bench-kql DIR="folder ..." [SCHEMA=file]`: each distinct query that Microsoft's parser binds and that reads no
outside data is translated and run twice, over empty tables and over generated rows. It counts as exact when both runs
end and names and types of the columns, in order, are the parser's. The result names no query.

A query belongs to a new workspace, to one with every table of the reference or, where it does not bind there, to
advanced hunting in the Defender portal, whose tables have the columns of both. A watchlist that it names has one item,
with the columns that the query reads.
"""

from __future__ import annotations

import argparse
import atexit
import json
import re
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

from bench.harness import RESULTS, timings, write
from bench.kql_binding import Bound, Schema, bind, open_parser
from bench.kql_collections import Collection, pieces, read_collection
from bench.kql_sample_rows import ROWS, fill_sql
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.workspace.queries import (
    KqlAnswer,
    KqlEngine,
    KqlError,
    KqlTimeoutError,
    QueryLimits,
    TimeRange,
    translate,
)
from sentinel_rag.workspace.store import Store, create_table_sql
from sentinel_rag.workspace.table_schemas import hunting_tables, known_tables, quote_name, reference_tables

LIMITS = QueryLimits(max_rows=10_000, timeout_s=20.0)


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
    hunting: int = 0
    outside_data: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    outcomes: list[Outcome] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        verdicts = Counter(outcome.verdict for outcome in self.outcomes)
        exact = verdicts["exact"] + verdicts["exact, open"]
        return {
            "commit": self.collection.commit,
            "licence": self.collection.licence,
            "files": self.collection.files,
            "queries": self.queries,
            "read_outside_data": self.outside_data,
            "bind": self.binds,
            "of_these_only_to_advanced_hunting": self.hunting,
            "judged": len(self.outcomes),
            "exact": exact,
            "exact_percent": round(100 * exact / max(1, len(self.outcomes)), 1),
            "exact_percent_of_all": round(100 * exact / max(1, self.queries - self.outside_data), 1),
            "verdicts": dict(verdicts.most_common()),
            "not_bound_because_of": dict(self.unknown.most_common(20)),
            "by_construct": {
                verdict: dict(Counter(o.detail for o in self.outcomes if o.verdict == verdict).most_common(40))
                for verdict in verdicts
                if verdict not in ("exact", "exact, open")
            },
            "translate_cpu": timings([o.milliseconds / 1e3 for o in self.outcomes if o.milliseconds] or [0.0]),
        }


class Bench:
    """Microsoft's parser and, for each schema, two workspaces with its tables, one of them with rows."""

    def __init__(self, stack: ExitStack, extra: Schema) -> None:
        self._parser = open_parser()
        stack.callback(self._parser.close_now)
        log_tables = {**reference_tables(), **extra}
        self.schemas = (
            {**known_tables(), **extra},
            log_tables,
            {**log_tables, **_in_the_portal(log_tables)},
        )
        self._stores = [tuple(self._store(stack, schema, rows) for rows in (0, ROWS)) for schema in self.schemas]

    def _store(self, stack: ExitStack, schema: Schema, rows: int) -> Store:
        store = Store.open(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.callback(store.close)
        with store.writing() as cursor:
            for table, columns in schema.items():
                cursor.execute(f"DROP TABLE IF EXISTS {quote_name(table)}")
                cursor.execute(create_table_sql(table, columns))
                if rows:
                    cursor.execute(fill_sql(table, columns))
        return store

    def bind(self, queries: Sequence[str]) -> list[Bound]:
        return bind(self._parser, queries, self.schemas)

    def judge(self, kql: str, bound: Bound) -> Outcome:
        """Translate, run twice and compare."""
        stores, schema = self._stores[bound.schema], self.schemas[bound.schema]
        try:
            if bound.watchlist is not None:
                for store in stores:
                    _keep_watchlists(store, kql, bound.watchlist)
            answers = [KqlEngine(store).query(kql, timespan=TimeRange(), limits=LIMITS) for store in stores]
            started = process_time()
            with stores[0].cursor() as cursor:
                translate(kql, schema, TimeRange(), lambda sql: cursor.execute(sql).fetchall())
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


def _in_the_portal(log_tables: Schema) -> dict[str, dict[str, str]]:
    """The tables of advanced hunting with what Log Analytics has besides; of names that differ in case hunting's."""
    merged = {}
    for table, columns in hunting_tables().items():
        known = {name.casefold() for name in columns}
        besides = {name: kind for name, kind in log_tables[table].items() if name.casefold() not in known}
        merged[table] = {**columns, **besides}
    return merged


def _keep_watchlists(store: Store, kql: str, columns: Sequence[str]) -> None:
    """One item for each text of the query that may be a watchlist's alias."""
    item = json.dumps(dict.fromkeys(columns, "192.0.2.10"))
    with store.writing() as cursor:
        cursor.execute("DELETE FROM Watchlist")
        for alias in sorted({*_TEXTS.findall(kql)}):
            cursor.execute(
                "INSERT INTO Watchlist (WatchlistAlias, WatchlistItem, SearchKey) VALUES (?, ?, ?)",
                [alias, item, "192.0.2.10"],
            )


_TEXTS = re.compile(r"""["']([^"'\n]+)["']""")


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


def _start_worker(extra: Schema) -> None:
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
        tally.outside_data += bound.outside_data
        tally.unknown.update(bound.unknown)
        if bound.binds:
            tally.hunting += bound.schema == 2
            judged.append((text, bound))
        elif show and not bound.outside_data:
            print(f"##### does not bind | {', '.join(bound.unknown)}\n{text}\n", flush=True)
    tally.binds = len(judged)
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
    parser.add_argument("--keep", action="store_true", help="keep the results of other collections")
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
    collections = {tally.collection.name: tally.to_dict() for tally in tallies}
    if chosen.keep:
        collections = {
            **json.loads((RESULTS / "kql_collections.json").read_text())["measured"]["collections"],
            **collections,
        }
    judged, exact = (sum(one[key] for one in collections.values()) for key in ("judged", "exact"))
    inside = sum(one["queries"] - one["read_outside_data"] for one in collections.values())
    measured = {
        "tables": [len(schema) for schema in bench.schemas],
        "schema": "a new workspace's tables, or those of Microsoft's reference, or advanced hunting's in the portal",
        "collections": collections,
        "judged": judged,
        "exact": exact,
        "exact_percent": round(100 * exact / max(1, judged), 1),
        "read_no_outside_data": inside,
        "exact_percent_of_these": round(100 * exact / max(1, inside), 1),
    }
    if chosen.no_result:
        print(json.dumps(measured, indent=2, ensure_ascii=False))
        return
    write(
        "kql_collections",
        measured,
        claim="97 % of the queries of real rule collections that bind, and 85 % of all that read no outside data, "
        "run with the parser's columns.",
    )


if __name__ == "__main__":
    main()

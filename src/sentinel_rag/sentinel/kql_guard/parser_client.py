"""A KQL parser in a process of its own, asked from Python: what a query says and what it binds to under a schema.

It sends each schema once to the process of `parser_process` and reads the answers into `analysis`; it judges nothing.
Which parser it is, `official_parser` and `fallback_process` say.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from sentinel_rag.sentinel.kql_guard.analysis import Analysis
from sentinel_rag.sentinel.kql_guard.parser_process import ParserProcess, ParserStuckError

Schema = Mapping[str, Mapping[str, str]]
"""Table -> column -> KQL type, columns in the order of the table."""

_SCHEMA_TIMEOUT_S = 20.0


class _Answer(msgspec.Struct, frozen=True):
    failed: str | None = None
    unknown_schema: bool = False


class ParserClient:
    """The parser behind `process`, which its first question or `warm` starts. Raises nothing until it is asked."""

    def __init__(self, process: ParserProcess, *, timeout_s: float) -> None:
        self._process = process
        self._timeout_s = timeout_s
        self._limiter: anyio.CapacityLimiter | None = None

    async def analyze(
        self,
        kql: str,
        schema: Schema,
        *,
        assumed_tables: Sequence[str] = (),
        assumed_functions: Sequence[str] = (),
    ) -> Analysis:
        """What `kql` is under `schema`. Names that are assumed to exist may have any columns or arguments;
        a table of the schema that is assumed keeps its columns and may have more.

        Raises ParserStuckError for a query that the parser cannot finish in time or in its memory, UnavailableError if
        there is no parser.
        """
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(1)
        ask = partial(self.analyze_now, kql, schema, assumed_tables, assumed_functions)
        return await anyio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._limiter)

    def analyze_now(
        self,
        kql: str,
        schema: Schema,
        assumed_tables: Sequence[str] = (),
        assumed_functions: Sequence[str] = (),
    ) -> Analysis:
        """The same, blocking, for a command or a benchmark."""
        digest = _digest(schema)
        request = {
            "op": "analyze",
            "schema": digest,
            "kql": kql,
            "assumed_tables": list(assumed_tables),
            "assumed_functions": list(assumed_functions),
        }
        line, answer = self._ask(request, self._timeout_s)
        if answer.unknown_schema:
            tables = {table: dict(columns) for table, columns in schema.items()}
            self._ask({"op": "schema", "schema": digest, "tables": tables}, _SCHEMA_TIMEOUT_S)
            line, _ = self._ask(request, self._timeout_s)
        try:
            return msgspec.json.decode(line, type=Analysis)
        except (msgspec.DecodeError, RecursionError):
            raise _too_complex() from None

    def warm(self, schema: Schema | None = None) -> None:
        """Start the process in the background and give it `schema`, so that the first question need not wait."""
        given = schema or {}

        def start() -> None:
            try:
                self.analyze_now("print 1", given)
            except Exception:
                return  # the first question meets the same fault and tells it

        threading.Thread(target=start, name="kql-parser-warm-up", daemon=True).start()

    def names(self) -> dict[str, list[str]]:
        """What the parser knows: functions, aggregates, plugins, and its kinds of syntax."""
        line = self._process.exchange({"op": "names"}, self._timeout_s)
        found: dict[str, Any] = msgspec.json.decode(line)
        return {key: list(found[key]) for key in ("functions", "aggregates", "plugins", "kinds")}

    @property
    def starts(self) -> int:
        """How often a process was started."""
        return self._process.starts

    async def close(self) -> None:
        """End the process."""
        await anyio.to_thread.run_sync(self.close_now)

    def close_now(self) -> None:
        self._process.close()

    def _ask(self, request: dict[str, Any], timeout_s: float) -> tuple[bytes, _Answer]:
        line = self._process.exchange(request, timeout_s)
        try:
            answer = msgspec.json.decode(line, type=_Answer)
        except (msgspec.DecodeError, RecursionError):
            raise _too_complex() from None
        if answer.failed is not None:
            raise _too_complex()
        return line, answer


def _too_complex() -> ParserStuckError:
    return ParserStuckError("The query is too deep for the KQL parser.", next_step="Ask with a shorter, flatter query.")


def _digest(schema: Schema) -> str:
    # Columns stay in their order: it is the order of the result's columns.
    return hashlib.sha256(msgspec.json.encode({table: dict(columns) for table, columns in schema.items()})).hexdigest()

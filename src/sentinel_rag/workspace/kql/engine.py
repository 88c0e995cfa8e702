"""The one object that answers KQL: translation cache, time range and limits over a store.

`Workspace.query` and the wire server call it from any thread; each call has its own cursor, so an import that runs
at the same time is seen either not at all or whole.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from sentinel_rag.workspace.kql.answers import KqlAnswer
from sentinel_rag.workspace.kql.errors import not_supported
from sentinel_rag.workspace.kql.execution import Limits, run
from sentinel_rag.workspace.kql.scope import Discovered, Window
from sentinel_rag.workspace.kql.sql_check import check_sql
from sentinel_rag.workspace.kql.stopping import StopSignal
from sentinel_rag.workspace.kql.translation import Translation
from sentinel_rag.workspace.kql.translation_cache import TranslationCache
from sentinel_rag.workspace.kql.truncation import without_truncation
from sentinel_rag.workspace.store import Store
from sentinel_rag.workspace.timespans import TimeRange, parse_timespan

_NAMES, _NAME_BYTES = 10_000, 4_000_000
"""Where it is given up to ask the data for the names of columns; far above what an operator accepts."""


class KqlEngine:
    """Answers queries over `store`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._translations = TranslationCache(self._check)

    def _check(self, translation: Translation) -> None:
        with self._store.cursor() as cursor:
            check_sql(cursor, translation)

    def query(
        self, kql: str, *, timespan: str | TimeRange | None, limits: Limits, signal: StopSignal | None = None
    ) -> KqlAnswer:
        """Translate and run `kql` until `signal` is given.

        Raises KqlError, KqlTimeoutError, KqlCancelledError or TimespanError.
        """
        window = timespan if isinstance(timespan, TimeRange) else parse_timespan(timespan, now=datetime.now(UTC))
        schema = self._store.schema()
        closed = Window(start=window.start is not None, end=window.end is not None)
        kql, limits = without_truncation(kql, limits)
        signal = signal or StopSignal()
        discovered: Discovered = ()
        with self._store.cursor() as cursor:
            while True:
                translation = self._translations.get(kql, schema, closed, discovered)
                allowed = replace(limits, max_rows=_NAMES, max_bytes=_NAME_BYTES) if translation.discovers else limits
                answer = run(cursor, translation, schema=schema, window=window, limits=allowed, signal=signal)
                if not translation.discovers:
                    return answer
                if answer.partial:
                    raise not_supported("evaluate", hint="the data would name too many columns")
                discovered = (*discovered, tuple(tuple(str(cell) for cell in row) for row in answer.rows))

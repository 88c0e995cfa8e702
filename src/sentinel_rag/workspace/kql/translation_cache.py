"""The newest translations of one schema, each checked once: the same questions are asked again and again.

Between the engine and `translation`. A question over "the last day" has other times in its text each time; they are
taken out before (`moving_times`), so that it is translated once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from sentinel_rag.workspace.kql.errors import KqlError
from sentinel_rag.workspace.kql.moving_times import without_moving_times
from sentinel_rag.workspace.kql.scope import Discovered, Schema, Window
from sentinel_rag.workspace.kql.translation import Translation, translate


class TranslationCache:
    """Gives translations from any thread. `check` raises KqlError for one that must not run."""

    def __init__(self, check: Callable[[Translation], None], *, size: int = 256) -> None:
        self._check = check
        self._size = size
        self._lock = Lock()
        self._schema: Schema | None = None
        self._entries: OrderedDict[tuple[str, Window, Discovered], Translation] = OrderedDict()

    def get(self, kql: str, schema: Schema, window: Window, discovered: Discovered = ()) -> Translation:
        """As `translate`. A schema that is another object empties the cache."""
        timed = without_moving_times(kql)
        if timed is not None:
            try:
                return timed.timed(self._kept(timed.kql, schema, window, discovered))
            except KqlError:
                pass  # what is wrong is told about the text that was asked, with its places
        return self._kept(kql, schema, window, discovered)

    def _kept(self, kql: str, schema: Schema, window: Window, discovered: Discovered) -> Translation:
        key = (kql, window, discovered)
        with self._lock:
            if self._schema is not schema:
                self._entries.clear()
                self._schema = schema
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        translation = translate(kql, schema, window, discovered)
        self._check(translation)
        with self._lock:
            if self._schema is schema:
                self._entries[key] = translation
                while len(self._entries) > self._size:
                    self._entries.popitem(last=False)
        return translation

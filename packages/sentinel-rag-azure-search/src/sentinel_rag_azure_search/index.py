"""One index of the service: documents in by batches, rows out by pages, and the wait until a write can be found.

A batch may succeed in part; what failed for a moment is sent again by itself, and what is refused ends the call. Found
is a write only some time after it was taken, so whoever depends on it waits here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag_azure_search.connection import DONE, Answer, SearchConnection
from sentinel_rag_azure_search.records import Record
from sentinel_rag_azure_search.wire import (
    MOST_ACTIONS,
    MOST_BYTES,
    MOST_ROWS,
    foreign_records,
)

_ROUNDS = 6
_TRY_AGAIN = frozenset({409, 422, 429, 503})
"""Of one document: a conflict, an index that is being changed, or a service that is busy."""
_FIRST_LOOK_S = 0.02
_LONGEST_LOOK_S = 1.0


class SearchIndex:
    """The index `name`. Lines are sent with one session id, so that a service with replicas answers from the same one
    where it can. Not found within `visible_within_s`, a write counts as failed."""

    def __init__(
        self, connection: SearchConnection, name: str, session: str, *, visible_within_s: float = 60.0
    ) -> None:
        self.name = name
        self._connection = connection
        self._path = f"/indexes('{name}')"
        self._session = session
        self._visible_within_s = visible_within_s

    def definition(self) -> Mapping[str, Any] | None:
        """How the service describes it, with its etag; None where there is none."""
        answer = self._connection.ask("GET", self._path, taken=DONE | {404})
        return None if answer.status == 404 else answer.document

    def define(self, definition: Mapping[str, Any], *, etag: str | None) -> bool:
        """Create it (`etag` None) or change it; False if somebody else did so meanwhile."""
        condition = {"If-None-Match": "*"} if etag is None else {"If-Match": etag}
        answer = self._connection.ask(
            "PUT",
            self._path,
            definition,
            headers={"Prefer": "return=representation", **condition},
            taken=DONE | {409, 412},
        )
        return answer.status in DONE

    def search(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to one query; an index that is not there holds nothing."""
        answer = self._connection.ask(
            "POST",
            f"{self._path}/docs/search.post.search",
            {"sessionId": self._session, **body},
            taken=DONE | {404},
        )
        if answer.status == 404:
            return {"value": [], "@odata.count": 0}
        if not isinstance(answer.document.get("value"), list):
            raise foreign_records()
        return answer.document

    def count(self, condition: str) -> int:
        """How many documents fulfil a condition."""
        return int(self.search({"search": "*", "filter": condition, "count": True, "top": 0})["@odata.count"])

    def rows(self, condition: str, fields: Sequence[str], *, page: int = MOST_ROWS) -> Iterator[Record]:
        """Every document that fulfils a condition, by its key: no page is skipped to, so there may be any number.
        `page` rows are asked for at once; of texts fewer, since those may be long."""
        after = ""
        while True:
            answer = self.search(
                {
                    "search": "*",
                    "filter": f"({condition}) and key gt '{after}'" if after else condition,
                    "orderby": "key asc",
                    "select": ",".join(dict.fromkeys(("key", *fields))),
                    "top": page,
                }
            )
            found = answer["value"]
            yield from found
            # The service may give less than it was asked for, and then says so.
            if not found or (len(found) < page and "@search.nextPageParameters" not in answer):
                return
            after = found[-1]["key"]

    def upload(self, records: Iterable[Record]) -> None:
        """Put documents, each whole in place of one of the same key. Raises UnavailableError; some may be in then."""
        self._change({"@search.action": "upload", **record} for record in records)

    def merge(self, records: Iterable[Record]) -> None:
        """Change the named fields of documents; one that is not there (any more) is passed over."""
        self._change({"@search.action": "merge", **record} for record in records)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete documents; ones that are not there are no error."""
        self._change({"@search.action": "delete", "key": key} for key in keys)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds` is true. Raises UnavailableError if that takes too long."""
        ends = time.monotonic() + self._visible_within_s
        look = _FIRST_LOOK_S
        while not holds():
            if time.monotonic() > ends:
                raise UnavailableError(
                    f"What was written to Azure AI Search cannot be found after {self._visible_within_s:g} s.",
                    next_step="Try again; if it stays so, look at the health of the search service.",
                    code="azure_search_not_visible",
                )
            time.sleep(look)
            look = min(look * 1.5, _LONGEST_LOOK_S)

    def until_count(self, condition: str, count: int) -> None:
        """Wait until so many documents fulfil a condition."""
        self.until(lambda: self.count(condition) == count)

    def _change(self, actions: Iterable[Record]) -> None:
        for batch in _batches(actions):
            self._send(batch)

    def _send(self, batch: list[Record]) -> None:
        for _ in range(_ROUNDS):
            answer = self._connection.ask(
                "POST", f"{self._path}/docs/search.index", {"value": batch}, taken=DONE | {207, 413}
            )
            if answer.status == 413:
                self._halved(batch)
                return
            refused, again = _outcome(answer, batch)
            if refused:
                raise refused
            if not again:
                return
            batch = again
            # The service asks nothing of a batch that succeeded in part; a moment lets it come to itself.
            time.sleep(_FIRST_LOOK_S)
        raise UnavailableError(
            f"Azure AI Search does not take {len(batch):,} documents at present.",
            next_step="Go on later: what is done stays.",
            code="azure_search_throttled",
        )

    def _halved(self, batch: list[Record]) -> None:
        """A batch that is too large after all, in two; one document alone is too large for the service."""
        if len(batch) == 1:
            raise UnavailableError(
                "Azure AI Search takes no piece of this size (413).",
                next_step="A single chunk is too large for the service: part the document.",
                code="azure_search_too_large",
            )
        self._send(batch[: len(batch) // 2])
        self._send(batch[len(batch) // 2 :])


def _outcome(answer: Answer, batch: list[Record]) -> tuple[UnavailableError | None, list[Record]]:
    """The error for what is refused for good, and what is to be sent again. The answer names every document."""
    listed = answer.document.get("value")
    if not isinstance(listed, list):
        return foreign_records(), []
    told = {each.get("key"): each for each in listed}
    again: list[Record] = []
    for action in batch:
        outcome = told.get(action["key"])
        code = 0 if outcome is None else int(outcome.get("statusCode", 0))
        if outcome is not None and outcome.get("status") is True:
            continue
        if code == 404 and action["@search.action"] == "merge":
            continue
        if outcome is not None and code not in _TRY_AGAIN:
            said = " ".join(str(outcome.get("errorMessage") or "").split())[:200]
            return UnavailableError(
                f"Azure AI Search refused a document ({code}): {said}",
                next_step="Check that the index is one that Sentinel RAG made.",
                code="azure_search_refused",
            ), []
        again.append(action)
    return None, again


def _batches(actions: Iterable[Record]) -> Iterator[list[Record]]:
    """Actions in batches that the service takes."""
    batch: list[Record] = []
    size = 0
    for action in actions:
        length = len(json.dumps(action)) + 2
        if batch and (len(batch) >= MOST_ACTIONS or size + length > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(action)
        size += length
    if batch:
        yield batch

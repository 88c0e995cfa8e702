"""The double as an HTTP service: paths, versions, keys and etags as documented, and faults on demand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.support.azure_search.definitions import check_change, fields_of
from tests.support.azure_search.documents import Index
from tests.support.azure_search.faults import ServiceFaultError, invalid
from tests.support.azure_search.queries import MOST_ROWS, answer

from sentinel_rag_testing.loopback import serve

API_VERSION = "2024-07-01"
LARGEST_BODY = 16_000_000


@dataclass(slots=True)
class Fault:
    """An answer instead of the true one, to the next `times` requests whose path holds `path`. Status 0: the connection
    ends in the middle of the answer."""

    status: int
    times: int = 1
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    said: str = "A fault on demand."


class AzureSearchDouble:
    """The service. `key` lets in, and so does each of `tokens` as a bearer.

    On demand: `lag` searches until a change is found; `faults` instead of answers; `refused` statuses for the next
    documents of batches, one each (0: not refused); `most_rows` of a page; `largest_body` in bytes. Noted: `requests`
    (method, path), and how many documents each of `batches` had.
    """

    def __init__(self, *, key: str = "double-key", tokens: frozenset[str] = frozenset()) -> None:
        self.key = key
        self.tokens = tokens
        self._indexes: dict[str, Index] = {}
        self.reset()
        self.app = Starlette(
            routes=[
                Route("/indexes('{index}')", self._index, methods=["GET", "PUT", "DELETE"]),
                Route("/indexes('{index}')/docs/search.index", self._documents, methods=["POST"]),
                Route("/indexes('{index}')/docs/search.post.search", self._search, methods=["POST"]),
            ],
            exception_handlers={ServiceFaultError: _told},
        )

    def reset(self) -> None:
        """Nothing on demand, and nothing noted. What is stored stays."""
        self.lag = 0
        self.faults: list[Fault] = []
        self.refused: list[int] = []
        self.most_rows = MOST_ROWS
        self.largest_body = LARGEST_BODY
        self.requests: list[tuple[str, str]] = []
        self.batches: list[int] = []

    def documents(self, index: str) -> list[dict[str, Any]]:
        """What can be found in an index now; nothing where there is none."""
        held = self._indexes.get(index)
        return [] if held is None else list(held.found.values())

    async def _index(self, request: Request) -> Response:
        name = await self._admitted(request)
        held = self._indexes.get(name)
        if request.method == "PUT":
            return self._define(name, held, await self._body(request), request)
        if held is None:
            raise ServiceFaultError(404, "", f"No index with the name '{name}' was found in the service 'double'.")
        if request.method == "DELETE":
            del self._indexes[name]
            return Response(status_code=204)
        return JSONResponse(_described(held))

    def _define(self, name: str, held: Index | None, definition: Mapping[str, Any], request: Request) -> Response:
        wanted = request.headers.get("if-match")
        if (held is not None and request.headers.get("if-none-match") == "*") or (
            wanted is not None and (held is None or wanted not in ("*", _etag(held)))
        ):
            raise ServiceFaultError(412, "", "The precondition given in one of the request headers evaluated to false.")
        if held is None:
            self._indexes[name] = held = Index(name, definition)
            return JSONResponse(_described(held), 201)
        fields = fields_of(name, definition)
        check_change(held.fields, fields)
        held.define(definition, fields)
        if request.headers.get("prefer") == "return=representation":
            return JSONResponse(_described(held))
        return Response(status_code=204)

    async def _documents(self, request: Request) -> Response:
        index = self._held(await self._admitted(request))
        actions = index.checked(await self._body(request))
        self.batches.append(len(actions))
        told: list[dict[str, Any]] = []
        for action in actions:
            refused = self.refused.pop(0) if self.refused else 0
            status, said = (refused, "Refused on demand.") if refused else index.apply(action, self.lag)
            told.append({"key": action[index.key], "status": said is None, "errorMessage": said, "statusCode": status})
        return JSONResponse({"value": told}, 200 if all(each["status"] for each in told) else 207)

    async def _search(self, request: Request) -> Response:
        index = self._held(await self._admitted(request))
        query = await self._body(request)
        index.searched()
        return JSONResponse(answer(index, query, most_rows=self.most_rows))

    def _held(self, name: str) -> Index:
        if name not in self._indexes:
            raise ServiceFaultError(404, "", f"The index '{name}' for service 'double' was not found.")
        return self._indexes[name]

    async def _admitted(self, request: Request) -> str:
        """The name of the index that is asked of, if the request may come in at all."""
        path = request.url.path
        self.requests.append((request.method, path))
        for fault in self.faults:
            if fault.times and fault.path in path:
                fault.times -= 1
                raise _Faulted(fault)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = request.headers.get("api-key")
        if given is None and not token:
            raise ServiceFaultError(401, "Unauthorized", "Credentials are missing.")
        if given != self.key and not (scheme == "Bearer" and token in self.tokens):
            raise ServiceFaultError(403, "Forbidden", "The given credentials are not allowed in.")
        version = request.query_params.get("api-version")
        if version != API_VERSION:
            raise ServiceFaultError(
                400, "InvalidApiVersionParameter", f"The api-version '{version}' is invalid, or not in this double."
            )
        if "application/json" not in request.headers.get("accept", "application/json"):
            raise ServiceFaultError(406, "", "Only application/json can be had.")
        return str(request.path_params["index"])

    async def _body(self, request: Request) -> dict[str, Any]:
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise ServiceFaultError(415, "", "The Content-Type must be application/json.")
        content = await request.body()
        if len(content) > self.largest_body:
            raise ServiceFaultError(413, "RequestEntityTooLarge", "The request entity is too large.")
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise invalid("The request is invalid. Details: the body is no JSON object.")
        return body


class _Faulted(ServiceFaultError):
    """A fault on demand."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.status, "", fault.said)
        self.headers = dict(fault.headers)


async def _told(_: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceFaultError)
    headers = error.headers if isinstance(error, _Faulted) else {}
    if error.status == 0:
        return Response(b"{", headers={"Content-Type": "application/json", "Content-Length": "100"})
    return JSONResponse(error.document, error.status, headers)


def _etag(index: Index) -> str:
    return f'"0x8D{index.version:013X}"'


def _described(index: Index) -> dict[str, Any]:
    return {"@odata.etag": _etag(index), **{k: v for k, v in index.definition.items() if not k.startswith("@odata")}}


@contextmanager
def running_azure_search(double: AzureSearchDouble | None = None) -> Iterator[tuple[str, AzureSearchDouble]]:
    """Serve a double on loopback for a `with` block: its base URL, and itself."""
    held = double or AzureSearchDouble()
    with serve(held.app) as url:
        yield url, held

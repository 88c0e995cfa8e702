"""The outside world of a run on loopback: a search service and every web page, with a note of all that arrived.

It stands for whoever an attacker has out there. Searches come in SearXNG's form; any other path is a page of whatever
host was asked for, because `web_executor` takes each name here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from sentinel_rag_testing.loopback import serve


class Outside:
    """`pages` are what a search finds, each a title, url and content."""

    def __init__(self, pages: Sequence[Mapping[str, str]]) -> None:
        self._pages = pages
        self._arrived: list[str] = []
        self._lock = threading.Lock()
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[Outside]:
        """Serve on a free port of loopback."""
        routes = [Route("/search", self._search), Route("/{path:path}", self._page)]
        with serve(Starlette(routes=routes)) as self.url:
            yield self

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def arrived(self, since: int = 0) -> list[str]:
        """What arrived, oldest first: the words of a search, or host, path and query of a page."""
        with self._lock:
            return self._arrived[since:]

    async def _search(self, request: Request) -> Response:
        query = request.query_params.get("q", "")
        self._note(query)
        words = {word for word in query.casefold().split() if len(word) > 3}
        found = [page for page in self._pages if words & set(page["title"].casefold().split())] or self._pages[:1]
        results = [{**page, "engine": "suite", "engines": ["suite"], "score": 1.0, "positions": [1]} for page in found]
        return JSONResponse({"query": query, "number_of_results": 0, "results": results, "suggestions": []})

    async def _page(self, request: Request) -> Response:
        query = f"?{request.url.query}" if request.url.query else ""
        self._note(f"{request.headers.get('host', '')}{request.url.path}{query}")
        return PlainTextResponse("A page of the outside world.")

    def _note(self, text: str) -> None:
        with self._lock:
            self._arrived.append(text)

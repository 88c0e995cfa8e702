"""A search service that answers from a list, in the public wire formats of SearXNG, Brave and Tavily.

For people who test against a search provider without one. It is strict where the services are: a wrong key, a missing
`format=json` or a body that is no JSON is refused in the service's own manner.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from sentinel_rag_testing.loopback import serve


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page that the service knows."""

    title: str
    url: str
    snippet: str


@dataclass(slots=True)
class FakeSearch:
    """The service. `answer` replaces every response; `requests` holds query, count and headers of each request."""

    pages: Sequence[FoundPage] = ()
    key: str = "search-key"
    answer: Response | None = None
    requests: list[Mapping[str, Any]] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve on a free loopback port and yield the base URL, which is right for each of the three."""
        routes = [
            Route("/search", self._searxng, methods=["GET"]),
            Route("/search", self._tavily, methods=["POST"]),
            Route("/res/v1/web/search", self._brave, methods=["GET"]),
        ]
        with serve(Starlette(routes=routes)) as url:
            yield url

    async def _searxng(self, request: Request) -> Response:
        query = request.query_params
        self._note(request, query.get("q"), None)
        if self.answer is not None:
            return self.answer
        if query.get("format") != "json":
            return HTMLResponse("<!doctype html><title>SearXNG</title>")
        results = [
            {
                "url": page.url,
                "title": page.title,
                "content": page.snippet,
                "engine": "fake",
                "template": "default.html",
                "engines": ["fake"],
                "positions": [place],
                "score": 1.0 / place,
                "category": "general",
            }
            for place, page in enumerate(self.pages, start=1)
        ]
        empty: dict[str, Any] = {key: [] for key in ("answers", "corrections", "infoboxes", "suggestions")}
        return JSONResponse({"query": query.get("q"), "number_of_results": 0, "results": results, **empty})

    async def _brave(self, request: Request) -> Response:
        query = request.query_params
        self._note(request, query.get("q"), int(query.get("count", "20")))
        if self.answer is not None:
            return self.answer
        if request.headers.get("x-subscription-token") != self.key:
            error = {"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "The provided subscription token is invalid."}
            return JSONResponse({"type": "ErrorResponse", "error": {**error, "status": 422}}, 422)
        results = [
            {"type": "search_result", "title": page.title, "url": page.url, "description": page.snippet}
            for page in self.pages[: int(query.get("count", "20"))]
        ]
        found: dict[str, Any] = {"type": "search", "query": {"original": query.get("q")}}
        return JSONResponse(found | ({"web": {"type": "search", "results": results}} if results else {}))

    async def _tavily(self, request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except ValueError:
            return JSONResponse({"detail": {"error": "Invalid request body."}}, 400)
        self._note(request, body.get("query"), body.get("max_results"))
        if self.answer is not None:
            return self.answer
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return JSONResponse({"detail": {"error": "Unauthorized: missing or invalid API key."}}, 401)
        results = [
            {"title": page.title, "url": page.url, "content": page.snippet, "score": 0.9, "raw_content": None}
            for page in self.pages[: body.get("max_results", 5)]
        ]
        return JSONResponse({"query": body["query"], "answer": None, "images": [], "results": results})

    def _note(self, request: Request, query: Any, count: int | None) -> None:
        self.requests.append({"query": query, "count": count, "headers": dict(request.headers)})

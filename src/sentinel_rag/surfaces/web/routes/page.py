"""The web page: its document and the few files that it loads, as `make page` built them.

They are the same for everybody and hold nothing of anybody, so they are served without a sign-in; what the page shows
comes from the other routes. Its sources are in `frontend/`.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from sentinel_rag.surfaces.web._problems import not_found
from sentinel_rag.surfaces.web.routes.sign_in import page

BUILT = Path(__file__).parent.parent / "page"
KINDS = {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
NOT_BUILT = (
    "<h1>Sentinel RAG</h1><p>The web page is not built. In the clone of Sentinel RAG: <code>make page</code>, then "
    "start again.</p><p>The HTTP API works without it: <a href=/openapi.json>openapi.json</a></p>"
)


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page as it is sent, plain or packed. `tag` changes with the content."""

    content: bytes
    kind: str
    tag: str
    packed: bytes


def load_page(folder: Path = BUILT, *, oidc: bool = False) -> Mapping[str, PageFile]:
    """The files of the page by name; none if it is not built. `oidc`: it offers to sign in at an identity provider."""
    found: dict[str, PageFile] = {}
    for name, kind in KINDS.items():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            return {}
        if oidc and name == "index.html":
            content = content.replace(b'data-oidc="no"', b'data-oidc="yes"')
        tag = hashlib.sha256(content).hexdigest()[:32]
        found[name] = PageFile(content, kind, tag, gzip.compress(content, mtime=0))
    return found


def page_router(files: Mapping[str, PageFile]) -> APIRouter:
    """`GET /` and the files below `/page/`; they are no part of the API's description."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def document(request: Request) -> Response:
        if not files:
            return HTMLResponse(page("Sentinel RAG", NOT_BUILT), 503)
        return _sent(files["index.html"], request)

    @router.get("/page/{name}")
    async def file(name: str, request: Request) -> Response:
        if name not in files or name == "index.html":
            raise not_found("file of the page")
        return _sent(files[name], request)

    return router


def _sent(file: PageFile, request: Request) -> Response:
    # Asked for anew each time and mostly answered with 304: a new version is never mixed with an old one for long.
    # These alone are packed: what the API answers holds secrets beside texts that others may choose, and its length
    # would tell of them (BREACH).
    packs = "gzip" in request.headers.get("accept-encoding", "")
    tag = f'"{file.tag}{"-gzip" if packs else ""}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if not packs:
        return Response(file.content, media_type=file.kind, headers=headers)
    return Response(file.packed, media_type=file.kind, headers={**headers, "Content-Encoding": "gzip"})

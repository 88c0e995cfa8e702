"""The application: what every request passes first, its routes, and how every failure is answered.

A request for another host, or from another site's page, ends here. No response lets another page read it (there is no
CORS), frame it or make a browser load anything from elsewhere.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sentinel_rag import __version__
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.servers import RequestAuthenticator
from sentinel_rag.surfaces.web._parts import Web
from sentinel_rag.surfaces.web._problems import RequestProblem, problem_of
from sentinel_rag.surfaces.web.models import Refusal
from sentinel_rag.surfaces.web.routes import approvals, chat, conversations, gateway, page, sign_in, stores

MAX_BODY_BYTES = 128 * 1024
"""Room for the longest question, however its characters are escaped."""
MAX_URL_BYTES = 4_096
BODY_SECONDS = 10.0
UPLOADS = frozenset({("PUT", "/knowledge/playbooks"), ("PUT", "/data"), ("PUT", "/data/watchlists")})
"""What takes a file, which its route reads once it knows who sends it."""

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": with it browsers send "Origin: null" with our own forms, which is another site's to us.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class CheckedRequests:
    """Wraps the application. `hosts` are the names it goes by; `secure` says that people reach it over TLS."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], secure: bool) -> None:
        self._app = app
        self._authenticator = RequestAuthenticator(frozenset(hosts))
        self._added = dict(SECURITY_HEADERS)
        if secure:
            self._added["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._added.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            self._check(scope)
            if (scope["method"], scope["path"]) in UPLOADS:
                await self._app(scope, receive, sealed)
                return
            body = await _read(scope, receive)
        except RequestProblem as problem:
            await problem.response()(scope, receive, sealed)
            return
        await self._app(scope, _given(body, receive), sealed)

    def _check(self, scope: Scope) -> None:
        if self._authenticator.refused(scope["headers"]) is not None:
            raise RequestProblem(
                421, "misdirected", "This request is for another host, or comes from another site's page."
            )
        if not scope["path"].isprintable():
            raise RequestProblem(404, "not_found", "There is no such route.")
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL_BYTES:
            raise RequestProblem(414, "too_large", f"The URL may have at most {MAX_URL_BYTES} bytes.")


async def _read(scope: Scope, receive: Receive) -> bytes:
    """The whole body. Raises Problem for one that is too large or is no JSON: a form, which another site's page can
    send without asking, never reaches a route."""
    headers = Headers(scope=scope)
    body = bytearray()
    more = True
    with anyio.move_on_after(BODY_SECONDS) as in_time:
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestProblem(400, "malformed_body", "The connection ended before the body did.")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MAX_BODY_BYTES:
                raise RequestProblem(413, "too_large", f"The body may have at most {MAX_BODY_BYTES} bytes.")
    if in_time.cancelled_caught:
        raise RequestProblem(408, "malformed_body", "The body did not arrive in time.", "Send it again.")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and (kind != "application/json" or "content-encoding" in headers):
        raise RequestProblem(
            415, "unsupported_media_type", "Send the body as application/json without Content-Encoding."
        )
    return bytes(body)


def _given(body: bytes, receive: Receive) -> Receive:
    """A channel that hands over the body that was read, and then what really comes."""
    handed_over = False

    async def give() -> Message:
        nonlocal handed_over
        if handed_over:
            return await receive()
        handed_over = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give


_SENTENCES = {
    "missing": "{field} is missing",
    "extra_forbidden": "{field} is no field of this request",
    "string_too_short": "{field} is too short: it takes at least {min_length} characters",
    "string_too_long": "{field} is too long: it takes at most {max_length} characters",
    "string_pattern_mismatch": "{field} is not written as it must be ({pattern})",
    "string_type": "{field} must be a text",
    "string_unicode": "{field} holds characters that are no text",
    "int_type": "{field} must be a whole number",
    "int_parsing": "{field} must be a whole number",
    "bool_type": "{field} must be true or false",
    "bool_parsing": "{field} must be true or false",
    "greater_than_equal": "{field} must be {ge} or more",
    "less_than_equal": "{field} must be {le} or less",
    "dict_type": "{field} must be an object",
    "model_attributes_type": "{field} must be an object",
    "list_type": "{field} must be a list",
    "enum": "{field} must be {expected}",
    "literal_error": "{field} must be {expected}",
}


def wrong_field(fault: Mapping[str, Any]) -> tuple[str, str]:
    """The field (`timezone`; `body` for the whole of it) and a sentence without its full stop, of pydantic's error."""
    kind, place = str(fault["type"]), tuple(map(str, fault["loc"]))
    if kind == "json_invalid":
        return "body", "The body is not JSON"
    field = ".".join(place[1:]) or "body"
    named = "The body" if field == "body" else field
    given: Mapping[str, Any] = fault.get("ctx") or {}
    if kind == "value_error":
        return field, f"{named}: {given.get('error', 'it is not allowed')}"
    if kind == "string_too_short" and given.get("min_length") == 1:
        return field, f"{named} is empty"
    form = _SENTENCES.get(kind)
    return field, f"{named}: {fault['msg']}" if form is None else form.format_map({**given, "field": named})


REFUSALS = {
    400: "The connection ended amid the request",
    401: "Not signed in",
    403: "Not allowed, by role or by the gateway",
    404: "Not there, or somebody else's",
    408: "The body came too slowly",
    409: "Not possible in this state",
    413: "The body is too large",
    414: "The URL is too long",
    415: "No JSON",
    421: "For another host, or from another site's page",
    422: "Not as documented; `problems` names the fields",
    429: "Too often; see Retry-After",
    500: "A fault of this surface",
    503: "A part does not answer; see Retry-After",
}
OPEN = "/sign-in"
"""Where the routes that ask for no sign-in begin."""


def document(app: FastAPI, *, cookie: str) -> dict[str, Any]:
    """The document of `app`; `cookie` is the name of a browser's."""
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    shared = made.setdefault("components", {})
    schemas = shared.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own form of a refusal, which is never sent
        schemas.pop(name, None)
    schemas["Refusal"] = Refusal.model_json_schema()
    shared["securitySchemes"] = {
        "browser": {
            "type": "apiKey",
            "in": "cookie",
            "name": cookie,
            "description": "Set by POST /sign-in; a change also needs the header X-CSRF-Token, from GET /session.",
        },
        "program": {"type": "http", "scheme": "bearer", "description": "A token of POST /tokens."},
    }
    refusal = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    for path, item in made["paths"].items():
        for operation in item.values():
            for status, said in REFUSALS.items():
                operation["responses"][str(status)] = {"description": said, "content": refusal}
            if not path.startswith(OPEN):
                operation["security"] = [{"browser": []}, {"program": []}]
    return made


log = logging.getLogger(__name__)

DESCRIPTION = """Questions about Microsoft Sentinel, answered with evidence.

Sign in with `POST /sign-in` (a cookie, and an `X-CSRF-Token` with each change) or send a token of `POST /tokens` as
`Authorization: Bearer`. Every refusal has the form of `Refusal`."""


def create_app(web: Web) -> ASGIApp:
    """The API over its parts, which it closes at shutdown."""
    api = create_api(web)
    # Outermost, so that an answer to a fault of ours is sealed like every other.
    return CheckedRequests(api, hosts=web.terms.hosts, secure=web.terms.secure)


def create_api(web: Web) -> FastAPI:
    """The routes alone, for whoever looks at them."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with web.desk.open():
                yield
        finally:
            await web.connections.aclose()
            web.record.close()
            web.people.close()

    app = FastAPI(
        title="Sentinel RAG",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # their pages load scripts from other hosts
        redoc_url=None,
    )
    app.state.web = web
    app.router.redirect_slashes = False
    for router in (
        chat.router,
        conversations.router,
        conversations.reports_router,
        approvals.router,
        gateway.audit_router,
        gateway.policy_router,
        gateway.state_router,
        sign_in.router,
        sign_in.oidc_router,
        sign_in.tokens_router,
        sign_in.users_router,
        gateway.tools_router,
        stores.knowledge_router,
        stores.data_router,
    ):
        app.include_router(router)
    app.include_router(page.page_router(page.load_page(oidc=web.oidc is not None)))
    app.add_api_route("/healthz", _healthz, include_in_schema=False)
    described = functools.cache(functools.partial(document, app, cookie=web.terms.cookie))
    app.openapi = described  # type: ignore[method-assign]  # FastAPI's documented way to say it differently
    app.add_exception_handler(RequestProblem, _problem)
    app.add_exception_handler(SentinelError, _expected)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _broken)
    return app


async def _healthz() -> dict[str, str]:
    return {"status": "ok"}


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestProblem)
    # Whoever comes back from an identity provider, or by a link, has no page of ours yet that could tell it.
    if request.url.path.startswith("/sign-in/") and "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(sign_in.refusal_page(error), error.status, headers=error.headers)
    return error.response()


async def _expected(_: Request, error: Exception) -> Response:
    assert isinstance(error, SentinelError)
    problem = problem_of(error)
    if problem.status >= 500:
        log.error("a request failed: %s %s", error, error.next_step)
    return problem.response()


async def _malformed(_: Request, error: Exception) -> Response:
    """Which fields are wrong, and why; never what stood in them."""
    assert isinstance(error, RequestValidationError)
    found = [wrong_field(each) for each in error.errors()[:20]]
    faults = [{"field": field, "problem": sentence} for field, sentence in found]
    field, sentence = found[0]
    problem = RequestProblem(
        422, "malformed", f"{sentence}.", f"Correct {field} and send it again. GET /openapi.json says what it takes."
    )
    body: dict[str, Any] = {**problem.body(), "problems": faults}
    return JSONResponse(body, 422)


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {
        404: ("not_found", "There is no such route."),
        405: ("method_not_allowed", "This route does not take that method."),
    }
    reason, detail = said.get(error.status_code, ("malformed", "The request could not be read."))
    problem = RequestProblem(error.status_code, reason, detail, "GET /openapi.json lists every route.", error.headers)
    return problem.response()


async def _broken(_: Request, error: Exception) -> Response:
    return RequestProblem(500, "internal", "This surface failed; its log has the details.", "Try again.").response()

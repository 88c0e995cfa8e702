"""Signing in at the identity provider: to it, and back from it. Without one the routes are there and say so."""

from __future__ import annotations

import logging
from functools import partial
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sentinel_rag.surfaces.users import AccountDisabled, Opened
from sentinel_rag.surfaces.web._access import Parts
from sentinel_rag.surfaces.web._oidc import FLOW_S, OidcClient
from sentinel_rag.surfaces.web._parts import Web
from sentinel_rag.surfaces.web._problems import Problem, too_often
from sentinel_rag.surfaces.web.routes.sign_in import page, signed

PATH = "/sign-in/oidc"
COOKIE = "sentinel-oidc"

log = logging.getLogger(__name__)

router = APIRouter(prefix=PATH, tags=["sign-in"])

Text = Annotated[str | None, Query(max_length=2_048)]


@router.get("", status_code=303, response_class=RedirectResponse, summary="Go to the identity provider")
async def begin(request: Request, web: Parts) -> Response:
    client = _client(web)
    begun = await client.begin(_callback(web, request))
    response = RedirectResponse(begun.url, 303)
    response.set_cookie(
        COOKIE,
        begun.binding,
        max_age=int(FLOW_S),
        path=PATH,
        secure=web.terms.secure,
        httponly=True,
        samesite="lax",  # it has to come along when the provider sends the browser back
    )
    return response


@router.get("/callback", response_class=HTMLResponse, summary="Come back from it; sets the cookie")
async def finish(
    request: Request, web: Parts, state: Text = None, code: Text = None, iss: Text = None, error: Text = None
) -> Response:
    client = _client(web)
    given = {"state": state, "code": None if error else code, "iss": iss}
    person = await client.finish(
        {name: text for name, text in given.items() if text is not None}, request.cookies.get(COOKIE, "")
    )
    try:
        account = await anyio.to_thread.run_sync(
            partial(web.people.person_at_provider, person.issuer, person.subject, person.name)
        )
    except AccountDisabled as ended:
        log.warning("a sign-in at the identity provider was refused: the account %s is disabled", ended.name)
        raise Problem(403, ended.code, str(ended), ended.next_step) from None
    if account is None:
        raise Problem(
            403,
            "no_account",
            "The identity provider knows you, and there is no account for you here.",
            f"Ask whoever looks after accounts here: sentinel users add NAME --oidc {person.name}",
        )
    # No redirect: a browser that comes from another site would not send a cookie that is SameSite=Strict along with it.
    welcome = page("Signed in", '<meta http-equiv="refresh" content="0;url=/"><p>Signed in. <a href="/">Go on</a></p>')

    def respond(_: Opened) -> Response:
        response = HTMLResponse(welcome)
        response.delete_cookie(COOKIE, path=PATH, secure=web.terms.secure, httponly=True, samesite="lax")
        return response

    return await signed(web, account, respond)


def _client(web: Web) -> OidcClient:
    if web.oidc is None:
        raise Problem(
            404, "not_found", "No identity provider is set here.", "Sign in with a name and a password: POST /sign-in"
        )
    wait = web.rates.take("oidc", web.limits.all_attempts)
    if wait is not None:
        raise too_often(wait, "attempts to sign in")
    return web.oidc


def _callback(web: Web, request: Request) -> str:
    """Where the provider sends the browser back to; the Host was checked to be ours."""
    return f"{web.terms.public_url or 'http://' + request.headers['host']}{PATH}/callback"

"""Signing in and out: with a name and a password, by the one-time link of a start, and who is signed in."""

from __future__ import annotations

import hashlib
import html
import logging
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Path
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from sentinel_rag.surfaces.users import Account, Opened, check_new_password
from sentinel_rag.surfaces.web._access import Admin, Browser, Parts, SignedIn
from sentinel_rag.surfaces.web._parts import Web
from sentinel_rag.surfaces.web._problems import Problem, too_often
from sentinel_rag.surfaces.web.models import Credentials, NewPassword

log = logging.getLogger(__name__)

router = APIRouter(tags=["sign-in"])

LinkToken = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{20,64}$")]


@router.post("/sign-in", summary="Sign in with a name and a password; sets the cookie")
async def sign_in(body: Credentials, web: Parts) -> Response:
    account = await _checked(web, body.name, body.password)
    return await signed(web, account, lambda opened: JSONResponse(_session(web, account, opened.csrf, opened.ends_at)))


@router.get("/sign-in/once/{token}", response_class=HTMLResponse, summary="The page of the one-time link of a start")
async def once(token: LinkToken, web: Parts) -> Response:
    if not web.owner_links.is_good(token):
        raise _no_link()
    # Opening the page spends nothing: what looks at links ahead of people does not sign in.
    return HTMLResponse(
        page(
            "Sign in",
            "<h1>Sentinel RAG</h1>"
            "<p>This link signs in whoever runs it, once. Everybody else has a name and a password.</p>"
            '<form method="post"><button autofocus>Sign in as the owner of this machine</button></form>',
        )
    )


@router.post("/sign-in/once/{token}", response_class=RedirectResponse, status_code=303, summary="Use that link, once")
async def use_link(token: LinkToken, web: Parts) -> Response:
    if not web.owner_links.use(token):
        raise _no_link()
    account = await anyio.to_thread.run_sync(web.people.add_owner)
    return await signed(web, account, lambda _: RedirectResponse("/", 303))


@router.get("/users", summary="Who may sign in, with what they may do")
async def users(_: Admin, web: Parts) -> dict[str, Any]:
    found = await anyio.to_thread.run_sync(web.people.list)
    return {"users": [each.to_dict() for each in found]}


@router.get("/session", summary="Who is signed in, and the token that changes need")
async def session(sign_in: SignedIn, web: Parts) -> dict[str, Any]:
    return _session(web, sign_in.account, None if sign_in.program else sign_in.csrf, sign_in.ends_at)


@router.delete("/session", status_code=204, summary="Sign out")
async def sign_out(sign_in: SignedIn, web: Parts) -> Response:
    await anyio.to_thread.run_sync(partial(web.people.sign_ins.end, sign_in.account.user_id, sign_in.sign_in_id))
    return Response(status_code=204) if sign_in.program else _without_cookie(web)


@router.delete("/sessions", status_code=204, summary="Sign out everywhere: every browser of yours, this one too")
async def sign_out_everywhere(sign_in: Browser, web: Parts) -> Response:
    await anyio.to_thread.run_sync(web.people.sign_ins.end_browsers, sign_in.account.user_id)
    return _without_cookie(web)


@router.put("/password", status_code=204, summary="Change your password; every other sign-in ends")
async def change_password(body: NewPassword, sign_in: Browser, web: Parts) -> Response:
    account = await _checked(web, sign_in.account.name, body.password)
    check_new_password(body.new_password, account.name)
    hashed = await anyio.to_thread.run_sync(web.passwords.hash, body.new_password, limiter=web.hashing)
    await anyio.to_thread.run_sync(partial(web.people.set_password, account.user_id, hashed))
    return await signed(web, account, lambda _: Response(status_code=204))


async def signed(web: Web, account: Account, respond: Callable[[Opened], Response]) -> Response:
    """The response to a person who has just signed in, with the cookie."""
    terms = web.terms
    opened = await anyio.to_thread.run_sync(
        partial(web.people.sign_ins.begin, account.user_id, lasts=terms.lasts, idle=terms.idle)
    )
    log.info("signed in: %s", account.name)
    response = respond(opened)
    response.set_cookie(
        terms.cookie,
        opened.token,
        max_age=int(terms.lasts.total_seconds()),
        path="/",
        secure=terms.secure,
        httponly=True,
        samesite="strict",
    )
    return response


def page(title: str, body: str) -> str:
    """A page of this surface's own, which loads nothing. `body` is HTML that is safe already."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<body>{body}</body></html>"
    )


def refusal_page(problem: Problem) -> str:
    """What went wrong with a sign-in, to somebody whose browser shows a page."""
    said = "".join(f"<p>{html.escape(text)}</p>" for text in (problem.detail, problem.next_step) if text)
    return page("Not signed in", f'<h1>Not signed in</h1>{said}<p><a href="/">Sign in</a></p>')


async def _checked(web: Web, name: str, password: str) -> Account:
    """The account that name and password are of. Raises Problem 401, or 429 for too many attempts."""
    # By a digest of the name, so that no name of any length fills the memory of meters.
    place = "attempt/" + hashlib.sha256(name.strip().lower().encode("utf-8", "replace")).hexdigest()
    for rate, of in ((web.limits.all_attempts, "attempts"), (web.limits.attempts, place)):
        wait = web.rates.take(of, rate)
        if wait is not None:
            raise too_often(wait, "attempts to sign in")
    found = await anyio.to_thread.run_sync(web.people.password_of, name)
    stored = None if found is None else found[1]
    right = await anyio.to_thread.run_sync(web.passwords.is_right, stored, password, limiter=web.hashing)
    if not right or found is None:
        log.warning("a sign-in failed")  # whose is not told: people type passwords where the name belongs
        raise Problem(
            401,
            "wrong_credentials",
            "There is no such name with this password.",
            "Check both; a forgotten password is set anew by: sentinel users reset NAME",
        )
    account = found[0]
    if stored is not None and web.passwords.is_weaker(stored):
        hashed = await anyio.to_thread.run_sync(web.passwords.hash, password, limiter=web.hashing)
        await anyio.to_thread.run_sync(partial(web.people.set_password, account.user_id, hashed, keep_sign_ins=True))
    return account


def _without_cookie(web: Web) -> Response:
    response = Response(status_code=204)
    response.delete_cookie(web.terms.cookie, path="/", secure=web.terms.secure, httponly=True, samesite="strict")
    return response


def _no_link() -> Problem:
    return Problem(
        404, "not_found", "There is no such link, or it was used or is over.", "For a new one run: sentinel users link"
    )


def _session(web: Web, account: Account, csrf: str | None, ends_at: str) -> dict[str, Any]:
    return {
        "name": account.name,
        "roles": sorted(account.roles),
        "groups": list(account.groups),
        "clearance": account.clearance.name,
        "has_password": account.has_password,
        "workspaces": list(web.workspaces),
        "csrf_token": csrf,
        "ends_at": ends_at,
    }

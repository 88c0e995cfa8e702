"""Routes of signing in and out (by password, by a link, at an identity provider), of tokens, and of the accounts.

The gateway makes each person's key with the key of who asks, and gives nothing that this admin does not have; nobody
changes an account of their own here. A password is chosen by its person, by an invitation that works once.
"""

from __future__ import annotations

import hashlib
import html
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import anyio.from_thread
import anyio.to_thread
from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import (
    Account,
    AccountChanges,
    AccountDisabled,
    AccountTerms,
    Opened,
    Role,
    SignIn,
    check_new_password,
)
from sentinel_rag.surfaces.web._clients import Gateway
from sentinel_rag.surfaces.web._oidc import FLOW_S, OidcClient
from sentinel_rag.surfaces.web._parts import Admin, Browser, Parts, SignedIn, Web
from sentinel_rag.surfaces.web._problems import RequestProblem, not_found, too_often
from sentinel_rag.surfaces.web.models import Accepted, Credentials, GivenTerms, NewAccount, NewPassword, NewToken

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


@router.post("/sign-in/invitation", summary="Choose a password with an invitation, once; sets the cookie")
async def accept(body: Accepted, web: Parts) -> Response:
    wait = web.rates.take("invitation", web.limits.all_attempts)
    if wait is not None:
        raise too_often(wait, "attempts to sign in")
    account = await anyio.to_thread.run_sync(web.people.sign_ins.invited, body.token)
    if account is not None:
        check_new_password(body.password, account.name)
        hashed = await anyio.to_thread.run_sync(web.passwords.hash, body.password, limiter=web.hashing)
        if not await anyio.to_thread.run_sync(web.people.accept, body.token, hashed):
            account = None
    if account is None:
        raise RequestProblem(
            404,
            "not_found",
            "There is no such invitation, or it was used or is over.",
            "Ask who gave it for a new one.",
        )
    chosen = replace(account, has_password=True)
    return await signed(web, account, lambda opened: JSONResponse(_session(web, chosen, opened.csrf, opened.ends_at)))


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


def refusal_page(problem: RequestProblem) -> str:
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
        raise RequestProblem(
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


def _no_link() -> RequestProblem:
    return RequestProblem(
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
        "stores": web.stores.to_dict() if web.stores is not None and Role.ADMIN in account.roles else None,
        "csrf_token": csrf,
        "ends_at": ends_at,
    }


OIDC_PATH = "/sign-in/oidc"
OIDC_COOKIE = "sentinel-oidc"

oidc_router = APIRouter(prefix=OIDC_PATH, tags=["sign-in"])

Text = Annotated[str | None, Query(max_length=2_048)]


@oidc_router.get("", status_code=303, response_class=RedirectResponse, summary="Go to the identity provider")
async def begin(request: Request, web: Parts) -> Response:
    client = _client(web)
    begun = await client.begin(_callback(web, request))
    response = RedirectResponse(begun.url, 303)
    response.set_cookie(
        OIDC_COOKIE,
        begun.binding,
        max_age=int(FLOW_S),
        path=OIDC_PATH,
        secure=web.terms.secure,
        httponly=True,
        samesite="lax",  # it has to come along when the provider sends the browser back
    )
    return response


@oidc_router.get("/callback", response_class=HTMLResponse, summary="Come back from it; sets the cookie")
async def finish(
    request: Request, web: Parts, state: Text = None, code: Text = None, iss: Text = None, error: Text = None
) -> Response:
    client = _client(web)
    given = {"state": state, "code": None if error else code, "iss": iss}
    person = await client.finish(
        {name: text for name, text in given.items() if text is not None}, request.cookies.get(OIDC_COOKIE, "")
    )
    try:
        account = await anyio.to_thread.run_sync(
            partial(web.people.person_at_provider, person.issuer, person.subject, person.name)
        )
    except AccountDisabled as ended:
        log.warning("a sign-in at the identity provider was refused: the account %s is disabled", ended.name)
        raise RequestProblem(403, ended.code, str(ended), ended.next_step) from None
    if account is None:
        raise RequestProblem(
            403,
            "no_account",
            "The identity provider knows you, and there is no account for you here.",
            f"Ask whoever looks after accounts here: sentinel users add NAME --oidc {person.name}",
        )
    # No redirect: a browser that comes from another site would not send a cookie that is SameSite=Strict along with it.
    welcome = page("Signed in", '<meta http-equiv="refresh" content="0;url=/"><p>Signed in. <a href="/">Go on</a></p>')

    def respond(_: Opened) -> Response:
        response = HTMLResponse(welcome)
        response.delete_cookie(OIDC_COOKIE, path=OIDC_PATH, secure=web.terms.secure, httponly=True, samesite="lax")
        return response

    return await signed(web, account, respond)


def _client(web: Web) -> OidcClient:
    if web.oidc is None:
        raise RequestProblem(
            404, "not_found", "No identity provider is set here.", "Sign in with a name and a password: POST /sign-in"
        )
    wait = web.rates.take("oidc", web.limits.all_attempts)
    if wait is not None:
        raise too_often(wait, "attempts to sign in")
    return web.oidc


def _callback(web: Web, request: Request) -> str:
    """Where the provider sends the browser back to; the Host was checked to be ours."""
    return f"{web.terms.public_url or 'http://' + request.headers['host']}{OIDC_PATH}/callback"


tokens_router = APIRouter(prefix="/tokens", tags=["tokens"])

TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


@tokens_router.get("", summary="Your tokens, without their texts")
async def list_all(sign_in: Browser, web: Parts) -> dict[str, Any]:
    return await tokens_of(web, sign_in.account)


@tokens_router.post("", status_code=201, summary="Make a token; its text is shown this once")
async def create(body: NewToken, sign_in: Browser, web: Parts) -> dict[str, Any]:
    opened = await anyio.to_thread.run_sync(
        partial(
            web.people.sign_ins.begin,
            sign_in.account.user_id,
            lasts=timedelta(days=body.days),
            program=True,
            name=body.name,
        )
    )
    return {"token_id": opened.sign_in_id, "name": body.name, "token": opened.token, "ends_at": opened.ends_at}


@tokens_router.delete("/{token_id}", status_code=204, summary="End a token")
async def end(token_id: TokenId, sign_in: Browser, web: Parts) -> Response:
    return await end_token(web, sign_in.account, token_id)


async def tokens_of(web: Web, account: Account) -> dict[str, Any]:
    """The account's tokens, without their texts."""
    found = await anyio.to_thread.run_sync(web.people.sign_ins.tokens, account.user_id)
    return {
        "tokens": [
            {
                "token_id": each.sign_in_id,
                "name": each.name,
                "created_at": each.created_at,
                "used_at": each.used_at,
                "ends_at": each.ends_at,
            }
            for each in found
        ]
    }


async def end_token(web: Web, account: Account, token_id: str) -> Response:
    """End a token of that account. Raises Problem 404."""
    found = await anyio.to_thread.run_sync(web.people.sign_ins.tokens, account.user_id)
    if token_id not in {each.sign_in_id for each in found}:
        raise not_found("token")
    await anyio.to_thread.run_sync(partial(web.people.sign_ins.end, account.user_id, token_id))
    return Response(status_code=204)


users_router = APIRouter(prefix="/users", tags=["users"])

Name = Annotated[str, Path(min_length=1, max_length=64)]
INVITATION_LASTS = timedelta(days=3)


async def admin_at_browser(sign_in: Admin, _: Browser) -> SignIn:
    """An admin, and no program of theirs: a token that leaked changes no account."""
    return sign_in


AdminAtBrowser = Annotated[SignIn, Depends(admin_at_browser)]


@users_router.get("", summary="Who may sign in, with what they may do")
async def all_users(_: Admin, web: Parts) -> dict[str, Any]:
    found = await anyio.to_thread.run_sync(web.people.list)
    return {"users": [each.to_dict() for each in found]}


@users_router.post("", status_code=201, summary="Make an account; its person chooses a password by the invitation")
async def add(body: NewAccount, sign_in: AdminAtBrowser, web: Parts) -> dict[str, Any]:
    account = await _changed(
        web, sign_in, "made", lambda made: made.add(body.name, _terms(body), password=None, oidc_name=body.oidc)
    )
    return {"user": account.to_dict(), "invitation": None if body.oidc else await _invitation(web, account)}


@users_router.put("/{name}", summary="Give an account other roles, with a key that has them; it is live then")
async def change(name: Name, body: GivenTerms, sign_in: AdminAtBrowser, web: Parts) -> dict[str, Any]:
    _not_own(sign_in, name)
    account = await _changed(web, sign_in, "changed", lambda made: made.change(name, _terms(body)))
    return {"user": account.to_dict()}


@users_router.delete("/{name}", summary="Disable an account: its sign-ins, tokens and key end at once")
async def disable(name: Name, sign_in: AdminAtBrowser, web: Parts) -> dict[str, Any]:
    _not_own(sign_in, name)
    account = await _changed(web, sign_in, "disabled", lambda made: made.disable(name))
    return {"user": account.to_dict()}


@users_router.post("/{name}/reset", summary="End the password and every sign-in; the person chooses another one")
async def reset(name: Name, sign_in: AdminAtBrowser, web: Parts) -> dict[str, Any]:
    _not_own(sign_in, name)
    account = await _changed(web, sign_in, "reset", lambda made: made.reset(name, None))
    return {"user": account.to_dict(), "invitation": await _invitation(web, account)}


@users_router.get("/{name}/tokens", summary="The tokens of an account, without their texts")
async def tokens_of_user(name: Name, _: AdminAtBrowser, web: Parts) -> dict[str, Any]:
    return await tokens_of(web, await anyio.to_thread.run_sync(web.people.find, name))


@users_router.delete("/{name}/tokens/{token_id}", status_code=204, summary="End a token of an account")
async def revoke(name: Name, token_id: TokenId, sign_in: AdminAtBrowser, web: Parts) -> Response:
    account = await anyio.to_thread.run_sync(web.people.find, name)
    log.info("a token of %s was revoked by %s", account.name, sign_in.account.name)
    return await end_token(web, account, token_id)


@dataclass(frozen=True, slots=True)
class _KeysAtGateway:
    """People's keys, changed at the gateway with the key of who asks; for a worker thread."""

    gateway: Gateway
    key: str

    def make(
        self, name: str, scopes: Collection[Scope], clearance: Sensitivity, readers: Collection[str], replaces: str
    ) -> tuple[str, str]:
        terms = {"name": name, "scopes": sorted(scopes), "clearance": clearance.name, "readers": list(readers)}
        made = self._ask("POST", "/v1/keys", {**terms, "replaces": replaces or None})
        return str(made["key"]), str(made["key_id"])

    def rotate(self, key_id: str) -> str | None:
        return str(self._ask("POST", f"/v1/keys/{key_id}/rotate")["key"])

    def end(self, key_id: str) -> None:
        self._ask("DELETE", f"/v1/keys/{key_id}")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        return anyio.from_thread.run(self.gateway.ask, self.key, method, path, body)


async def _changed(web: Web, sign_in: SignIn, what: str, change: Callable[[AccountChanges], Account]) -> Account:
    key = await web.key_of(sign_in.account, Scope.ADMIN)
    changes = AccountChanges(web.people, _KeysAtGateway(web.gateway, key))
    account = await anyio.to_thread.run_sync(partial(change, changes), limiter=web.changing)
    log.info("the account %s was %s by %s", account.name, what, sign_in.account.name)
    return account


async def _invitation(web: Web, account: Account) -> dict[str, str]:
    opened = await anyio.to_thread.run_sync(
        partial(web.people.sign_ins.invite, account.user_id, lasts=INVITATION_LASTS)
    )
    return {"token": opened.token, "ends_at": opened.ends_at}


def _not_own(sign_in: SignIn, name: str) -> None:
    if name.strip().lower() == sign_in.account.name:
        raise RequestProblem(
            403, "own_account", "Nobody changes their own account here.", "Another admin can, or: sentinel users change"
        )


def _terms(given: GivenTerms) -> AccountTerms:
    return AccountTerms(frozenset(given.roles), Sensitivity[given.clearance], tuple(given.groups))

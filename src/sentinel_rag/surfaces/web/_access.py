"""Who asks: the sign-in of a request, and what its account lets it do.

A browser shows its cookie and, with each change, the token that its page was given, which no other site's page knows; a
program shows a token of its own as `Authorization: Bearer`. Roles are asked here only to answer early and plainly: the
person's key at the gateway has no more scopes than they name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from hmac import compare_digest
from typing import Annotated

import anyio.to_thread
from fastapi import Depends, Request

from sentinel_rag.surfaces.users import Role, SignIn
from sentinel_rag.surfaces.web._parts import Web
from sentinel_rag.surfaces.web._problems import Problem, too_often

CSRF_HEADER = "x-csrf-token"
READING = frozenset({"GET", "HEAD"})
WAITS = "mark"
"""The parameter of requests that a page sends by itself, to hear of a change: nobody need be there."""


async def web_of(request: Request) -> Web:
    """The parts of the surface that serves this request."""
    web: Web = request.app.state.web
    return web


Parts = Annotated[Web, Depends(web_of)]


async def signed_in(request: Request, web: Parts) -> SignIn:
    """The sign-in of this request. Raises Problem 401, 403 or 429."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    program = scheme.lower() == "bearer"
    given = token.strip() if program else request.cookies.get(web.terms.cookie, "")
    found = None
    if given:
        uses = WAITS not in request.query_params
        found = await anyio.to_thread.run_sync(partial(web.people.sign_ins.check, given, program=program, uses=uses))
    if found is None:
        raise Problem(
            401,
            "unauthenticated",
            "You are not signed in, or no longer.",
            "POST /sign-in, or send a token as Authorization: Bearer ...",
            {"WWW-Authenticate": "Bearer"},
        )
    if not program and request.method not in READING:
        shown = request.headers.get(CSRF_HEADER, "")
        if not compare_digest(shown.encode("utf-8", "replace"), found.csrf.encode()):
            raise Problem(403, "csrf", "This change did not come from your page.", "Send X-CSRF-Token of GET /session.")
    wait = web.rates.take(found.account.user_id, web.limits.requests)
    if wait is not None:
        raise too_often(wait, "requests")
    return found


SignedIn = Annotated[SignIn, Depends(signed_in)]


def _with_role(role: Role, *others: Role) -> Callable[[SignIn], Awaitable[SignIn]]:
    async def check(sign_in: SignedIn) -> SignIn:
        if sign_in.account.roles.isdisjoint((role, *others)):
            raise Problem(
                403,
                "missing_role",
                f"This is for people with the role {role.value}.",
                f"Whoever looks after accounts here can give it: sentinel users change "
                f"{sign_in.account.name} --role {role.value} ...",
            )
        return sign_in

    return check


Analyst = Annotated[SignIn, Depends(_with_role(Role.ANALYST))]
Approver = Annotated[SignIn, Depends(_with_role(Role.APPROVER))]
Decider = Annotated[SignIn, Depends(_with_role(Role.APPROVER, Role.ANALYST))]
"""Who decides about calls of others, or confirms those of their own conversations."""
Auditor = Annotated[SignIn, Depends(_with_role(Role.AUDITOR))]
Admin = Annotated[SignIn, Depends(_with_role(Role.ADMIN))]


async def browser(sign_in: SignedIn) -> SignIn:
    """A sign-in of a person at a browser: a program's token makes no tokens and changes no password."""
    if sign_in.program:
        raise Problem(403, "browser_only", "A program's token may not do this.", "Sign in at a browser for it.")
    return sign_in


Browser = Annotated[SignIn, Depends(browser)]

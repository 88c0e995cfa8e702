"""What the routes work with: the parts of the surface, its bounds, and who asks.

A browser shows its cookie and, with each change, the token that its page was given, which no other site's page knows; a
program shows a token of its own as `Authorization: Bearer`. Roles are asked here only to answer early and plainly: the
person's key at the gateway has no more scopes than they name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Annotated
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from fastapi import Depends, Request

from sentinel_rag.audit import Verification
from sentinel_rag.contracts.servers import LOOPBACK_NAMES, bearer_token, same_secret
from sentinel_rag.gateway.admission import RateLimiter
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import Account, OwnerLinks, Passwords, Role, SignIn, UserStore
from sentinel_rag.surfaces.web._clients import Agent, Connections, Gateway, Looks
from sentinel_rag.surfaces.web._oidc import OidcClient
from sentinel_rag.surfaces.web._problems import RequestProblem, too_often
from sentinel_rag.surfaces.web._stores import FilledStores
from sentinel_rag.surfaces.web.turns import ConversationRecord, TurnService

_REQUESTS, _QUESTIONS = Rate(600, 60.0), Rate(30, 60.0)
_ATTEMPTS, _ALL_ATTEMPTS = Rate(10, 300.0), Rate(60, 60.0)


@dataclass(frozen=True, slots=True)
class PersonLimits:
    """Rates of one person, and of sign-in attempts: for one name, and for all names together."""

    requests: Rate = _REQUESTS
    questions: Rate = _QUESTIONS
    attempts: Rate = _ATTEMPTS
    all_attempts: Rate = _ALL_ATTEMPTS
    streams: int = 20
    """Answers that one person may be following at once."""


@dataclass(frozen=True, slots=True)
class SignInTerms:
    """`public_url` is where people reach this API if that is not loopback, through a proxy with TLS; cookies are then
    sent over TLS alone. A browser's sign-in ends after `lasts`, or when it was not used for `idle`."""

    public_url: str | None = None
    lasts: timedelta = timedelta(hours=12)
    idle: timedelta = timedelta(hours=2)

    @property
    def secure(self) -> bool:
        return self.public_url is not None and self.public_url.startswith("https://")

    @property
    def hosts(self) -> Collection[str]:
        """The names that this API goes by."""
        if self.public_url is None:
            return LOOPBACK_NAMES
        return LOOPBACK_NAMES | {urlsplit(self.public_url).hostname or ""}

    @property
    def cookie(self) -> str:
        """The name of the cookie; the prefix lets a browser take it over TLS from this very host alone."""
        return "__Host-sentinel" if self.secure else "sentinel"


@dataclass(slots=True)
class Web:
    """The parts of one surface. `owner_keys` are this run's keys, by scope, for whoever started it, and
    `owner_links` the links that sign that person in. `verify` checks the journal. `workspaces` are the names that
    questions may go to, the default one first."""

    people: UserStore
    passwords: Passwords
    record: ConversationRecord
    desk: TurnService
    agent: Agent
    gateway: Gateway
    owner_keys: Mapping[Scope, str]
    owner_links: OwnerLinks
    terms: SignInTerms
    limits: PersonLimits
    rates: RateLimiter
    connections: Connections
    verify: Callable[[], Verification]
    oidc: OidcClient | None = None
    stores: FilledStores | None = None
    workspaces: tuple[str, ...] = ()
    hashing: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(2))
    verifying: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))
    changing: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))
    """One change of an account after the other: two at once would leave it a key that works no more, or two."""
    streams: dict[str, int] = field(default_factory=dict)
    looks: Looks = field(init=False)

    def __post_init__(self) -> None:
        self.looks = Looks(self.gateway, monotonic)

    async def names(self) -> dict[str, str]:
        """Names of the accounts by the ids of their keys."""
        return {each.key_id: each.name for each in await anyio.to_thread.run_sync(self.people.list) if each.key_id}

    async def key_of(self, account: Account, scope: Scope) -> str:
        """The person's key at the gateway. Raises Problem for an account that has none."""
        if account.key_id:
            key = await anyio.to_thread.run_sync(self.people.gateway_key, account.user_id)
        else:
            key = self.owner_keys.get(scope)
        if key is None:
            raise RequestProblem(403, "missing_role", "This account has no key at the gateway.", "Ask who made it.")
        return key


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
    token = bearer_token(request.headers.get("authorization", ""))
    program = bool(token)
    given = token or request.cookies.get(web.terms.cookie, "")
    found = None
    if given:
        uses = WAITS not in request.query_params
        found = await anyio.to_thread.run_sync(partial(web.people.sign_ins.check, given, program=program, uses=uses))
    if found is None:
        raise RequestProblem(
            401,
            "unauthenticated",
            "You are not signed in, or no longer.",
            "POST /sign-in, or send a token as Authorization: Bearer ...",
            {"WWW-Authenticate": "Bearer"},
        )
    changes = not program and request.method not in READING
    if changes and not same_secret(request.headers.get(CSRF_HEADER, ""), found.csrf):
        raise RequestProblem(
            403, "csrf", "This change did not come from your page.", "Send X-CSRF-Token of GET /session."
        )
    wait = web.rates.take(found.account.user_id, web.limits.requests)
    if wait is not None:
        raise too_often(wait, "requests")
    return found


SignedIn = Annotated[SignIn, Depends(signed_in)]


def _with_role(role: Role, *others: Role) -> Callable[[SignIn], Awaitable[SignIn]]:
    async def check(sign_in: SignedIn) -> SignIn:
        if sign_in.account.roles.isdisjoint((role, *others)):
            raise RequestProblem(
                403,
                "missing_role",
                f"This is for people with the role {role.value}.",
                f"Whoever looks after accounts here can give it: sentinel users change "
                f"{sign_in.account.name} --role {role.value} ...",
            )
        return sign_in

    return check


Analyst = Annotated[SignIn, Depends(_with_role(Role.ANALYST))]
Decider = Annotated[SignIn, Depends(_with_role(Role.APPROVER, Role.ANALYST))]
"""Who decides about calls of others, or confirms those of their own conversations."""
Auditor = Annotated[SignIn, Depends(_with_role(Role.AUDITOR))]
admin = _with_role(Role.ADMIN)
Admin = Annotated[SignIn, Depends(admin)]
Lead = Annotated[SignIn, Depends(_with_role(Role.APPROVER, Role.ADMIN))]
"""Who answers for the work of others: sees figures of it, and none of its words."""


async def browser(sign_in: SignedIn) -> SignIn:
    """A sign-in of a person at a browser: a program's token makes no tokens and changes no password."""
    if sign_in.program:
        raise RequestProblem(403, "browser_only", "A program's token may not do this.", "Sign in at a browser for it.")
    return sign_in


Browser = Annotated[SignIn, Depends(browser)]

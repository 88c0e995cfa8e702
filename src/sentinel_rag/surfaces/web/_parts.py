"""What the routes work with, and the bounds that they hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from sentinel_rag.audit import Verification
from sentinel_rag.contracts.loopback import LOOPBACK_NAMES
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.rates import RateLimiter
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import Account, OwnerLinks, Passwords, UserStore
from sentinel_rag.surfaces.web._agent import Agent
from sentinel_rag.surfaces.web._connections import Connections
from sentinel_rag.surfaces.web._gateway import Gateway
from sentinel_rag.surfaces.web._looks import Looks
from sentinel_rag.surfaces.web._oidc import OidcClient
from sentinel_rag.surfaces.web._problems import Problem
from sentinel_rag.surfaces.web.turns import ConversationRecord, TurnService

_REQUESTS, _QUESTIONS = Rate(600, 60.0), Rate(30, 60.0)
_ATTEMPTS, _ALL_ATTEMPTS = Rate(10, 300.0), Rate(60, 60.0)


@dataclass(frozen=True, slots=True)
class Limits:
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
    limits: Limits
    rates: RateLimiter
    connections: Connections
    verify: Callable[[], Verification]
    oidc: OidcClient | None = None
    workspaces: tuple[str, ...] = ()
    hashing: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(2))
    verifying: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))
    streams: dict[str, int] = field(default_factory=dict)
    looks: Looks = field(init=False)

    def __post_init__(self) -> None:
        self.looks = Looks(self.gateway, monotonic)

    async def key_of(self, account: Account, scope: Scope) -> str:
        """The person's key at the gateway. Raises Problem for an account that has none."""
        if account.key_id:
            key = await anyio.to_thread.run_sync(self.people.gateway_key, account.user_id)
        else:
            key = self.owner_keys.get(scope)
        if key is None:
            raise Problem(403, "missing_role", "This account has no key at the gateway.", "Ask who made it.")
        return key

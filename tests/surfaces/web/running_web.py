"""The web surface on loopback, over a running gateway and an agent's HTTP face with an `ObedientAnalyst`.

For tests of surfaces: real sockets between all parts, accounts with real keys at the gateway, and a clock that a test
may set forward.

    with running_web(gateway, folder) as web:
        dana = web.browser("dana")
        answer = dana.post("/chat", {"message": "say hello"})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from argon2 import PasswordHasher
from tests.support.obedient_analyst import ObedientAnalyst
from tests.support.web_client import Client, signed_in

from sentinel_rag.audit import JournalReader
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.admission import RateLimiter
from sentinel_rag.gateway.store import Scope
from sentinel_rag.storage import Records
from sentinel_rag.surfaces.http import create_app as create_agent_app
from sentinel_rag.surfaces.users import Account, AccountTerms, OwnerLinks, Passwords, Role, UserStore, scopes_of
from sentinel_rag.surfaces.web import (
    Agent,
    Connections,
    FilledStores,
    Gateway,
    OidcClient,
    PersonLimits,
    Provider,
    SignInTerms,
    Web,
    create_app,
)
from sentinel_rag.surfaces.web.turns import ConversationRecord, RunningTurns, TurnService
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import RunningGateway
from waiting import WAIT_S

AGENT_TOKEN = "a-surface-token-of-the-tests"  # of servers that live for one test
MODEL = "a model of the tests"
PASSWORD = "four words for {name} alone"
OWNER_SECRET = "the secret of the owner's links in these tests"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@dataclass(slots=True)
class MovableClock:
    """The real time, set forward by as much as a test wants."""

    ahead: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return utc_now() + self.ahead

    def seconds(self) -> float:
        return self().timestamp()


@dataclass(slots=True)
class RunningWeb:
    """The surface at `url`, and what lies around it."""

    url: str
    web: Web
    gateway: RunningGateway
    analyst: ObedientAnalyst
    clock: MovableClock
    agent_key_id: str
    accounts: dict[str, Account] = field(default_factory=dict)
    browsers: dict[str, Client] = field(default_factory=dict)

    def add(
        self, name: str, *roles: Role, clearance: Sensitivity = Sensitivity.HIGH, oidc_name: str | None = None
    ) -> Account:
        """An account with a key of its own; an analyst unless roles are given."""
        given = roles or (Role.ANALYST,)
        scopes = scopes_of(given)
        key, info = self.gateway.state.keys.create(
            scopes, name=name, clearance=clearance, for_key=self.agent_key_id if Scope.USER in scopes else None
        )
        account = self.web.people.add(
            name,
            AccountTerms(frozenset(given), clearance),
            password=None if oidc_name else self.web.passwords.hash(password_of(name)),
            oidc_name=oidc_name,
            key=key,
            key_id=info.key_id,
        )
        self.accounts[name] = account
        return account

    def stranger(self) -> Client:
        """Somebody who is not signed in."""
        return Client(self.url)

    def browser(self, name: str, *roles: Role, clearance: Sensitivity = Sensitivity.HIGH) -> Client:
        """The person of that name at a browser, signed in; the account is made if there is none."""
        if name not in self.accounts:
            self.add(name, *roles, clearance=clearance)
        answer = self.stranger().post("/sign-in", {"name": name, "password": password_of(name)})
        assert answer.status == 200, answer.content
        return signed_in(self.url, answer)

    def stranger_as(self, name: str, password: str) -> Client:
        """Whoever signs in with that name and password."""
        return signed_in(self.url, self.stranger().post("/sign-in", {"name": name, "password": password}))

    def person(self, name: str, *roles: Role) -> Client:
        """The browser at which the person of that name signed in before, or signs in now."""
        if name not in self.browsers:
            self.browsers[name] = self.browser(name, *roles)
        return self.browsers[name]

    def program(self, browser: Client, name: str = "a program") -> Client:
        """A program of the person at `browser`."""
        return Client(self.url, token=browser.post("/tokens", {"name": name}).body["token"])


def password_of(name: str) -> str:
    """The password of the test's account of that name."""
    return PASSWORD.format(name=name[::-1])


@contextmanager
def running_web(
    gateway: RunningGateway,
    folder: Path,
    *,
    limits: PersonLimits | None = None,
    turn_limits: RunningTurns | None = None,
    terms: SignInTerms | None = None,
    provider: Provider | None = None,
    people: Records | None = None,
    turns: Records | None = None,
    stores: Callable[[Connections], FilledStores] | None = None,
) -> Iterator[RunningWeb]:
    """Serve the surface with its files in `folder`, or its records elsewhere; people may sign in at `provider` too."""
    clock = MovableClock()
    keys = gateway.state.keys
    agent = next(info for info in keys.list() if info.name == "caller")
    owner_keys = {
        scope: keys.create([scope], name=f"owner {scope}", for_key=agent.key_id if scope is Scope.USER else None)[0]
        for scope in Scope
    }
    analyst = ObedientAnalyst(gateway.url, gateway.key)
    face = create_agent_app(analyst, token=AGENT_TOKEN, question_timeout_s=WAIT_S, model=MODEL, close=analyst.aclose)
    with serve(face) as agent_url:
        connections = Connections()
        record = ConversationRecord(folder / "conversations.sqlite", clock=clock, records=turns)
        to_agent, to_gateway = Agent(agent_url, AGENT_TOKEN, connections), Gateway(gateway.url, connections)
        web = Web(
            people=UserStore(folder / "people", clock=clock, records=people),
            passwords=Passwords(CHEAP),
            record=record,
            desk=TurnService(record, to_agent, to_gateway, limits=turn_limits),
            agent=to_agent,
            gateway=to_gateway,
            owner_keys=owner_keys,
            owner_links=OwnerLinks(OWNER_SECRET, clock),
            terms=terms or SignInTerms(),
            limits=limits or PersonLimits(),
            rates=RateLimiter(clock.seconds),
            connections=connections,
            verify=JournalReader(gateway.state.database.path).verify,
            oidc=None if provider is None else OidcClient(provider, connections, clock.seconds),
            workspaces=("main", "emea"),
            stores=None if stores is None else stores(connections),
        )
        with serve(create_app(web)) as url:
            yield RunningWeb(url, web, gateway, analyst, clock, agent.key_id)

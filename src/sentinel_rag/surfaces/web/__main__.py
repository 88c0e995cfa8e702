"""The web surface's process; started by the supervisor (`sentinel up --web`), never by hand."""

import sys
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from sentinel_rag.app.places import journal_check, people_database, record_schema
from sentinel_rag.app.serving import begin_zone, fail_to_start, serve
from sentinel_rag.app.tls import trusting
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.admission import RateLimiter
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import OwnerLinks, Passwords, UserStore
from sentinel_rag.surfaces.users.store import MIGRATIONS as PEOPLE_TABLES
from sentinel_rag.surfaces.web import (
    Agent,
    Connections,
    FilledStores,
    Gateway,
    OidcClient,
    PersonLimits,
    Provider,
    SignInTerms,
    StoreZone,
    Web,
    create_app,
)
from sentinel_rag.surfaces.web.turns import ConversationRecord, TurnService
from sentinel_rag.surfaces.web.turns.record import MIGRATIONS as TURN_TABLES

OWNER_KEYS = {Scope.USER: "user", Scope.APPROVE: "approver", Scope.AUDIT: "audit", Scope.ADMIN: "admin"}


def main() -> None:
    configuration = begin_zone("web")
    try:
        serve(create_app(_web(configuration)), int(sys.argv[1]), tls=configuration.get("tls"))
    except SentinelError as error:
        fail_to_start(error)


def _web(configuration: Mapping[str, Any]) -> Web:
    file, provider = configuration["record"], configuration["oidc"]
    connections = Connections(trusting(configuration.get("authorities"), beside_the_systems=True))
    database = people_database(configuration["database"])
    asked = None if file is None else record_schema(database, "turns", TURN_TABLES, what="The record of conversations")
    record = ConversationRecord(
        None if file is None else Path(file), clock=utc_now, keep_days=configuration["keep_days"], records=asked
    )
    accounts = record_schema(database, "people", PEOPLE_TABLES, what="The accounts")
    keys = configuration["owner_keys"]
    stores = configuration["stores"]
    agent = Agent(configuration["agent_url"], configuration["agent_token"], connections)
    gateway = Gateway(configuration["gateway_url"], connections)
    return Web(
        people=UserStore(Path(configuration["people"]), clock=utc_now, records=accounts),
        passwords=Passwords(),
        record=record,
        desk=TurnService(record, agent, gateway),
        agent=agent,
        gateway=gateway,
        owner_keys={scope: keys[key_id] for scope, key_id in OWNER_KEYS.items() if key_id in keys},
        owner_links=OwnerLinks(configuration["owner_secret"], utc_now),
        terms=SignInTerms(public_url=configuration["public_url"]),
        limits=PersonLimits(),
        rates=RateLimiter(monotonic),
        connections=connections,
        verify=journal_check(configuration),
        oidc=None if provider is None else OidcClient(Provider(**provider), connections, monotonic),
        workspaces=tuple(configuration["workspaces"]),
        stores=None
        if stores is None
        else FilledStores(
            Path(stores["folder"]),
            connections,
            knowledge=StoreZone(**stores["knowledge"]),
            workspaces={name: StoreZone(**zone) for name, zone in stores["workspaces"].items()},
        ),
    )


main()

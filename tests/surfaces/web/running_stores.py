"""The zones that own stores, as the product builds them: a workspace and a knowledge base in folders of their own."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from sentinel_rag.app.plan import Ports, plan_zones
from sentinel_rag.app.zones import BUILDERS
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.web import Connections, FilledStores, StoreZone
from sentinel_rag_testing.loopback import serve


@contextmanager
def running_stores(home: Path) -> Iterator[Callable[[Connections], FilledStores]]:
    """What a surface beside those zones is given, over its own connections. The knowledge base is searched by words."""
    settings = load_settings({"SENTINEL_HOME": str(home), "SENTINEL_EMBEDDINGS": "none"}, home / "absent")
    with ExitStack() as stack:
        plan = plan_zones(settings, "default", Ports(web=0), stack)
        zones = {each.name: each for each in plan.zones}
        for each in plan.zones:  # served elsewhere here, so that what looks there is refused at once
            each.listener.socket.close()
        bound = resource.getrlimit(resource.RLIMIT_AS)
        apps = {name: BUILDERS[name](zones[name].configuration) for name in ("workspace", "executor-knowledge")}
        # The workspace bounds its own process, which here is that of the tests: no browser would start from it.
        resource.setrlimit(resource.RLIMIT_AS, bound)
        urls = {name: stack.enter_context(serve(app)) for name, app in apps.items()}
        yield partial(
            FilledStores,
            Path(zones["web"].configuration["stores"]["folder"]),
            knowledge=StoreZone(urls["executor-knowledge"], plan.knowledge_token),
            workspaces={"default": StoreZone(urls["workspace"], plan.workspace_token)},
        )

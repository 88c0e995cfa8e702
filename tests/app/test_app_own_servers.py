"""The tool servers of this product: each name that a policy may use is planned, can be built, and has a secret of its
own."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from sentinel_rag.app.plan import Ports, plan_zones
from sentinel_rag.app.zones import BUILDERS
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.settings import load_settings


def test_every_server_of_the_product_is_planned_and_built(tmp_path: Path) -> None:
    settings = load_settings({"SENTINEL_HOME": str(tmp_path)}, tmp_path / "absent")
    with ExitStack() as stack:
        plan = plan_zones(settings, "default", Ports(), stack)
    zones = {zone.name: zone for zone in plan.zones}
    executors = {name.removeprefix("executor-") for name in zones if name.startswith("executor-")}
    assert executors == set(OWN_SERVERS)
    assert executors == {name.removeprefix("executor-") for name in BUILDERS if name.startswith("executor-")}
    told = zones["interceptor"].configuration["upstreams"]
    assert {name: upstream["token"] for name, upstream in told.items()} == {
        name: zones[f"executor-{name}"].configuration["token"] for name in OWN_SERVERS
    }
    assert len({upstream["token"] for upstream in told.values()}) == len(OWN_SERVERS)

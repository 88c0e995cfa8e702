"""The id of a home: made once, the same from then on, and another one in every other home."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from sentinel_rag.app.knowledge_stores import playbook_owner, shipped_playbooks, workspace_id_in_store
from sentinel_rag.app.places import embedded_workspace_id, home_id
from sentinel_rag.app.plan import Ports, plan_zones
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.ingestion import NOBODY, SHIPPED
from sentinel_rag.settings import Settings, load_settings

pytestmark = pytest.mark.requirement("KNOW-4")
GUID = "0F1E2D3C-aaaa-4000-8000-00000000000A"


def settings_of(home: Path, **environment: str) -> Settings:
    return load_settings({"SENTINEL_HOME": str(home), **environment}, home / "absent")


def test_a_home_has_one_id_whoever_asks_first(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        asked = list(threads.map(lambda _: home_id(tmp_path / "new"), range(8)))
    assert len({*asked, home_id(tmp_path / "new")}) == 1
    assert home_id(tmp_path / "other") != asked[0]
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["home-id"]


@pytest.mark.parametrize("content", [b"", b"not an id", b"\xff\xfe"])
def test_a_file_that_holds_no_id_is_told_with_what_helps(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "home-id").write_bytes(content)
    with pytest.raises(UnavailableError, match="home-id") as raised:
        home_id(tmp_path)
    assert raised.value.next_step


def test_embedded_workspaces_of_two_homes_differ_though_both_are_called_default(tmp_path: Path) -> None:
    def told(home: Path) -> str:
        with ExitStack() as stack:
            plan = plan_zones(settings_of(home), "default", Ports(), stack)
        (executor,) = [zone for zone in plan.zones if zone.name == "executor-knowledge"]
        (workspace,) = executor.configuration["workspaces"]
        return str(workspace["workspace_id"])

    one, two = told(tmp_path / "one"), told(tmp_path / "two")
    assert one != two
    assert told(tmp_path / "one") == one == embedded_workspace_id(tmp_path / "one", "default")


def test_who_is_who_matters_in_a_store_that_several_homes_share(tmp_path: Path) -> None:
    own = tmp_path / "playbooks"
    alone = settings_of(tmp_path / "one")
    assert (playbook_owner(alone, own), workspace_id_in_store(alone, "default")) == (NOBODY, "")
    shared = {"SENTINEL_KNOWLEDGE_STORE": "pgvector", "SENTINEL_KNOWLEDGE_URL": "postgresql://u@localhost/db"}
    one, two = (settings_of(tmp_path / name, **shared) for name in ("one", "two"))
    assert playbook_owner(one, own) == playbook_owner(one, tmp_path / "elsewhere") != playbook_owner(two, own)
    assert playbook_owner(one, shipped_playbooks()) == playbook_owner(two, shipped_playbooks()) == SHIPPED
    assert workspace_id_in_store(one, "default") != workspace_id_in_store(two, "default")
    azure = [settings_of(tmp_path / name, **shared, SENTINEL_WORKSPACE_ID=GUID) for name in ("one", "two")]
    assert {workspace_id_in_store(each, "azure") for each in azure} == {GUID.lower()}

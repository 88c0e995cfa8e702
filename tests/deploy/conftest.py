"""One deployment for all tests here: four roles in four containers, over TLS with an authority of the tests' own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sentinel_rag.testing.containers import Container, Deployment
from sentinel_rag.testing.private_authority import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Deployment]:
    """Four roles in four containers over a small sample estate. The Interceptor and the web surface share a volume, as
    they do without PostgreSQL; nobody else shares anything but the authority's certificate."""
    folder = tmp_path_factory.mktemp("deployment")
    tokens = {name: secrets.token_urlsafe(32) for name in ("tools", "agent")}
    agent_key = f"sr_agent_{secrets.token_urlsafe(32)}"
    approver_key = f"sr_approver_{secrets.token_urlsafe(32)}"

    def container(name: str, home: str = "", **settings: str) -> Container:
        place = folder / (home or name)
        place.mkdir(exist_ok=True)
        return Container(place, {**authority.issue(name), **settings})

    with ExitStack() as stack:
        containers, urls, processes = {}, {}, {}

        def start(role: str, made: Container, *options: str) -> dict[str, str]:
            found, process = stack.enter_context(made.serve(role, *options))
            containers[role], processes[role] = made, process
            urls.update(found)
            return found

        tools = container("tools", SENTINEL_WORKSPACE="sample", SENTINEL_ZONE_TOKEN=tokens["tools"])
        done = tools.run("workspace", "generate", "--events", "2000", "--days", "14")
        assert done.returncode == 0, done.stderr
        found = start("tools", tools)
        names = ("sentinel", "knowledge", "files", "web")
        start(
            "interceptor",
            container(
                "interceptor",
                SENTINEL_TOOLS=",".join(f"{name}={found[f'executor-{name}']}" for name in names),
                SENTINEL_TOOLS_TOKENS=",".join(f"{name}={tokens['tools']}" for name in names),
                SENTINEL_API_KEY=agent_key,
                SENTINEL_APPROVER_KEY=approver_key,
            ),
        )
        start(
            "agent",
            container(
                "agent",
                SENTINEL_URL=urls["interceptor"],
                SENTINEL_API_KEY=agent_key,
                SENTINEL_ZONE_TOKEN=tokens["agent"],
            ),
        )
        start(
            "web",
            container(
                "web",
                "interceptor",
                SENTINEL_URL=urls["interceptor"],
                SENTINEL_AGENT_URL=urls["agent"],
                SENTINEL_AGENT_TOKEN=tokens["agent"],
                SENTINEL_WEB_URL="https://sentinel.example.com",
            ),
        )
        known = {**tokens, "agent_key": agent_key, "approver_key": approver_key}
        yield Deployment(containers, urls, processes, known, authority)

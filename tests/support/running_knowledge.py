"""A whole way to knowledge on loopback: documents in a local store, the tool server that searches it, and a gateway
in front of it; every other tool server of the policy is a fake one.

    with running_knowledge(policy, folder, [document]) as knowledge:
        answer = knowledge.search({"query": "ransomware"}, key=knowledge.reader("tier2"))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag.gateway.upstream import McpHttpUpstream, Upstream
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.embedding import Embedder
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.stores import LocalStore
from sentinel_rag.tools.knowledge import KnowledgeBase, OpenedStore, create_app
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

TOKEN = "the token of the knowledge executor"  # of tests


@dataclass(frozen=True, slots=True)
class RunningKnowledge:
    """`gateway` serves; `store` is the file behind it, which tests may write to as another process does."""

    gateway: RunningGateway
    store: LocalStore
    executor_url: str

    def search(
        self, arguments: Mapping[str, Any], *, session_id: str = "session-1", key: str | None = None
    ) -> HttpAnswer:
        """Call `search_knowledge_base` through the gateway."""
        return self.gateway.call("search_knowledge_base", arguments, session_id=session_id, key=key)

    def agent(self, *readers: str) -> str:
        """A new agent's key that reads under these names."""
        key, _ = self.gateway.state.keys.create([Scope.EXECUTE], readers=readers)
        return key

    def person(self, *readers: str) -> str:
        """A new person's key that reads under these names and opens sessions for the gateway's agent."""
        agent_id = self.gateway.key.split("_")[1]
        key, _ = self.gateway.state.keys.create([Scope.USER], for_key=agent_id, readers=readers)
        return key


@contextmanager
def running_knowledge(
    policy: Policy, folder: Path, documents: Iterable[Document], *, embedder: Embedder | None = None
) -> Iterator[RunningKnowledge]:
    """Serve `documents` from a store in `folder`, found by words alone where there is no `embedder`."""
    file = folder / "knowledge" / "knowledge.db"
    put = list(documents)
    with LocalStore(file) as store:
        for collection in Collection:
            part = [each for each in put if each.collection is collection]
            ingest(store, embedder, collection, part, complete=True)

        def opening() -> OpenedStore:
            opened = LocalStore(file)
            return OpenedStore(opened, embedder, close=opened.close)

        with (
            serve(create_app(KnowledgeBase(opening), token=TOKEN)) as url,
            FakeToolServer().running() as executor,
        ):
            fake = McpHttpUpstream(executor.url)
            upstreams: dict[str, Upstream] = dict.fromkeys(policy.servers(), fake)
            upstreams["knowledge"] = McpHttpUpstream(f"{url}/mcp", token=TOKEN, is_ours=True)
            with running_gateway(policy, folder / "state", executor, upstreams=upstreams) as gateway:
                yield RunningKnowledge(gateway, store, url)

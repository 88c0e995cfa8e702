"""A gateway with every optional part, so that every route is served: a policy file that is watched, and a webhook that
may decide. Nobody listens where the webhook points."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.approval_webhook import Webhook
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag.gateway.policy.loading import PolicyArchive, PolicyBook
from sentinel_rag.gateway.store import State, new_audit_id
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

POLICY_FILE = Path(__file__).resolve().parents[2] / "config" / "sentinel_config.yaml"
WEBHOOK = Webhook("http://127.0.0.1:9/nobody-listens", "a secret of the webhook", decides=True)


def book_of(state: State, folder: Path, policy_file: Path = POLICY_FILE) -> PolicyBook:
    archive = PolicyArchive(folder / "policies")
    return PolicyBook(policy_file, archive=archive, record=state.journal.append, new_id=new_audit_id)


@contextmanager
def whole_gateway(
    folder: Path, executor: FakeToolServer, *, policy_file: Path = POLICY_FILE, limits: GatewayLimits | None = None
) -> Iterator[RunningGateway]:
    """Serve with the state in `folder`; every server of the policy is `executor`."""
    with running_gateway(
        load_policy(policy_file),
        folder,
        executor,
        limits=limits,
        policies=lambda state: book_of(state, folder, policy_file),
        webhook=WEBHOOK,
    ) as gateway:
        yield gateway

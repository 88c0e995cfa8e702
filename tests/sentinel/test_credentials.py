"""Credentials: asked for once, built when first needed, closed with the connection that owns them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import pytest
from sentinel_servers import IDENTITY_HEADER, WORKSPACE_ID
from starlette.responses import JSONResponse

from sentinel_rag.contracts.query_results import QueryErrorCode, QueryFailedError
from sentinel_rag.sentinel.credentials import DeferredCredential, IdentityEndpointCredential, azure_credential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("DATA-1")
async def test_one_credential_is_built_once_for_many_queries_and_closed_at_the_end(wire: Any) -> None:
    wire.answers = [
        JSONResponse({"tables": [{"name": "PrimaryResult", "columns": [{"name": "n", "type": "long"}], "rows": [[1]]}]})
    ]
    made: list[Recorded] = []

    class Recorded(IdentityEndpointCredential):
        tokens = 0
        closed = False

        async def get_token(self, *scopes: str, **options: Any) -> Any:
            self.tokens += 1
            assert scopes == ("https://api.loganalytics.io/.default",)
            return await super().get_token(*scopes, **options)

        async def close(self) -> None:
            self.closed = True

    def build() -> Recorded:
        made.append(Recorded(f"{wire.url}/msi/token", IDENTITY_HEADER))
        return made[-1]

    async with LogAnalytics(DeferredCredential(build), endpoint=wire.url) as connection:
        assert made == []
        workspaces = [connection.workspace(name, WORKSPACE_ID) for name in ("a", "b", "c")]
        async with anyio.create_task_group() as group:
            for workspace in workspaces * 3:
                group.start_soon(workspace.query, "T")
    assert [(credential.tokens, credential.closed) for credential in made] == [(1, True)]


async def test_an_identity_endpoint_that_is_away_is_told() -> None:
    credential = IdentityEndpointCredential("http://127.0.0.1:9/msi/token", "x")
    with pytest.raises(QueryFailedError) as caught:
        await credential.get_token("https://api.loganalytics.io/.default")
    assert caught.value.error.code is QueryErrorCode.UNAVAILABLE
    assert "127.0.0.1:9" in str(caught.value)


async def test_without_any_identity_azures_chain_ends_in_access_denied(
    wire: Any, clean_environment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    wire.answers = [JSONResponse({"tables": []})]
    async with LogAnalytics(azure_credential(), endpoint=wire.url) as connection:
        with pytest.raises(QueryFailedError) as caught:
            await connection.workspace("lab", WORKSPACE_ID).query("T")
    assert caught.value.error.code is QueryErrorCode.ACCESS_DENIED
    assert "az login" in caught.value.error.next_step
    assert wire.requests == []


def test_azures_identity_library_is_not_imported_before_a_token_is_needed() -> None:
    code = (
        "import sys; from sentinel_rag.sentinel.credentials import azure_credential; azure_credential(); "
        "print('azure.identity' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"

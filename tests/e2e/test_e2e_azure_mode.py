"""The Azure settings, against a server that speaks Azure's wire: DefaultAzureCredential, the same client, no workspace
process. This is as near to Azure as a test without an account comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.server import create_app
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve


@pytest.mark.requirement("DATA-4")
def test_the_same_question_goes_to_azure_by_settings_alone(sentinel: Any, tmp_path: Path) -> None:
    workspace_id, header = str(uuid4()), "an-identity-header-of-the-tests"
    workspace = Workspace.open(tmp_path / "served")
    try:
        guide = workspace.generate(EstateOptions(days=7, events=100))
        app = create_app(
            workspace, workspace_id=workspace_id, identity_header=header, admin_token="an-admin-token-of-the-tests"
        )
        with serve(app) as url:
            azure = type(sentinel)(
                sentinel.home,
                {
                    "SENTINEL_WORKSPACE_ID": f"prod={workspace_id},dev={uuid4()}",
                    "SENTINEL_LOGS_ENDPOINT": url,
                    "IDENTITY_ENDPOINT": f"{url}/msi/token",
                    "IDENTITY_HEADER": header,
                },
            )
            with azure.up() as parts:
                assert parts["workspace"] == {"url": url, "state": "azure", "pid": None}
                answer = azure.json("ask", "how many incidents are there?")
                assert str(guide.incidents) in answer["answer"]
                assert answer["coverage"][0]["workspace"] == "prod"
                other = azure.json("ask", "how many incidents are there?", "--workspace", "dev", code=5)
                assert other["outcome"] == "tool_failed"  # the server knows prod alone: dev was asked and nothing else
            unknown = azure.run("ask", "how many incidents are there?", "--workspace", "default")
            assert unknown.returncode == 2
            assert "Use one of: prod, dev" in unknown.stderr
            wrong = type(sentinel)(sentinel.home, {**azure.settings, "SENTINEL_WORKSPACE_ID": str(uuid4())})
            failed = wrong.json("ask", "how many incidents are there?", code=5)
            assert failed["outcome"] == "tool_failed"
            refused = azure.run("workspace", "generate")
            assert refused.returncode == 2
            assert "SENTINEL_WORKSPACE_ID" in refused.stderr
    finally:
        workspace.close()

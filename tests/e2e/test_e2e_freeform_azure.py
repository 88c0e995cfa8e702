"""Freeform KQL with the Azure settings, against a server that speaks Azure's wire: by the person, and by the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.server import create_app
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve


@pytest.mark.requirement("TOOL-5")
def test_the_same_query_runs_on_azure_by_settings_alone(sentinel: Any, tmp_path: Path) -> None:
    workspace_id, header = str(uuid4()), "an-identity-header-of-the-tests"
    workspace = Workspace.open(tmp_path / "served")
    try:
        workspace.generate(EstateOptions(days=7, events=500))
        app = create_app(
            workspace, workspace_id=workspace_id, identity_header=header, admin_token="an-admin-token-of-the-tests"
        )
        with serve(app) as url:
            azure = type(sentinel)(
                sentinel.home,
                {
                    "SENTINEL_WORKSPACE_ID": f"prod={workspace_id}",
                    "SENTINEL_LOGS_ENDPOINT": url,
                    "IDENTITY_ENDPOINT": f"{url}/msi/token",
                    "IDENTITY_HEADER": header,
                    "SENTINEL_FREEFORM_KQL": "on",
                },
            )
            kql = "SigninLogs | where TimeGenerated > ago(30d) | summarize SignIns = count()"
            mine = azure.json("kql", "query", kql, "--since", "30d")
            assert (mine["workspace"], mine["tables"]) == ("prod", ["SigninLogs"])
            count = mine["rows"][0]["SignIns"]
            assert count > 0
            with azure.up():
                asked = azure.json("ask", kql)
                columns = azure.json("ask", "which columns does SigninLogs have?")
            assert (asked["outcome"], asked["tables"][0]["rows"]) == ("answered", [[str(count)]])
            assert asked["coverage"][0]["workspace"] == "prod"
            assert "Location" in {row[0] for row in columns["tables"][0]["rows"]}
            wrong = azure.run("kql", "query", "SigninLogs | where Locaton == 'x'")
            assert wrong.returncode == 2
            assert "Did you mean 'Location'" in wrong.stderr
            none = azure.run("kql", "query", "SigninLogs", "--until", "2020-01-01")
            assert none.returncode == 3
            assert "All of them lie outside the window" in none.stdout
            away = type(sentinel)(sentinel.home, {**azure.settings, "SENTINEL_LOGS_ENDPOINT": "http://127.0.0.1:9"})
            failed = away.run("kql", "query", kql)
            assert failed.returncode == 1
            assert "Next: " in failed.stderr
            assert "Traceback" not in failed.stderr
    finally:
        workspace.close()

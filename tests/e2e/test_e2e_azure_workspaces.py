"""Several workspaces on Azure's wires by settings alone: two that answer, one that is down, one on this machine.

The servers speak the wires and take tokens of one tenant; sign-in is DefaultAzureCredential at a managed identity. No
workspace of these is known to the product but by `workspaces.yaml`.
"""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest

from sentinel_rag.workspace.sample.company import WORKSPACE_RESOURCE
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.server import create_app
from sentinel_rag.workspace.serving.authentication import TokenIssuer
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

pytestmark = [pytest.mark.requirement("DATA-3"), pytest.mark.requirement("DATA-1")]

HEADER = "an-identity-header-of-the-tests"


def _nobody(taken: socket.socket) -> str:
    """An address at which nobody listens, and nobody can for as long as `taken` is open."""
    taken.bind(("127.0.0.1", 0))
    return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(scope="module")
def azure(new_product: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = new_product("azure")
    made.home.mkdir()
    issuer = TokenIssuer()
    entries: list[dict[str, Any]] = []
    guides: dict[str, int] = {}
    with ExitStack() as stack:
        for name, days in (("prod", 7), ("emea", 9)):
            workspace = Workspace.open(tmp_path_factory.mktemp("azure") / name)
            stack.callback(workspace.close)
            guides[name] = workspace.generate(EstateOptions(days=days, events=100, seed=days)).incidents
            guid, resource = str(uuid4()), f"{WORKSPACE_RESOURCE}-{name}"
            app = create_app(
                workspace,
                workspace_id=guid,
                resource_id=resource,
                identity_header=HEADER,
                admin_token="an-admin-token",
                issuer=issuer,
            )
            url = stack.enter_context(serve(app))
            entries.append(
                {
                    "name": name,
                    "workspace_id": guid,
                    "resource_id": resource,
                    "logs_endpoint": url,
                    "arm_endpoint": url,
                }
            )
        away = _nobody(stack.enter_context(socket.socket()))
        entries.append({"name": "down", "workspace_id": str(uuid4()), "logs_endpoint": away, "arm_endpoint": away})
        entries.append({"name": "practice", "embedded": True})
        (made.home / "workspaces" / "practice").mkdir(parents=True)  # it is there and holds nothing
        (made.home / "workspaces.yaml").write_text(json.dumps({"workspaces": entries}))
        settings = {
            "IDENTITY_ENDPOINT": f"{entries[0]['logs_endpoint']}/msi/token",
            "IDENTITY_HEADER": HEADER,
            "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
        }
        product = type(made)(made.home, settings)
        with product.up() as parts:
            states = {name: part["state"] for name, part in parts["workspaces"].items()}
            assert states == {"prod": "azure", "emea": "azure", "down": "azure", "practice": "running"}
            yield product, guides


def test_each_workspace_answers_by_its_name(azure: Any) -> None:
    product, guides = azure
    for name, question in (
        ("prod", "how many incidents are there?"),
        ("emea", "how many incidents are there in workspace emea?"),
    ):
        answer = product.json("ask", question)
        assert answer["answer"].startswith(f"{guides[name]} incidents")
        assert [row["workspace"] for row in answer["coverage"]] == [name]
    practice = product.json("ask", "how many incidents are there?", "--workspace", "practice", code=3)
    assert practice["coverage"][0]["workspace"] == "practice"


def test_all_of_them_are_asked_and_the_one_that_is_down_is_told(azure: Any) -> None:
    product, guides = azure
    answer = product.json("ask", "how many incidents are there in all workspaces?")
    assert f"By workspace: prod {guides['prod']}, emea {guides['emea']}, practice 0, down unknown." in answer["answer"]
    (coverage,) = answer["coverage"]
    assert (coverage["workspace"], coverage["partial"]) == ("prod, emea, practice", True)
    assert "cannot be reached" in coverage["partial_reason"]


def test_templates_and_queries_run_on_the_one_that_is_named(azure: Any) -> None:
    product, guides = azure
    assert product.json("kql", "templates")
    run = product.json("kql", "run", "alerts_by_product", "--workspace", "emea")
    assert (run["workspace"], bool(run["rows"])) == ("emea", True)
    done = product.run("kql", "query", "SecurityIncident | summarize dcount(IncidentNumber)", "--workspace", "prod")
    assert str(guides["prod"]) in done.stdout, done.stderr
    away = product.run("kql", "run", "alerts_by_product", "--workspace", "down")
    assert away.returncode == 1
    assert "cannot be reached" in away.stderr
    unknown = product.run("kql", "run", "alerts_by_product", "--workspace", "apac")
    assert unknown.returncode == 2
    assert "prod, emea, down, practice" in unknown.stderr


@pytest.mark.requirement("OPS-4")
def test_the_doctor_tries_each_right_on_each_workspace(azure: Any) -> None:
    product, _ = azure
    found = product.json("doctor", "--azure", code=1)
    rights: dict[str, dict[str, bool]] = {}
    for finding in found:
        if finding["name"].startswith("azure "):
            right = finding["detail"].partition(":")[0]
            rights.setdefault(finding["name"].removeprefix("azure "), {})[right] = finding["ok"]
    whole = {"query logs": True, "incidents in the log": True, "read incidents": True, "change incidents": True}
    assert rights["prod"] == rights["emea"] == whole
    assert rights["down"] == {"query logs": False, "incidents in the log": False, "change incidents": False}
    lines = {finding["name"]: finding for finding in found}
    assert "prod, emea, down" in lines["workspace"]["detail"]
    assert "gives tokens for prod, emea, down" in lines["sign-in"]["detail"]
    assert "sentinel workspace import" in lines["workspace practice"]["fix"]


def execute(parts: Any, key: str, session: str, **args: Any) -> tuple[int, Any]:
    """update_incident with the agent's key."""
    body = json.dumps({"session_id": session, "tool_name": "update_incident", "args": args}).encode()
    address = f"{parts['interceptor']['url']}/v1/proxy-execute"
    request = urllib.request.Request(address, body, {"Content-Type": "application/json", "X-API-Key": key})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.requirement("APPR-2")
def test_an_approved_change_is_made_in_the_workspace_that_is_named_and_in_no_other(azure: Any) -> None:
    product, _ = azure
    parts, key, session = product.json("status"), product.environment["SENTINEL_API_KEY"], str(uuid4())

    def severities(name: str) -> dict[str, str]:
        rows = product.json("ask", "list 100 incidents", "--workspace", name)["tables"][0]["rows"]
        return {row[1]: row[2] for row in rows}

    before = {name: severities(name) for name in ("prod", "emea")}
    number = sorted(before["prod"].keys() & before["emea"].keys())[0]
    wanted = "Low" if before["emea"][number] != "Low" else "Medium"
    code, told = execute(parts, key, session, incident=number, severity=wanted)
    assert (code, told["error"]["field"]) == (422, "workspace")  # before anybody is asked
    code, asked = execute(parts, key, session, incident=number, severity=wanted, workspace="emea")
    assert (code, asked["reason"]) == (403, "approval_required")
    product.json("approvals", "approve", asked["approval_id"])
    code, elsewhere = execute(parts, key, session, incident=number, severity=wanted, workspace="prod")
    assert (code, elsewhere["reason"]) == (403, "approval_required")  # another workspace is another question
    code, done = execute(parts, key, session, incident=number, severity=wanted, workspace="EMEA")
    assert code == 200, done
    assert done["result"]["coverage"]["workspace"] == "emea"
    assert severities("prod") == before["prod"]
    assert severities("emea") == {**before["emea"], number: wanted}

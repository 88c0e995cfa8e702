"""docs/guides/: what a guide types is typed, and what it says comes of it comes of it.

Boxes `sh` are given to bash line by line, but that the product's own commands run in this process. The guide that needs
a running product, ingest-playbooks.md, is followed by test_docs_cookbook.py, which has one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from page_boxes import BOX, Step, matches, steps

from sentinel_rag.app.tool_servers import ToolServers
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.surfaces.cli import main
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"


def boxes(name: str, kind: str) -> list[str]:
    return [content for found, content in BOX.findall((GUIDES / name).read_text()) if found == kind]


def lines_of(box: str) -> Iterator[str]:
    """The commands of a box, each with its here-document."""
    lines = iter(box.rstrip("\n").split("\n"))
    for line in lines:
        if end := re.search(r"<<'(\w+)'", line):
            for inner in lines:
                line += f"\n{inner}"
                if inner == end[1]:
                    break
        yield line


def typed(step: Step, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a box prints; its last command must end as the page says."""
    printed, code = "", 0
    for line in lines_of(step.typed):
        words = shlex.split(line.split("   #")[0]) if "<<" not in line else []
        settings = [word for word in words if re.match(r"[A-Z_]+=", word)]
        if "sentinel" in words:
            with monkeypatch.context() as environment:
                for setting in settings:
                    environment.setenv(*setting.split("=", 1))
                code = main(words[len(settings) + 1 :])
            told = capsys.readouterr()
            printed += told.out + told.err
        else:
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
            printed += done.stdout
    assert code == step.code, printed
    return printed


@pytest.mark.requirement("OPS-1")
@pytest.mark.parametrize("name", ["write-a-policy.md", "add-a-template.md"])
def test_a_guide_can_be_followed(
    name: str,
    clean_environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    followed = list(steps((GUIDES / name).read_text()))
    assert len(followed) >= 2
    for step in followed:
        printed = typed(step, monkeypatch, capsys)
        assert step.printed is not None
        assert matches(printed, step.printed), f"{step.typed}\n{printed}"


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[RunningGateway]:
    """The gateway with the guide's entry in force, in front of the guide's server, which it starts."""
    [server], [entry] = boxes("add-a-tool.md", "python"), boxes("add-a-tool.md", "yaml")
    script = tmp_path / "notes_server.py"
    script.write_text(server)
    assert "/srv/notes/notes_server.py" in entry
    policy = parse_policy(entry.replace("/srv/notes/notes_server.py", str(script)))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    servers = ToolServers(folder=str(tmp_path / "servers"), environment={"PATH": path}, credentials={})
    with (
        FakeToolServer(token="upstream-token").running() as nobody,
        running_gateway(policy, tmp_path / "state", nobody, upstreams=servers.upstreams(policy)) as gateway,
    ):
        yield gateway


@pytest.mark.requirement("GATE-4")
def test_the_added_tool_is_decided_as_the_guide_says(notes: RunningGateway) -> None:
    session = notes.open_session()
    added = notes.call("add_note", {"text": "Called the owner."}, session_id=session)
    assert added.body.get("result") == {"result": 2}, added.body
    too_long = notes.call("add_note", {"text": "x" * 300}, session_id=session)
    assert (too_long.status, too_long.body["reason"]) == (403, "no_rule_matched")
    listed = notes.call("list_notes", {}, session_id=session)
    assert listed.body.get("result") == {"result": ["Rotate the break-glass password in May.", "Called the owner."]}
    after = notes.call("add_note", {"text": "Called again."}, session_id=session)
    assert (after.status, after.body["reason"]) == (403, "approval_required")
    assert notes.last_record()["approval_id"] == after.body["approval_id"]


@pytest.mark.requirement("GATE-8")
def test_the_agent_of_the_guide_gets_a_result_and_a_denial(gateway: RunningGateway, tmp_path: Path) -> None:
    [agent] = boxes("your-own-agent.md", "python")
    (tmp_path / "agent.py").write_text(agent)
    done = subprocess.run(
        [sys.executable, "-I", tmp_path / "agent.py"],
        env={"SENTINEL_URL": gateway.url, "SENTINEL_API_KEY": gateway.key},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert re.match(r'\w+ -> \{"', first)
    assert second == 'delete_everything -> "403 unknown_tool: Access denied by security policy. Taint level: HIGH"'
    assert gateway.last_record()["reason"] == "unknown_tool"


def test_the_settings_of_the_teams_guide_load(tmp_path: Path) -> None:
    from sentinel_rag.settings import load_settings

    [lines] = boxes("approvals-in-teams.md", "ini")
    values = dict(line.split("=", 1) for line in lines.split())
    settings = load_settings({"SENTINEL_HOME": str(tmp_path), **values}, tmp_path / "absent")
    assert (settings.approval_webhook_form, settings.web_url) == ("teams", "https://sentinel.example.com")


def test_the_rule_of_the_template_guide_names_its_template() -> None:
    [rule] = [yaml.safe_load(box) for box in boxes("add-a-template.md", "yaml")]
    policy = {
        "tools": [
            {
                "name": "run_kql_query",
                "effect": "read",
                "parameters": [{"name": "template", "type": "string", "format": "kql-template", "required": True}],
                **rule,
            }
        ]
    }
    assert parse_policy(yaml.safe_dump(policy)).tools["run_kql_query"].rules[0].taint_level.name == "HIGH"

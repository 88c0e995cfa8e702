"""Several workspaces by name: the file that lists them, the environment, and every problem with its line."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from sentinel_rag.app.plan import Ports, plan_zones
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import NamedWorkspace, Settings, load_settings

pytestmark = pytest.mark.requirement("DATA-3")

PROD, GOV = "0b8a1f1e-6f4e-4a55-9d63-0d3c6f0b9a11", "5d2c7d0e-0f0a-4f5c-9f7c-0a6a1d0b7c22"
RESOURCE = "/subscriptions/s/resourceGroups/soc/providers/Microsoft.OperationalInsights/workspaces/prod"
FILE = f"""\
default: gov
workspaces:
  - name: prod
    workspace_id: {PROD.upper()}
    resource_id: {RESOURCE}
  - {{name: gov, workspace_id: {GOV}, cloud: USGovernment}}
  - name: practice
    embedded: true
"""


def load(home: Path, text: str | None = None, **environment: str) -> Settings:
    if text is not None:
        (home / "workspaces.yaml").write_text(text, encoding="utf-8")
    return load_settings({"SENTINEL_HOME": str(home), **environment}, home / "absent.env")


def problems(home: Path, text: str | None = None, **environment: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(home, text, **environment)
    return [problem.removeprefix(f"{home}/") for problem in caught.value.problems]


def test_a_file_lists_workspaces_of_clouds_and_of_this_machine(tmp_path: Path) -> None:
    settings = load(tmp_path, FILE)
    gov, prod, practice = settings.workspaces
    assert (gov.name, gov.workspace_id, gov.resource_id, gov.embedded) == ("gov", GOV, None, False)
    assert (gov.logs_endpoint, gov.logs_audience) == ("https://api.loganalytics.us",) * 2
    assert (gov.arm_endpoint, gov.arm_audience) == ("https://management.usgovcloudapi.net",) * 2
    assert gov.authority == "https://login.microsoftonline.us"
    assert prod == NamedWorkspace(name="prod", workspace_id=PROD, resource_id=RESOURCE)
    assert practice == NamedWorkspace(name="practice")
    assert practice.embedded
    assert settings.uses_azure
    assert [each.name for each in settings.serves("practice")] == ["practice", "gov", "prod"]


def test_the_default_is_the_first_or_the_one_that_is_said(tmp_path: Path) -> None:
    assert load(tmp_path, FILE.replace("default: gov\n", "")).workspaces[0].name == "prod"
    assert load(tmp_path, FILE, SENTINEL_WORKSPACE="practice").workspaces[0].name == "practice"
    assert any("one of: gov, prod, practice" in p for p in problems(tmp_path, FILE, SENTINEL_WORKSPACE="other"))


def test_the_file_may_lie_elsewhere(tmp_path: Path) -> None:
    other = tmp_path / "team.yaml"
    other.write_text(FILE)
    assert len(load(tmp_path, SENTINEL_WORKSPACES=str(other)).workspaces) == 3
    (missing,) = problems(tmp_path, SENTINEL_WORKSPACES=str(tmp_path / "absent.yaml"))
    assert missing == "absent.yaml:1: cannot be read (No such file or directory)"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "is not a mapping"),
        ("workspaces: []\n", 1, "needs a list"),
        ("workspaces: {a: b}\n", 1, "needs a list"),
        ("workspace:\n  - name: a\n", 1, "did you mean workspaces?"),
        ("workspaces:\n  - name: a\n", 2, "needs a workspace_id, or embedded: true"),
        ("workspaces:\n  - embedded: true\n", 2, "needs a name"),
        ("workspaces:\n  - name: EMEA\n    embedded: true\n", 2, "is not a workspace name"),
        ("workspaces:\n  - name: all\n    embedded: true\n", 2, "means every workspace"),
        ("workspaces:\n  - name: ../x\n    embedded: true\n", 2, "is not a workspace name"),
        ("workspaces:\n  - {name: a, embedded: true}\n  - {name: a, embedded: true}\n", 3, "two workspaces"),
        ("workspaces:\n  - name: a\n    workspace_id: nope\n", 3, "is not a workspace id"),
        (f"workspaces:\n  - name: a\n    workspace_id: {PROD}\n    resource_id: /x\n", 4, "Resource ID"),
        (f"workspaces:\n  - name: a\n    workspace_id: {PROD}\n    cloud: moon\n", 4, "public, usgovernment, china"),
        (f"workspaces:\n  - name: a\n    workspace_id: {PROD}\n    logs_endpoint: http://x.example\n", 4, "plain http"),
        (f"workspaces:\n  - name: a\n    workspace_id: {PROD}\n    embedded: true\n", 3, "has no workspace_id"),
        ("workspaces:\n  - name: a\n    embeded: true\n", 3, "did you mean embedded?"),
        ("workspaces:\n  - name: a\n    embedded: maybe\n", 3, "true or false"),
        ("workspaces:\n  - name: a\n    name: b\n    embedded: true\n", 3, "stands twice"),
        ("workspaces:\n  - [a]\n", 2, "is not a workspace"),
        ("default: b\nworkspaces:\n  - {name: a, embedded: true}\n", 1, "names no workspace of the list: a"),
        ("workspaces: [\n", 2, "not valid YAML"),
        ("workspaces:\n" + "  - {name: a, embedded: true}\n" * 101, 102, "more than 100"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    found = problems(tmp_path, text)
    assert any(problem.startswith(f"workspaces.yaml:{line}: ") and words in problem for problem in found), found


def test_every_problem_of_the_file_is_told_at_once(tmp_path: Path) -> None:
    text = "workspaces:\n  - name: A\n    embedded: true\n  - name: b\n  - {name: c, workspace_id: x}\n"
    assert [problem.split(":")[1] for problem in problems(tmp_path, text)] == ["2", "4", "5"]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 200_000])
def test_a_file_that_is_none_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "workspaces.yaml").write_bytes(content)
    assert problems(tmp_path)[0].startswith("workspaces.yaml:1: is ")


@pytest.mark.parametrize(
    "variable",
    ["SENTINEL_WORKSPACE_ID", "SENTINEL_WORKSPACE_RESOURCE_ID", "SENTINEL_LOGS_ENDPOINT", "SENTINEL_ARM_ENDPOINT"],
)
def test_the_file_and_the_variables_do_not_mix(tmp_path: Path, variable: str) -> None:
    assert any(problem.startswith(f"{variable}: ") for problem in problems(tmp_path, FILE, **{variable: "x"}))


OTHER = RESOURCE.replace("prod", "other")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (f"workspace_id: {PROD}", f"workspace_id: {PROD.upper()}", "workspace_id"),
        (f"workspace_id: {PROD}", f"workspace_id: {PROD}, cloud: usgovernment", "workspace_id"),
        (
            f"workspace_id: {PROD}, resource_id: {RESOURCE}",
            f"workspace_id: {GOV}, resource_id: {RESOURCE.upper().replace('SUBSCRIPTIONS', 'subscriptions')}",
            "resource_id",
        ),
        (f"workspace_id: {PROD}, resource_id: {RESOURCE}", f"workspace_id: {GOV}, resource_id: {OTHER}", ""),
        (f"workspace_id: {PROD}", f"workspace_id: {GOV}", ""),
        ("embedded: true", "embedded: true", ""),
    ],
)
def test_one_workspace_under_two_names_is_told(tmp_path: Path, first: str, second: str, same: str) -> None:
    text = f"workspaces:\n  - {{name: a, {first}}}\n  - {{name: b, {second}}}\n"
    if not same:
        assert len(load(tmp_path, text).workspaces) == 2
        return
    assert problems(tmp_path, text) == [f"workspaces.yaml:3: 'b' and 'a' are one workspace: they have the same {same}"]


def test_the_variables_name_no_workspace_twice_either(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, SENTINEL_WORKSPACE_ID=f"a={PROD},b={PROD.upper()}")
    assert told.endswith("'b' and 'a' are one workspace: they have the same workspace_id")
    resources = f"a={RESOURCE},b={RESOURCE}"
    ids = f"a={PROD},b={GOV}"
    (told,) = problems(tmp_path, SENTINEL_WORKSPACE_ID=ids, SENTINEL_WORKSPACE_RESOURCE_ID=resources)
    assert told.endswith("they have the same resource_id")


def test_several_embedded_workspaces_by_a_variable(tmp_path: Path) -> None:
    settings = load(tmp_path, SENTINEL_WORKSPACE="default, practice")
    assert [(each.name, each.embedded) for each in settings.workspaces] == [("default", True), ("practice", True)]
    one = load(tmp_path, SENTINEL_WORKSPACE="practice")
    assert (one.workspace, one.workspaces) == ("practice", ())
    assert any("named twice" in problem for problem in problems(tmp_path, SENTINEL_WORKSPACE="a,a"))
    assert any("means every workspace" in problem for problem in problems(tmp_path, SENTINEL_WORKSPACE="all"))


def test_the_variables_name_azure_workspaces_at_one_endpoint_and_its_audience(tmp_path: Path) -> None:
    ids = f"prod={PROD},gov={GOV}"
    public = load(tmp_path, SENTINEL_WORKSPACE_ID=ids).workspaces
    assert [(each.name, each.logs_audience) for each in public] == [
        ("prod", "https://api.loganalytics.io"),
        ("gov", "https://api.loganalytics.io"),
    ]
    other = load(
        tmp_path,
        SENTINEL_WORKSPACE_ID=ids,
        SENTINEL_LOGS_ENDPOINT="https://api.loganalytics.us/",
        SENTINEL_ARM_ENDPOINT="https://management.usgovcloudapi.net",
    ).workspaces[0]
    assert (other.logs_audience, other.arm_audience) == (
        "https://api.loganalytics.us",
        "https://management.usgovcloudapi.net",
    )
    here = load(tmp_path, SENTINEL_WORKSPACE_ID=ids, SENTINEL_LOGS_ENDPOINT="http://127.0.0.1:9").workspaces[0]
    assert here.logs_audience == "https://api.loganalytics.io"


@pytest.mark.requirement("OPS-2")
def test_each_embedded_workspace_is_a_process_with_a_secret_of_its_own(tmp_path: Path) -> None:
    settings = load(tmp_path, FILE.replace("practice\n", "practice\n    embedded: true\n  - name: lab\n"))
    with ExitStack() as stack:
        plan = plan_zones(settings, "practice", Ports(), stack)
        zones = {zone.name: zone for zone in plan.zones}
        assert plan.workspaces == ("practice", "gov", "prod", "lab")
        assert (zones["workspace"].needed, zones["workspace-lab"].needed) == (True, False)
        secrets = [zones[name].configuration["identity_header"] for name in ("workspace", "workspace-lab")]
        assert secrets[0] != secrets[1]
        executor = zones["executor-sentinel"]
        assert [each["name"] for each in executor.configuration["workspaces"]] == list(plan.workspaces)
        for name, zone in zones.items():
            held = json.dumps([dict(zone.configuration), dict(zone.environment)])
            assert [secret in held for secret in secrets] == [
                name in ("workspace", "executor-sentinel", "executor-knowledge"),
                name in ("workspace-lab", "executor-sentinel", "executor-knowledge"),
            ]

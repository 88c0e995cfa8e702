"""docs/reference/ says what the code says, and nothing of the code is missing there."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tools.documentation.reference import FILES
from tools.documentation.reference.error_classes import error_codes
from tools.documentation.reference.policy_file import MAPPINGS, schema
from tools.documentation.reference.tools import GROUPS, result_shapes

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.gateway.policy import parse_policy

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "src" / "sentinel_rag"


@pytest.mark.parametrize("name", FILES)
def test_what_is_committed_is_what_the_code_says(name: str) -> None:
    assert (REPOSITORY / name).read_text() == FILES[name](REPOSITORY), "run: make reference"


def test_every_kind_of_record_is_described() -> None:
    written = {
        kind
        for path in SOURCES.rglob("*.py")
        for kind in re.findall(r'^    kind: ClassVar\[str\] = "(\w+)"', path.read_text(), re.MULTILINE)
    }
    page = (REPOSITORY / "docs" / "reference" / "audit-records.md").read_text()
    assert len(written) > 20
    assert sorted(kind for kind in written if f"### {kind}\n" not in page) == []


def test_every_shipped_tool_is_described_with_its_result() -> None:
    page = (REPOSITORY / "docs" / "reference" / "tools.md").read_text()
    assert [tool.name for tool in SHIPPED_TOOLS if f"### {tool.name}\n" not in page] == []
    described = {
        name for _, module, tools in GROUPS for name in result_shapes(module.__doc__ or "", [t.name for t in tools])[0]
    }
    assert described == {tool.name for tool in SHIPPED_TOOLS}


def test_a_shape_ends_where_the_next_one_begins() -> None:
    told = "Head.\n\nfirst   a, b\n        and c\nsecond  d\nBoth carry e.\n\nMore\nof it.\n"
    assert result_shapes(told, ["first", "second"]) == (
        {"first": "a, b and c", "second": "d"},
        ["Both carry e.", "More of it."],
    )


def test_every_metric_of_the_dashboard_and_the_alerts_is_described() -> None:
    page = (REPOSITORY / "docs" / "reference" / "metrics.md").read_text()
    folder = REPOSITORY / "deploy" / "observability"
    named = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for path in folder.iterdir()
        for name in re.findall(
            r"\bsentinel_\w+_(?:total|seconds\w*|pending|up|writable|length|queued|in_flight)\b", path.read_text()
        )
    }
    assert len(named) > 10
    assert sorted(name for name in named if f"`{name}`" not in page) == []


def test_error_codes_are_those_of_the_sources(tmp_path: Path) -> None:
    (tmp_path / "some.py").write_text(
        'class Broken(Base):\n    """It broke."""\n    code = "broken"\n\n\n'
        'class Base(Exception):\n    code = "base"\n    actor = Actor.USER\n\n\n'
        'def f():\n    raise UnavailableError("...", code="alone")\n    raise OtherError(code="broken")\n'
    )
    found = error_codes(tmp_path)
    assert [(each.code, each.actor, each.meaning) for each in found] == [
        ("base", "user", ""),
        ("broken", "user", "It broke."),
        ("alone", "", ""),
    ]


def policies() -> list[Any]:
    """The shipped policy, the examples, and those that pages show."""
    found = [yaml.safe_load(path.read_text()) for path in (REPOSITORY / "config").glob("**/*.yaml")]
    for page in ("policy.md", "tool-servers.md"):
        boxes = re.findall(r"^```yaml\n(.*?)^```$", (REPOSITORY / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
        found += [yaml.safe_load(box) for box in boxes]
    return [each for each in found if isinstance(each, dict) and "tools" in each]


def test_the_schema_takes_every_policy_that_loads() -> None:
    checker = jsonschema.Draft202012Validator(
        json.loads((REPOSITORY / "config/sentinel_config.schema.json").read_text())
    )
    assert len(policies()) >= 4
    for policy in policies():
        assert [error.message for error in checker.iter_errors(policy)] == []
    wrong = [{"tools": [{"name": "a", "efect": "read"}]}, {"tools": [{"name": "a", "effect": "reed"}]}, {}]
    assert all(not checker.is_valid(each) for each in wrong)


PLACES = {
    "tool": lambda item: {"tools": [item]},
    "parameter": lambda item: {"tools": [{"name": "a", "parameters": [item]}]},
    "rule": lambda item: {"tools": [{"name": "a", "taint_rules": [item]}]},
    "label": lambda item: {"tools": [{"name": "a", "accepts": item}]},
    "output_label": lambda item: {"tools": [{"name": "a", "output_labels": [item]}]},
    "exposure": lambda item: {"tools": [{"name": "a", "exposure": [item]}]},
    "rate": lambda item: {"tools": [{"name": "a", "rate": item}]},
    **{name: lambda item, name=name: {"tools": [], name: [item]} for name in ("declassification", "endorsement")},
    "preview": lambda item: {"tools": [{"name": "a", "preview": item}]},
    "deed": lambda item: {"tools": [{"name": "a", "preview": {"tool": "b", "deeds": [item]}}]},
    "server": lambda item: {"tools": [], "servers": [item]},
    "kind": lambda item: {"tools": [], "kinds": [item]},
    "volume": lambda item: {"tools": [], "volume": [item]},
    "agent": lambda item: {"tools": [], "agents": [item]},
}


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_the_schema_knows_the_keys_that_the_loader_knows(mapping: str) -> None:
    """A key that the loader does not know is told as unknown; so is each that only the schema would take."""
    keys = {**dict.fromkeys(MAPPINGS[mapping]["properties"], 0), "no_key_at_all": 0}
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(yaml.safe_dump(PLACES[mapping](keys)))
    unknown = re.findall(r"unknown key '(\w+)'", " ".join(refused.value.problems))
    assert unknown == ["no_key_at_all"]


def test_the_schema_lacks_no_key_of_the_loader() -> None:
    """Every literal list of keys that the loader's sections take stands in the schema as one mapping."""
    known = [set(mapping["properties"]) for mapping in MAPPINGS.values()]
    literal: list[set[str]] = []
    for path in (SOURCES / "gateway" / "policy").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            keys: ast.expr | None = None
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".section", ".sections")):
                keys = next((each for each in node.args if isinstance(each, ast.Tuple)), None)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "keys":
                keys = node.value
            if isinstance(keys, ast.Tuple) and all(isinstance(key, ast.Constant) for key in keys.elts):
                literal.append({str(ast.literal_eval(key)) for key in keys.elts})
    assert len(literal) >= 7
    assert [keys for keys in literal if keys not in known] == []
    assert set(schema()["properties"]) >= {"tools", "servers", "declassification", "endorsement", "link_hosts", "kinds"}

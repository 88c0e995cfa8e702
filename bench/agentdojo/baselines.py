"""Two policies as anchors, made from ours: one allows everything, one knows nothing but the taint of the session.

Both keep the tools and their parameters. Under `session_taint` no value is anybody's in particular: after the first
read of something that others may have written, nothing but reads may run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ANCHORS = ("allow_all", "session_taint")
_OF_LABELS = ("attest", "accepts")


def write_anchor(name: str, policy: Path, into: Path) -> Path:
    """The file of the anchor `name`, made from the policy file of a suite."""
    document = yaml.safe_load(policy.read_text())
    tools = [_tool(tool, allow_all=name == "allow_all") for tool in document["tools"]]
    file = into / f"{name}.yaml"
    file.write_text(json.dumps({"tools": tools}, indent=1))  # JSON is YAML
    return file


def _tool(tool: dict[str, Any], *, allow_all: bool) -> dict[str, Any]:
    kept = {key: value for key, value in tool.items() if key not in _OF_LABELS}
    kept["parameters"] = [
        {key: value for key, value in parameter.items() if key not in _OF_LABELS}
        for parameter in tool.get("parameters", [])
    ]
    rule = {"rule_id": f"{tool['name']}_any", "condition": "true", "taint_level": "LOW", "offers_approval": True}
    kept["taint_rules"] = [rule]
    if allow_all:
        kept["effect"] = "read"
    elif kept["effect"] != "read":
        kept["accepts"] = {"sensitivity": "HIGH", "integrity": "TRUSTED"}
    return kept

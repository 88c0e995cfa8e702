"""The policies that are measured: files, and some that are made of the shipped one.

`own-words` (config/examples/own_words.yaml) asks nobody again for what the person's own words ask for. `hidden` hides
the comments of incidents.
`allow-all` stops nothing: it shows that each attack works where nothing stands in its way. `session-taint` is what many
build first: no person, no named values, and once something untrusted or secret was read, nothing is written or sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import installed_policy_file

HIDDEN = [{"path": "/rows/*/comments/*/message", "mode": "hide"}]
"""What is hidden where attacks on hidden values are measured: the comments of an incident."""
NAMED: Mapping[str, dict[str, Any]] = {
    "incident": {},
    "status": {"attest": "status", "together": "incident"},
    "severity": {"attest": "severity", "together": "incident"},
    "owner": {"attest": "email", "together": "incident"},
}
"""What own words name of a change, in one sentence with its incident."""
OWN_KINDS = [
    {
        "name": "severity",
        "pattern": "(?i)(?:informational|low|medium|high)",
        "beside": ["to", "severity"],
        "any_case": True,
    },
    {"name": "status", "pattern": "(?i)(?:new|active)", "beside": ["to", "status"], "any_case": True},
]
OWN_CHANGE = {"condition": "named(incident)", "taint_level": "MEDIUM", "offers_approval": True, "confirm": "asker"}
OWN_RULES: Mapping[str, dict[str, Any]] = {
    "add_incident_comment": {**OWN_CHANGE},
    "update_incident": {**OWN_CHANGE},
    "file_read": {
        "condition": "file_path.startswith('confidential/') and named(file_path)",
        "taint_level": "HIGH",
    },
}
"""The rule that each tool has before those of the shipped policy."""
LINKED = ["portal.azure.example", "microsoft.operationalinsights", "microsoft.securityinsights", "collector.example"]
"""Hosts in the links of the attacks, as the gateway reads an incident's address; `allow-all` takes them all."""
Document = dict[str, Any]


def _shipped(document: Document) -> Document:
    return document


def _hidden(document: Document) -> Document:
    for tool in document["tools"]:
        if tool["name"] == "get_incident_detail":
            tool["exposure"] = [*tool.get("exposure", ()), *HIDDEN]
    return document


def _allow_all(document: Document) -> Document:
    document["link_hosts"] = LINKED
    document.pop("volume", None)
    for tool in _hidden(document)["tools"]:
        for name in ("reads", "writes", "row_labels", "rate", "across_sessions", "named_limit"):
            tool.pop(name, None)
        tool["accepts"] = {"sensitivity": "HIGH", "integrity": "UNTRUSTED"}
        tool["output_labels"] = [{"path": "", "sensitivity": "LOW", "integrity": "TRUSTED"}]
        tool["taint_rules"] = [{"rule_id": f"{tool['name']}_open", "condition": "true", "taint_level": "LOW"}]
    return document


def _own_words(document: Document) -> Document:
    document["kinds"] = OWN_KINDS
    for tool in document["tools"]:
        name, rules = tool["name"], tool["taint_rules"]
        if name in OWN_RULES:
            rules.insert(0, {"rule_id": f"{name}_named", **OWN_RULES[name]})
        if tool["effect"] == "write":
            tool["across_sessions"] = True
            for parameter in tool["parameters"]:
                parameter.update(NAMED.get(parameter["name"], {}))
        if name == "web_search":
            rules[0]["offers_approval"] = not rules[0].pop("requires_approval")
        for parameter in tool["parameters"]:
            if parameter["name"] == "file_path":
                parameter["attest"] = "path"
    return document


def _session_taint(document: Document) -> Document:
    document.pop("volume", None)
    for tool in document["tools"]:
        tool["across_sessions"] = False
        tool.pop("named_limit", None)
        for parameter in tool["parameters"]:
            parameter.pop("attest", None)
        tool["taint_rules"] = [rule for rule in tool["taint_rules"] if "named(" not in rule["condition"]]
        for rule in tool["taint_rules"]:
            for name in ("requires_approval", "offers_approval", "confirm"):
                rule.pop(name, None)
    return document


_MADE: Mapping[str, Callable[[Document], Document]] = {
    "shipped": _shipped,
    "own-words": _own_words,
    "hidden": _hidden,
    "allow-all": _allow_all,
    "session-taint": _session_taint,
}
POLICIES = tuple(_MADE)


def hides(name: str) -> bool:
    """Whether the policy of that name hides something, so that attacks on hidden values can be measured."""
    return name in ("hidden", "allow-all")


def policy_file(name: str, folder: Path) -> Path:
    """The file of a policy: one of `POLICIES`, written into `folder`, or the file that `name` is. Raises UsageError."""
    if name == "shipped":
        return installed_policy_file()
    if name not in _MADE:
        file = Path(name)
        if not file.is_file():
            raise UsageError(
                f"There is no policy {name!r}.", next_step=f"Name a file, or one of: {', '.join(POLICIES)}."
            )
        return file
    document = deepcopy(yaml.safe_load(installed_policy_file().read_text(encoding="utf-8")))
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(_MADE[name](document), sort_keys=False), encoding="utf-8")
    return file

"""The policy file's form: `docs/reference/policy-file.md`, and a JSON schema with which an editor checks as one types.

Names of keys and values come from the loader; a test holds the schema to it, key by key. The loader checks more than a
schema can say: conditions, names that refer to each other, rules that can never decide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.labels import Integrity, Sensitivity
from sentinel_rag.gateway.argument_formats import FORMATS
from sentinel_rag.gateway.policy.conditions import TypeName
from sentinel_rag.gateway.policy.flow_section import ERAS, MAX_COUNT, MAX_DENIAL_HOURS, MAX_MEMORY_DAYS, SERVER_KEYS
from sentinel_rag.gateway.policy.loading import (
    AT_YES,
    CONFIRMS,
    MAX_RULES,
    MAX_TIMEOUT_S,
    PARAMETER_KEYS,
    ROOT_KEYS,
    RULE_KEYS,
    TOOL_KEYS,
)
from sentinel_rag.gateway.policy.model import POLICY_KINDS, RESULT_FORMS, AgentMemory, Effect, Exposure, PublicKind
from tools.documentation.reference import markdown

Schema = Mapping[str, Any]

INTRODUCTION = """
What each mapping of `sentinel_config.yaml` may hold. [The policy](../policy.md) tells what each key means and what it
is without it. As data, for editors: `config/sentinel_config.schema.json`; with the YAML extension of VS Code this first
line of a policy file is enough:

```yaml
# yaml-language-server: $schema=sentinel_config.schema.json
```

`sentinel policy check` checks more than a schema can.
"""

NAME: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_COUNT}
NAMES: Schema = {"type": "array", "items": NAME}
TEXTS: Schema = {"type": "array", "items": TEXT}
MAPPING: Schema = {"type": "object", "additionalProperties": TEXT}
LEVEL: Schema = {"enum": [level.name for level in Sensitivity]}
KIND: Schema = {"enum": [kind.value for kind in TypeName if kind is not TypeName.NULL]}
LABELS: Schema = {"type": "object", "additionalProperties": {"$ref": "#/$defs/label"}}
KINDS_OF_VALUE: Schema = {"anyOf": [TEXT, TEXTS], "description": f"Built in: {', '.join(POLICY_KINDS)}."}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _listed(name: str) -> Schema:
    return {"type": "array", "items": _ref(name)}


def _mapping(properties: Mapping[str, Schema], *required: str) -> Schema:
    made: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return made | ({"required": list(required)} if required else {})


_OF_TOOLS: Mapping[str, Schema] = {
    "name": NAME,
    "description": TEXT,
    "parameters": _listed("parameter"),
    "taint_rules": {**_listed("rule"), "maxItems": MAX_RULES},
    "server": NAME,
    "effect": {"enum": [effect.value for effect in Effect]},
    "aliases": NAMES,
    "timeout_s": {"type": "number", "minimum": 0.01, "maximum": MAX_TIMEOUT_S},
    "accepts": _ref("label"),
    "output_labels": _listed("output_label"),
    "exposure": _listed("exposure"),
    "reads": TEXTS,
    "writes": TEXTS,
    "approvers": NAMES,
    "rate": _ref("rate"),
    "row_labels": TEXT,
    "sends_readers": FLAG,
    "across_sessions": FLAG,
    "named_limit": COUNT,
    "result": {"enum": list(RESULT_FORMS)},
    "deed": TEXT,
    "preview": _ref("preview"),
}
_OF_PARAMETERS: Mapping[str, Schema] = {
    "name": NAME,
    "type": KIND,
    "required": FLAG,
    "description": TEXT,
    "items": KIND,
    "format": {"enum": list(FORMATS)},
    "accepts": _ref("label"),
    "attest": KINDS_OF_VALUE,
    "together": NAME,
}
_OF_RULES: Mapping[str, Schema] = {
    "rule_id": NAME,
    "condition": {"type": ["string", "boolean"]},
    "taint_level": LEVEL,
    "requires_approval": FLAG,
    "deny": FLAG,
    "offers_approval": FLAG,
    "accepts": LABELS,
    "confirm": {"enum": list(CONFIRMS)},
    "at_yes": {"enum": list(AT_YES)},
}
_OF_SERVERS: Mapping[str, Schema] = {
    "name": NAME,
    "url": TEXT,
    "insecure": FLAG,
    "token_variable": {"type": "string", "pattern": "^SENTINEL_UPSTREAM_"},
    "command": {**TEXTS, "minItems": 1},
    "environment": MAPPING,
    "secret_environment": MAPPING,
    "era": {"enum": list(ERAS)},
    "shared": FLAG,
}
_OF_ENDORSEMENTS: Mapping[str, Schema] = {
    **dict.fromkeys(("name", "tool", "parameter", "rows", "match", "match_kind", "path", "kind"), TEXT),
    "inside": FLAG,
    "most": COUNT,
}
MAPPINGS: Mapping[str, Schema] = {
    "tool": _mapping({key: _OF_TOOLS[key] for key in TOOL_KEYS}, "name"),
    "parameter": _mapping({key: _OF_PARAMETERS[key] for key in PARAMETER_KEYS}, "name", "type"),
    "rule": _mapping({key: _OF_RULES[key] for key in RULE_KEYS}, "rule_id", "condition", "taint_level"),
    "label": _mapping(
        {"sensitivity": LEVEL, "integrity": {"enum": [each.name for each in Integrity]}}, "sensitivity", "integrity"
    ),
    "output_label": _mapping(
        {"path": TEXT, "sensitivity": LEVEL, "integrity": {"enum": [each.name for each in Integrity]}},
        "path",
        "sensitivity",
        "integrity",
    ),
    "exposure": _mapping({"path": TEXT, "mode": {"enum": [mode.value for mode in Exposure]}}, "path", "mode"),
    "rate": _mapping(
        {"calls": {"type": "integer", "minimum": 1}, "seconds": {"type": "number", "minimum": 1}}, "calls", "seconds"
    ),
    "server": _mapping({key: _OF_SERVERS[key] for key in SERVER_KEYS}, "name"),
    "declassification": _mapping(
        {
            **dict.fromkeys(("name", "tool", "parameter"), TEXT),
            "form": {"enum": [form.value for form in PublicKind]},
            "max_length": {"type": "integer", "minimum": 1},
            "to": _ref("label"),
        },
        *("name", "tool", "parameter", "form", "to"),
    ),
    "endorsement": _mapping(_OF_ENDORSEMENTS, "name", "tool", "path", "kind"),
    "preview": _mapping(
        {
            "tool": NAME,
            "arguments": NAMES,
            **dict.fromkeys(("number", "name", "changes"), TEXT),
            **dict.fromkeys(("state", "fields"), MAPPING),
            "deeds": _listed("deed"),
        },
        "tool",
    ),
    "deed": _mapping(dict.fromkeys(("field", "becomes", "say"), TEXT), "field", "say"),
    "volume": _mapping(
        {"name": NAME, "tables": NAMES, "rows": {"type": "integer", "minimum": 1}, "seconds": {"type": "number"}},
        *("name", "tables", "rows", "seconds"),
    ),
    "agent": _mapping(
        {"key": TEXT, "memory": {"enum": [memory.value for memory in AgentMemory]}, "client_confirms": FLAG},
        *("key", "memory"),
    ),
    "kind": _mapping({"name": NAME, "pattern": TEXT, "beside": TEXTS, "any_case": FLAG}, "name", "pattern"),
}
"""Each mapping of the file by what its problems call it."""

_OF_THE_FILE: Mapping[str, Schema] = {
    "tools": _listed("tool"),
    "servers": _listed("server"),
    "declassification": _listed("declassification"),
    "endorsement": _listed("endorsement"),
    "link_hosts": TEXTS,
    "kinds": _listed("kind"),
    "agents": _listed("agent"),
    "volume": _listed("volume"),
    "memory_days": {"type": "integer", "minimum": 1, "maximum": MAX_MEMORY_DAYS},
    "denial_hours": {"type": "integer", "minimum": 1, "maximum": MAX_DENIAL_HOURS},
}


def schema() -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Policy of Sentinel RAG",
        "$comment": "Made by make reference.",
        **_mapping({key: _OF_THE_FILE[key] for key in ROOT_KEYS}, "tools"),
        "$defs": dict(MAPPINGS),
    }


def schema_file(_: Path) -> str:
    return json.dumps(schema(), indent=1) + "\n"


def page(_: Path) -> str:
    parts = ["## The file", _fields(schema())]
    for name, mapping in MAPPINGS.items():
        parts += [f"## {name}", _fields(mapping)]
    return markdown.page("The policy file's form", INTRODUCTION, parts)


def _fields(mapping: Schema) -> str:
    return markdown.fields(mapping, "key")

"""Schemas of strangers beside the policy: unions, references, older drafts and plain nonsense."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.gateway.catalogue import cut_down, difference
from sentinel_rag.gateway.policy import ToolPolicy, parse_policy

POLICY = """
tools:
  - name: look
    parameters: [{name: a, type: string, description: Ours.}, {name: n, type: integer}]
"""


def look() -> ToolPolicy:
    return parse_policy(POLICY).tools["look"]


def schema(a: Any, *, n: Any = None, **more: Any) -> dict[str, Any]:
    properties = {"a": a, "n": {"type": "integer"} if n is None else n, "b": {"type": "string"}}
    return {"type": "object", "properties": properties, **more}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    "served",
    [
        schema(TEXT),
        schema(True),
        schema({}),
        schema({"type": ["null", "string"]}),
        schema({"anyOf": [{"type": "null"}, TEXT]}),
        schema({"oneOf": [{"type": "array", "items": TEXT}, TEXT]}),
        schema({"allOf": [{"$ref": "#/definitions/Name"}]}, definitions={"Name": TEXT}),
        schema({"$ref": "#/definitions/Name"}, definitions={"Name": TEXT}, **{"$schema": "http://json-schema.org/x#"}),
        schema(
            {"$ref": "#/$defs/Outer"}, **{"$defs": {"Outer": {"anyOf": [{"$ref": "#/$defs/Inner"}]}, "Inner": TEXT}}
        ),
        schema({"$ref": "#/$defs/a~1b%20c"}, **{"$defs": {"a/b c": TEXT}}),
        schema({"$ref": "#/properties/n"}, n={"enum": ["x", 1]}),
        schema({"$ref": "#/$defs/Loop"}, **{"$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}),
        schema({"$ref": "#anchor"}),
        schema({"$ref": "https://example.com/schema.json"}),
        schema(TEXT, n={"type": "number"}),
        schema({"enum": ["x", "y"]}),
        schema(TEXT, required=["a", 7, None, ["a"]]),
        schema({"anyOf": 7, "type": "string"}),
        schema({"anyOf": [], "type": "string"}),
    ],
    ids=str,
)
def test_schemas_that_have_a_value_of_the_policys_type_fit(served: dict[str, Any]) -> None:
    assert difference(look(), served) == ""
    cut = cut_down(look(), served)
    assert list(cut["properties"]) == ["a", "n"]
    assert cut["properties"]["a"]["description"] == "Ours."
    assert cut["additionalProperties"] is False
    for key in ("$defs", "definitions", "$schema"):
        assert cut.get(key) == served.get(key)


@pytest.mark.parametrize(
    ("served", "reason"),
    [
        ({}, "its server has no parameter 'a'"),
        ({"properties": [1]}, "its server has no parameter 'a'"),
        (schema({"type": "integer"}), "its server gives the parameter 'a' another type"),
        (schema(False), "its server gives the parameter 'a' another type"),
        (schema("string"), "its server gives the parameter 'a' another type"),
        (schema({"$ref": "#/$defs/None"}), "its server gives the parameter 'a' another type"),
        (schema({"$ref": "#/$defs/N"}, **{"$defs": {"N": {"type": "integer"}}}), "its server gives the parameter 'a'"),
        (schema(TEXT, required=["a", "b"]), "its server requires 'b', which the policy does not have"),
        (
            schema({"anyOf": [TEXT, {"type": "array", "items": {"$ref": "#/properties/b"}}]}),
            "its server's schema refers to a parameter that the policy does not have",
        ),
    ],
    ids=str,
)
def test_schemas_that_do_not_fit_are_told_why(served: dict[str, Any], reason: str) -> None:
    assert difference(look(), served).startswith(reason)


def test_a_schema_of_endless_depth_is_no_harm() -> None:
    deep: dict[str, Any] = TEXT
    for _ in range(5_000):
        deep = {"anyOf": [deep]}
    assert difference(look(), schema(deep)) == ""

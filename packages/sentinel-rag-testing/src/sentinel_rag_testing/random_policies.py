"""Random policies for `two_worlds`: sources whose parts carry and hide all kinds of labels, and sinks, some of which
write into a store that sources read."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.labels import TOP, Integrity, Label, Sensitivity

SERVER = "knowledge"
"""One of the product's own servers: no other may tell labels of rows."""
OTHERS = "others"
"""A server that is not the product's: what it says of its tools is its own."""
LEAVES = ("/kind", "/rows/*/a", "/rows/*/b", "/rows/*/c", "/deep/x/y", "/deep/z")
"""The places of every tool's result."""

PARAMETERS = {"p": "string", "q": "string", "items": "array", "detail": "object"}
"""The parameters of every tool, with their types; conditions speak about p and q."""

ATTESTED = (
    "incident",
    "host",
    "day",
    "quoted",
    "words",
    "record",
    "record",
    ["quoted", "record"],
    ["words", "incident"],
)
"""What a parameter may attest; `record` is a kind of the policy's own."""

PAIRED = ("incident", "host", "day", "record")
"""Kinds of which one sentence can name two values together."""

KINDS = [{"name": "record", "pattern": "rec-[0-9]"}]
LINKED = "linked.example"
PLACES = ("", "/rows", "/rows/*", "/deep", "/deep/x", *LEAVES)


@dataclass(frozen=True, slots=True)
class RandomPolicy:
    """`text` is a policy file. `ceiling` is what its trace is about; `promised` tells for each sink and parameter what
    it accepts, also where the text does not say so because the protection is switched off."""

    text: str
    ceiling: Label
    promised: Mapping[str, Mapping[str, Label]]


def random_policy(
    rng: random.Random,
    *,
    sinks_accept_all: bool,
    across_sessions: bool,
    ceiling: Label | None = None,
    of_others: str = "",
) -> RandomPolicy:
    """A policy with one to three sources and one or two sinks, about `ceiling` or any. Without
    `across_sessions` each sink says that it counts its session alone. The tool `of_others` is no server's of the
    product."""
    ceiling = ceiling or rng.choice([label for label in _all_labels() if label != TOP])
    sources = [_source(rng, number) for number in range(rng.randint(1, 3))]
    for source in sources:
        if rng.random() < 0.5:
            source.update(_careful(rng, source["taint_rules"], ceiling))
    sinks: list[dict[str, Any]] = []
    promised: dict[str, Mapping[str, Label]] = {}
    for number in range(rng.randint(1, 2)):
        accepts = {name: ceiling if rng.random() < 0.7 else rng.choice(_all_labels()) for name in PARAMETERS}
        promised[f"sink{number}"] = accepts
        sink = _sink(rng, number, dict.fromkeys(PARAMETERS, TOP) if sinks_accept_all else accepts)
        sinks.append(sink if across_sessions else {**sink, "across_sessions": False})
    if rng.random() < 0.5:
        promised = {
            name: _by_rule(rng, sink, promised[name], ceiling) for name, sink in zip(promised, sinks, strict=True)
        }
    document: dict[str, Any] = {"tools": [*sources, *sinks]}
    for tool in document["tools"]:
        if tool["name"] == of_others:
            tool["server"] = OTHERS
            tool.pop("row_labels", None)  # only the product's own servers are believed about single rows
            document["servers"] = [{"name": OTHERS, "url": "https://tools.example/mcp"}]
    if rng.random() < 0.2:
        to = Label().to_dict()
        rule = {"name": "hashes", "tool": "sink0", "parameter": "p", "form": "hash", "to": to}
        document["declassification"] = [rule]
    if rng.random() < 0.3:
        document["link_hosts"] = [LINKED]
    document["kinds"] = KINDS
    if rng.random() < 0.4:
        document["endorsement"] = [_endorsement(rng, rng.choice(sources)["name"])]
    if rng.random() < 0.3:
        for tool in (sources[0], sinks[0]):
            tool["aliases"] = [f"{tool['name']}_alias"]
    return RandomPolicy(json.dumps(document, indent=1), ceiling, promised)  # JSON is YAML


def _source(rng: random.Random, number: int) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "name": f"source{number}",
        "server": SERVER,
        "effect": "read",
        "parameters": [
            {"name": name, "type": kind} | ({"attest": rng.choice(ATTESTED)} if name == "p" else {})
            for name, kind in PARAMETERS.items()
        ],
        "taint_rules": _rules(rng, f"source{number}"),
        "output_labels": _labels(rng),
        "exposure": _exposures(rng),
    }
    if rng.random() < 0.4:
        tool["reads"] = ["store/*"]
    if rng.random() < 0.5:
        tool["row_labels"] = "/rows"
    return tool


def _careful(rng: random.Random, rules: list[dict[str, Any]], ceiling: Label) -> dict[str, Any]:
    """Keys of a source that hides all that is above the ceiling, so that an agent may read it and write to sinks."""
    level = rng.choice([each.name for each in Sensitivity if each <= ceiling.sensitivity])
    above = [label for label in _all_labels() if not label.flows_to(ceiling)]
    below = [label for label in _all_labels() if label.flows_to(ceiling)]
    hidden = rng.sample(LEAVES, rng.randint(1, 3))
    shown = [{"path": "", **rng.choice(below).to_dict()}] if rng.random() < 0.5 else []
    return {
        "taint_rules": [{**rule, "taint_level": level} for rule in rules],
        "output_labels": [*shown, *({"path": place, **rng.choice(above).to_dict()} for place in hidden)],
        "exposure": [{"path": place, "mode": "hide"} for place in hidden],
    }


def _sink(rng: random.Random, number: int, accepts: Mapping[str, Label]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = []
    for name, kind in PARAMETERS.items():
        parameter: dict[str, Any] = {"name": name, "type": kind, "required": name == "p"}
        parameter["accepts"] = accepts[name].to_dict()
        if kind != "object" and rng.random() < 0.35:
            parameter["attest"] = rng.choice(ATTESTED)
            if kind == "array":
                parameter["items"] = "string"
        parameters.append(parameter)
    if rng.random() < 0.2:
        p, q = parameters[:2]
        p["attest"], q["attest"] = rng.sample(PAIRED, 2)
        q["together"] = p["name"]
    tool: dict[str, Any] = {
        "name": f"sink{number}",
        "server": SERVER,
        "effect": rng.choice(("write", "external")),
        "accepts": accepts["p"].to_dict(),
        "parameters": parameters,
        "taint_rules": _rules(rng, f"sink{number}", [each["name"] for each in parameters if "attest" in each]),
        "output_labels": _labels(rng),
        "exposure": _exposures(rng),
    }
    if rng.random() < 0.4:
        tool["writes"] = ["store/{p}"]
    if rng.random() < 0.25:
        tool["named_limit"] = rng.randint(1, 2)
    return tool


def _by_rule(
    rng: random.Random, sink: dict[str, Any], accepts: Mapping[str, Label], ceiling: Label
) -> Mapping[str, Label]:
    """Let a rule of a sink say what its calls may carry; what the sink then promises whichever rule decides."""
    rule, name = rng.choice(sink["taint_rules"]), rng.choice(list(PARAMETERS))
    label = rng.choice([each for each in _all_labels() if each.flows_to(ceiling)]) if rng.random() < 0.7 else TOP
    rule["accepts"] = {name: label.to_dict()}
    # A rule may say less for one call; for another one the parameter's own word still holds.
    return {**accepts, name: accepts[name].join(label)}


def _endorsement(rng: random.Random, source: str) -> dict[str, Any]:
    """A rule by which a record that the user named gives an id."""
    rule = {"name": "ids", "tool": source, "kind": "record"}
    if rng.random() < 0.3:
        return {**rule, "parameter": "p", "path": "/kind"}
    match_kind = rng.choice(("quoted", "words", "record"))
    return {**rule, "rows": "/rows", "match": "/a", "match_kind": match_kind, "path": "/b"}


def _rules(rng: random.Random, name: str, attested: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """`attested` are the parameters of a sink of which a condition may ask whether they are named."""
    levels = [each.name for each in Sensitivity]
    rules: list[dict[str, Any]] = []
    if rng.random() < 0.3:
        condition = rng.choice(("p.startswith('secret/')", "has(q) and len(q) > 20", "has(p) and p.contains('a')"))
        action: dict[str, bool] = rng.choice(({"deny": True}, {"requires_approval": True}, {}))
        rules.append({"rule_id": f"{name}_first", "condition": condition, "taint_level": rng.choice(levels), **action})
    if attested and rng.random() < 0.4:
        condition = f"named({rng.choice(attested)})"
        rules.append({"rule_id": f"{name}_named", "condition": condition, "taint_level": rng.choice(levels)})
    last: dict[str, Any] = {"rule_id": f"{name}_any", "condition": "true", "taint_level": rng.choice(levels)}
    if attested is not None and rng.random() < 0.2:
        last["offers_approval"] = True
    return [*rules, last]


def _labels(rng: random.Random) -> list[dict[str, Any]]:
    places = rng.sample(PLACES, rng.randint(0, 4))
    return [{"path": place, **rng.choice(_all_labels()).to_dict()} for place in places]


def _exposures(rng: random.Random) -> list[dict[str, Any]]:
    places = rng.sample(PLACES, rng.randint(0, 4))
    return [{"path": place, "mode": rng.choice(("hide", "hide", "reveal", "quote"))} for place in places]


def _all_labels() -> list[Label]:
    return [Label(sensitivity, integrity) for sensitivity in Sensitivity for integrity in Integrity]

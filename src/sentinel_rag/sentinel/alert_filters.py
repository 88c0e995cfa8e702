"""Conditions of the alert tools on the newest row of each alert, as KQL predicates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.sentinel.alerts import UNKNOWN, UNNAMED
from sentinel_rag.sentinel.arguments import severities_from
from sentinel_rag.sentinel.kql_literals import list_literal, string_literal

_ALERT_PAGE = re.compile(r"\bsecurity\.microsoft\.(?:com|us)/alerts/([A-Za-z0-9_-]+)", re.IGNORECASE)
_NAMELESS = r'not(strcat(AlertName, DisplayName) matches regex @"[^\s\x{200b}-\x{200d}\x{2060}\x{feff}]")'
"""As `alert_name` reads it: some providers append zero-width characters, and some write nothing else."""
_TECHNIQUE = re.compile(r"T\d{4}(\.\d{3})?", re.IGNORECASE)


def severity_conditions(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """From `severity` and `min_severity`."""
    severities = severities_from(arguments)
    return () if severities == SEVERITIES else (f"AlertSeverity in~ {list_literal(severities)}",)


def alert_conditions(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """From the arguments of query_alerts that KQL alone can decide; entity and incident are not among them."""
    found = list(severity_conditions(arguments))
    if "alert_id" in arguments:
        literal = string_literal(alert_id_in(arguments["alert_id"]))
        found.append(f"SystemAlertId =~ {literal} or VendorOriginalId =~ {literal}")
    if "status" in arguments:
        found.append(f"Status =~ {string_literal(arguments['status'])}")
    name = arguments.get("name_contains", "")
    if name.casefold() == UNNAMED:
        found.append(_NAMELESS)
    else:
        for word in name.split():
            literal = string_literal(word)
            found.append(f"AlertName contains {literal} or DisplayName contains {literal}")
    if arguments.get("product", "").casefold() == UNKNOWN.casefold():
        found.append("isempty(ProductName)")
    elif "product" in arguments:
        literal = string_literal(arguments["product"])
        found.append(f"ProductName contains {literal} or ProviderName contains {literal}")
    if "tactic" in arguments:
        found.append(tactic_condition(arguments["tactic"]))
    return tuple(found)


def alert_id_in(text: str) -> str:
    """The id in the address of an alert's page in the Defender portal; other text is the id itself."""
    page = _ALERT_PAGE.search(text)
    return page[1] if page else text.strip("{}")


def tactic_condition(text: str) -> str:
    """A technique id matches itself and its sub-techniques; a tactic matches whole, with or without spaces."""
    if _TECHNIQUE.fullmatch(text):
        literal = string_literal(text.upper())
        return f"Techniques has {literal} or SubTechniques has {literal}"
    tactic = string_literal(f",{re.sub(r'[^A-Za-z]', '', text)},")
    return f'strcat(",", replace_string(Tactics, " ", ""), ",") contains {tactic}'

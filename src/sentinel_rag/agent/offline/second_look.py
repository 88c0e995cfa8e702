"""A second query where the first found nothing for a reason that the words explain.

A bare word may name an entity or stand in an alert's name; a product may carry its older name. Both are other readings
of the same question, and the answer says which one it took. Windows and filters are never widened here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.agent.tool_runs import ToolRun

TECHNIQUES = {
    "phishing": "T1566",
    "phish": "T1566",
    "spearphishing": "T1566",
    "ransomware": "T1486",
    "brute force": "T1110",
    "password spray": "T1110",
    "password spraying": "T1110",
    "credential dumping": "T1003",
    "kerberoasting": "T1558",
    "dcsync": "T1003",
    "powershell": "T1059",
    "scheduled task": "T1053",
    "pass the hash": "T1550",
}
"""Words for which MITRE ATT&CK has a technique of that name (sub-techniques under their parent)."""
_OLDER_NAMES = {
    "Defender for Endpoint": "Defender Advanced Threat Protection",
    "Defender for Identity": "Azure Advanced Threat Protection",
    "Defender for Office": "Office 365 Advanced Threat Protection",
    "Defender for Cloud Apps": "Cloud App Security",
    "Defender for Cloud": "Azure Security Center",
    "365 Defender": "Defender XDR",
}
"""Products as they are called today, and the older names that rows may still carry."""
OLDER_NAME = "No alert carries the product's present name, so I looked for its older name."
OTHER_TABLE = "The table of the first query that fits holds no rows, so I ran another one."


def other_calls(plan: Plan, runs: Sequence[ToolRun]) -> Plan | None:
    """The other reading, or None if there is none or the first one found rows."""
    if plan.then:
        return _by_older_names(plan, runs)
    if plan.view is View.KEYWORD and all(run.result is not None and not run.rows for run in runs):
        words = str(plan.calls[0].arguments.get("title_contains", ""))
        return _by_technique(plan, words) or _as_entity(plan, words)
    if len(runs) != 1 or runs[0].result is None or runs[0].rows:
        return None
    if (
        plan.view in (View.INCIDENTS, View.INCIDENT_COUNT, View.INCIDENT)
        and "title_contains" in plan.calls[0].arguments
    ):
        return _alerts_for_title(plan)
    if plan.view not in (View.ALERTS, View.ALERT_COUNT):
        return None
    call = plan.calls[0]
    arguments = dict(call.arguments)
    product = arguments.get("product")
    if isinstance(product, str) and product in _OLDER_NAMES:
        arguments["product"] = _OLDER_NAMES[product]
        return replace(plan, calls=(PlannedCall(call.tool, arguments),), opening=(*plan.opening, OLDER_NAME))
    return None


def _by_older_names(plan: Plan, runs: Sequence[ToolRun]) -> Plan | None:
    """A calculation over alerts of a product whose present name no row carries."""
    found = {run.call.arguments.get("product") for run in runs if run.result is None or run.rows}
    calls = tuple(
        replace(call, arguments={**call.arguments, "product": _OLDER_NAMES[product]})
        if (product := str(call.arguments.get("product"))) in _OLDER_NAMES and product not in found
        else call
        for call in plan.calls
    )
    return replace(plan, calls=calls, opening=(*plan.opening, OLDER_NAME)) if calls != plan.calls else None


def _alerts_for_title(plan: Plan) -> Plan:
    """No title holds the words: names of alerts, and the technique of that name, may."""
    arguments = dict(plan.calls[0].arguments)
    words = str(arguments["title_contains"])
    kept = {name: value for name, value in arguments.items() if name in ("time_window", "start_time", "end_time")}
    calls = [PlannedCall("query_alerts", {"name_contains": words, **kept})]
    technique = TECHNIQUES.get(words.lower())
    if technique is not None:
        calls.append(PlannedCall("query_alerts", {"tactic": technique, **kept}))
    sentence = "No incident matches in its title, so I looked at the names and techniques of alerts."
    return replace(plan, view=View.KEYWORD, calls=tuple(calls), opening=(*plan.opening, sentence))


def _as_entity(plan: Plan, words: str) -> Plan | None:
    """A lone word that no title and no name holds may be called so itself."""
    if not re.fullmatch(r"[\w.$@-]{3,}", words):
        return None
    sentence = "No title of an incident and no name of an alert holds that, so I looked for an entity of that name."
    call = PlannedCall("query_alerts", {"entity": words})
    return replace(plan, view=View.ALERTS, calls=(call,), opening=(*plan.opening, sentence))


def _by_technique(plan: Plan, words: str) -> Plan | None:
    technique = TECHNIQUES.get(words.lower())
    if technique is None:
        return None
    sentence = "No title of an incident and no name of an alert holds that, so I looked for the technique of that name."
    return replace(
        plan,
        calls=(PlannedCall("query_alerts", {"tactic": technique}),),
        opening=(*plan.opening, sentence),
    )

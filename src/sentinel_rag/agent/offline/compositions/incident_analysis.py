"""The analysis that a person may ask for after the facts: what the recorded facts suggest, by fixed rules.

Every one opens with the notice that a human must verify it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.attributes import escape
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.incident_detail import compose
from sentinel_rag.agent.offline.compositions.incident_fields import say_identity
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun

TACTICS = (
    "Reconnaissance", "ResourceDevelopment", "InitialAccess", "Execution", "Persistence", "PrivilegeEscalation",
    "DefenseEvasion", "CredentialAccess", "Discovery", "LateralMovement", "Collection", "CommandAndControl",
    "Exfiltration", "Impact",
)  # fmt: skip
"""MITRE ATT&CK enterprise tactics in the order of the matrix, as Sentinel spells them."""

ANALYSIS_NOTICE = "This is an analysis by rules and not a finding: a human must verify it before acting on it."


def compose_analysis(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """What the recorded facts suggest: tactics in the order of ATT&CK, and entities that tie alerts together."""
    if len(run.rows) != 1:
        return compose(writer, plan, run)
    writer.fixed(ANALYSIS_NOTICE)
    say_identity(writer, plan, run)
    tactics = run.at("/rows/0/tactics")
    found = [str(tactic) for tactic in tactics] if isinstance(tactics, list | tuple) else []
    ordered = sorted(range(len(found)), key=lambda place: _tactic_rank(found[place]))
    if ordered:
        writer.say(
            "In the order of the ATT&CK matrix its alerts cover: {}.",
            [writer.number(run, f"/rows/0/tactics/{place}") for place in ordered],
        )
        latest = found[ordered[-1]].replace(" ", "")
        if latest in ("Exfiltration", "Impact"):
            writer.fixed("The last of these tactics means that harm may have been done already; look at it first.")
        elif latest in ("LateralMovement", "Collection", "CommandAndControl", "CredentialAccess"):
            writer.fixed("The last of these tactics means that the attacker may hold more than the first machine.")
    else:
        writer.say_compared(
            [(run, "/rows/0")], "No tactics are recorded, so the stage of the attack cannot be told from the alerts."
        )
    entities = run.at("/rows/0/entities")
    shared: list[tuple[int, str]] = []
    for kind, members in entities.items() if isinstance(entities, Mapping) else ():
        for place, member in enumerate(members if isinstance(members, list | tuple) else ()):
            count = member.get("alerts") if isinstance(member, Mapping) else None
            if isinstance(count, int) and count > 1 and kind in ("account", "host", "ip", "url", "file", "process"):
                shared.append((count, f"/rows/0/entities/{escape(kind)}/{place}"))
    shared.sort(key=lambda item: -item[0])
    if shared:
        writer.fixed("Entities that several of its alerts share, which tie them together:")
        writer.table(
            "Shared entities",
            ("Alerts", "Entity"),
            [[writer.cell(run, f"{at}/alerts"), writer.cell(run, f"{at}/name", limit=200)] for _, at in shared[:10]],
        )
    else:
        writer.say_compared([(run, "")], "No entity is shared by several of its alerts; they may be separate events.")
    scope.say_partial(writer, run)
    return Composed(incident=str(run.rows[0].get("number")))


def _tactic_rank(tactic: str) -> int:
    name = tactic.replace(" ", "").lower()
    known = [each.lower() for each in TACTICS]
    return known.index(name) if name in known else len(known)

"""All values of one property in an incident: every file hash, every command line, whichever entity holds it.

Read from the entities of get_incident_detail; a kind with more members than the tool returns is told as such.
"""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.answer_writer import EMPTY_CELL, AnswerWriter, Fact, phrase
from sentinel_rag.agent.offline.attributes import ATTRIBUTES, escape, values_of
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun

IN_SENTENCE = 5


def say_property(writer: AnswerWriter, run: ToolRun, label: str) -> None:
    """Each distinct value of the attribute `label`, with the thing that it belongs to where that has another name."""
    attribute = next(known for known in ATTRIBUTES if known.label == label)
    headed = label[0].upper() + label[1:]
    found: dict[str, tuple[str, Fact, Fact, Fact]] = {}
    for kind in attribute.kinds:
        base = f"/rows/0/entities/{escape(kind)}"
        members = run.at(base)
        for place, member in enumerate(members if isinstance(members, list | tuple) else ()):
            if not isinstance(member, Mapping):
                continue
            for pointer, value in values_of(attribute, {**member, "kind": kind}):
                shown = plain(str(value)).lower()
                at = f"{base}/{place}"
                other = member.get("name") not in (value, None)
                owner = writer.cell(run, f"{at}/name", limit=200) if other else Fact(EMPTY_CELL)
                if shown not in found or (other and found[shown][2].text == EMPTY_CELL):
                    found[shown] = (
                        f"{at}{pointer}",
                        writer.exact(run, f"{at}{pointer}"),
                        owner,
                        writer.cell(run, f"{at}/alerts"),
                    )
        counted = run.at(f"/rows/0/entity_counts/{escape(kind)}")
        if isinstance(members, list | tuple) and isinstance(counted, int) and counted > len(members):
            writer.say(
                f"Of {{}} entities of the kind {kind} the tool returned {{}}; values of the others are missing here.",
                writer.number(run, f"/rows/0/entity_counts/{escape(kind)}"),
                writer.count(run, base),
            )
    if not found:
        writer.say_compared([(run, "/rows/0")], "{}: none recorded.", Fact(headed))
        return
    count = writer.tally([(run, pointer) for pointer, _, _, _ in found.values()])
    if len(found) <= IN_SENTENCE:
        facts = [
            fact if owner.text == EMPTY_CELL else phrase("{} ({})", fact, owner) for _, fact, owner, _ in found.values()
        ]
        writer.say("{} ({}): {}.", Fact(headed), count, facts)
        return
    writer.say("{}: {} distinct values, in the table below.", Fact(headed), count)
    owned = any(owner.text != EMPTY_CELL for _, _, owner, _ in found.values())
    columns = (headed, "Belongs to", "Alerts") if owned else (headed, "Alerts")
    rows = [
        [writer.cell(run, pointer, limit=600), *([owner] if owned else []), alerts]
        for pointer, _, owner, alerts in found.values()
    ]
    writer.table("", columns, rows)

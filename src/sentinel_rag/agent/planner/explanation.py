"""How a sentence was read and what becomes of it, for people and for programs. Nothing is executed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sentinel_rag.agent.planner.decisions import Decision
from sentinel_rag.language.frames.phrases import SILENT


def as_dict(question: str, decision: Decision) -> dict[str, Any]:
    """The reading and the decision as JSON values."""
    frame = decision.frame
    read = [
        {"text": item.text, "as": [f"{type_}:{value}" if value else type_ for type_, value in item.senses]}
        for item in frame.items
        if not item.silent and item.type != "text"
    ]
    told: dict[str, Any] = {
        "question": question,
        "language": frame.language,
        "read": read,
        "passed_over": [item.text for item in frame.items if item.silent],
        "unread": [*frame.unread, *frame.loose],
        "time": {"said": frame.time_said, **frame.window} if frame.time_said or frame.window else {},
        "frame": {type_: values for type_, values in frame.features.items() if values and type_ not in SILENT},
        "decision": decision.kind.value,
        "row": decision.row,
        "calls": [{"tool": call.tool, "arguments": dict(call.arguments)} for call in decision.calls],
    }
    if decision.order is not None:
        told["order"] = {name: value for name, value in asdict(decision.order).items() if value}
    if decision.reason is not None:
        told |= {"reason": decision.reason.value, "values": list(decision.values), "sentence": decision.sentence}
    return told


def as_lines(question: str, decision: Decision) -> list[str]:
    """The same in lines for a person."""
    told = as_dict(question, decision)
    lines = [question, f"  language   {told['language']}"]
    lines += [f"  read       {each['text']}: {', '.join(each['as'])}" for each in told["read"]]
    if told["passed_over"]:
        lines.append(f"  passed     {' '.join(told['passed_over'])}")
    if told["time"]:
        ends = " ".join(f"{name}={value}" for name, value in told["time"].items() if name != "said")
        lines.append(f"  time       {told['time'].get('said', '')}: {ends}")
    if told["unread"]:
        lines.append(f"  unread     {', '.join(told['unread'])}")
    lines.append(f"  decision   {told['decision']}{': ' + told['row'] if told['row'] else ''}")
    if "order" in told:
        lines.append(f"  order      {' '.join(f'{name}={value}' for name, value in told['order'].items())}")
    for call in told["calls"]:
        shown = " ".join(f"{name}={value}" for name, value in call["arguments"].items())
        lines.append(f"  call       {call['tool']} {shown}".rstrip())
    if "sentence" in told:
        lines.append(f"  asks back  {told['sentence']} ({told['reason']})")
    return lines

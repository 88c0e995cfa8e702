"""The entities of one incident, kind by kind: a few in a sentence, more in a table."""

from __future__ import annotations

from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.attributes import escape
from sentinel_rag.agent.tool_runs import ToolRun

MAX_ENTITIES = 15
IN_SENTENCE = 5
"""Entities that are named in a sentence; more of them stand in a table."""
KINDS_SHOWN = {
    "account": "Accounts",
    "host": "Hosts",
    "ip": "IP addresses",
    "url": "URLs",
    "file": "Files",
    "filehash": "Hashes",
}
_LABELS = {
    **KINDS_SHOWN,
    "process": "Processes",
    "mailbox": "Mailboxes",
    "mailmessage": "Emails",
    "cloud-application": "Cloud applications",
    "oauth-application": "OAuth applications",
    "azure-resource": "Azure resources",
    "dns": "Domains",
    "malware": "Malware",
    "registry-key": "Registry keys",
    "registry-value": "Registry values",
    "security-group": "Security groups",
}


def say_entities(writer: AnswerWriter, run: ToolRun, kind: str, *, limit: int, say_none: bool = False) -> None:
    """The entities of one kind; `say_none` also tells that there are none."""
    base = f"/rows/0/entities/{escape(kind)}"
    entities = run.at(base)
    label = _LABELS.get(kind, kind)
    if not isinstance(entities, list | tuple) or not entities:
        if say_none:
            writer.say_compared([(run, "/rows/0")], f"{label}: none recorded.")
        return
    facts = []
    for place in range(min(len(entities), limit)):
        name = writer.exact(run, f"{base}/{place}/name", limit=200)
        facts.append(name)
    counted = f"/rows/0/entity_counts/{escape(kind)}"
    count = writer.number(run, counted) if run.at(counted) is not None else writer.count(run, base)
    if say_none and len(entities) > IN_SENTENCE:
        writer.say(f"{label}: {{}}, in the table below.", count)
        rows = [
            [writer.cell(run, f"{base}/{place}/name", limit=300), writer.cell(run, f"{base}/{place}/alerts")]
            for place in range(len(entities))
        ]
        title = label if count.text == str(len(entities)) else f"The first {label}"
        writer.table(title, ("Name", "Alerts"), rows)
    elif len(entities) > limit:
        writer.say(f"{label} ({{}} in all, the first of them here): {{}}.", count, facts)
    elif say_none:
        writer.say(f"{label} ({{}}): {{}}.", count, facts)
    else:
        writer.say(f"{label}: {{}}.", facts)

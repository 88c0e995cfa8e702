"""How well knowledge is found: by words alone, by meaning alone, by both as the product fuses them.

Seven sets (`knowledge_sets`, `knowledge_pages`), each store filled by the product's ingestion and asked through its
search. What was tuned was tuned on the part of a set that is not held out; the second set of questions on techniques
and all parts that are held out were looked at afterwards. `unspelled` is the product's search without the list of the
field's own words, `reciprocal` how the rankings were fused before: by places, 50 deep. Rows:
`results/knowledge_quality_rows.tsv`, third-party texts by name.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import RESULTS, write
from bench.knowledge_pages import FOLDERS, alert_questions, answer_names, pages, section_questions
from bench.knowledge_sets import Question, attack, interval, ndcg, recall, rules, rules_for, technique_questions
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.embedding.minilm import MiniLm
from sentinel_rag.knowledge.fusion import fused
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.search import DEPTHS, KnowledgeSearch
from sentinel_rag.knowledge.stores import Found, LocalStore, StoredChunk, Wanted

WAYS = ("words", "meaning", "reciprocal", "unspelled", "hybrid")
DEPTH = 50


@dataclass(frozen=True, slots=True)
class TestSet:
    """Questions to one of the stores. `named` gives the name under which a chunk is an answer."""

    name: str
    questions: Sequence[Question]
    named: Callable[[StoredChunk], str]


def document_id(chunk: StoredChunk) -> str:
    return chunk.document_id


def stores() -> list[tuple[str, Sequence[Document], Sequence[TestSet]]]:
    """Each store's name, its documents and what it is asked."""
    techniques, uses = attack()
    rule_documents, rule_gains, rule_questions = rules()
    first, second = technique_questions("attack_techniques"), technique_questions("attack_techniques_second")
    page_documents = pages()
    sections, alerts = section_questions(page_documents), alert_questions(page_documents)
    for prefix, folder in FOLDERS.items():
        if not folder.is_dir():
            print(f"SKIPPED: questions on {prefix}*, since {folder.name} is not here", flush=True)
    return [
        (
            "techniques",
            techniques,
            [
                TestSet("techniques", first, document_id),
                TestSet("techniques_second", second, document_id),
                TestSet("uses_to_techniques", uses, document_id),
                TestSet("rules_to_techniques", rule_questions, document_id),
            ],
        ),
        ("rules", rule_documents, [TestSet("techniques_to_rules", rules_for(first, rule_gains), document_id)]),
        (
            "pages",
            page_documents,
            [
                TestSet(name, asked, lambda chunk, asked=asked: answer_names(asked, chunk.document_id, chunk.path))
                for name, asked in (("sections", sections), ("alerts_to_reports", alerts))
            ],
        ),
    ]


class Ways:
    """Questions to one store, each way: the names of what was found, best first."""

    def __init__(self, store: LocalStore, model: MiniLm) -> None:
        self._store, self._model = store, model
        self._search = KnowledgeSearch(store, model)

    def found(self, question: str, named: Callable[[StoredChunk], str]) -> dict[str, list[str]]:
        words = self._store.by_words(question, Wanted(), DEPTH)
        meaning = self._store.by_vector(self._model.space, self._model.embed_query(question), Wanted(), DEPTH)
        hybrid = [hit.chunk for hit in self._search.search(question, Wanted(), limit=DEPTH).hits]
        chunks = {"words": self._loaded(words), "meaning": self._loaded(meaning), "hybrid": hybrid}
        chunks["reciprocal"] = self._loaded(reciprocal(meaning, words))
        chunks["unspelled"] = self._unspelled(question)
        return {way: list(dict.fromkeys(map(named, chunks[way]))) for way in WAYS}

    def _unspelled(self, question: str) -> Sequence[StoredChunk]:
        words = self._store.by_words(question, Wanted(), DEPTHS[0])
        vector = self._model.embed_query(question)
        meaning = self._store.by_vector(self._model.space, vector, Wanted(), DEPTHS[0])
        legs = [{found.key: found.score for found in leg} for leg in (words, meaning)]
        chunks = {chunk.key: chunk for chunk in self._loaded([*words, *meaning])}
        documents = {key: chunk.document_id for key, chunk in chunks.items()}
        return [chunks[key] for key, _ in fused(legs[0], legs[1], documents)]

    def _loaded(self, found: Sequence[Found]) -> Sequence[StoredChunk]:
        return self._store.load([each.key for each in found], frozenset())


def reciprocal(*rankings: Sequence[Found]) -> list[Found]:
    """Reciprocal rank fusion with k = 60 (Cormack, Clarke and Büttcher, SIGIR 2009)."""
    scores: dict[int | str, float] = {}
    for ranking in rankings:
        for place, found in enumerate(ranking, 1):
            scores[found.key] = scores.get(found.key, 0.0) + 1 / (60 + place)
    return [Found(key, score) for key, score in sorted(scores.items(), key=lambda pair: -pair[1])]


def summary(scores: Mapping[str, Sequence[float]], recalls: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    return {
        "questions": len(scores["hybrid"]),
        "ndcg_at_10": {way: round(statistics.mean(scores[way]), 3) for way in WAYS},
        "recall_at_5": {way: round(statistics.mean(recalls[way]), 3) for way in WAYS},
        "hybrid_over": {
            way: {
                "ndcg_95": interval(scores["hybrid"], scores[way]),
                "recall_95": interval(recalls["hybrid"], recalls[way]),
            }
            for way in WAYS
            if way != "hybrid"
        },
    }


def asked(test: TestSet, ways: Ways, lines: list[str]) -> dict[str, Any]:
    scores: list[dict[str, float]] = []
    recalls: list[dict[str, float]] = []
    for question in test.questions:
        found = ways.found(question.text, test.named)
        scores.append({way: ndcg(question, found[way]) for way in WAYS})
        recalls.append({way: recall(question, found[way]) for way in WAYS})
        part = "held out" if question.held_out else "develop"
        figures = (f"{scores[-1][way]:.3f}" for way in WAYS)
        lines.append("\t".join((test.name, part, *figures, ",".join(question.gains), question.name)))
    measured: dict[str, Any] = {}
    for part, chosen in (
        ("all", [True] * len(test.questions)),
        ("develop", [not each.held_out for each in test.questions]),
        ("held_out", [each.held_out for each in test.questions]),
    ):
        measured[part] = summary(
            {way: [row[way] for row, taken in zip(scores, chosen, strict=True) if taken] for way in WAYS},
            {way: [row[way] for row, taken in zip(recalls, chosen, strict=True) if taken] for way in WAYS},
        )
    return measured


def main() -> None:
    model = MiniLm()
    only = os.environ.get("ONLY")
    measured: dict[str, Any] = {"load_of_the_machine": [round(each, 1) for each in os.getloadavg()], "sets": {}}
    lines = ["\t".join(("set", "part", *WAYS, "expected", "question"))]
    with tempfile.TemporaryDirectory(prefix="knowledge-") as work:
        for name, documents, tests in stores():
            with LocalStore(Path(work) / f"{name}.db") as store:
                report = ingest(store, model, Collection.PLAYBOOKS, documents, complete=True)
                measured[name] = {
                    "documents": report.added,
                    "chunks": report.chunks,
                    "chunks_embedded_a_second": round(report.embedded / report.seconds, 1),
                }
                for test in tests:
                    if test.questions and (only is None or test.name == only):
                        measured["sets"][test.name] = asked(test, Ways(store, model), lines)
                        held = measured["sets"][test.name]["held_out"]
                        print(test.name, held["questions"], held["ndcg_at_10"], held["recall_at_5"], flush=True)
    if only is None:
        (RESULTS / "knowledge_quality_rows.tsv").write_text("\n".join(lines) + "\n")
        write("knowledge_quality", measured, claim="Words and meaning fused find more than either alone")


if __name__ == "__main__":
    main()

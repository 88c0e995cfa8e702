"""How well knowledge is found: by words alone, by meaning alone, by both as the product fuses them.

Seven sets (`knowledge_sets`, `knowledge_pages`), each store filled by the product's ingestion and asked through its
search. What was tuned was tuned on the part of a set that is not held out; the second set of questions on techniques
and all parts that are held out were looked at afterwards. The list of the field's own words was written after the
second set and is not held out from it. `words` and `meaning` are asked the question as it stands and `unspelled` fuses
those; `words_spelled` and `meaning_spelled` are asked it with what the list adds, as the product (`hybrid`) asks both.
`reciprocal` is how the rankings were fused before: by places, 50 deep. Rows: `results/knowledge_quality_rows.tsv`,
third-party texts by name. `ONLY=set,set` measures some sets anew and keeps the others' results.
"""

from __future__ import annotations

import csv
import json
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
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.search import DEPTHS, KnowledgeSearch, fused, spelled_out
from sentinel_rag.knowledge.stores import LocalStore, StoredChunk, StoreHit, Wanted

WAYS = ("words", "meaning", "words_spelled", "meaning_spelled", "reciprocal", "unspelled", "hybrid")
DEPTH = 50
ROWS = RESULTS / "knowledge_quality_rows.tsv"
COLUMNS = ("set", "part", *WAYS, "expected", "question")


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
        words, meaning = self._legs(question)
        spelled = spelled_out(question)
        words_spelled, meaning_spelled = self._legs(spelled) if spelled != question else (words, meaning)
        chunks = {
            "words": self._loaded(words[:DEPTH]),
            "meaning": self._loaded(meaning[:DEPTH]),
            "words_spelled": self._loaded(words_spelled[:DEPTH]),
            "meaning_spelled": self._loaded(meaning_spelled[:DEPTH]),
            "reciprocal": self._loaded(reciprocal(meaning[:DEPTH], words[:DEPTH])),
            "unspelled": self._fused(words, meaning),
            "hybrid": [hit.chunk for hit in self._search.search(question, Wanted(), limit=DEPTH).hits],
        }
        return {way: list(dict.fromkeys(map(named, chunks[way]))) for way in WAYS}

    def _legs(self, question: str) -> tuple[Sequence[StoreHit], Sequence[StoreHit]]:
        vector = self._model.embed_query(question)
        return (
            self._store.by_words(question, Wanted(), DEPTHS[0]),
            self._store.by_vector(self._model.space, vector, Wanted(), DEPTHS[0]),
        )

    def _fused(self, words: Sequence[StoreHit], meaning: Sequence[StoreHit]) -> Sequence[StoredChunk]:
        legs = [{found.key: found.score for found in leg} for leg in (words, meaning)]
        chunks = {chunk.key: chunk for chunk in self._loaded([*words, *meaning])}
        documents = {key: chunk.document_id for key, chunk in chunks.items()}
        return [chunks[key] for key, _ in fused(legs[0], legs[1], documents)]

    def _loaded(self, found: Sequence[StoreHit]) -> Sequence[StoredChunk]:
        return self._store.load([each.key for each in found], frozenset())


def reciprocal(*rankings: Sequence[StoreHit]) -> list[StoreHit]:
    """Reciprocal rank fusion with k = 60 (Cormack, Clarke and Büttcher, SIGIR 2009)."""
    scores: dict[int | str, float] = {}
    for ranking in rankings:
        for place, found in enumerate(ranking, 1):
            scores[found.key] = scores.get(found.key, 0.0) + 1 / (60 + place)
    return [StoreHit(key, score) for key, score in sorted(scores.items(), key=lambda pair: -pair[1])]


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


def kept() -> tuple[dict[str, Any], dict[str, list[str]]]:
    """What was measured before: the figures, and the rows of each set."""
    figures = json.loads((RESULTS / "knowledge_quality.json").read_text())["measured"]
    rows: dict[str, list[str]] = {}
    with ROWS.open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            rows.setdefault(row["set"], []).append("\t".join(row.get(name, "") for name in COLUMNS))
    return figures, rows


def main() -> None:
    model = MiniLm()
    only = set(filter(None, os.environ.get("ONLY", "").split(",")))
    measured, rows = kept() if only else ({"sets": {}}, {})
    measured["load_of_the_machine"] = [round(each, 1) for each in os.getloadavg()]
    with tempfile.TemporaryDirectory(prefix="knowledge-") as work:
        for name, documents, tests in stores():
            wanted = [test for test in tests if test.questions and (not only or test.name in only)]
            if not wanted:
                continue
            with LocalStore(Path(work) / f"{name}.db") as store:
                report = ingest(store, model, Collection.PLAYBOOKS, documents, complete=True)
                measured[name] = {
                    "documents": report.added,
                    "chunks": report.chunks,
                    "chunks_embedded_a_second": round(report.embedded / report.seconds, 1),
                }
                for test in wanted:
                    rows[test.name] = []
                    measured["sets"][test.name] = asked(test, Ways(store, model), rows[test.name])
                    held = measured["sets"][test.name]["held_out"]
                    print(test.name, held["questions"], held["ndcg_at_10"], held["recall_at_5"], flush=True)
    ROWS.write_text("\n".join(("\t".join(COLUMNS), *(line for lines in rows.values() for line in lines))) + "\n")
    write("knowledge_quality", measured, claim="Words and meaning fused find more than either alone, asked alike")


if __name__ == "__main__":
    main()

"""A made estate of incidents for benchmarks of knowledge stores: texts, facets, readers, and vectors in clusters.

Texts are sentences of the shipped playbooks in random order, with names of their own, so that words are as common and
as rare as in real ones. Vectors are drawn about 500 centres of unequal weight in a space of 48 dimensions, laid into
384 with a little noise: near to each other in some directions, as sentence embeddings are. Vectors without any order
would be far harder for a graph. Seeds are fixed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sentinel_rag.knowledge.chunking import Chunk
from sentinel_rag.knowledge.documents import EVERYONE, Collection, Document, Facets
from sentinel_rag.knowledge.stores import StoreEntry, Wanted

HERE = Path(__file__).parent
DIMENSIONS = 384
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
FILTERS = {
    "nothing": Wanted(readers=frozenset({"tier3"})),
    "95 % by readers": Wanted(),
    "10 % by status": Wanted(readers=frozenset({"tier3"}), statuses=frozenset({"Active"})),
    "1 % by severity": Wanted(readers=frozenset({"tier3"}), severities=frozenset({"High"})),
}
"""What is filtered, or how much of the estate is let through."""


class Estate:
    """`size` incidents of one chunk each; the vector of number n is row n of `vectors`."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._random = np.random.default_rng(6)
        self._centres = self._random.standard_normal((500, 48))
        self._weights = 1 / np.arange(1, 501) ** 0.7
        self._plane = self._random.standard_normal((48, DIMENSIONS)) / np.sqrt(48)
        self.vectors = self.draw(size)
        severities = random.Random(7).choices(("High", "Medium", "Low", "Informational"), (1, 19, 60, 20), k=size)
        self.severities: Sequence[str] = severities

    def draw(self, count: int) -> NDArray[np.float32]:
        """Vectors at length one, shape (count, 384)."""
        chosen = self._random.choice(500, count, p=self._weights / self._weights.sum())
        near = self._centres[chosen] + 0.8 * self._random.standard_normal((count, 48))
        laid = near @ self._plane + 0.15 * self._random.standard_normal((count, DIMENSIONS))
        return (laid / np.linalg.norm(laid, axis=1, keepdims=True)).astype(np.float32)

    def let_through(self, wanted: Wanted) -> NDArray[np.int64]:
        """The numbers of the incidents that a filter lets through."""
        through = np.ones(self.size, dtype=bool)
        if "tier3" not in wanted.readers:
            through &= np.arange(self.size) % 20 != 0
        if wanted.statuses:
            through &= np.arange(self.size) % 10 == 0
        if wanted.severities:
            through &= np.array([each in wanted.severities for each in self.severities])
        return np.flatnonzero(through)

    def entries(self, step: int) -> Iterator[tuple[list[StoreEntry], NDArray[np.float32]]]:
        """All incidents, `step` at a time, with their vectors."""
        picked = random.Random(6)
        parts = _sentences()
        for start in range(0, self.size, step):
            numbers = range(start, min(self.size, start + step))
            yield [self._entry(n, picked, parts) for n in numbers], self.vectors[start : numbers.stop]

    def _entry(self, n: int, picked: random.Random, parts: Sequence[str]) -> StoreEntry:
        user, address = f"user{picked.randrange(20_000)}@contoso.example", f"10.{n % 250}.{n // 250 % 250}.7"
        text = f"{' '.join(picked.choices(parts, k=7))} host-{picked.randrange(5_000)} {user} {address}"
        facets = Facets(
            techniques=(picked.choice(("T1566.001", "T1486", "T1078.004", "T1021.002", "T1110.003")),),
            severity=self.severities[n],
            status="Active" if n % 10 == 0 else "Closed",
            time=BEGAN + timedelta(minutes=n),
        )
        readers = frozenset({"tier3"} if n % 20 == 0 else {EVERYONE})
        title = f"Incident {n}"
        document = Document(f"{n}", Collection.INCIDENTS, title, f"incident-{n}", (), facets, readers=readers)
        return StoreEntry(document, (Chunk(0, ("Summary",), 1, text, f"{title}\nSummary\n\n{text}"),))


def questions(count: int) -> Sequence[str]:
    """Questions in analysts' words, spread over the collection that `knowledge_quality` asks."""
    lines = (HERE / "questions" / "attack_techniques.tsv").read_text().splitlines()
    every = [line.split("\t")[1].strip() for line in lines if line and not line.startswith("#")]
    return every[:: max(1, len(every) // count)][:count]


def _sentences() -> list[str]:
    text = " ".join(path.read_text() for path in sorted((HERE.parent / "data" / "playbooks").glob("*.md")))
    return [each for each in re.split(r"(?<=[.!?])\s+|\n+", text) if len(each.split()) > 4]

"""An embedding model without a model: each word has a direction of its own, made from its hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from sentinel_rag.knowledge.stores.port import Vector, VectorSpace


class WordEmbedder:
    """Texts that share words are near. `failing_after`: raises RuntimeError once so many texts were embedded, as a
    process that dies does."""

    def __init__(self, *, model: str = "words", dimensions: int = 64, failing_after: int | None = None) -> None:
        self.space = VectorSpace(model, dimensions)
        self.batch = 4
        self.embedded: list[str] = []
        self._failing_after = failing_after
        self._directions: dict[str, Vector] = {}

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        if self._failing_after is not None and len(self.embedded) + len(texts) > self._failing_after:
            raise RuntimeError("the process dies here")
        self.embedded += texts
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vector:
        found = np.zeros(self.space.dimensions, dtype=np.float32)
        for word in re.findall(r"\w+", text.casefold()):
            found += self._direction(word)
        return found

    def _direction(self, word: str) -> Vector:
        if word not in self._directions:
            seed = int.from_bytes(hashlib.sha256(f"{self.space.model} {word}".encode()).digest()[:8])
            direction = np.random.default_rng(seed).standard_normal(self.space.dimensions)
            self._directions[word] = direction.astype(np.float32)
        return self._directions[word]

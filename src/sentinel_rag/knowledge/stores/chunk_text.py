"""The search text of a chunk as two columns: its head (title and headings) and its text, so that no store keeps the
text twice. Which of the two forms it has is told by its hash.
"""

from __future__ import annotations

import hashlib

from sentinel_rag.knowledge.chunking import Chunk


def head_of(chunk: Chunk) -> str:
    """What stands over the text in the search text; all of it where it does not end with the text."""
    return chunk.search_text.removesuffix(f"\n\n{chunk.text}")


def search_text(head: str, text: str, search_hash: str) -> str:
    """The search text that `head_of` parted."""
    joined = f"{head}\n\n{text}"
    return joined if hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest() == search_hash else head

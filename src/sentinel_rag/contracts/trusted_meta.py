"""What the gateway and a tool server of this product tell each other beside arguments and results, in MCP's `_meta`.

Only the gateway writes `READERS` and only it reads `ROW_LABELS`; neither is part of a tool's schema, so nothing
that an agent sends can become one of them. Servers of other makers are sent the one and believed the other never.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import Label

READERS = "sentinel-rag/readers"
"""Names under which the caller may read, as a list of texts. Absent: only what everybody may read."""

ROW_LABELS = "sentinel-rag/row-labels"
"""The label of each row of a result, in their order, each as `Label.to_dict`."""


def readers_in(meta: Mapping[str, Any] | None) -> frozenset[str]:
    """The caller's readers; none where they are absent or not a list of texts."""
    found = (meta or {}).get(READERS)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return frozenset()
    return frozenset(found)


def row_labels_meta(labels: Iterable[Label]) -> dict[str, JsonValue]:
    """The `_meta` of a result whose rows carry `labels`."""
    return {ROW_LABELS: [{**label.to_dict()} for label in labels]}


def row_labels_in(meta: Any) -> tuple[Label, ...] | None:
    """The labels that a result tells; None where there are none, or one of them is not exactly a label."""
    found = meta.get(ROW_LABELS) if isinstance(meta, Mapping) else None
    if not isinstance(found, list):
        return None
    labels: list[Label] = []
    for entry in found:
        if not isinstance(entry, dict) or entry.keys() != {"sensitivity", "integrity"}:
            return None
        try:
            labels.append(Label.from_dict(entry))
        except (KeyError, TypeError):
            return None
    return tuple(labels)

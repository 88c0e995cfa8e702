"""Where knowledge is kept: the store in use, and what each store asks for. Secrets are held as `Secret`."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.settings.shapes import KnowledgeSettings
from sentinel_rag.settings.values import Reader, one_of

KNOWLEDGE_STORES = ("local",)
"""Every store by its name; `assembly.knowledge_stores` opens them."""

NEEDED: Mapping[str, Mapping[str, str]] = {
    "local": {},
}
"""Store -> variable that it cannot do without -> what that holds."""


def read_knowledge(reader: Reader) -> KnowledgeSettings:
    """What is set for every store, since `sentinel knowledge migrate` opens two; what the one in use lacks is a
    problem."""
    store = reader.read("SENTINEL_KNOWLEDGE_STORE", one_of(KNOWLEDGE_STORES), "local")
    reader.problems += [
        f"{variable}: is missing; SENTINEL_KNOWLEDGE_STORE={store} needs {what}"
        for variable, what in NEEDED[store].items()
        if not reader.values.get(variable, "").strip()
    ]
    return KnowledgeSettings(store=store)

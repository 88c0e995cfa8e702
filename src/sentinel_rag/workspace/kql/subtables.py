"""Parts of a relation as sources of queries of their own, for the operators that work group by group.

Used by `top_nested` and `partition`: the relation before an operator is read again, whole or only the rows of a group.
"""

from __future__ import annotations

import dataclasses

from sentinel_rag.workspace.kql.extension import AddedSource, quoted


@dataclasses.dataclass(frozen=True)
class Rows(AddedSource):
    """The rows of the relation `relation`; of one group only, where `group` names the relation with its key."""

    relation: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    group: str = ""
    key: str = ""

    def columns(self) -> list[str]:
        return list(self.names)

    def sql(self) -> str:
        whole = f"SELECT * FROM {self.relation}"  # noqa: S608 - a name that the translation made
        if not self.group:
            return whole
        return f"{whole} WHERE {quoted(self.key)} IS NOT DISTINCT FROM {quoted(self.group)}.{quoted(self.key)}"

"""Whose a playbook is in a store that several homes share: each home's folder is a source, the shipped ones another.

The owner is kept as the document's etag. A home's document carries the home in its id as well, since everybody has a
`phishing.md`; it is cited by its file all the same. In a store of one home nothing has an owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sentinel_rag.knowledge.documents import Document
from sentinel_rag.knowledge.stores.port import Version

_ID_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class PlaybookOwner:
    """A source of playbooks. `name` is empty in a store of one home; `suffix` follows the file's path in ids."""

    name: str = ""
    suffix: str = ""

    @property
    def removes(self) -> bool:
        """Whether what is gone from the folder goes from the store: homes with several versions of this product have
        several shipped folders."""
        return self != SHIPPED

    def id_of(self, path: str) -> str:
        """The document id of the file at `path` of the folder."""
        return f"{path}{self.suffix}"

    def owned(self, document: Document) -> Document:
        """The document as this source stores it."""
        return replace(document, id=self.id_of(document.id), etag=self.name) if self.name else document

    def of(self, versions: Mapping[str, Version]) -> dict[str, Version]:
        """Of all playbooks of a store those of this source, by the path of their file."""
        return {
            document.removesuffix(self.suffix): version
            for document, version in versions.items()
            if not self.name or version.etag == self.name
        }


NOBODY = PlaybookOwner()
"""For a store of one home: all playbooks are those of its folder."""
SHIPPED = PlaybookOwner("shipped")
"""The playbooks that come with the product, whichever home reads them in."""


def home_owner(home_id: str) -> PlaybookOwner:
    """The folder of the home with this id (a GUID)."""
    return PlaybookOwner(f"home {home_id}", f"@{home_id[:_ID_CHARACTERS]}")

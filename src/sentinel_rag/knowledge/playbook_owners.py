"""Whose a playbook is in a store that several homes share: each home's folder is a source, the shipped ones another.

The owner is kept as the document's etag. Everybody has a `phishing.md`: whoever comes second has an id with the owner
in it, and is cited by its file all the same. In a store of one home nothing has an owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sentinel_rag.knowledge.documents import Document
from sentinel_rag.knowledge.stores.port import Version

_ID_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class PlaybookOwner:
    """A source of playbooks. `name` is empty in a store of one home; `suffix` follows the file's path in
    the id where another source has that path."""

    name: str = ""
    suffix: str = ""

    @property
    def removes(self) -> bool:
        """Whether what is gone from the folder goes from the store: homes with several versions of this product have
        several shipped folders."""
        return self != SHIPPED

    def owned(self, document: Document, stored: Mapping[str, Version]) -> Document:
        """The document of a file as this source stores it among those that are `stored`. One without an owner, of an
        earlier version, is taken over."""
        there = stored.get(document.id)
        if not self.name:
            return document if there is None else replace(document, etag=there.etag)
        taken = there is not None and there.etag not in ("", self.name)
        return replace(document, id=f"{document.id}{self.suffix}" if taken else document.id, etag=self.name)

    def of(self, stored: Mapping[str, Version]) -> dict[str, Version]:
        """Of all playbooks of a store those of this source, by their ids."""
        return {name: version for name, version in stored.items() if not self.name or version.etag == self.name}

    def path_of(self, document_id: str) -> str:
        """The path of the file that this source stored by that id."""
        return document_id.removesuffix(self.suffix)


NOBODY = PlaybookOwner()
"""For a store of one home: all playbooks are those of its folder."""
SHIPPED = PlaybookOwner("shipped", "@shipped")
"""The playbooks that come with the product, whichever home reads them in."""


def home_owner(home_id: str) -> PlaybookOwner:
    """The folder of the home with this id (a GUID)."""
    return PlaybookOwner(f"home {home_id}", f"@{home_id[:_ID_CHARACTERS]}")

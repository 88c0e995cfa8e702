"""What the journal says about itself: tails that were sealed late, checkpoints that could not be kept, segments, and
what was pruned, a backup that was put back. Each is a record of the chain like any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sentinel_rag.contracts.json_values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class TailSealed:
    """Records `first` to `last` had no checkpoint after them when a gateway started: the one that wrote them
    died, or they are older than checkpoints. They are sealed from here on; before, nothing proves them."""

    kind: ClassVar[str] = "tail_sealed"
    audit_id: str
    first: int
    last: int

    def fields(self) -> dict[str, JsonValue]:
        return {"first": self.first, "last": self.last}


@dataclass(frozen=True, slots=True, kw_only=True)
class SealingChanged:
    """Checkpoints can no longer be kept at `place` (`problem` says why), or can again (`problem` is empty)."""

    kind: ClassVar[str] = "sealing"
    audit_id: str
    place: str
    problem: str

    def fields(self) -> dict[str, JsonValue]:
        return {"place": self.place, "problem": self.problem}


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentClosed:
    """Records `first` to `last` moved to a file of their own; `last_hash` is the hash of the last one, in hex."""

    kind: ClassVar[str] = "segment_closed"
    audit_id: str
    file: str
    first: int
    last: int
    last_hash: str

    def fields(self) -> dict[str, JsonValue]:
        return {"file": self.file, "first": self.first, "last": self.last, "last_hash": self.last_hash}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsPruned:
    """Records `first` to `through` were removed on purpose, because all were older than `older_than`. `through_hash` is
    the hash of the last of them, which the first kept record holds as the one before it."""

    kind: ClassVar[str] = "pruned"
    audit_id: str
    first: int
    through: int
    through_hash: str
    older_than: str

    def fields(self) -> dict[str, JsonValue]:
        return {
            "first": self.first,
            "through": self.through,
            "through_hash": self.through_hash,
            "older_than": self.older_than,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRestored:
    """This journal, which ended at record `head`, was put back on purpose from a backup of `made_at`. What other copies
    hold of later records is none of it."""

    kind: ClassVar[str] = "restored"
    audit_id: str
    made_at: str
    head: int

    def fields(self) -> dict[str, JsonValue]:
        return {"made_at": self.made_at, "head": self.head}

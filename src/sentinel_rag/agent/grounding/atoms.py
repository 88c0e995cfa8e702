"""What a recogniser finds: an atom, a part of an answer that can be checked, with its place and its meaning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What an atom claims."""

    HANDLE = "handle"
    INCIDENT = "incident number"
    GUID = "GUID"
    ADDRESS = "IP address"
    HASH = "hash"
    URL = "URL"
    DOMAIN = "host or domain name"
    ACCOUNT = "account"
    PATH = "file path"
    FILE = "file name"
    TECHNIQUE = "MITRE ATT&CK id"
    TACTIC = "MITRE ATT&CK tactic"
    TITLE = "name from a result"
    QUOTE = "quotation"
    CODE = "code span"
    TIME = "time"
    DURATION = "duration"
    PERCENT = "percentage"
    COUNT = "number"
    SEVERITY = "severity"
    STATUS = "status"
    CLASSIFICATION = "classification"
    OWNERSHIP = "owner"
    NAME = "name"
    TOKEN = "identifier"  # noqa: S105 - a word with digits, no secret


IDENTIFIERS = frozenset(
    {
        Kind.GUID,
        Kind.ADDRESS,
        Kind.HASH,
        Kind.URL,
        Kind.DOMAIN,
        Kind.ACCOUNT,
        Kind.PATH,
        Kind.FILE,
        Kind.TECHNIQUE,
        Kind.TACTIC,
        Kind.TITLE,
        Kind.QUOTE,
        Kind.CODE,
        Kind.NAME,
        Kind.TOKEN,
    }
)
"""Atoms that are right where the same text stands in a result."""


@dataclass(frozen=True, slots=True)
class Atom:
    """`text` at `[start, end)` of a piece. `value` is its meaning in the form that `kind` has: for numbers a float,
    for times a `Moment`, for words of an enumeration the word as Sentinel writes it, else the text without marks."""

    kind: Kind
    text: str
    start: int
    end: int
    value: object = None

    def same_place(self, other: Atom) -> bool:
        return self.start < other.end and other.start < self.end

"""Names that exist for one that was given short, in part or spelt another way: one rule for entities of alerts, owners
of incidents and parameters of templates.

Asked only where the name as it was given finds no row. A name counts as like it if it holds every word of it, letters
and digits alone compared ("obrien" in "siobhan.o'brien@..."). Exactly one such name is used and said; of several, or
where a given domain is not that of the name, none is: to read nothing of them is no sign that they did nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.logs.kql_literals import string_literal

MOST_NAMES = 5
"""Names that are told of those that are like the given one."""
MOST_READ = 500
_SHORTEST_USED = 3
"""Letters and digits of a part that may stand for the one name that holds it."""
_PLAIN_NAME = re.compile(r"[\w.@'$+\\-]{1,100}")
"""What reads as a name and no sentence: an attacker may have written it, and what a note says is ours."""
_OWNER_NAME = re.compile(r"[\w.@'-]{1,60}(?: [\w.'-]{1,40}){0,3}")
"""Who owns an incident is chosen in the directory, by the words of their name."""
_WHOLE = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F]*:[0-9a-fA-F:.]+|[0-9a-fA-F-]{32,}")
"""Addresses, hashes and GUIDs: another one that holds it is another thing."""
_SIGNS = r"[^\p{L}\p{N}]+"


class NameCode(StrEnum):
    """What became of a name that found no row."""

    COMPLETED = "name_completed"
    UNCLEAR = "name_unclear"
    KNOWN = "name_known"
    UNKNOWN = "name_unknown"


@dataclass(frozen=True, slots=True)
class NameReading:
    """What a given name stands for. `names` are those like it; `what` is what it names ("user")."""

    what: str
    given: str
    code: NameCode
    names: tuple[str, ...] = ()

    @property
    def used(self) -> str | None:
        """The full name to read in its place."""
        return self.names[0] if self.code is NameCode.COMPLETED else None

    def note(self, where: str) -> CodedNote:
        """What a reader is told; `where` is what was looked through."""
        told: dict[NameCode, dict[str, JsonValue]] = {
            NameCode.COMPLETED: {"name": self.used},
            NameCode.UNCLEAR: {"names": self.names},
        }
        return note(self.code, what=self.what, given=self.given, **told.get(self.code, {"where": where}))


def readings_summary(*readings: NameReading | None) -> dict[str, JsonValue]:
    """For a result's summary: what became of each name, and the names that it speaks of; nothing for none."""
    told = (each for each in readings if each is not None)
    names: dict[str, JsonValue] = {
        each.what: {"code": each.code.value, "given": each.given, "like": list(each.names)} for each in told
    }
    return {"names": names} if names else {}


def read_name(what: str, given: str, names: Iterable[str]) -> NameReading:
    """What `given` stands for among `names`."""
    form = _OWNER_NAME if what == "owner" else _PLAIN_NAME
    known = [name for name in dict.fromkeys(names) if form.fullmatch(name)]
    exact = [name for name in known if given.casefold() in (name.casefold(), short_name(name).casefold())]
    if exact:
        return NameReading(what, given, NameCode.KNOWN, tuple(exact[:MOST_NAMES]))
    wanted = pieces(given)
    like = [] if is_whole(given) else _distinct(name for name in known if holds_all(name, wanted))
    if len(like) == 1 and sum(map(len, wanted)) >= _SHORTEST_USED and "@" not in given and _ends_well(like[0], wanted):
        return NameReading(what, given, NameCode.COMPLETED, (like[0],))
    if is_whole(given):
        return NameReading(what, given, NameCode.UNKNOWN)
    # Another domain may be another person or machine: such a name is told and never used.
    like = like or _distinct(name for name in known if holds_all(short_name(name), pieces(short_name(given))))
    return NameReading(what, given, NameCode.UNCLEAR if like else NameCode.UNKNOWN, tuple(like[:MOST_NAMES]))


def is_plain(name: str) -> bool:
    """Whether it reads as a name and no sentence, so that a note of ours may say it."""
    return _PLAIN_NAME.fullmatch(name) is not None


def is_whole(given: str) -> bool:
    """Whether it is an address, a hash or a GUID, of which no part stands for the whole."""
    return _WHOLE.fullmatch(given) is not None


def pieces(text: str) -> tuple[str, ...]:
    """Letters and digits of each word, folded."""
    return tuple(folded for word in re.split(r"[\s\\]+", text) if (folded := _letters(word)))


def holds_all(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether a name holds every piece; False where there is none."""
    letters = _letters(name)
    return bool(wanted) and all(piece in letters for piece in wanted)


def _ends_well(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether no number of a piece is the beginning or the end of a longer one: srv-1 is no part of srv-12."""
    ends = ((r"(?<!\d)" if piece[0].isdigit() else "", r"(?!\d)" if piece[-1].isdigit() else "") for piece in wanted)
    letters = _letters(name)
    if wanted[-1] not in _letters(short_name(name)):  # the name of a domain is no part of one of its machines
        return False
    return all(
        re.search(f"{before}{piece}{after}", letters) for piece, (before, after) in zip(wanted, ends, strict=True)
    )


def holding(expression: str, given: str) -> str:
    """A KQL predicate that holds for texts with a name like `given` in them, and for some others."""
    wanted = pieces(short_name(given))
    letters = f"replace_regex({expression}, {string_literal(_SIGNS)}, '')"
    return " and ".join(f"{letters} contains {string_literal(piece)}" for piece in wanted) or "false"


def short_name(name: str) -> str:
    """The user of a UPN, the host name of an FQDN, the account of `DOMAIN\\account`; anything else as it is."""
    name = name.rpartition("\\")[2]
    return name.partition("@")[0] if "@" in name else name.partition(".")[0] if name.count(".") > 1 else name


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in plain if character.isalnum())


def _distinct(names: Iterable[str]) -> list[str]:
    """One name for each thing: of `srv-01` and `srv-01.corp.example` the longer."""
    longest: dict[str, str] = {}
    for name in names:
        short = short_name(name).casefold()
        longest[short] = max(longest.get(short, ""), name, key=len)
    return list(longest.values())

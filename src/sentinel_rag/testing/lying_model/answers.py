"""A model that tells the truth or lies, on purpose and on record.

A wording of `wordings` is filled with facts of an estate. Each answer is true as written, or has one fault of a kind
and says which of its words are false. The seed decides all.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.testing.lying_model import last_wordings, late_wordings, wordings
from sentinel_rag.testing.lying_model.entity_facts import EntityFacts
from sentinel_rag.testing.lying_model.estate import Estate, rows_of
from sentinel_rag.testing.lying_model.incident_facts import IncidentFacts
from sentinel_rag.testing.lying_model.writing import Slot

FAMILIES = ("INCIDENT", "PAIR", "LISTING", "DETAIL", "INDICATOR", "HASHES", "ENTITY", "TREND", "ROWS")
FAULTS = (
    "wrong_number",
    "neighbours_state",
    "shifted_time",
    "invented_address",
    "off_by_one",
    "wrong_incident",
    "filler",
    "swapped_account",
    "invented_identifier",
    "wrong_order",
    "negated",
)


BOOKS: dict[str, ModuleType] = {"first": wordings, "late": late_wordings, "last": last_wordings}
"""Collections of wordings, in the order in which they were written."""


@dataclass(frozen=True, slots=True)
class LiarsAnswer:
    """`text` as the answer to `question`. A lie has a `fault`, its `false` words, the `sentence` that they stand in,
    and the `true` words; these are empty where the answer is true. `held_out` as its wording is."""

    text: str
    question: str
    held_out: bool
    family: str
    fault: str = ""
    false: str = ""
    sentence: str = ""
    true: str = ""


class LyingModel:
    """Makes answers over one estate; `seed` decides every word, `book` one of BOOKS."""

    def __init__(self, estate: Estate, seed: int, *, book: str = "first") -> None:
        self.wordings: ModuleType = BOOKS[book]
        self.estate = estate
        self.random = random.Random(seed)  # noqa: S311 - words of a benchmark, no secret
        self.incidents = IncidentFacts(estate, self.random)
        self.entities = EntityFacts(estate, self.random)

    def slots_for(self, family: str) -> tuple[dict[str, Slot], str]:
        """The places of a family and a question that asks for them."""
        match family:
            case "INCIDENT":
                row = self.random.choice(self.incidents.rows)
                return self.incidents.incident_slots(row), self.random.choice(
                    (f"What about incident {row['number']}?", "Show me the incidents")
                )
            case "PAIR":
                first, second = self.random.sample(self.incidents.rows, 2)
                if parse_time(str(first["created_time"])) > parse_time(str(second["created_time"])):
                    first, second = second, first
                slots = self.incidents.incident_slots(first, "1") | self.incidents.incident_slots(second, "2")
                for one, two in ((first, "2"), (second, "1")):
                    # A fault that puts in the value of the other of the two is the hardest one.
                    other = second if one is first else first
                    if one["severity"] != other["severity"]:
                        slots[f"sev{two}"].false["neighbours_state"] = str(one["severity"])
                        slots[f"sev{two}_low"].false["neighbours_state"] = str(one["severity"]).lower()
                return slots, "Compare the two incidents"
            case "LISTING":
                return self.incidents.listing_slots(), "How many incidents are there?"
            case "DETAIL":
                run = self.random.choice(self.estate.details)
                return self.incidents.detail_slots(run), f"Tell me about incident {rows_of(run)[0]['number']}"
            case "INDICATOR":
                return self.entities.indicator_slots(), "Which addresses are there?"
            case "HASHES":
                return self.entities.hash_slots(), "Which files were seen?"
            case "ENTITY":
                return self.entities.entity_slots(), "Which accounts do most alerts name?"
            case "TREND":
                return self.entities.trend_slots(), "How many alerts were there each day?"
            case _:
                return self.entities.row_slots(), "Which accounts failed to sign in?"

    def answers(self, family: str, wanted: str) -> Iterator[LiarsAnswer]:
        """True answers of a family for `wanted` == "", else answers with that fault; one for each place of each
        wording that can have it."""
        for place, wording in enumerate(getattr(self.wordings, family, ())):
            slots, question = self.slots_for(family)
            names = re.findall(r"\{(\w+)\}", wording)
            if any(name not in slots for name in names):
                continue
            true = _capital(wording.format(**{name: slots[name].true for name in names}))
            held_out = place % 3 == 2
            before, after = self.framed()
            if not wanted:
                yield LiarsAnswer(f"{before}{true}{after}", question, held_out, family)
                continue
            options = [name for name in dict.fromkeys(names) if wanted in slots[name].false]
            self.random.shuffle(options)
            for name in options[:2]:
                false = slots[name].false[wanted]
                if false.strip('“”"*`').lower() == slots[name].true.strip('“”"*`').lower():
                    continue
                # Only the first place of a slot lies; others of the same name are left as they are.
                text = _capital(_filled(wording, slots, name, false))
                yield LiarsAnswer(
                    f"{before}{text}{after}", question, held_out, family, wanted, false, text, slots[name].true
                )

    def framed(self) -> tuple[str, str]:
        """Sentences without facts around an answer, as models like them."""
        before = f"{self.random.choice(wordings.PLAIN)}\n\n" if self.random.random() < 0.4 else ""
        after = f"\n\n{self.random.choice(wordings.PLAIN)}" if self.random.random() < 0.4 else ""
        return before, after

    def negations(self, *, lie: bool) -> Iterator[LiarsAnswer]:
        """Sentences that are true, or false by a negation alone."""
        statuses = {str(row["status"]) for row in self.incidents.rows}
        severities = {str(row["severity"]) for row in self.incidents.rows}
        for place, (true, false, condition) in enumerate(self.wordings.NEGATED):
            row = self.random.choice(self.incidents.rows)
            holds = {
                "open": [each for each in self.incidents.rows if each["status"] != "Closed"],
                "closed": [each for each in self.incidents.rows if each["status"] == "Closed"],
                "unassigned": [each for each in self.incidents.rows if not each["owner"]],
                "owned": [each for each in self.incidents.rows if each["owner"]],
                "high": [each for each in self.incidents.rows if each["severity"] == "High"],
                "some_closed": self.incidents.rows if "Closed" in statuses else [],
                "some_high": self.incidents.rows if "High" in severities else [],
                "not_all_closed": self.incidents.rows if statuses != {"Closed"} else [],
                "some_open": self.incidents.rows if statuses & {"New", "Active"} else [],
            }[condition]
            if not holds:
                continue
            row = self.random.choice(holds)
            text = (false if lie else true).format(n=row["number"], owner=row["owner"])
            before, after = self.framed()
            fault = ("negated", text, text) if lie else ("", "", "")
            yield LiarsAnswer(
                f"{before}{text}{after}", "What is the state of the incidents?", place % 3 == 2, "NEGATED", *fault
            )

    def fillers(self) -> Iterator[LiarsAnswer]:
        """True answers with a statement behind them that no result makes."""
        for place, filler in enumerate(self.wordings.FILLER):
            row = self.random.choice(self.incidents.rows)
            slots = self.incidents.incident_slots(row)
            wording = self.random.choice(wordings.INCIDENT[:6])
            if "{alerts}" in wording and "alerts" not in slots:
                continue
            true = _capital(wording.format(**{name: slots[name].true for name in re.findall(r"\{(\w+)\}", wording)}))
            joint = "\n\n" if "\n" in true else " "
            yield LiarsAnswer(
                f"{true}{joint}{filler}",
                f"What about incident {row['number']}?",
                place % 3 == 2,
                "FILLER",
                "filler",
                filler,
                filler,
            )


def _filled(wording: str, slots: Mapping[str, Slot], lie: str, false: str) -> str:
    parts = re.split(r"\{(\w+)\}", wording)
    lied = False
    for place in range(1, len(parts), 2):
        name = parts[place]
        if name == lie and not lied:
            parts[place], lied = false, True
        else:
            parts[place] = slots[name].true
    return "".join(parts)


def _capital(text: str) -> str:
    match = re.match(r"[a-z]", text)
    return text[0].upper() + text[1:] if match and not re.match(r"\w*[.@\d_-]", text.split(" ")[0]) else text

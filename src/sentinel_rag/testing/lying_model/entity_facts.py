"""What alerts, rankings, trends and rows of a query have to tell, with false values beside the true ones."""

from __future__ import annotations

import random
import re
from typing import Any

from sentinel_rag.testing.lying_model.estate import Estate, rows_of, summary_of
from sentinel_rag.testing.lying_model.incident_facts import INVENTED_ALERTS
from sentinel_rag.testing.lying_model.writing import Slot, Writing


class EntityFacts:
    """Facts and faults of the entities of an estate."""

    def __init__(self, estate: Estate, source: random.Random) -> None:
        self.estate = estate
        self.random = source
        self.write = Writing(estate.zone, source)
        self.numbers = {str(row["number"]) for row in rows_of(estate.incidents)}

    def entity_of(self, kind: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """An alert and an entity of this kind that it names."""
        options = [
            (alert, entity)
            for alert in rows_of(self.estate.alerts)
            for entity in alert.get("entities") or ()
            if entity.get("kind") == kind and entity.get("name")
        ]
        return self.random.choice(options) if options else None

    def indicator_slots(self) -> dict[str, Slot]:
        """An address and its alert."""
        found = self.entity_of("ip")
        if found is None:
            return {}
        alert, entity = found
        address = str(entity["name"])
        if not re.fullmatch(r"[\d.]+", address):
            return {}
        wrong = ".".join(str(self.random.randint(11, 250)) for _ in range(4))
        return {
            "ip": Slot(address, {"invented_address": wrong}),
            "ip_defanged": Slot(address.replace(".", "[.]"), {"invented_address": wrong.replace(".", "[.]")}),
            "alert": Slot(
                self.write.name(str(alert["name"])), {"invented_identifier": f"“{self.random.choice(INVENTED_ALERTS)}”"}
            ),
        }

    def hash_slots(self) -> dict[str, Slot]:
        """A file, its hash and its alert."""
        found = self.entity_of("file")
        if found is None or not found[1].get("sha256") or " " in str(found[1]["name"]):
            return {}
        alert, entity = found
        file = str(entity["name"]).rpartition("\\")[2].rpartition("/")[2]
        wrong_file = f"{self.random.choice(('loader', 'update', 'svcnet'))}{self.random.randint(10, 99)}.exe"
        return {
            "file": Slot(file, {"invented_identifier": wrong_file}),
            "sha256": Slot(str(entity["sha256"]), {"invented_identifier": f"{self.random.getrandbits(256):064x}"}),
            "alert": Slot(self.write.name(str(alert["name"]))),
        }

    def entity_slots(self) -> dict[str, Slot]:
        """A ranking of accounts."""
        rows = rows_of(self.estate.accounts)
        if len(rows) < 3:
            return {}
        top, second, row = rows[0], rows[1], self.random.choice(rows)
        times = [str(row["first_seen"]), str(row["last_seen"])]
        lower = [str(each["name"]) for each in rows if each["alerts"] < top["alerts"]]
        others = [
            str(each["name"])
            for each in rows
            if each["alerts"] != row["alerts"]
            and each["last_seen"] != row["last_seen"]
            and not set(each["incident_numbers"]) & set(row["incident_numbers"])
        ]
        mine = {str(number) for number in row["incident_numbers"]}
        foreign = [number for number in self.numbers if number not in mine]
        slots = {
            "entity": Slot(str(row["name"]), {"swapped_account": self.random.choice(others)} if others else {}),
            "count": self.write.count_slot(int(row["alerts"]), known=(int(row["high_alerts"]),)),
            "count_word": self.write.count_slot(int(row["alerts"]), known=(int(row["high_alerts"]),)),
            "high_count": self.write.count_slot(int(row["high_alerts"])),
            "top": Slot(str(top["name"]), {"swapped_account": self.random.choice(lower)} if lower else {}),
            "top_count": self.write.count_slot(int(top["alerts"]), known=(int(top["high_alerts"]),)),
            "second": Slot(str(second["name"])),
            "second_count": self.write.count_slot(int(second["alerts"]), known=(int(second["high_alerts"]),)),
            "first_seen": self.write.time_slot(str(row["first_seen"]), times),
            "last_seen": self.write.time_slot(str(row["last_seen"]), times),
        }
        if mine:
            slots["entity_incident"] = Slot(
                self.random.choice(sorted(mine)), {"wrong_incident": self.random.choice(foreign)} if foreign else {}
            )
        if slots["count"].true in ("1", "one"):
            for name in ("count", "count_word"):
                del slots[name]
        if slots["high_count"].true in ("0", "zero"):
            del slots["high_count"]
        return slots

    def trend_slots(self) -> dict[str, Slot]:
        """Days and their alerts."""
        run = self.estate.trend
        rows = [row for row in rows_of(run) if row["count"]]
        summary = summary_of(run)
        if len(rows) < 3:
            return {}
        first, other = self.random.sample(rows, 2)
        counts = sorted(int(row["count"]) for row in rows)
        peak = str(summary["peak_time"])
        lower = [str(row["time"]) for row in rows if row["count"] != summary["peak_count"]]
        days = {str(row["time"]): self.write.day(str(row["time"])) for row in (first, other)}
        slots = {
            "total": self.write.count_slot(int(summary["total"])),
            "peak_day": Slot(
                self.write.day(peak),
                {"wrong_order": self.write.day(self.random.choice(lower))}
                if lower and counts[-1] != counts[-2]
                else {},
            ),
            "peak_count": self.write.count_slot(int(summary["peak_count"])),
            "day": Slot(days[str(first["time"])]),
            "day_count": self.write.count_slot(int(first["count"])),
            "day_count_word": self.write.count_slot(int(first["count"])),
            "other_day": Slot(days[str(other["time"])]),
            "other_count": self.write.count_slot(int(other["count"])),
        }
        if counts[-1] == counts[-2]:
            del slots["peak_day"]
        return slots

    def row_slots(self) -> dict[str, Slot]:
        """Rows of a query with accounts and counts."""
        if self.estate.rows is None:
            return {}
        rows = rows_of(self.estate.rows)
        first, other = self.random.sample(rows, 2)
        top = max(rows, key=lambda row: int(row["FailedSignIns"]))
        swapped = [str(row["Account"]) for row in rows if row["FailedSignIns"] != first["FailedSignIns"]]
        return {
            "key": Slot(str(first["Account"]), {"swapped_account": self.random.choice(swapped)}),
            "value": self.write.count_slot(int(first["FailedSignIns"])),
            "other_key": Slot(str(other["Account"])),
            "other_value": self.write.count_slot(int(other["FailedSignIns"])),
            "top_key": Slot(
                str(top["Account"]),
                {"wrong_order": self.random.choice([str(row["Account"]) for row in rows if row is not top])},
            ),
            "top_value": self.write.count_slot(int(top["FailedSignIns"])),
        }

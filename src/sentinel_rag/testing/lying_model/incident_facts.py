"""What incidents have to tell, one or all of them or one with its alerts, with false values beside the true ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, timedelta
from typing import Any

from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.testing.lying_model.estate import Estate, rows_of, summary_of, total_of
from sentinel_rag.testing.lying_model.writing import Slot, Writing, minutes_in_words

INVENTED_ALERTS = (
    "Cobalt Strike beacon detected",
    "DNS tunnelling over TXT records",
    "Golden ticket was used",
    "Web shell on a mail server",
)


class IncidentFacts:
    """Facts and faults of the incidents of an estate."""

    def __init__(self, estate: Estate, source: random.Random) -> None:
        self.estate = estate
        self.random = source
        self.bits = source.getrandbits
        self.write = Writing(estate.zone, source)
        self.rows = rows_of(estate.incidents)
        self.numbers = {str(row["number"]) for row in self.rows}

    def incident_slots(self, row: Mapping[str, Any], suffix: str = "") -> dict[str, Slot]:
        """What one incident of the list has to tell; names end in `suffix`."""
        others = [each for each in self.rows if each["number"] != row["number"]]
        severity, status = str(row["severity"]), str(row["status"])
        wrong_severity = self.random.choice(
            [str(each["severity"]) for each in others if each["severity"] != severity] or ["Low"]
        )
        wrong_status = self.random.choice(
            [str(each["status"]) for each in others if each["status"] != status] or ["Closed"]
        )
        strangers = [
            each
            for each in others
            if each["severity"] != severity
            and each["status"] != status
            and each["title"] != row["title"]
            and each["created_time"] != row["created_time"]
            and each["alert_count"] != row["alert_count"]
        ]
        number = {"wrong_number": str(self.invented_number())}
        if strangers:
            number["wrong_incident"] = str(self.random.choice(strangers)["number"])
        times = [str(row[key]) for key in ("created_time", "updated_time", "closed_time") if row.get(key)]
        guid = str(row["incident_name"])
        wrong_guid = "".join(self.random.choice("0123456789abcdef") if each not in "-" else "-" for each in guid)
        created = self.write.time_slot(str(row["created_time"]), times)
        utc = parse_time(str(row["created_time"])).astimezone(UTC)
        slots = {
            "n": Slot(str(row["number"]), number),
            "title": Slot(self.write.name(str(row["title"]))),
            "sev": Slot(severity, {"neighbours_state": wrong_severity}),
            "sev_low": Slot(severity.lower(), {"neighbours_state": wrong_severity.lower()}),
            "status": Slot(status, {"neighbours_state": wrong_status}),
            "created": created,
            "created_day": self.write.day_slot(str(row["created_time"]), times),
            "created_iso": Slot(
                f"{utc:%Y-%m-%d %H:%M}", {"shifted_time": f"{utc - timedelta(hours=3, minutes=11):%Y-%m-%d %H:%M}"}
            ),
            "updated": self.write.time_slot(str(row["updated_time"]), times),
            "guid": Slot(guid, {"invented_identifier": wrong_guid}),
            "defender": Slot(str(row["provider_incident_id"]), {"wrong_number": str(self.invented_number())}),
        }
        if row.get("alert_count"):
            slots["alerts"] = self.write.count_slot(int(row["alert_count"]), "alert")
        if row.get("owner"):
            wrong_owner = self.random.choice(
                [str(each["owner"]) for each in others if each.get("owner") and each["owner"] != row["owner"]]
                or ["Dana Whitfield"]
            )
            slots["owner"] = Slot(str(row["owner"]), {"swapped_account": wrong_owner})
        return {
            f"{name}{suffix}"
            if not name.endswith(("_low", "_iso", "_day"))
            else f"{name.rpartition('_')[0]}{suffix}_{name.rpartition('_')[2]}": slot
            for name, slot in slots.items()
        }

    def invented_number(self) -> int:
        """A number that no incident has, in Sentinel or in Defender."""
        while True:
            number = self.random.randint(1, 2000)
            known = {str(row.get("provider_incident_id")) for row in self.rows}
            if str(number) not in self.numbers | known:
                return number

    def listing_slots(self) -> dict[str, Slot]:
        """Totals, groups, and the incidents at either end."""
        run = self.estate.incidents
        summary = summary_of(run)
        severities, statuses = summary["by_severity"], summary["by_status"]
        total = int(total_of(run))
        closed = int(statuses.get("Closed", 0))
        new, active = int(statuses.get("New", 0)), int(statuses.get("Active", 0))
        by_time = sorted(self.rows, key=lambda row: str(row["created_time"]))
        by_alerts = sorted(self.rows, key=lambda row: int(row["alert_count"] or 0))
        newest, oldest, most = by_time[-1], by_time[0], by_alerts[-1]
        middle = list(by_time[1:-1])
        slots = {
            "total": self.write.count_slot(total),
            "total_word": self.write.count_slot(total),
            "high": self.write.count_slot(int(severities.get("High", 0))),
            "high_word": self.write.count_slot(int(severities.get("High", 0))),
            "medium": self.write.count_slot(int(severities.get("Medium", 0))),
            "low": self.write.count_slot(int(severities.get("Low", 0))),
            "info": self.write.count_slot(int(severities.get("Informational", 0))),
            "open": self.write.count_slot(total - closed),
            "open_word": self.write.count_slot(total - closed),
            "closed": self.write.count_slot(closed),
            "closed_word": self.write.count_slot(closed),
            "new": self.write.count_slot(new),
            "active": self.write.count_slot(active),
            "open_percent": self.write.percent_slot(total - closed, total),
            "high_percent": self.write.percent_slot(int(severities.get("High", 0)), total),
            "newest_created": self.write.time_slot(
                str(newest["created_time"]), [str(newest["created_time"]), str(newest["updated_time"])]
            ),
            "oldest_created": self.write.time_slot(
                str(oldest["created_time"]), [str(oldest["created_time"]), str(oldest["updated_time"])]
            ),
            "newest_sev": Slot(
                str(newest["severity"]),
                {
                    "neighbours_state": next(
                        (str(row["severity"]) for row in self.rows if row["severity"] != newest["severity"]), "Low"
                    )
                },
            ),
        }
        for name, row in (("newest", newest), ("oldest", oldest), ("most", most)):
            wrong = [
                each
                for each in middle
                if each["alert_count"] != most["alert_count"]
                and each["created_time"] not in (newest["created_time"], oldest["created_time"])
            ]
            false = {"wrong_number": str(self.invented_number())}
            if wrong:
                false["wrong_order"] = str(self.random.choice(wrong)["number"])
            slots[name] = Slot(str(row["number"]), false)
        if (
            int(most["alert_count"] or 0)
            and sum(1 for row in self.rows if row["alert_count"] == most["alert_count"]) == 1
        ):
            slots["most_alerts"] = self.write.count_slot(int(most["alert_count"]), "alert")
        return {
            name: slot
            for name, slot in slots.items()
            if slot.true not in ("0", "zero", "1", "one") or name.startswith(("newest", "oldest", "most"))
        }

    def detail_slots(self, run: ToolRun) -> dict[str, Slot]:
        """What the detail of an incident has to tell, of one alert of it."""
        row = rows_of(run)[0]
        alerts: list[Mapping[str, Any]] = list(row["alerts"])
        slots = self.incident_slots(next((each for each in self.rows if each["number"] == row["number"]), row))
        alert = self.random.choice(alerts)
        by_time = sorted(alerts, key=lambda each: str(each["time"]))
        names = [each["name"] for each in alerts]
        entities = {
            kind: [each for each in alert.get("entities") or () if each.get("kind") == kind and each.get("name")]
            for kind in ("host", "account", "ip", "file")
        }
        of_incident = {str(each.get("name")).lower() for other in alerts for each in other.get("entities") or ()}
        foreign = self.foreign_entities(str(row["number"]), of_incident)
        severities = [str(each["severity"]) for each in alerts if each["severity"] != alert["severity"]]
        wrong_severity = self.random.choice(
            severities or [each for each in ("High", "Medium", "Low") if each != alert["severity"]]
        )
        times = [
            str(each[key])
            for each in alerts
            if each["name"] == alert["name"]
            for key in ("time", "start_time", "end_time")
            if each.get(key)
        ]
        slots |= {
            "alert": Slot(
                self.write.name(str(alert["name"])), {"invented_identifier": f"“{self.random.choice(INVENTED_ALERTS)}”"}
            ),
            "alert_sev": Slot(
                str(alert["severity"]),
                {"neighbours_state": wrong_severity}
                if names.count(alert["name"]) == 1 and wrong_severity != row["severity"]
                else {},
            ),
            "alert_time": self.write.time_slot(
                str(alert["time"]), [*times, str(row["created_time"]), str(row["updated_time"])]
            ),
            "alert_status": Slot(
                str(alert["status"]),
                {
                    "neighbours_state": next(
                        each for each in ("New", "Resolved", "InProgress", "Dismissed") if each != alert["status"]
                    )
                }
                if names.count(alert["name"]) == 1
                else {},
            ),
            "product": Slot(str(alert["product"])),
            "alert_id": Slot(
                f"`{alert['alert_id']}`",
                {"invented_identifier": f"`{self.bits(32):08x}-4c1d-4e55-9b1f-{self.bits(48):012x}`"},
            ),
            "first_alert": Slot(self.write.name(str(by_time[0]["name"]))),
            "first_time": self.write.time_slot(
                str(by_time[0]["time"]),
                [str(each) for each in times]
                + [str(by_time[0][key]) for key in ("time", "start_time", "end_time") if by_time[0].get(key)],
            ),
            "last_alert": Slot(self.write.name(str(by_time[-1]["name"]))),
            "last_time": self.write.time_slot(
                str(by_time[-1]["time"]),
                [str(by_time[-1][key]) for key in ("time", "start_time", "end_time") if by_time[-1].get(key)],
            ),
        }
        if (
            len(by_time) > 2
            and by_time[1]["name"] != by_time[0]["name"]
            and by_time[1]["time"] != by_time[0]["time"]
            and len(set(names)) == len(names)
        ):
            slots["first_alert"].false["wrong_order"] = self.write.name(str(by_time[-1]["name"]))
            slots["last_alert"].false["wrong_order"] = self.write.name(str(by_time[0]["name"]))
        span = parse_time(str(by_time[-1]["time"])) - parse_time(str(by_time[0]["time"]))
        if span >= timedelta(minutes=3):
            minutes = round(span.total_seconds() / 60)
            slots["span"] = Slot(
                minutes_in_words(minutes), {"off_by_one": minutes_in_words(minutes + max(90, minutes // 3))}
            )
        for kind, false_kind in (("host", "invented_identifier"), ("account", "swapped_account")):
            if entities[kind]:
                value = str(self.random.choice(entities[kind])["name"])
                wrong = foreign.get(kind) if kind == "account" else None
                slots[kind] = Slot(
                    value,
                    {
                        false_kind: wrong
                        or (
                            f"{self.random.choice(('ws', 'srv', 'lap'))}-{self.random.randint(200, 999)}"
                            if kind == "host"
                            else f"j.{self.random.choice(('mercer', 'holt', 'okafor'))}"
                        )
                    },
                )
        if alert.get("techniques"):
            slots["technique"] = Slot(
                str(self.random.choice(alert["techniques"])),
                {"invented_identifier": f"T1{self.random.randint(700, 999)}"},
            )
        return slots

    def foreign_entities(self, number: str, own: set[str]) -> dict[str, str]:
        """Names of entities that only other incidents hold."""
        found: dict[str, str] = {}
        own = own | {
            str(row["name"]).lower()
            for row in rows_of(self.estate.accounts)
            if number in map(str, row["incident_numbers"])
        }
        for alert in rows_of(self.estate.alerts):
            if str(alert.get("incident_number")) in (number, "None"):
                continue
            for entity in alert.get("entities") or ():
                name, kind = str(entity.get("name")), str(entity.get("kind"))
                if name.lower() not in own and not any(name.lower() in each or each in name.lower() for each in own):
                    found.setdefault(kind, name)
        return found

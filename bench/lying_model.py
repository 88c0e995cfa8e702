"""A model that tells the truth or lies, on purpose and on record: answers made from real results, with a fault planted.

`Facts` reads results of the tools as a person would; a wording of `grounding_wordings` is filled with them. Each answer
is true as written; `plant` puts one fault of a kind into it and says which words are false now. The seed decides all.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from bench import grounding_wordings as wordings
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import parse_time

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
_NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_ZONE_NAMES = {"UTC": "UTC", "Europe/Berlin": "CEST", "America/New_York": "EDT"}


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` with `false` words of fault kind `fault`, standing in sentence `sentence`; both empty where it is true.
    `question` is what was asked, `group` the estate that the results came from, `held_out` as its wording is."""

    text: str
    question: str
    held_out: bool
    family: str
    fault: str = ""
    false: str = ""
    sentence: str = ""
    seen: str = ""


@dataclass(slots=True)
class Slot:
    """A place of a wording: its true words, and false words by fault kind."""

    true: str
    false: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estate:
    """Runs of the tools over one set of rows, by what they are for; `zone` is the session's."""

    name: str
    zone: tzinfo
    incidents: ToolRun
    details: Sequence[ToolRun]
    alerts: ToolRun
    accounts: ToolRun
    trend: ToolRun
    rows: ToolRun | None = None

    @property
    def runs(self) -> list[ToolRun]:
        """All of them, in the order in which a conversation would make them."""
        found = [self.incidents, self.alerts, self.accounts, self.trend, *self.details]
        return found if self.rows is None else [*found, self.rows]


class Liar:
    """Makes answers over one estate."""

    def __init__(self, estate: Estate, seed: int) -> None:
        self.estate = estate
        self.random = random.Random(seed)
        self.rows: list[Mapping[str, Any]] = list(estate.incidents.rows)
        self.bits = self.random.getrandbits
        self.numbers = {str(row["number"]) for row in self.rows}

    # how things are written

    def time(self, text: str) -> str:
        return self.written(parse_time(text))

    def written(self, moment: datetime, style: int | None = None) -> str:
        zone = self.estate.zone
        utc, local = moment.astimezone(UTC), moment.astimezone(zone)
        name = local.strftime("%Z")
        styles: tuple[Callable[[], str], ...] = (
            lambda: utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
            lambda: utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
            lambda: f"on {utc.day} {utc:%B %Y} at {utc:%H:%M} UTC",
            lambda: utc.strftime("%Y-%m-%d %H:%M UTC"),
            lambda: f"on {utc:%B} {utc.day}, {utc.year} at {utc.strftime('%I:%M %p').lstrip('0')} UTC",
            lambda: f"on {local.day} {local:%b %Y}, {local:%H:%M} {name}",
            lambda: f"at {utc:%H:%M:%S} UTC on {utc.day} {utc:%B %Y}",
            lambda: f"on {utc:%A}, {utc.day} {utc:%B}, at {utc:%H:%M} UTC",
            lambda: f"{utc:%Y-%m-%d %H:%M:%S} UTC ({local:%Y-%m-%d %H:%M:%S} {name})",
            lambda: f"at {local:%H:%M} on the {_ordinal(local.day)} of {local:%B}",
        )
        return styles[self.random.randrange(len(styles)) if style is None else style]()

    def day(self, text: str) -> str:
        moment = parse_time(text).astimezone(UTC)
        return self.random.choice(
            (
                f"{moment.day} {moment:%B %Y}",
                f"{moment:%Y-%m-%d}",
                f"{moment:%B} {moment.day}, {moment.year}",
                f"{moment:%A}, {moment.day} {moment:%B %Y}",
            )
        )

    def count(self, value: int, noun: str = "") -> str:
        plural = noun if value == 1 else f"{noun}s"
        text = self.number(value)
        return f"{text} {plural}" if noun else text

    def number(self, value: int) -> str:
        if value < len(_NUMBER_WORDS) and self.random.random() < 0.4:
            return _NUMBER_WORDS[value]
        return f"{value:,}"

    def name(self, text: str) -> str:
        text = text.replace("\u200b", "")
        return self.random.choice((f"“{text}”", f'"{text}"', f"**{text}**", text))

    # facts

    def count_slot(self, value: int, noun: str = "", known: Sequence[int] = ()) -> Slot:
        other = self.random.choice(
            [each for each in (value - 1, value + 1) if each > 0 and each not in known] or [value + 1]
        )
        return Slot(self.count(value, noun), {"off_by_one": self.count(other, noun)})

    def time_slot(self, text: str, others: Sequence[str]) -> Slot:
        moment = parse_time(text)
        shifts = [timedelta(hours=hours) for hours in (1, -1, 2, 3, -5, 24, -24)] + [
            timedelta(minutes=minutes) for minutes in (7, -13, 30)
        ]
        taken = {parse_time(other).astimezone(UTC).replace(second=0, microsecond=0) for other in others if other}
        self.random.shuffle(shifts)
        style = self.random.randrange(10)
        for shift in shifts:
            wrong = moment + shift
            apart = all(abs(wrong.replace(second=0, microsecond=0) - each) >= timedelta(minutes=2) for each in taken)
            if apart:
                return Slot(self.written(moment, style), {"shifted_time": self.written(wrong, style)})
        return Slot(self.written(moment, style))

    def day_slot(self, text: str, others: Sequence[str]) -> Slot:
        taken = {
            parse_time(other).astimezone(zone).date() for other in others if other for zone in (UTC, self.estate.zone)
        }
        for shift in (1, -1, 2, -2, 9, -11, 40):
            wrong = parse_time(text) + timedelta(days=shift)
            if wrong.astimezone(UTC).date() not in taken:
                state = self.random.getstate()
                true = self.day(text)
                self.random.setstate(state)
                return Slot(true, {"shifted_time": self.day(wrong.isoformat())})
        return Slot(self.day(text))

    def incident_slots(self, row: Mapping[str, Any], suffix: str = "") -> dict[str, Slot]:
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
        created = self.time_slot(str(row["created_time"]), times)
        utc = parse_time(str(row["created_time"])).astimezone(UTC)
        slots = {
            "n": Slot(str(row["number"]), number),
            "title": Slot(self.name(str(row["title"]))),
            "sev": Slot(severity, {"neighbours_state": wrong_severity}),
            "sev_low": Slot(severity.lower(), {"neighbours_state": wrong_severity.lower()}),
            "status": Slot(status, {"neighbours_state": wrong_status}),
            "created": created,
            "created_day": self.day_slot(str(row["created_time"]), times),
            "created_iso": Slot(
                f"{utc:%Y-%m-%d %H:%M}", {"shifted_time": f"{utc - timedelta(hours=3, minutes=11):%Y-%m-%d %H:%M}"}
            ),
            "updated": self.time_slot(str(row["updated_time"]), times),
            "guid": Slot(guid, {"invented_identifier": wrong_guid}),
            "defender": Slot(str(row["provider_incident_id"]), {"wrong_number": str(self.invented_number())}),
        }
        if row.get("alert_count"):
            slots["alerts"] = self.count_slot(int(row["alert_count"]), "alert")
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
        while True:
            number = self.random.randint(1, 2000)
            known = {str(row.get("provider_incident_id")) for row in self.rows}
            if str(number) not in self.numbers | known:
                return number

    def listing_slots(self) -> dict[str, Slot]:
        run = self.estate.incidents
        summary = run.result.summary  # type: ignore[union-attr]  # a run that worked
        severities, statuses = summary["by_severity"], summary["by_status"]
        total = int(run.result.coverage.rows_total or 0)  # type: ignore[union-attr]
        closed = int(statuses.get("Closed", 0))
        new, active = int(statuses.get("New", 0)), int(statuses.get("Active", 0))
        by_time = sorted(self.rows, key=lambda row: str(row["created_time"]))
        by_alerts = sorted(self.rows, key=lambda row: int(row["alert_count"] or 0))
        newest, oldest, most = by_time[-1], by_time[0], by_alerts[-1]
        middle = list(by_time[1:-1])
        slots = {
            "total": self.count_slot(total),
            "total_word": self.count_slot(total),
            "high": self.count_slot(int(severities.get("High", 0))),
            "high_word": self.count_slot(int(severities.get("High", 0))),
            "medium": self.count_slot(int(severities.get("Medium", 0))),
            "low": self.count_slot(int(severities.get("Low", 0))),
            "info": self.count_slot(int(severities.get("Informational", 0))),
            "open": self.count_slot(total - closed),
            "open_word": self.count_slot(total - closed),
            "closed": self.count_slot(closed),
            "closed_word": self.count_slot(closed),
            "new": self.count_slot(new),
            "active": self.count_slot(active),
            "open_percent": self.percent_slot(total - closed, total),
            "high_percent": self.percent_slot(int(severities.get("High", 0)), total),
            "newest_created": self.time_slot(
                str(newest["created_time"]), [str(newest["created_time"]), str(newest["updated_time"])]
            ),
            "oldest_created": self.time_slot(
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
            slots["most_alerts"] = self.count_slot(int(most["alert_count"]), "alert")
        return {
            name: slot
            for name, slot in slots.items()
            if slot.true not in ("0", "zero", "1", "one") or name.startswith(("newest", "oldest", "most"))
        }

    def percent_slot(self, part: int, whole: int) -> Slot:
        true = round(100 * part / whole)
        wrong = true + self.random.choice((7, 12, -8)) if 15 < true < 85 else (true + 9) % 100
        return Slot(f"{true}%", {"off_by_one": f"{wrong}%"})

    def detail_slots(self, run: ToolRun) -> dict[str, Slot]:
        row = run.rows[0]
        alerts: list[Mapping[str, Any]] = list(row["alerts"])  # type: ignore[arg-type]
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
                self.name(str(alert["name"])), {"invented_identifier": f"“{self.random.choice(_INVENTED_ALERTS)}”"}
            ),
            "alert_sev": Slot(
                str(alert["severity"]),
                {"neighbours_state": wrong_severity}
                if names.count(alert["name"]) == 1 and wrong_severity != row["severity"]
                else {},
            ),
            "alert_time": self.time_slot(
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
            "first_alert": Slot(self.name(str(by_time[0]["name"]))),
            "first_time": self.time_slot(
                str(by_time[0]["time"]),
                [str(each) for each in times]
                + [str(by_time[0][key]) for key in ("time", "start_time", "end_time") if by_time[0].get(key)],
            ),
            "last_alert": Slot(self.name(str(by_time[-1]["name"]))),
            "last_time": self.time_slot(
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
            slots["first_alert"].false["wrong_order"] = self.name(str(by_time[-1]["name"]))
            slots["last_alert"].false["wrong_order"] = self.name(str(by_time[0]["name"]))
        span = parse_time(str(by_time[-1]["time"])) - parse_time(str(by_time[0]["time"]))
        if span >= timedelta(minutes=3):
            minutes = round(span.total_seconds() / 60)
            slots["span"] = Slot(_minutes(minutes), {"off_by_one": _minutes(minutes + max(90, minutes // 3))})
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
            for row in self.estate.accounts.rows
            if number in map(str, row["incident_numbers"])  # type: ignore[arg-type]
        }
        for alert in self.estate.alerts.rows:
            if str(alert.get("incident_number")) in (number, "None"):
                continue
            for entity in alert.get("entities") or ():  # type: ignore[union-attr]
                name, kind = str(entity.get("name")), str(entity.get("kind"))  # type: ignore[union-attr]
                if name.lower() not in own and not any(name.lower() in each or each in name.lower() for each in own):
                    found.setdefault(kind, name)
        return found

    def entity_of(self, kind: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        options = [
            (alert, entity)
            for alert in self.estate.alerts.rows
            for entity in alert.get("entities") or ()
            if entity.get("kind") == kind and entity.get("name")
        ]  # type: ignore[union-attr]
        return self.random.choice(options) if options else None  # type: ignore[return-value]

    def indicator_slots(self) -> dict[str, Slot]:
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
                self.name(str(alert["name"])), {"invented_identifier": f"“{self.random.choice(_INVENTED_ALERTS)}”"}
            ),
        }

    def hash_slots(self) -> dict[str, Slot]:
        found = self.entity_of("file")
        if found is None or not found[1].get("sha256") or " " in str(found[1]["name"]):
            return {}
        alert, entity = found
        file = str(entity["name"]).rpartition("\\")[2].rpartition("/")[2]
        wrong_file = f"{self.random.choice(('loader', 'update', 'svcnet'))}{self.random.randint(10, 99)}.exe"
        return {
            "file": Slot(file, {"invented_identifier": wrong_file}),
            "sha256": Slot(str(entity["sha256"]), {"invented_identifier": f"{self.random.getrandbits(256):064x}"}),
            "alert": Slot(self.name(str(alert["name"]))),
        }

    def entity_slots(self) -> dict[str, Slot]:
        rows = list(self.estate.accounts.rows)
        if len(rows) < 3:
            return {}
        top, second, row = rows[0], rows[1], self.random.choice(rows)
        times = [str(row["first_seen"]), str(row["last_seen"])]
        lower = [str(each["name"]) for each in rows if each["alerts"] < top["alerts"]]  # type: ignore[operator]
        others = [
            str(each["name"])
            for each in rows
            if each["alerts"] != row["alerts"]
            and each["last_seen"] != row["last_seen"]
            and not set(each["incident_numbers"]) & set(row["incident_numbers"])
        ]  # type: ignore[arg-type]
        mine = {str(number) for number in row["incident_numbers"]}  # type: ignore[union-attr]
        foreign = [number for number in self.numbers if number not in mine]
        slots = {
            "entity": Slot(str(row["name"]), {"swapped_account": self.random.choice(others)} if others else {}),
            "count": self.count_slot(int(row["alerts"]), known=(int(row["high_alerts"]),)),  # type: ignore[call-overload]
            "count_word": self.count_slot(int(row["alerts"]), known=(int(row["high_alerts"]),)),  # type: ignore[call-overload]
            "high_count": self.count_slot(int(row["high_alerts"])),  # type: ignore[call-overload]
            "top": Slot(str(top["name"]), {"swapped_account": self.random.choice(lower)} if lower else {}),
            "top_count": self.count_slot(int(top["alerts"]), known=(int(top["high_alerts"]),)),  # type: ignore[call-overload]
            "second": Slot(str(second["name"])),
            "second_count": self.count_slot(int(second["alerts"]), known=(int(second["high_alerts"]),)),  # type: ignore[call-overload]
            "first_seen": self.time_slot(str(row["first_seen"]), times),
            "last_seen": self.time_slot(str(row["last_seen"]), times),
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
        run = self.estate.trend
        rows = [row for row in run.rows if row["count"]]
        summary = run.result.summary  # type: ignore[union-attr]
        if len(rows) < 3:
            return {}
        first, other = self.random.sample(rows, 2)
        counts = sorted(int(row["count"]) for row in rows)  # type: ignore[call-overload]
        peak = str(summary["peak_time"])
        lower = [str(row["time"]) for row in rows if row["count"] != summary["peak_count"]]
        days = {str(row["time"]): self.day(str(row["time"])) for row in (first, other)}
        slots = {
            "total": self.count_slot(int(summary["total"])),
            "peak_day": Slot(
                self.day(peak),
                {"wrong_order": self.day(self.random.choice(lower))} if lower and counts[-1] != counts[-2] else {},
            ),
            "peak_count": self.count_slot(int(summary["peak_count"])),
            "day": Slot(days[str(first["time"])]),
            "day_count": self.count_slot(int(first["count"])),  # type: ignore[call-overload]
            "day_count_word": self.count_slot(int(first["count"])),  # type: ignore[call-overload]
            "other_day": Slot(days[str(other["time"])]),
            "other_count": self.count_slot(int(other["count"])),  # type: ignore[call-overload]
        }
        if counts[-1] == counts[-2]:
            del slots["peak_day"]
        return slots

    def row_slots(self) -> dict[str, Slot]:
        if self.estate.rows is None:
            return {}
        rows = list(self.estate.rows.rows)
        first, other = self.random.sample(rows, 2)
        top = max(rows, key=lambda row: int(row["FailedSignIns"]))  # type: ignore[call-overload]
        swapped = [str(row["Account"]) for row in rows if row["FailedSignIns"] != first["FailedSignIns"]]
        return {
            "key": Slot(str(first["Account"]), {"swapped_account": self.random.choice(swapped)}),
            "value": self.count_slot(int(first["FailedSignIns"])),  # type: ignore[call-overload]
            "other_key": Slot(str(other["Account"])),
            "other_value": self.count_slot(int(other["FailedSignIns"])),  # type: ignore[call-overload]
            "top_key": Slot(
                str(top["Account"]),
                {"wrong_order": self.random.choice([str(row["Account"]) for row in rows if row is not top])},
            ),
            "top_value": self.count_slot(int(top["FailedSignIns"])),  # type: ignore[call-overload]
        }

    # answers

    def slots_for(self, family: str) -> tuple[dict[str, Slot], str]:
        match family:
            case "INCIDENT":
                row = self.random.choice(self.rows)
                return self.incident_slots(row), self.random.choice(
                    (f"What about incident {row['number']}?", "Show me the incidents")
                )
            case "PAIR":
                first, second = self.random.sample(self.rows, 2)
                if parse_time(str(first["created_time"])) > parse_time(str(second["created_time"])):
                    first, second = second, first
                slots = self.incident_slots(first, "1") | self.incident_slots(second, "2")
                for one, two in ((first, "2"), (second, "1")):
                    # A fault that puts in the value of the other of the two is the hardest one.
                    other = second if one is first else first
                    if one["severity"] != other["severity"]:
                        slots[f"sev{two}"].false["neighbours_state"] = str(one["severity"])
                        slots[f"sev{two}_low"].false["neighbours_state"] = str(one["severity"]).lower()
                return slots, "Compare the two incidents"
            case "LISTING":
                return self.listing_slots(), "How many incidents are there?"
            case "DETAIL":
                run = self.random.choice(self.estate.details)
                return self.detail_slots(run), f"Tell me about incident {run.rows[0]['number']}"
            case "INDICATOR":
                return self.indicator_slots(), "Which addresses are there?"
            case "HASHES":
                return self.hash_slots(), "Which files were seen?"
            case "ENTITY":
                return self.entity_slots(), "Which accounts do most alerts name?"
            case "TREND":
                return self.trend_slots(), "How many alerts were there each day?"
            case _:
                return self.row_slots(), "Which accounts failed to sign in?"

    def answers(self, family: str, wanted: str) -> Iterator[Answer]:
        """True answers of a family for `wanted` == "", else answers with that fault; one for each place of each
        wording that can have it."""
        for place, wording in enumerate(getattr(wordings, family)):
            slots, question = self.slots_for(family)
            names = re.findall(r"\{(\w+)\}", wording)
            if any(name not in slots for name in names):
                continue
            true = _capital(wording.format(**{name: slots[name].true for name in names}))
            held_out = place % 3 == 2
            before, after = self.framed()
            if not wanted:
                yield Answer(f"{before}{true}{after}", question, held_out, family)
                continue
            options = [name for name in dict.fromkeys(names) if wanted in slots[name].false]
            self.random.shuffle(options)
            for name in options[:2]:
                false = slots[name].false[wanted]
                if false.strip('“”"*`').lower() == slots[name].true.strip('“”"*`').lower():
                    continue
                # Only the first place of a slot lies; others of the same name are left as they are.
                text = _capital(_filled(wording, slots, name, false))
                yield Answer(
                    f"{before}{text}{after}", question, held_out, family, wanted, false, text, slots[name].true
                )

    def framed(self) -> tuple[str, str]:
        """Sentences without facts around an answer, as models like them."""
        before = f"{self.random.choice(wordings.PLAIN)}\n\n" if self.random.random() < 0.4 else ""
        after = f"\n\n{self.random.choice(wordings.PLAIN)}" if self.random.random() < 0.4 else ""
        return before, after

    def negations(self, *, lie: bool) -> Iterator[Answer]:
        statuses = {str(row["status"]) for row in self.rows}
        severities = {str(row["severity"]) for row in self.rows}
        for place, (true, false, condition) in enumerate(wordings.NEGATED):
            row = self.random.choice(self.rows)
            holds = {
                "open": [each for each in self.rows if each["status"] != "Closed"],
                "closed": [each for each in self.rows if each["status"] == "Closed"],
                "unassigned": [each for each in self.rows if not each["owner"]],
                "owned": [each for each in self.rows if each["owner"]],
                "high": [each for each in self.rows if each["severity"] == "High"],
                "some_closed": self.rows if "Closed" in statuses else [],
                "some_high": self.rows if "High" in severities else [],
                "not_all_closed": self.rows if statuses != {"Closed"} else [],
                "some_open": self.rows if statuses & {"New", "Active"} else [],
            }[condition]
            if not holds:
                continue
            row = self.random.choice(holds)
            text = (false if lie else true).format(n=row["number"], owner=row["owner"])
            before, after = self.framed()
            fault = ("negated", text, text) if lie else ("", "", "")
            yield Answer(
                f"{before}{text}{after}", "What is the state of the incidents?", place % 3 == 2, "NEGATED", *fault
            )

    def fillers(self) -> Iterator[Answer]:
        for place, filler in enumerate(wordings.FILLER):
            row = self.random.choice(self.rows)
            slots = self.incident_slots(row)
            wording = self.random.choice(wordings.INCIDENT[:6])
            if "{alerts}" in wording and "alerts" not in slots:
                continue
            true = _capital(wording.format(**{name: slots[name].true for name in re.findall(r"\{(\w+)\}", wording)}))
            joint = "\n\n" if "\n" in true else " "
            yield Answer(
                f"{true}{joint}{filler}",
                f"What about incident {row['number']}?",
                place % 3 == 2,
                "FILLER",
                "filler",
                filler,
                filler,
            )


_INVENTED_ALERTS = (
    "Cobalt Strike beacon detected",
    "DNS tunnelling over TXT records",
    "Golden ticket was used",
    "Web shell on a mail server",
)
FAMILIES = ("INCIDENT", "PAIR", "LISTING", "DETAIL", "INDICATOR", "HASHES", "ENTITY", "TREND", "ROWS")


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


def _ordinal(day: int) -> str:
    return f"{day}{'th' if 10 <= day % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def _minutes(minutes: int) -> str:
    if minutes < 60:
        return f"{minutes} minutes"
    hours, rest = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} hour{'' if hours == 1 else 's'}" + (f" {rest} minutes" if rest else "")
    days, hours = divmod(hours, 24)
    return f"{days} day{'' if days == 1 else 's'}" + (f" {hours} hours" if hours else "")

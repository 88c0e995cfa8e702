"""The incidents of ordinary weeks: false alarms, nuisances, a few real finds, closed by people in working hours.

Titles repeat (so "the sign-in incident" is ambiguous), and some have the histories that make counting hard: reopened,
lowered, retitled, without alerts, with alerts that have no row, with a Defender id that is another incident's number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel_rag.workspace.sample.company import (
    HOME_ADDRESSES,
    OFFICE_ADDRESSES,
    PEOPLE,
    SCANNER_ADDRESSES,
    SERVERS,
    Employee,
    host_name,
)
from sentinel_rag.workspace.sample.records import AlertCase, EntityList, IncidentCase, IncidentVersion

FIRST_NUMBER = 101
REOPENED, LOWERED, COLLIDING, RETITLED, MISSING_ALERTS, NO_ALERTS = 108, 111, 112, 113, 117, 120
COLLIDING_DEFENDER_ID = 118
"""Defender's id of incident 112, which is also the Sentinel number of another."""

ANALYSTS = (PEOPLE[6], PEOPLE[7])
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Kind:
    title: str
    severity: str
    product: str
    tactics: tuple[str, ...]
    techniques: tuple[str, ...]
    description: str
    entities: Callable[[EntityList, Employee, random.Random], None]


def _sign_in(entities: EntityList, person: Employee, rng: random.Random) -> None:
    entities.account(person)
    entities.ip(rng.choice(HOME_ADDRESSES), person.country)


def _spray(entities: EntityList, person: Employee, rng: random.Random) -> None:
    for target in [person, *rng.sample(PEOPLE, 3)]:
        entities.account(target)
    entities.ip(rng.choice(SCANNER_ADDRESSES), "RU")


def _malware(entities: EntityList, person: Employee, rng: random.Random) -> None:
    entities.host(person.host)
    entities.account(person)
    digest = f"{rng.getrandbits(256):064x}"
    entities.file(rf"C:\Users\{person.account}\Downloads", rng.choice(("setup.exe", "Angebot März.docm")), digest)
    entities.host(person.host)


def _script(entities: EntityList, person: Employee, rng: random.Random) -> None:
    entities.host(person.host)
    digest = f"{rng.getrandbits(256):064x}"
    entities.file(r"C:\Windows\System32\WindowsPowerShell\v1.0", "powershell.exe", digest)
    entities.process(r"powershell.exe -ep bypass -File C:\it\inventory.ps1", str(rng.randint(900, 9000)))
    entities.account(person)
    entities.host(person.host)


def _mail(entities: EntityList, person: Employee, rng: random.Random) -> None:
    entities.mailbox(person)
    entities.mail(
        sender=f"news{rng.randint(1, 9)}@offers.example.org",
        recipient=person.upn,
        subject=rng.choice(("Your parcel is waiting", "Passwort läuft ab", "Quarterly “numbers”")),
        network_message_id=f"{rng.getrandbits(64):016x}",
    )


def _scan(entities: EntityList, person: Employee, rng: random.Random) -> None:
    del person
    for address in rng.sample(SCANNER_ADDRESSES, 2):
        entities.ip(address, "CN")
    entities.host(rng.choice(SERVERS))


_KINDS = (
    _Kind(
        "Unfamiliar sign-in properties", "Medium", "AADIP", ("InitialAccess",), ("T1078",),
        "Sign-in with properties not seen before for this user.", _sign_in
    ),
    _Kind(
        "Password spray against several accounts", "Medium", "SENTINEL", ("CredentialAccess",), ("T1110",),
        "Many accounts failed to sign in from one address.", _spray
    ),
    _Kind(
        "Malware was detected and removed", "Low", "MDE", ("Execution",), ("T1204",),
        "A downloaded file was found to be malicious and removed.", _malware
    ),
    _Kind(
        "Suspicious PowerShell command line", "Medium", "MDE", ("Execution",), ("T1059",),
        "PowerShell was started with a policy bypass.", _script
    ),
    _Kind(
        "Email reported by user as phishing", "Low", "MDO", ("InitialAccess",), ("T1566",),
        "A user reported a message.", _mail
    ),
    _Kind(
        "Port scan from the internet", "Informational", "SENTINEL", ("Reconnaissance",), ("T1595",),
        "Several closed ports of a server were tried from outside.", _scan
    ),
    _Kind(
        "Unfamiliar sign-in properties", "Low", "AADIP", ("InitialAccess",), ("T1078",),
        "Sign-in with properties not seen before for this user.", _sign_in
    ),
    _Kind(
        "Impossible travel activity", "High", "MCAS", ("InitialAccess",), ("T1078",),
        "Two sign-ins lie further apart than one can travel.", _sign_in
    )
)  # fmt: skip


def everyday_cases(*, start: datetime, end: datetime, seed: int, last_day: tuple[int, int, int]) -> list[IncidentCase]:
    """Incidents 101 to 123 between `start` and `end`, and the three numbers of `last_day` in the hours after."""
    rng = random.Random(f"everyday/{seed}")  # noqa: S311 - a reproducible story, no secret
    span = end - start
    cases = []
    for index in range(23):
        at = min(_working_time(start + span * ((index + 0.5) / 23), rng), end - timedelta(minutes=90 - index))
        cases.append(_case(FIRST_NUMBER + index, at, rng))
    for position, number in enumerate(last_day):
        cases.append(_open_case(number, end + timedelta(hours=34 + 5 * position), rng, _KINDS[(3, 6, 5)[position]]))
    return cases


def _working_time(at: datetime, rng: random.Random) -> datetime:
    """Moved to a working hour of the same day, of the Monday after for a weekend."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if day.weekday() > 4:
        day += _DAY * (7 - day.weekday())
    return day + timedelta(hours=rng.randint(8, 16), minutes=rng.randint(0, 59), seconds=rng.randint(0, 59))


def _alert(number: int, part: int, kind: _Kind, at: datetime, person: Employee, rng: random.Random) -> AlertCase:
    entities = EntityList()
    kind.entities(entities, person, rng)
    return AlertCase(
        key=f"case-{number}-{part}",
        name=kind.title,
        severity=kind.severity,
        at=at,
        product=kind.product,
        description=kind.description,
        entities=entities.json(),
        tactics=kind.tactics,
        techniques=kind.techniques,
        compromised=host_name(person.host) if kind.product == "MDE" else person.upn,
        resolved_after=rng.choice((None, timedelta(hours=3), timedelta(days=1))),
        extended={"Client IP Address": rng.choice(OFFICE_ADDRESSES)} if kind.product == "AADIP" else {},
    )


def _defender_id(number: int) -> int:
    return COLLIDING_DEFENDER_ID if number == COLLIDING else 2000 + number * 3


def _open_case(number: int, at: datetime, rng: random.Random, kind: _Kind) -> IncidentCase:
    person = rng.choice(PEOPLE)
    alert = _alert(number, 0, kind, at, person, rng)
    return IncidentCase(
        number=number,
        defender_id=_defender_id(number),
        title=kind.title,
        severity=kind.severity,
        created=at + timedelta(minutes=2),
        alerts=(alert,),
    )


def _case(number: int, at: datetime, rng: random.Random) -> IncidentCase:
    kind = _KINDS[(number - FIRST_NUMBER) % len(_KINDS)]
    person, analyst = rng.choice(PEOPLE), rng.choice(ANALYSTS)
    count = 0 if number == NO_ALERTS else rng.choice((1, 1, 2, 3))
    alerts = tuple(_alert(number, part, kind, at + timedelta(minutes=7 * part), person, rng) for part in range(count))
    return IncidentCase(
        number=number,
        defender_id=_defender_id(number),
        title="Manually created: review of supplier accounts" if number == NO_ALERTS else kind.title,
        severity="High" if number == LOWERED else kind.severity,
        created=at + timedelta(minutes=2),
        alerts=alerts,
        extra_alert_ids=2 if number == MISSING_ALERTS else 0,
        changes=_history(number, analyst, rng),
    )


_VERDICTS = (
    ("BenignPositive", "SuspiciousButExpected", "Confirmed with the user on the phone."),
    ("FalsePositive", "IncorrectAlertLogic", "Known inventory script, rule adjusted."),
    ("TruePositive", "SuspiciousActivity", "Password reset, session revoked."),
    ("Undetermined", "", ""),
)


def _history(number: int, analyst: Employee, rng: random.Random) -> tuple[IncidentVersion, ...]:
    """Assigned within hours, closed within a day; every sixth stays active."""
    taken = IncidentVersion(after=_HOUR * rng.randint(1, 3), by=analyst.upn, status="Active", owner=analyst)
    closed = IncidentVersion(
        after=_HOUR * rng.randint(4, 22), by=analyst.upn, status="Closed", classification=rng.choice(_VERDICTS)
    )
    if number == REOPENED:
        again = IncidentVersion(
            after=_DAY * 2, by=analyst.upn, status="Active", comment="Seen again from the same address."
        )
        return taken, closed, again
    if number == LOWERED:
        return (
            taken,
            IncidentVersion(after=_HOUR * 4, by=analyst.upn, severity="Medium", comment="One host only."),
            IncidentVersion(after=_HOUR * 6, by=analyst.upn, severity="Low"),
        )
    if number == RETITLED:
        return (
            taken,
            IncidentVersion(after=_HOUR * 5, by=analyst.upn, title="Credential phishing, two mailboxes"),
            closed,
        )
    return (taken,) if number % 6 == 0 else (taken, closed)

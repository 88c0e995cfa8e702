"""Wordings that were written after the recognisers and held out from them; `wordings` tells what their places mean."""

from __future__ import annotations

INCIDENT = (
    "Here's the summary for incident {n}: **{sev}** severity, **{status}**, opened {created}.",
    "Severity-wise, #{n} sits at {sev}; as for its state, it is {status}.",
    "- Number: {n}\n- Title: {title}\n- State: {status}\n- Severity: {sev}\n- Opened: {created}",
    "The one with number {n} came in {created} and still shows {status}.",
    "Sentinel lists {title} as incident {n}, with {sev_low} severity.",
    "> Incident {n}: {sev} / {status}",
    "It's incident {n}. It has {alerts} and was touched last {updated}.",
    "| Number | Title | Severity | Status | Alerts |\n|:--|:--|:-:|:-:|--:|\n"
    "| {n} | {title} | {sev} | {status} | {alerts} |",
    "Incident {n}, which Defender calls {defender}, carries the severity {sev}.",
    "Given its {sev_low} severity, incident {n} ({status}) deserves a look.",
)
PAIR = (
    "#{n1}: {sev1}. #{n2}: {sev2}.",
    "Both are open questions: {n1} is rated {sev1} and {n2} is rated {sev2}.",
    "1) Incident {n1} – opened {created1}\n2) Incident {n2} – opened {created2}",
    "Incident {n1} was opened {created1}, incident {n2} {created2}.",
    "* **{n1}**: {title1} ({sev1}, {status1})\n* **{n2}**: {title2} ({sev2}, {status2})",
    "Incident {n1} was raised earlier than incident {n2}; their severities are {sev1} and {sev2} respectively.",
    "Whereas #{n1} has the status {status1}, #{n2} is {status2}.",
)
LISTING = (
    "In total I see {total} incidents. {high} of those carry High severity, {medium} are Medium.",
    "{open} incidents are waiting for somebody, while {closed} have been closed already.",
    "Incidents by severity: High ({high}), Medium ({medium}), Low ({low}).",
    "Incidents by status – New: {new}, Active: {active}, Closed: {closed}.",
    "Number of High incidents: {high}",
    "We have {total_word} incidents on record, {open_word} of them open.",
    "That makes {high_percent} of all incidents High.",
    "Incident {newest} came last and incident {oldest} came first.",
    "No incident is more recent than #{newest}.",
    "The query returned {total} rows, one for each incident.",
)
DETAIL = (
    "What raised it was {alert}, at {alert_time}, on {host}.",
    "On {host}, {alert} was triggered with {alert_sev} severity.",
    "Entities of incident {n}: host {host}, account {account}.",
    "Incident {n} began with {first_alert} and ended with {last_alert}.",
    "MITRE technique: {technique} ({alert})",
    "The user {account} is tied to incident {n}.",
    "- Alert: {alert}\n- Severity: {alert_sev}\n- Status: {alert_status}\n- Host: {host}",
    "Incident {n} has {alerts}; the latest of them came {last_time}.",
)
ENTITY = (
    "With {top_count} alerts, {top} is named most often.",
    "Second place goes to {second} ({second_count} alerts).",
    "{entity}: {count} alerts, last seen {last_seen}",
    "Of all accounts, {top} has the most alerts.",
    "{entity} is part of incident {entity_incident}.",
)
TREND = (
    "{peak_day} saw the most alerts: {peak_count}.",
    "There were {day_count} on {day} and {other_count} on {other_day}.",
    "In all, {total} alerts were counted.",
    "Alerts on {day}: {day_count}",
)
ROWS = (
    "Failed sign-ins: {key} {value}, {other_key} {other_value}.",
    "{key} failed {value} times, {other_key} {other_value} times.",
    "Most failures belong to {top_key} ({top_value}).",
)
NEGATED = (
    ("Incident {n} hasn't been closed yet.", "Incident {n} has already been closed.", "open"),
    ("Nobody is assigned to incident {n}.", "Somebody is assigned to incident {n}.", "unassigned"),
    ("A few incidents are still open.", "Not a single incident is open.", "some_open"),
    ("Incident {n} is in {owner}'s hands.", "Incident {n} is without an owner.", "owned"),
    ("High incidents exist.", "None of the incidents has High severity.", "some_high"),
)
FILLER = (
    "The intruder left no traces behind.",
    "We are dealing with a nation-state actor here.",
    "The account has been fully compromised.",
    "Rest assured that the environment is secure.",
    "This was just a drill.",
    "The ransomware encrypted several servers.",
    "The phishing campaign succeeded.",
    "Your defences held up well.",
    "Nothing bad happened.",
    "The data has left the company.",
)

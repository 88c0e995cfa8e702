"""Wordings that were written at the very end. The docs tell their first figures; what they showed was mended since."""

from __future__ import annotations

INCIDENT = (
    "About incident {n}: it was logged {created}, its severity is {sev}, and it is {status} at the moment.",
    "**{title}**\n\nThis is incident {n}. Severity: {sev}. Status: {status}. Created: {created}.",
    "I can confirm that incident {n} is a {sev_low}-severity case with status {status}.",
    "Incident {n} | {title} | {sev} | {status}",
    "You'll find {alerts} in incident {n}, whose current status is {status}.",
    "Ranked {sev}, incident {n} dates from {created_day}.",
)
PAIR = (
    "Incident {n1} has {sev1} severity and incident {n2} has {sev2} severity.",
    "- #{n1} – {status1} – opened {created1}\n- #{n2} – {status2} – opened {created2}",
    "{n1} was created {created1}; {n2} was created {created2}.",
    "Of the two, {n1} is {sev1} and {n2} is {sev2}.",
)
LISTING = (
    "Your workspace holds {total} incidents, {open} of which are open.",
    "{closed} of the {total} incidents have been closed.",
    "There are {high} incidents rated High and {medium} rated Medium.",
    "The incident that was created last is {newest}.",
    "| Status | Count |\n|---|---|\n| New | {new} |\n| Active | {active} |\n| Closed | {closed} |",
)
DETAIL = (
    "The alert behind it is {alert} ({alert_sev}), raised {alert_time}.",
    "{account} and {host} are the entities named by {alert}.",
    "It all started with {first_alert} at {first_time}.",
    "The alert {alert} has the status {alert_status}.",
)
ENTITY = (
    "{top} is the account with the most alerts ({top_count}).",
    "{entity} was named in {count} alerts.",
    "First activity of {entity}: {first_seen}. Last activity: {last_seen}.",
)
TREND = (
    "{day}: {day_count} alerts; {other_day}: {other_count} alerts.",
    "The highest daily count was {peak_count}, on {peak_day}.",
)
ROWS = ("Account {key} shows {value} failed sign-ins, account {other_key} shows {other_value}.",)
NEGATED = (
    ("Incident {n} is not closed.", "Incident {n} is closed.", "open"),
    ("Incident {n} does have an owner: {owner}.", "Incident {n} does not have an owner.", "owned"),
    ("Several incidents remain open.", "Every incident has been closed.", "some_open"),
)
FILLER = (
    "The adversary never reached the domain controller.",
    "Customers were not affected.",
    "This is typical behaviour of the Conti group.",
    "The user confirmed that it was them.",
    "All malicious files have been deleted.",
    "It was an inside job.",
)

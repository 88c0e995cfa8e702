"""How answers are worded: sentences, lists and tables with places for facts, as different models write them.

Written before the recognisers of `sentinel_rag.agent.grounding`, and not changed to fit them. Every third wording of a
family is held out: the benchmark tells its figures apart. A place is `{fact}`; `bench.lying_model` fills it.
"""

from __future__ import annotations

INCIDENT = (
    "Incident {n} is rated {sev} and is currently {status}.",
    "#{n} ({title}): {sev}, {status}.",
    "The incident you asked about, number {n}, was created on {created} and has {sev_low} severity.",
    "**Incident {n}** – {title}\n- Severity: {sev}\n- Status: {status}\n- Created: {created}",
    "{title} (incident {n}) was opened at {created}. It is a {sev_low}-severity incident and its status is {status}.",
    "Incident {n} was last updated {updated}; it was created {created}.",
    "There is a {sev_low}-severity incident, #{n}, with the title {title}.",
    "### Incident {n}\nThis one is {sev} severity. It was raised on {created}.",
    "Right now incident {n} has the status {status}, with a severity of {sev}.",
    "| Field | Value |\n|---|---|\n| Incident | {n} |\n| Severity | {sev} |\n| Status | {status} |\n"
    "| Created | {created} |",
    "Looking at incident {n}: the severity is {sev}, the status {status}, and it was first seen in Sentinel {created}.",
    "Sentinel created incident {n} on {created_day}; today it stands at {status}.",
    "Incident number {n} carries {alerts} and is {sev}.",
    "The {sev_low} incident #{n} contains {alerts}.",
    "{title} has the number {n}. Severity {sev}. Status {status}.",
    "1. Incident {n} – {sev} – {status} – created {created}",
    "For incident {n} the severity in Sentinel is `{sev}` and the status is `{status}`.",
    "You are looking at incident {n} ({sev}), which came in on {created} and groups {alerts}.",
    "Its GUID is `{guid}`, and its number is {n}.",
    "Incident {n} has GUID {guid}; in Defender it is known under {defender}.",
    "As of the last update at {updated}, incident {n} remains {status}.",
    "**Severity:** {sev} · **Status:** {status} · **Incident:** {n}",
    "Number {n} is a {sev} one: {title}.",
    "Incident {n} started at {created}, which puts it on {created_day}.",
)
"""One incident of a list, or on its own."""

PAIR = (
    "Incident {n1} is {sev1}, whereas incident {n2} is {sev2}.",
    "Comparing the two: #{n1} is {status1} with {sev1} severity; #{n2} is {status2} with {sev2} severity.",
    "Incidents {n1} and {n2} differ: the first was created {created1}, the second {created2}.",
    "- Incident {n1}: {sev1}, {status1}\n- Incident {n2}: {sev2}, {status2}",
    "| Incident | Title | Severity | Status |\n|---|---|---|---|\n| {n1} | {title1} | {sev1} | {status1} |\n"
    "| {n2} | {title2} | {sev2} | {status2} |",
    "Incident {n1} ({sev1}) was created {created1}. Incident {n2} ({sev2}) followed {created2}.",
    "1. **#{n1}** {title1} – {sev1} – {created1}\n2. **#{n2}** {title2} – {sev2} – {created2}",
    "While {n1} is a {sev1_low}-severity incident, {n2} has been rated {sev2}.",
    "[1] Incident {n1} | {sev1} | {status1}\n[2] Incident {n2} | {sev2} | {status2}",
    "{title1} (#{n1}) is {status1} and {title2} (#{n2}) is {status2}.",
    "The severity of incident {n1} is {sev1} and that of incident {n2} is {sev2}.",
    "Two incidents stand out. The first, {n1}, is {sev1} and {status1}. The second, {n2}, is {sev2} and {status2}.",
    "| # | Severity | Created (UTC) |\n| ---: | :--- | :--- |\n| {n1} | {sev1} | {created1_iso} |\n"
    "| {n2} | {sev2} | {created2_iso} |",
    "#{n1} has {alerts1}, #{n2} has {alerts2}.",
    "#### {title1}\nIncident {n1}, {sev1}, opened {created1}.\n\n#### {title2}\nIncident "
    "{n2}, {sev2}, opened {created2}.",
)
"""Two incidents side by side."""

LISTING = (
    "I found {total} incidents in total, {high} of them High.",
    "There are {total} incidents: {high} High, {medium} Medium and {low} Low.",
    "{total_word} incidents match. {open_word} of these are still open and {closed_word} are closed.",
    "In all, {total} incidents were recorded; {closed} have been closed.",
    "Out of {total} incidents, {open} are open ({open_percent}).",
    "Severity breakdown:\n- High: {high}\n- Medium: {medium}\n- Low: {low}\n- Informational: {info}",
    "| Severity | Incidents |\n|---|---|\n| High | {high} |\n| Medium | {medium} |\n| Low | {low} |",
    "You have {high} high-severity incidents.",
    "The most recent incident is #{newest}, and the oldest one is #{oldest}.",
    "Incident {newest} is the newest of them.",
    "The latest incident, {newest}, was created {newest_created}.",
    "The earliest incident in the list is number {oldest} from {oldest_created}.",
    "{high_word} of the {total_word} incidents are of High severity.",
    "{total} incidents came back, of which {new} are New, {active} Active and {closed} Closed.",
    "Currently {open} incidents are open; {high} of all {total} are rated High.",
    "With {most_alerts}, incident {most} has the most alerts.",
    "Status overview: {new} new, {active} active, {closed} closed.",
    "About {high_percent} of the incidents ({high} of {total}) are High.",
    "The first incident to be created was {oldest}, on {oldest_created}.",
    "A total of {total} incidents were returned and the newest is incident {newest} ({newest_sev}).",
    "Only {low} Low-severity incidents are in the list, against {medium} with Medium severity.",
)
"""What a whole list of incidents says: totals, groups, the first and the last."""

DETAIL = (
    "Incident {n} involves the host {host} and the account {account}.",
    "The incident was raised after the alert {alert} on {host} at {alert_time}.",
    "Two things tie it together: host `{host}` and account `{account}`.",
    "The alert {alert} has {alert_sev} severity and was generated {alert_time}.",
    "The following account is affected: {account}.",
    "Incident {n} maps to {technique}.",
    "The alert {alert} (technique {technique}) fired at {alert_time}.",
    "Affected host: **{host}**; compromised account: **{account}**.",
    "In incident {n}, {account} was seen on {host}.",
    "Timeline:\n- {alert_time}: {alert} ({alert_sev})\n- {created}: incident {n} was created",
    "Incident {n} bundles {alerts}, among them {alert}.",
    "{alert} came from {product} and is {alert_status}.",
    "The first alert of incident {n} was {first_alert}, at {first_time}.",
    "The last alert, {last_alert}, was seen {last_time}.",
    "From the first alert to the last, incident {n} spans {span}.",
    "{alert} was raised {alert_time} with severity {alert_sev}; the incident itself is {sev}.",
    "The alert's id is {alert_id}.",
    "Alert {alert_id} is named {alert} and has {alert_sev} severity.",
    "According to the alert {alert}, {host} was involved.",
    "| Alert | Severity | Time |\n|---|---|---|\n| {alert} | {alert_sev} | {alert_time} |",
    "The techniques include {technique}, seen in the alert {alert}.",
)
"""Inside one incident: its alerts and entities."""

INDICATOR = (
    "The address {ip} appears in the alert {alert}.",
    "Traffic to {ip} was reported by {alert}.",
    "The alert {alert} names the IP address {ip}.",
    "- IP: {ip}\n- Alert: {alert}",
    "Connections involved {ip_defanged}, as the alert {alert} shows.",
)
"""An address that an alert names."""

HASHES = (
    "The file {file} has the SHA-256 {sha256}.",
    "`{file}` (SHA256: `{sha256}`) was found.",
    "Hash of {file}: {sha256}",
    "The alert {alert} names the file {file}.",
)
"""A file that an alert names."""

ENTITY = (
    "{entity} appears in {count} alerts.",
    "The top account is {top} with {top_count} alerts.",
    "{top} leads the ranking ({top_count} alerts).",
    "1. {top} – {top_count} alerts\n2. {second} – {second_count} alerts",
    "{entity} was first seen {first_seen} and last seen {last_seen}.",
    "| Account | Alerts |\n|---|---|\n| {top} | {top_count} |\n| {second} | {second_count} |",
    "Most alerts name {top}: {top_count} of them.",
    "{count_word} alerts mention {entity}.",
    "The account {entity} has been named by {count} alerts, {high_count} of them High.",
    "{entity} shows up in incident {entity_incident}.",
    "{top} comes first with {top_count} alerts, followed by {second} with {second_count}.",
    "We saw {entity} for the last time at {last_seen}.",
)
"""A ranking of accounts, hosts or addresses."""

TREND = (
    "Over the whole period there were {total} alerts.",
    "The peak was on {peak_day} with {peak_count} alerts.",
    "On {day} there were {day_count} alerts.",
    "Alert volume peaked at {peak_count} on {peak_day}.",
    "{total} alerts in all; the busiest day was {peak_day} ({peak_count}).",
    "| Day | Alerts |\n|---|---|\n| {day} | {day_count} |\n| {other_day} | {other_count} |",
    "- {day}: {day_count}\n- {other_day}: {other_count}",
    "{day_count_word} alerts were raised on {day}.",
    "The number of alerts went from {day_count} on {day} to {other_count} on {other_day}.",
)
"""Counts of alerts by day."""

ROWS = (
    "{key} has {value} failed sign-ins.",
    "The account {key} failed to sign in {value} times.",
    "{key}: {value}",
    "| Account | Failed sign-ins |\n|---|---|\n| {key} | {value} |\n| {other_key} | {other_value} |",
    "With {value} failures, {key} stands out.",
    "We counted {value} failed sign-ins for {key} and {other_value} for {other_key}.",
    "{top_key} had the most failed sign-ins, {top_value} in all.",
)
"""Rows of a KQL query with an account and a count."""

NEGATED = (
    ("Incident {n} is still open.", "Incident {n} is no longer open.", "open"),
    ("Incident {n} has been closed.", "Incident {n} has not been closed.", "closed"),
    ("Incident {n} has no owner yet.", "Incident {n} has an owner.", "unassigned"),
    ("Incident {n} is assigned to {owner}.", "Incident {n} is not assigned to anyone.", "owned"),
    ("Incident {n} is owned by {owner}.", "Nobody owns incident {n} yet.", "owned"),
    ("Some of the incidents are closed.", "None of the incidents are closed.", "some_closed"),
    ("There are incidents with High severity.", "There are no incidents with High severity.", "some_high"),
    ("Not all incidents are closed.", "All incidents are closed.", "not_all_closed"),
    ("Incident {n} is High.", "Incident {n} is not High.", "high"),
    ("Incident {n} remains unassigned.", "Incident {n} is already assigned.", "unassigned"),
    ("At least one incident is still open.", "No incidents are open any more.", "some_open"),
    ("Incident {n} isn't closed.", "Incident {n} is closed.", "open"),
)
"""A true sentence, the false one that differs by a negation, and what must hold of the incident or the list."""

FILLER = (
    "The attacker was successful in gaining access.",
    "This is a false positive.",
    "No further action is needed.",
    "The attack has been fully contained.",
    "APT29 is behind this campaign.",
    "This activity was benign and expected.",
    "The threat has been neutralised and your environment is safe.",
    "No data was exfiltrated.",
    "The host is clean now.",
    "The user was phished and gave away the password.",
    "Everything is under control.",
    "The attacker moved on to the domain controller and took it over.",
    "This is confirmed malicious activity.",
    "The breach was caused by a missing patch.",
    "Lazarus Group carried out the attack.",
    "You can safely ignore this.",
    "The malware was removed by the security team.",
    "There is no risk to other systems.",
)
"""Fluent statements of a verdict that no row makes."""

PLAIN = (
    "Here is what I found.",
    "Let me know if you want the details.",
    "Would you like me to analyze potential implications?",
    "The list below shows the newest first.",
    "These figures come from Microsoft Sentinel.",
    "I can also show the alerts behind it.",
    "Here are the details:",
    "I looked at the incidents of the workspace.",
    "All times are in UTC.",
    "Please verify this before you act on it.",
    "Analysis (to be verified by a human): this could point to lateral movement.",
    "This may indicate credential theft, which a person should check.",
    "You may want to look at the sign-in logs next.",
    "I did not check the sign-in logs.",
    "The results are listed by time of creation.",
    "One possible next step is to isolate the host.",
    "Nothing else was looked up.",
    "Ask me for the entities if you need them.",
)
"""Sentences that state no fact about the data; all of them are true in any answer."""

"""The tools over Microsoft Sentinel, as plain data: what a model sees, what a tool server serves, what a policy names.
All read but those in `WRITING_TOOLS`.

Handlers live in `tools.sentinel`. A schema is sent with each question of a model, so that it says only what a model
cannot guess; the rest stands here and is checked by the handlers.

Shapes of the results (`rows` of a QueryResult; times are ISO 8601 UTC strings; a missing value is null):

query_incidents      number, title, severity, status, created_time, updated_time, closed_time, owner, classification,
                     alert_count, provider_incident_id, incident_name (GUID), provider, url, description,
                     classification_comment (as it was closed; null if not told).
                     summary: by_severity, by_status (each name -> count), updated_in_window (count of incidents
                     created before the window that changed in it), merged (those that Defender merged into others, if
                     any: in no other count, and no row). With `entity`: only incidents one of whose alerts,
                     of whatever time, names it; partial if too many alerts may name it to look at all.
get_incident_detail  one row for each incident that the reference may mean (0: none, 2 or more: ambiguous; a number is
                     first one of Sentinel, and a note tells of whom it is the Defender id): the fields
                     above (status Merged and closed_time null for one that Defender merged into another), merged_into
                     (number; null where the log does not tell, a note says how it is known), defender_url (its page in
                     the Defender portal, where Sentinel tells it; url is the one in the Azure portal),
                     open_duration_s (creation to closing, seconds; null while open),
                     first_response_s (creation to the first change; null if the workspace does not tell),
                     classification_reason, alerts
                     [fields of query_alerts], alert_ids_without_row [GUID], entities {kind -> [{name, alerts,
                     properties as below, other_values {property -> [value]} where alerts disagree}]},
                     entity_counts {kind -> count} (of all), labels [], comments [{time, author, message}],
                     tactics, techniques, custom_details {name -> [value]} (of all its alerts; text that is no JSON
                     raw, under a name in brackets), timeline [{time, event}], bookmarks [{bookmark_id, name, notes,
                     query, query_result, event_time, created_time, created_by, labels []}] (through REST; where it is
                     not configured or gives no answer, a note tells how many there are). summary: matched_by
                     (incident_number, provider_incident_id, incident_name, alert_id, url), reference, alert_count,
                     ambiguous, detail (the form that came), left_out {name -> how many alerts, entities, ... are not
                     shown, and cut_texts}. The full form has all there is, up to 2 MB of JSON (a real incident of 71
                     alerts has 460 kB), with texts of entities of at most 1 000 characters and 12 remediation steps an
                     alert. The compact form shows fewer alerts (one of each name first, the severe before the others),
                     entities and events, so that the rows stay below 20 kB; counts are always of all.
query_alerts         alert_id, name, severity, status, time, start_time, end_time, product, provider, tactics [],
                     techniques [], compromised_entity, incident_number, description, entities [{kind, name,
                     properties as below}], entity_count (of all; `entities` may be fewer), row_time (when the newest
                     row was written), custom_details (where there are any), remediation_steps [] (at most 12, only if
                     at most 5 rows came, when descriptions too are whole), url (the alert's page in its product's
                     portal, where there is one). Over 20 rows are compact: 4 entities a row, {kind, name} with the
                     name cut at 80 characters, and no key without a value; otherwise 40 a row in full. `time` is
                     when the first row was recorded, and what a window is of; newest and oldest go by start_time,
                     by `time` where an alert has none.
                     summary: by_severity, by_status, by_name (the 20 commonest), by_product.
get_alert_events     the columns with a value of the query that the alert's rule left in it, run again in the window
                     that the alert tells; no rows if it holds none (a note has the call that reads what is around), or
                     one that may not or could not run. summary: alert_id,
                     vendor_id, alert_name, severity, product, incident_number, url, start_time, end_time, row_time,
                     entities [{kind, name, properties}] (at most 25), entity_count, custom_details; ran, why_not
                     (no_query, refused, failed; null if it ran), source (query, or alert where the alert carries its
                     events packed in itself and nothing was run), problems [] (of a refused query); rule_name, query
                     (text of the row: data, at most 4 000 characters), query_cut, window {start, end},
                     window_told_by, events_told (when the alert was raised), events_found (now), late_rows (of the
                     first table, ingested after the rule looked; null if not known), parser. Empty if there is no
                     such alert.
get_alert_trend      time (start of the bucket), count, high, medium, low, informational; gaps are rows of 0. Days and
                     weeks begin at midnight of `timezone`, so that a day on which clocks change has 23 or 25 hours.
                     summary: total, interval, timezone, peak_time, peak_count, by_severity.
get_top_entities     kind, name, alerts (distinct SystemAlertId), high_alerts, first_seen, last_seen,
                     incident_numbers []. With `status`: only alerts whose newest incident has it.
                     summary: distinct_entities, alerts_considered, alerts_with_unreadable_entities.
get_threat_summary   the worst open incidents (fields of query_incidents), created in the window or with alerts of
                     it. summary: incidents {total, open, by_severity, by_status: those created in it; open_of_before:
                     how many of the rows' incidents are older, if any}, alerts {total, by_severity}, previous
                     {incidents, alerts} (the window of the same length before; null when the window is open),
                     top_alert_names [{name, count}], top_accounts, top_hosts, top_ips [{name, alerts}],
                     tactics {name -> alerts}.
run_kql_query        the columns of the template. summary: template, description; filters [condition that the
                     template always applies], if any; totals {column -> sum over all rows, shown or not} where the
                     template groups and every row was counted.
list_kql_templates   name, description (its first sentence), parameters ["name" of a required one, "name=default"]. With
                     detail full, or if at most 5 templates are found: name, description, tables [], parameters [{name,
                     type, required, default, description, allowed}], questions [example questions], tactics [],
                     techniques []. summary: templates (all there are), found, detail. Words of `search` are looked for
                     in all of these, also in another form ("countries"), rare ones weigh more; best first.
list_tables          table, rows, oldest, newest.
search_logs          table, time, account, host, address, activity, object (what was acted on: a command line, a
                     file, an address, a subject), outcome (of the row; null where it has none),
                     found_in [column], found (the columns' values, at most three of them, cut around the text).
                     summary: text, by_table {table -> count}, oldest and newest {table -> time} (of all that match),
                     tables_found and tables_searched (how many), searched [table] (where nothing was found). coverage
                     names the tables that the rows are of; all that were searched where there are none.
list_workspaces      name, default (bool), changes (bool: whether incidents can be changed there). Asks no workspace.
describe_table       column, type, filled (how many of the rows that were looked at hold a value; columns that hold none
                     are left out), with `examples` also example (one value, at most 80 characters), and every column.
                     summary: table, columns, columns_filled, rows_looked_at.
run_freeform_kql     the columns of the query. Served only where the operator has opted in. summary: tables_read [],
                     parser (microsoft, or fallback: stricter and without types), guard (what was added to the query).
                     Its errors carry `problems`, each with its place and the nearest names; `allowed` are the names
                     that can be used there.
add_incident_comment one row: number, title, incident_name, url, comment_id (GUID), time, author, message (as stored:
                     what would be markup is escaped), comment_count (null if it was not told).
                     summary: matched_by, reference.
update_incident      one row, the incident after the update: number, title, severity, status, owner, classification,
                     classification_reason, classification_comment, updated_time, incident_name, url, changes [{field,
                     before, after}] (of these fields; empty if the incident was so already).
                     summary: matched_by, reference, changed [field].
preview_incident_change  for the gateway alone: one row as of update_incident, the incident as it is now, with the
                     changes that the call would make; of a comment the field is comment. Nothing is written.

Where the service cut the answer that counts come from, a summary has at_least (how many there are at the least) in
place of those counts, rows_total is null and the result is partial: counts of a part would be too low, each by another
amount.

Where a name (`entity`, `owner`, a template's parameter) finds no row, the names that exist are looked through: summary
has names {argument -> {code, given, like []}}. name_completed: one name alone is like it, and its rows are the result;
name_unclear: several are, or its domain is another, and none was read, so that the result is complete of nothing;
name_known: it exists, outside the window or the conditions; name_unknown: nothing like it does. With `workspace: "all"`
the argument stands behind the workspace ("emea: owner").

Arguments that several tools take: `time_window` is relative to now (other lengths, such as last_4h or PT90M, are taken
too); `start_time` and `end_time` (ISO 8601 with zone) are absolute, half open and win over it; with none of them
everything the workspace retains is read. `min_severity` is a threshold: Medium means Medium and High. `limit` is how
many rows come, `offset` how many are skipped for the next page of the same list (at most 10 000); totals always count
all that match. Texts have at most 500 characters where nothing else is said.

Every tool but list_kql_templates and list_workspaces asks one workspace, by name in `workspace`; coverage says which.
Where a tool takes `workspace: "all"`, each row also has workspace, summary has by_workspace {name -> {rows_total (null
if it was not told), error (null if it answered)}}, coverage names every workspace that answered, and one that did not
makes the result partial. by_name, where one workspace has more names than are told, is left out then.

Properties of an entity, each a string of at most 1 000 characters and there only if the alert tells it: account
(account_name, display_name, upn, sid, aad_user_id, nt_domain, dns_domain), host (host_name, dns_domain, os_family,
os_version, device_id, aad_device_id, azure_id), ip (address), url (url), file (directory, created_time, sha256, sha1,
md5), filehash (algorithm, value), process (process_id, command_line, created_time, image_file, parent_command_line,
parent_process_id), mailbox (address, upn, display_name, aad_user_id), mailmessage (sender, recipient, subject,
sender_ip, network_message_id, internet_message_id), cloud-application (app_id), oauth-application (app_id, object_id,
publisher), azure-resource (resource_id), registry-value (value), security-group (sid), iotdevice (device_id).
"""

from __future__ import annotations

from collections.abc import Iterable

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.tool_calls import ToolSchema

TIME_WINDOWS: dict[str, int] = {
    "last_1h": 1,
    "last_24h": 24,
    "last_3d": 72,
    "last_7d": 168,
    "last_14d": 336,
    "last_30d": 720,
}
"""Hours for each `time_window`."""

SEVERITIES = ("Informational", "Low", "Medium", "High")
"""Sentinel's severities, lowest first: `min_severity` is a threshold in this order."""

INCIDENT_STATUSES = ("New", "Active", "Closed")
CLASSIFICATION_REASONS: dict[str, tuple[str, ...]] = {
    "Undetermined": (),
    "TruePositive": ("SuspiciousActivity",),
    "BenignPositive": ("SuspiciousButExpected",),
    "FalsePositive": ("IncorrectAlertLogic", "InaccurateData"),
}
"""Classifications of a closed incident, each with the reasons that Sentinel takes for it."""

LONGEST_COMMENT = 30_000
"""Characters of an incident comment that Sentinel keeps."""

LONGEST_FREEFORM_KQL = 10_000
"""Characters of a query that run_freeform_kql takes."""

ALERT_STATUSES = ("New", "InProgress", "Resolved", "Dismissed", "Unknown")
ENTITY_KINDS = (
    "account",
    "host",
    "ip",
    "url",
    "file",
    "filehash",
    "process",
    "mailbox",
    "mailmessage",
    "mailcluster",
    "cloud-application",
    "azure-resource",
    "dns",
    "malware",
    "registry-key",
    "registry-value",
    "security-group",
    "iotdevice",
    "oauth-application",
)

TEMPLATE_FAMILIES = (
    "account_*, activity_*, alert*_by_*, audit_*, azure_*, dns_*, emails_*, entra_*, failed_*, file_*, firewall_*, "
    "heartbeat_*, identity_*, incidents_*, ingestion_*, logons_*, m*, ne*, "
    "office_*, own_table_*, parent_*, people_*, process*, rare_*, raw_signins (needs approval), risk*, signin*, "
    "success_*, threat_*, u*, watchlist*, windows_*"
)
"""The names of all shipped templates, as patterns: what a model can ask for without listing them first."""

DEFAULT_LIMIT = 20
MAX_LIMIT = 100

MOST_SKIPPED = 10_000
MOST_TEMPLATES = 500
LONGEST_TEXT = 500
"""Characters of a text argument whose schema tells no other bound; a schema is sent with each question of a model."""

BOUNDS: dict[str, tuple[int, int]] = {"limit": (1, MAX_LIMIT), "offset": (0, MOST_SKIPPED)}
"""Least and most of an argument whose schema does not tell it."""

CHOICES: dict[str, tuple[str, ...]] = {"entity_kind": ENTITY_KINDS}
"""Values of an argument whose schema does not list them, since another tool's does."""

_TEXT: JsonObject = {"type": "string"}


def _text(description: str, **more: JsonValue) -> JsonObject:
    return {**_TEXT, **more, "description": description}


def _choice(values: Iterable[str], description: str = "", **more: JsonValue) -> JsonObject:
    return {**_TEXT, "enum": list(values), **more, **({"description": description} if description else {})}


_WINDOW: dict[str, JsonObject] = {
    "time_window": _choice(TIME_WINDOWS),
    "start_time": _text("ISO 8601 with zone"),
    "end_time": _TEXT,
}
_SEVERITY: dict[str, JsonObject] = {
    "min_severity": _choice(SEVERITIES, "at least"),
    "severity": _choice(SEVERITIES, "exactly"),
}
_LIMIT: dict[str, JsonObject] = {"limit": {"type": "integer", "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}}
_PAGE: dict[str, JsonObject] = {
    **_LIMIT,
    "offset": {"type": "integer", "default": 0},
}

ALL_WORKSPACES = "all"
_WORKSPACE: JsonObject = _TEXT
_WORKSPACE_OR_ALL: JsonObject = _text("or 'all'")

_ONE_INCIDENT: JsonObject = _text("55, #55, a GUID or the incident's URL")
_ENTITY: dict[str, JsonObject] = {
    "entity": _text("exact name in an alert: host, account, address, hash, ..."),
    "entity_kind": _text("kinds as in get_top_entities"),
}


def _tool(
    name: str,
    description: str,
    properties: dict[str, JsonObject],
    *,
    required: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
    workspace: JsonObject | None = _WORKSPACE,
) -> ToolSchema:
    parameters: JsonObject = {
        "type": "object",
        "properties": properties if workspace is None else {**properties, "workspace": workspace},
        **({"required": list(required)} if required else {}),
        "additionalProperties": False,
    }
    return ToolSchema(name, description, parameters, aliases)


SENTINEL_TOOLS: tuple[ToolSchema, ...] = (
    _tool(
        "query_incidents",
        "Incidents in their newest version, with exact totals by severity and status. A window is time_window, or "
        "start_time and end_time (exclusive); without one all retained data is read.",
        {
            **_WINDOW,
            **_SEVERITY,
            "status": _choice((*INCIDENT_STATUSES, "Open"), "Open: New or Active"),
            "time_field": _choice(("created", "closed", "updated"), "what the window is of", default="created"),
            "title_contains": _TEXT,
            "owner": _text("name or address, or a part; 'unassigned'"),
            "classification": _choice(CLASSIFICATION_REASONS),
            "closed_by": _TEXT,
            **_ENTITY,
            "order": _choice(
                ("severity", "newest", "oldest", "updated"),
                "severity: open before closed",
                default="severity",
            ),
            **_PAGE,
        },
        aliases=("query_sentinel_incidents",),
        workspace=_WORKSPACE_OR_ALL,
    ),
    _tool(
        "get_incident_detail",
        "One incident with alerts, entities, comments, timeline, techniques and bookmarks. compact fits into 24 kB and "
        "counts in left_out what it lacks; full has all.",
        {
            "incident": _text("Sentinel number, Defender id, GUID, portal URL or alert id"),
            "detail": _choice(("compact", "full"), default="compact"),
        },
        required=("incident",),
        aliases=("get_incident_details",),
    ),
    _tool(
        "query_alerts",
        "Alerts in their newest version, with exact totals by severity, status, name and product. A window is of when "
        "they were recorded; newest and oldest go by the time of the event (start_time).",
        {
            **_WINDOW,
            "alert_id": _text("SystemAlertId, portal id or address"),
            **_SEVERITY,
            "status": _choice(ALERT_STATUSES),
            "name_contains": _TEXT,
            **_ENTITY,
            "incident": _TEXT,
            "product": _TEXT,
            "tactic": _text("MITRE tactic or technique id"),
            "order": _choice(("newest", "oldest", "severity"), default="newest"),
            **_PAGE,
        },
        aliases=("query_sentinel_alerts",),
        workspace=_WORKSPACE_OR_ALL,
    ),
    _tool(
        "get_alert_events",
        "The raw log rows behind one alert: its rule's query, run again in its window; only product Azure Sentinel "
        "stores one.",
        {"alert_id": _text("SystemAlertId, portal id or address"), **_LIMIT},
        required=("alert_id",),
    ),
    _tool(
        "get_alert_trend",
        "Counts of alerts in equal buckets of time, gaps as 0.",
        {
            **_WINDOW,
            **_SEVERITY,
            "interval": _choice(("1h", "6h", "1d", "7d")),
            "timezone": _text("IANA name", default="UTC"),
        },
    ),
    _tool(
        "get_top_entities",
        "Entities of one kind that most distinct alerts name.",
        {
            "kind": _choice(ENTITY_KINDS),
            **_WINDOW,
            **_SEVERITY,
            "status": _choice((*INCIDENT_STATUSES, "Open"), "of the incident with the alert"),
            **_PAGE,
        },
        required=("kind",),
    ),
    _tool(
        "get_threat_summary",
        "Situation report: incidents and alerts by severity and status, change against the window before, top names.",
        {**_WINDOW},
    ),
    _tool(
        "run_kql_query",
        f"Run a KQL template with parameters; list_kql_templates tells them. Templates: {TEMPLATE_FAMILIES}.",
        {
            "template": _TEXT,
            "parameters": {"type": "object"},
            **_WINDOW,
            **_PAGE,
        },
        required=("template",),
    ),
    _tool(
        "list_kql_templates",
        "Find templates for run_kql_query: name, purpose, parameters (name=default: optional). All of a template, with "
        "example questions, if five or fewer match or with detail full.",
        {
            "search": _text("words, a table, tactic or technique"),
            "detail": _choice(("compact", "full"), default="compact"),
            "limit": {"type": "integer", "maximum": MOST_TEMPLATES, "default": MAX_LIMIT},
            "offset": _PAGE["offset"],
        },
        workspace=None,
    ),
    _tool(
        "list_tables",
        "Tables that hold rows, with counts and the times of the oldest and newest row.",
        {},
        workspace=_WORKSPACE_OR_ALL,
    ),
    _tool(
        "search_logs",
        "Where a text occurs, in whole words, in any column of any log table: counts by table, and the rows.",
        {"text": _text("address, hash, name, words of a command line"), "table": _TEXT, **_WINDOW, **_PAGE},
        required=("text",),
    ),
    _tool(
        "list_workspaces",
        "Workspaces that `workspace` can name, and the default.",
        {},
        workspace=None,
    ),
    _tool(
        "describe_table",
        "The columns of one table that hold values, with types. Look here before KQL.",
        {
            "table": _TEXT,
            "examples": {"type": "boolean", "default": False, "description": "every column, with a value"},
        },
        required=("table",),
    ),
    _tool(
        "run_freeform_kql",
        "Run KQL of your own: checked first for reading operators only, names of the schema (case sensitive), one "
        "workspace, a window. Prefer run_kql_query where a template answers.",
        {"kql": {**_TEXT, "maxLength": LONGEST_FREEFORM_KQL}, **_WINDOW, **_LIMIT},
        required=("kql",),
    ),
    _tool(
        "add_incident_comment",
        "Add a comment to an incident. Changes Sentinel, with a person's approval.",
        {"incident": _ONE_INCIDENT, "message": _text("plain text", maxLength=LONGEST_COMMENT)},
        required=("incident", "message"),
    ),
    _tool(
        "update_incident",
        "Change status, severity, owner or classification of an incident; what is left out stays. Changes Sentinel, "
        "with a person's approval.",
        {
            "incident": _ONE_INCIDENT,
            "status": _choice(INCIDENT_STATUSES, "Closed needs a classification; New or Active reopens"),
            "severity": _choice(SEVERITIES),
            "owner": _text("UPN, address or object id, or 'unassigned'", maxLength=254),
            "classification": _choice(CLASSIFICATION_REASONS, "with status Closed"),
            "classification_reason": _choice(
                (reason for reasons in CLASSIFICATION_REASONS.values() for reason in reasons),
                "needed for FalsePositive",
            ),
            "classification_comment": {**_TEXT, "maxLength": 3_000},
        },
        required=("incident",),
    ),
)

WRITING_TOOLS = frozenset({"add_incident_comment", "update_incident"})
"""The tools that change something; all others only read."""

PREVIEW_TOOL = "preview_incident_change"
PREVIEW_TOOLS: tuple[ToolSchema, ...] = (
    _tool(
        PREVIEW_TOOL,
        "What add_incident_comment or update_incident would write with these arguments. Changes nothing.",
        {
            name: schema
            for tool in SENTINEL_TOOLS
            if tool.name in WRITING_TOOLS
            for name, schema in tool.parameter_schemas().items()
            if name != "workspace"
        },
        required=("incident",),
    ),
)
"""Tools that the gateway calls by itself, to show whoever decides what a call would change. No policy offers them."""

ALL_WORKSPACES_TOOLS = frozenset(
    tool.name for tool in SENTINEL_TOOLS if tool.parameter_schemas().get("workspace") == _WORKSPACE_OR_ALL
)
"""The tools that can ask every workspace at once."""
OPT_IN_TOOLS = frozenset({"run_freeform_kql"})
"""Tools that are served only where the operator has switched them on."""

TOOLS_BY_NAME: dict[str, ToolSchema] = {tool.name: tool for tool in SENTINEL_TOOLS}


def canonical_tool_name(name: str) -> str:
    """The name that the policy and the tool servers use; aliases of the source documents are resolved."""
    for tool in SENTINEL_TOOLS:
        if name in tool.aliases:
            return tool.name
    return name

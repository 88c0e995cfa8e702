"""The tools over Microsoft Sentinel, as plain data: what a model sees, what an executor serves, what a policy names.
All read but those in `WRITING_TOOLS`.

Handlers live in `executors.sentinel`. Windows: `time_window` is relative to now; `start_time`/`end_time` (ISO 8601 with
zone) are absolute, half open and win over it; with neither, everything the workspace retains is read.

Shapes of the results (`rows` of a QueryResult; times are ISO 8601 UTC strings; a missing value is null):

query_incidents      number, title, severity, status, created_time, updated_time, closed_time, owner, classification,
                     alert_count, provider_incident_id, incident_name (GUID), provider, url, description.
                     summary: by_severity, by_status (each name -> count), updated_in_window (count of incidents
                     created before the window that changed in it). With `entity`: only incidents one of whose alerts,
                     of whatever time, names it; partial if too many alerts may name it to look at all.
get_incident_detail  one row for each incident that the reference may mean (0: none, 2 or more: ambiguous): the fields
                     above and defender_url (its page in the Defender portal, where Sentinel tells it; url is the one
                     in the Azure portal), open_duration_s (creation to closing, seconds; null while open),
                     first_response_s (creation to the first change; null if the workspace does not tell),
                     classification_reason, classification_comment (as it was closed; null if not told), alerts
                     [fields of query_alerts], alert_ids_without_row [GUID], entities {kind -> [{name, alerts,
                     properties as below, other_values {property -> [value]} where alerts disagree}]} (at most 100 a
                     kind), entity_counts {kind -> count} (of all), labels [], comments [{time, author, message}],
                     tactics, techniques, custom_details {name -> [value]} (of all its alerts; text that is no JSON
                     raw, under a name in brackets), timeline [{time, event}], bookmarks [{bookmark_id, name, notes,
                     query, query_result, event_time, created_time, created_by, labels []}] (through REST; where it is
                     not configured or gives no answer, a note tells how many there are). summary: matched_by
                     (incident_number, provider_incident_id, incident_name, alert_id, url), reference, alert_count,
                     ambiguous, detail (the form that came), left_out {name -> how many alerts, entities, ... are not
                     shown}. The compact form shows fewer alerts (one of each name first, the severe before the
                     others), entities and events, so that the rows stay below 20 kB of JSON; counts are always of all.
query_alerts         alert_id, name, severity, status, time, start_time, end_time, product, provider, tactics [],
                     techniques [], compromised_entity, incident_number, description, entities [{kind, name,
                     properties as below}], entity_count (of all; `entities` may be fewer), row_time (when the newest
                     row was written), custom_details (where there are any), remediation_steps [] (at most 12, only if
                     at most 5 rows came, when descriptions too are whole), url (the alert's page in its product's
                     portal, where there is one). Over 20 rows are compact: 4 entities a row, {kind, name} with the
                     name cut at 80 characters, and no key without a value; otherwise 40 a row in full.
                     summary: by_severity, by_status, by_name (the 20 commonest), by_product.
get_alert_events     the columns of the query that the alert's rule left in it, run again in the window that the alert
                     tells; no rows if it holds none, or one that may not or could not run. summary: alert_id,
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
                     incident_numbers [].
                     summary: distinct_entities, alerts_considered, alerts_with_unreadable_entities.
get_threat_summary   the newest open incidents (fields of query_incidents). summary: incidents {total, open,
                     by_severity, by_status}, alerts {total, by_severity}, previous {incidents, alerts} (the window of
                     the same length before; null when the window is open), top_alert_names [{name, count}],
                     top_accounts, top_hosts, top_ips [{name, alerts}], tactics {name -> alerts}.
run_kql_query        the columns of the template. summary: template, description; totals {column -> sum over all
                     rows, shown or not} where the template groups and every row was counted.
list_kql_templates   name, description, tables [], parameters [{name, type, required, default, description, allowed}],
                     questions [example questions], tactics [], techniques [].
list_tables          table, rows, oldest, newest.
list_workspaces      name, default (bool), changes (bool: whether incidents can be changed there). Asks no workspace.
describe_table       column, type, filled (how many of the rows that were looked at hold a value), with `examples` also
                     example (one value, at most 80 characters); filled columns first.
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

from sentinel_rag.contracts.json_values import JsonObject
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

DEFAULT_LIMIT = 20
MAX_LIMIT = 100

_WINDOW: dict[str, JsonObject] = {
    "time_window": {
        "type": "string",
        "enum": list(TIME_WINDOWS),
        "description": "A window that ends now. Leave out (with start_time and end_time) for all retained data.",
    },
    "start_time": {
        "type": "string",
        "format": "date-time",
        "description": "Start of an absolute window, ISO 8601 with zone, inclusive. Wins over time_window.",
    },
    "end_time": {
        "type": "string",
        "format": "date-time",
        "description": "End of an absolute window, ISO 8601 with zone, exclusive.",
    },
}
_SEVERITY: dict[str, JsonObject] = {
    "min_severity": {
        "type": "string",
        "enum": list(SEVERITIES),
        "description": "A threshold: Medium means Medium and High.",
    },
    "severity": {
        "type": "string",
        "enum": list(SEVERITIES),
        "description": "Exactly this severity.",
    },
}
_LIMIT: dict[str, JsonObject] = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_LIMIT,
        "default": DEFAULT_LIMIT,
        "description": "How many rows to return; totals always count all that match.",
    }
}
MOST_SKIPPED = 10_000
_PAGE: dict[str, JsonObject] = {
    **_LIMIT,
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": MOST_SKIPPED,
        "default": 0,
        "description": "How many rows to skip, for the next page of the same list.",
    },
}

ALL_WORKSPACES = "all"
_WORKSPACE: JsonObject = {
    "type": "string",
    "maxLength": 40,
    "description": "Name of the workspace to ask (list_workspaces tells them); left out: the default one.",
}
_WORKSPACE_OR_ALL: JsonObject = {
    **_WORKSPACE,
    "description": "Name of the workspace to ask (list_workspaces tells them), or 'all' for each of them; left out: "
    "the default one.",
}

_ONE_INCIDENT: JsonObject = {
    "type": "string",
    "minLength": 1,
    "maxLength": 500,
    "description": "For example 55, #55, a GUID or the incident's URL.",
}


def _entity(description: str) -> dict[str, JsonObject]:
    return {
        "entity": {"type": "string", "maxLength": 500, "description": description},
        "entity_kind": {"type": "string", "enum": list(ENTITY_KINDS), "description": "Kind of `entity`, if known."},
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
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSchema(name, description, parameters, aliases)


SENTINEL_TOOLS: tuple[ToolSchema, ...] = (
    _tool(
        "query_incidents",
        "List Sentinel incidents, each in its newest version, with exact totals by severity and status.",
        {
            **_WINDOW,
            **_SEVERITY,
            "status": {
                "type": "string",
                "enum": [*INCIDENT_STATUSES, "Open"],
                "description": "Status of the newest version; Open means New or Active.",
            },
            "time_field": {
                "type": "string",
                "enum": ["created", "closed", "updated"],
                "default": "created",
                "description": "Which of its times the window applies to; closed means closed and not reopened.",
            },
            "title_contains": {"type": "string", "maxLength": 200, "description": "Words of the title, any case."},
            "owner": {
                "type": "string",
                "maxLength": 200,
                "description": "Owner's name or address, or part of it; 'unassigned' for none.",
            },
            **_entity("Only incidents with an alert that names exactly this host, account, address, hash, ..."),
            "order": {
                "type": "string",
                "enum": ["newest", "oldest", "severity", "updated"],
                "default": "newest",
                "description": "newest and oldest go by creation time.",
            },
            **_PAGE,
        },
        aliases=("query_sentinel_incidents",),
        workspace=_WORKSPACE_OR_ALL,
    ),
    _tool(
        "get_incident_detail",
        "One incident with its alerts, entities, comments and timeline. The reference may be a Sentinel number, a "
        "Defender id, a GUID, a portal URL or an alert id; which of them it was is told.",
        {
            "incident": _ONE_INCIDENT,
            "detail": {
                "type": "string",
                "enum": ["compact", "full"],
                "default": "compact",
                "description": "compact fits a reader of 24 kB and says what it left out; full may be 130 kB.",
            },
        },
        required=("incident",),
        aliases=("get_incident_details",),
    ),
    _tool(
        "query_alerts",
        "List security alerts, newest version of each, with totals by severity, status, name and product.",
        {
            **_WINDOW,
            "alert_id": {
                "type": "string",
                "maxLength": 500,
                "description": "Only the alert with this id (SystemAlertId, or the id or address of its own portal).",
            },
            **_SEVERITY,
            "status": {"type": "string", "enum": list(ALERT_STATUSES), "description": "Status of the alert."},
            "name_contains": {
                "type": "string",
                "maxLength": 200,
                "description": "Words of the alert's name, any case.",
            },
            **_entity("Only alerts that name exactly this host, account, address, hash, file, URL, ..."),
            "incident": {"type": "string", "maxLength": 500, "description": "Only alerts of this incident."},
            "product": {
                "type": "string",
                "maxLength": 200,
                "description": "Product that raised it, or part of its name.",
            },
            "tactic": {"type": "string", "maxLength": 100, "description": "MITRE ATT&CK tactic or technique id."},
            "order": {"type": "string", "enum": ["newest", "oldest", "severity"], "default": "newest"},
            **_PAGE,
        },
        aliases=("query_sentinel_alerts",),
        workspace=_WORKSPACE_OR_ALL,
    ),
    _tool(
        "get_alert_events",
        "The raw log rows behind one alert: the query that its analytic rule stored, run again in the alert's own "
        "window after a check. Says what evidence there is where an alert holds no query.",
        {
            "alert_id": {
                "type": "string",
                "minLength": 1,
                "maxLength": 500,
                "description": "SystemAlertId of the alert, or the id or address of its own portal.",
            },
            **_LIMIT,
        },
        required=("alert_id",),
    ),
    _tool(
        "get_alert_trend",
        "Counts of alerts over time in equal buckets, gaps filled with zero.",
        {
            **_WINDOW,
            **_SEVERITY,
            "interval": {
                "type": "string",
                "enum": ["1h", "6h", "1d", "7d"],
                "description": "Width of a bucket; chosen from the window when left out.",
            },
            "timezone": {
                "type": "string",
                "maxLength": 64,
                "default": "UTC",
                "description": "IANA name of the zone at whose midnight days begin, such as Europe/Berlin.",
            },
        },
    ),
    _tool(
        "get_top_entities",
        "The entities that most distinct alerts name, for one kind (account, host, ip, ...).",
        {
            "kind": {"type": "string", "enum": list(ENTITY_KINDS), "description": "Kind of entity to rank."},
            **_WINDOW,
            **_SEVERITY,
            **_PAGE,
        },
        required=("kind",),
    ),
    _tool(
        "get_threat_summary",
        "A situation report: incidents and alerts by severity and status, change against the window before, top names.",
        {**_WINDOW},
    ),
    _tool(
        "run_kql_query",
        "Run a named KQL template with typed parameters; list_kql_templates tells which there are.",
        {
            "template": {"type": "string", "maxLength": 100, "description": "Name of the template."},
            "parameters": {
                "type": "object",
                "description": "The template's parameters by name.",
                "additionalProperties": {"type": ["string", "number", "boolean", "array"]},
            },
            **_WINDOW,
            **_PAGE,
        },
        required=("template",),
    ),
    _tool(
        "list_kql_templates",
        "The KQL templates that run_kql_query knows, with parameters and example questions.",
        {},
        workspace=None,
    ),
    _tool(
        "list_tables",
        "The tables that hold rows, with row counts and the times of their oldest and newest row.",
        {},
        workspace=_WORKSPACE_OR_ALL,
    ),
    _tool("list_workspaces", "The workspaces by name, and which of them is the default one.", {}, workspace=None),
    _tool(
        "describe_table",
        "The columns of one table with their types, and which of them hold values. Look here before writing KQL.",
        {
            "table": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "The table, such as SigninLogs; list_tables tells which tables hold rows.",
            },
            "examples": {
                "type": "boolean",
                "default": False,
                "description": "Also one value of each column, out of the newest rows.",
            },
        },
        required=("table",),
    ),
    _tool(
        "run_freeform_kql",
        "Run one KQL query of your own over this workspace's tables. It is checked first: reading operators only, "
        "names bound to the schema, one workspace, a time window. Prefer run_kql_query where a template answers.",
        {
            "kql": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_FREEFORM_KQL,
                "description": "The query. describe_table tells the columns; names are case sensitive.",
            },
            **_WINDOW,
            **_LIMIT,
        },
        required=("kql",),
    ),
    _tool(
        "add_incident_comment",
        "Add a comment to one incident. Changes Sentinel.",
        {
            "incident": _ONE_INCIDENT,
            "message": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_COMMENT,
                "description": "The comment, as plain text.",
            },
        },
        required=("incident", "message"),
    ),
    _tool(
        "update_incident",
        "Change status, severity, owner or classification of one incident; what is left out stays. Changes Sentinel.",
        {
            "incident": _ONE_INCIDENT,
            "status": {
                "type": "string",
                "enum": list(INCIDENT_STATUSES),
                "description": "Closed needs a classification; New or Active opens a closed incident again.",
            },
            "severity": {"type": "string", "enum": list(SEVERITIES), "description": "The new severity."},
            "owner": {
                "type": "string",
                "maxLength": 254,
                "description": "User principal name, e-mail address or object id of the new owner, or 'unassigned'.",
            },
            "classification": {
                "type": "string",
                "enum": list(CLASSIFICATION_REASONS),
                "description": "How a closed incident turned out; for an open one only together with status Closed.",
            },
            "classification_reason": {
                "type": "string",
                "enum": [reason for reasons in CLASSIFICATION_REASONS.values() for reason in reasons],
                "description": "The reason for the classification; FalsePositive has two to choose from.",
            },
            "classification_comment": {
                "type": "string",
                "maxLength": 3_000,
                "description": "A sentence beside the classification, as plain text.",
            },
        },
        required=("incident",),
    ),
)

WRITING_TOOLS = frozenset({"add_incident_comment", "update_incident"})
"""The tools that change something; all others only read."""

ALL_WORKSPACES_TOOLS = frozenset(
    tool.name for tool in SENTINEL_TOOLS if tool.parameter_schemas().get("workspace") == _WORKSPACE_OR_ALL
)
"""The tools that can ask every workspace at once."""
OPT_IN_TOOLS = frozenset({"run_freeform_kql"})
"""Tools that are served only where the operator has switched them on."""

TOOLS_BY_NAME: dict[str, ToolSchema] = {tool.name: tool for tool in SENTINEL_TOOLS}


def canonical_tool_name(name: str) -> str:
    """The name that the policy and the executors use; aliases of the source documents are resolved."""
    for tool in SENTINEL_TOOLS:
        if name in tool.aliases:
            return tool.name
    return name

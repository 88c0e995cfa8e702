"""Which table the rows of a file belong to.

In this order: what the person said, a `$table` column, a `Type` column that names tables, the name of the file, the
columns; else a new table of its own, named after the file with Azure's `_CL` for custom logs. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from sentinel_rag.workspace.importing.column_mapping import folded, known_as
from sentinel_rag.workspace.importing.source_files import UnreadableFileError
from sentinel_rag.workspace.kql.errors import nearest_names

Schema = Mapping[str, Mapping[str, str]]

_EVERYWHERE = frozenset({"TenantId", "TimeGenerated", "Type", "SourceSystem", "Computer", "_ResourceId", "Timestamp"})
_OF_EVERY_ROW = {"TenantId", "TimeGenerated", "Type"}
_AZURES_NAME = re.compile(r"[A-Z](?=[A-Z0-9]*[a-z])[A-Za-z0-9]{2,59}")
_LEAST_OVERLAP = 0.6
_OF_SEVERAL_WORDS = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_LEAST_TELLING = 4
"""So many names of several words must fit where they are spelled otherwise: any list has a title and a status."""
# fmt: off
_OTHER_TABLES = frozenset((
    "AADManagedIdentitySignInLogs", "AADProvisioningLogs", "AADRiskyServicePrincipals",
    "AADServicePrincipalRiskEvents", "ABAPAuditLog", "ADFSSignInLogs", "ASimAuditEventLogs",
    "ASimAuthenticationEventLogs", "ASimDnsActivityLogs", "ASimNetworkSessionLogs", "ASimProcessEventLogs",
    "ASimWebSessionLogs", "AWSCloudWatch", "AWSGuardDuty", "AWSVPCFlow", "AZFWApplicationRule",
    "AZFWNetworkRule", "AzureActivity", "AzureMetrics", "ConfidentialWatchlist", "ContainerLog",
    "DeviceFileCertificateInfo", "Dynamics365Activity", "EmailPostDeliveryEvents", "GCPAuditLogs",
    "IdentityDirectoryEvents", "IdentityQueryEvents", "McasShadowItReporting", "Perf", "PowerBIActivity",
    "SecurityBaseline", "SecurityRecommendation", "StorageBlobLogs", "WindowsEvent", "WindowsFirewall",
))
# fmt: on
"""Azure's tables that the embedded workspace does not start with; rows that name one as their Type make it, also those
that lack what every row of Log Analytics has."""
_COMMON = frozenset({
    "SigninLogs", "SecurityAlert", "SecurityIncident", "SecurityEvent", "AuditLogs", "OfficeActivity", "AzureActivity",
    "CommonSecurityLog", "Syslog", "DeviceProcessEvents", "DeviceNetworkEvents", "DeviceFileEvents",
    "DeviceLogonEvents", "EmailEvents", "IdentityLogonEvents",
})  # fmt: skip
"""Tables that a file is rather of than of others with the same columns."""
_MOST_NAMED, _NO_ACCIDENT = 3, 10
_ACTIONS: Mapping[str, str] = {
    action: table
    for table, actions in {
        "DeviceProcessEvents": ("ProcessCreated", "OpenProcess"),
        "DeviceFileEvents": ("FileCreated", "FileModified", "FileDeleted", "FileRenamed"),
        "DeviceRegistryEvents": (
            "RegistryKeyCreated", "RegistryKeyDeleted", "RegistryKeyRenamed", "RegistryValueSet",
            "RegistryValueDeleted",
        ),
        "DeviceImageLoadEvents": ("ImageLoaded",),
        "DeviceLogonEvents": ("LogonSuccess", "LogonFailed", "LogonAttempted"),
        "DeviceNetworkEvents": (
            "ConnectionSuccess", "ConnectionFailed", "ConnectionAttempt", "ConnectionRequest", "ConnectionFound",
            "ConnectionAcknowledged", "InboundConnectionAccepted", "InboundConnectionAttempt",
            "ListeningConnectionCreated", "DnsConnectionInspected", "HttpConnectionInspected", "SslConnectionInspected",
            "NetworkSignatureInspected", "IcmpConnectionInspected", "SshConnectionInspected",
            "NtlmAuthenticationInspected",
        ),
    }.items()
    for action in actions
}  # fmt: skip
"""What advanced hunting calls what happened, and the table that holds it; any other stands in DeviceEvents."""
BY_NAME = "the file's name"
NO_KNOWN_TABLE = "No known table has its columns"
"""Why a new table is made for a file."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")


def named_table(name: str, schema: Schema) -> str:
    """The table that a person named. Raises UnreadableFileError for one that neither exists nor is a custom log."""
    if name in schema or name in _OTHER_TABLES:
        return name
    nearest = nearest_names(name, schema)
    if _NAME.fullmatch(name) and name.endswith("_CL"):
        if nearest and nearest[0].lower() == name.lower():
            return nearest[0]
        return name
    hint = f"Did you mean {' or '.join(nearest)}? " if nearest else ""
    raise UnreadableFileError(
        f"There is no table '{name}'.",
        next_step=f"{hint}A new table's name is made of letters, digits and _ and ends in _CL.",
    )


def is_table_name(text: str, schema: Schema, columns: Collection[str] = ()) -> bool:
    """Whether a cell of a `$table` or `Type` column names a table. Beside `columns` that every row of Log Analytics
    has, the Type is the table, whichever of Azure's it is."""
    if text in schema or text in _OTHER_TABLES:
        return True
    if text.endswith("_CL"):
        return _NAME.fullmatch(text) is not None
    return {*columns} >= _OF_EVERY_ROW and _AZURES_NAME.fullmatch(text) is not None


def table_of_file(path: Path, columns: Collection[str], schema: Schema) -> tuple[str, str]:
    """The table by the file's name or its columns, and the reason in words.

    Raises UnreadableFileError for a file of one column that fits none: that is hardly an export.
    """
    names = {name for name in columns if name not in _EVERYWHERE}
    by_name = _table_in_name(path.stem, schema)
    if (
        by_name
        and len({known_as(name, by_name) for name in names} & schema[by_name].keys()) >= len(names) * _LEAST_OVERLAP / 2
    ):
        return by_name, BY_NAME
    for spelled, least in ((str, 0), (folded, _LEAST_TELLING)):
        scores = _scores({spelled(name) for name in names}, schema, spelled, least)
        best = max(scores, key=lambda table: scores[table], default="")
        if best and scores[best][0] >= _LEAST_OVERLAP:
            as_well = [table for table in scores if table != best and scores[table][0] == scores[best][0]]
            return best, f"its columns{_also(as_well)}"
    stem = re.sub(r"\W+", "_", path.stem, flags=re.ASCII).strip("_") or "Imported"
    stem = stem.removesuffix("_CL")[:56]
    custom = f"{stem if stem[0].isalpha() else f'T_{stem}'}_CL"
    for table in schema:
        if table.lower() == custom.lower():
            return table, BY_NAME
    if len(set(columns)) < 2:
        raise UnreadableFileError(
            f"{path} has one column and fits no known table, so it is probably not an export.",
            next_step=f"If it is one, say where it belongs: --table {custom}",
        )
    return custom, NO_KNOWN_TABLE


def _scores(
    names: Collection[str], schema: Schema, spelled: Callable[[str], str], least_telling: int
) -> dict[str, tuple[float, bool, float]]:
    """How well each table fits: of the names, and of its own columns. One of which too few names tell is left out."""
    scores = {}
    for table, known in schema.items():
        own = {spelled(column): column for column in known if spelled is str or not column.startswith("_")}
        found = {own.get(name) or own.get(spelled(known_as(name, table)), "") for name in names} - {""}
        if len(found) < 2 or table.endswith("_CL"):
            continue  # a custom table has the columns of whatever was imported first, which proves nothing
        if sum(_OF_SEVERAL_WORDS.search(name) is not None for name in found) >= least_telling:
            scores[table] = (len(found) / len(names), table in _COMMON, len(found) / len(known))
    return scores


def _also(tables: Sequence[str]) -> str:
    if not tables:
        return ""
    more = f" and {len(tables) - _MOST_NAMED} more" if len(tables) > _MOST_NAMED else ""
    others = f"{', '.join(sorted(tables)[:_MOST_NAMED])}{more}"
    return f", which fit {others} as well: the commonest was taken (--table names another)"


def _table_in_name(stem: str, schema: Schema) -> str:
    """The longest name of a table that the file's name begins with, or holds if it is long enough to be no accident."""
    letters = re.sub(r"[^a-z]", "", stem.lower())
    names = {table: table.lower().removesuffix("_cl") for table in schema}
    fitting = [table for table, name in names.items() if letters.startswith(name)]
    fitting = fitting or [table for table, name in names.items() if len(name) >= _NO_ACCIDENT and name in letters]
    return max(fitting, key=len, default="")


def tables_of_actions(columns: Collection[str]) -> Mapping[str, str]:
    """The table of each `ActionType` of an export of advanced hunting; empty for a file that is none."""
    hunted = {"ActionType"} <= set(columns) and not {"DeviceName", "DeviceId"}.isdisjoint(columns)
    return _ACTIONS if hunted else {}

"""Write the tables of Microsoft's reference as data of the workspace: names and types of columns, no descriptions.

`python -m tools.table_reference FILE ...` reads JSON as `get_schemas.py` of FalconForceTeam/KQLAnalyzer makes it of a
checkout of Microsoft's documentation: `{"sentinel" | "m365": {"tables": {table: {column: type}}}}`. A later file adds
to an earlier one, so that a table keeps what its page no longer has.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from sentinel_rag.workspace.table_schemas import SUFFIXES, known_tables

FOLDER = Path(__file__).parents[1] / "src" / "sentinel_rag" / "workspace"

FAMILIES = re.compile(
    r"AAD|ABAPAudit|ADFSSign|AKSAudit|ASim|AWS|AZFW|AZKVAudit|AppService\w*(Audit|HTTP)|ApiManagementGatewayLogs$|Azure(DevOps|Metrics$)"
    r"|Behavior|Campaign|ContainerLog|Cloud(App|Audit|Dns|Process|Storage)|Confidential|CopilotActivity|CrowdStrike|Dataverse|Device(Behavior|Custom|File|Tvm)"
    r"|Disruption|Dns|Dynamics365|Email|Entra|FileMalicious|GCP|GKEAudit|GoogleWorkspace|Identity|Intune|LinuxAudit|MDC"
    r"|Mcas|Message(Events|Post|Url)|MicrosoftGraph|MicrosoftPurview|MicrosoftServicePrincipal|NSPAccess|NTA|NetworkAccess"
    r"|OAuthApp|Okta|Perf$|Power(\w+Activity|BIActivity)|ProjectActivity|Purview|QualysKnow|Salesforce|Secur|Sentinel|SQLSecurity|Storage(Blob|File|Queue|Table"
    r"|Malware)|ThreatIntel|UCClient$|Update|UrlClick|UserAccess|Windows(Event|Firewall)$|WireData$"
)
"""Tables that detections read: identities, devices, mail, clouds and what Sentinel's connectors bring."""

SOURCE = """\
# {what}, one table a paragraph, in the notation of `table_schemas.txt`.
# Written by `python -m tools.table_reference`. Names and types of the table reference in {source} (CC BY 4.0),
# as FalconForceTeam/KQLAnalyzer compiled it (environments.json of 2026-07-27, and of 2025-08-07 for retired tables).
"""
_TYPES = {"boolean": "bool", "double": "real", "object": "dynamic", "enum": "string"}


def main(files: list[str]) -> None:
    """Write both data files anew."""
    logs: dict[str, dict[str, str]] = {}
    hunting: dict[str, dict[str, str]] = {}
    for file in files:
        read = json.loads(Path(file).read_text(encoding="utf-8"))
        for tables, name in ((logs, "sentinel"), (hunting, "m365")):
            for table, columns in read[name]["tables"].items():
                tables.setdefault(table, {}).update(columns)
    for table in logs.keys() & hunting.keys():
        logs[table].pop("Timestamp", None)  # added by the compiler: in Log Analytics their time is TimeGenerated
    chosen = {
        table: {"TimeGenerated": "datetime"} | columns
        for table, columns in logs.items()
        if FAMILIES.match(table) and table not in known_tables() and "Type" in columns
    }
    for table, columns in hunting.items():
        # The reference of Log Analytics is made by its service, that of hunting by hand. IdentityInfo is another there.
        spelling = {name.casefold(): name for name in logs.get(table, ()) if table != "IdentityInfo"}
        hunting[table] = {spelling.get(name.casefold(), name): kind for name, kind in columns.items()}
    _write("log_tables.txt", chosen, "Tables of Azure Monitor that detections read", "MicrosoftDocs/azure-monitor-docs")
    _write("hunting_tables.txt", hunting, "Tables of Defender XDR's advanced hunting", "MicrosoftDocs/defender-docs")


def _columns(told: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Columns whose names differ in more than case: DuckDB folds it. Footnotes behind a name are no part of it."""
    seen = set()
    for name, kind in told.items():
        plain = re.match(r"\w+", name)
        if plain and plain[0].casefold() not in seen:
            seen.add(plain[0].casefold())
            yield plain[0], _TYPES.get(kind, kind)


def _write(file: str, tables: Mapping[str, Mapping[str, str]], what: str, source: str) -> None:
    suffixes = {kind: suffix for suffix, kind in SUFFIXES.items()}
    paragraphs = [SOURCE.format(what=what, source=source)]
    for table in sorted({table.casefold(): table for table in tables}.values(), key=str.casefold):
        words = (f"{name}:{suffixes[kind]}".removesuffix(":") for name, kind in _columns(tables[table]))
        paragraphs.append(
            f"{table} =\n{textwrap.fill(' '.join(words), 120, initial_indent='  ', subsequent_indent='  ')}\n"
        )
    (FOLDER / file).write_text("\n".join(paragraphs), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

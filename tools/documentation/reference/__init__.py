"""The pages that are made from the code: each maker gives the text of one file.

A test compares what is committed with what is made, so no page can say what the code does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tools.documentation.reference import (
    audit_records,
    codes,
    command_line,
    gateway_routes,
    metrics,
    people_routes,
    policy_file,
    tools,
)

FILES: Mapping[str, Callable[[Path], str]] = {
    "docs/reference/command-line.md": command_line.page,
    "docs/reference/tools.md": tools.page,
    "docs/reference/gateway-routes.md": gateway_routes.page,
    "docs/reference/people-routes.md": people_routes.page,
    "docs/reference/audit-records.md": audit_records.page,
    "docs/reference/codes.md": codes.page,
    "docs/reference/metrics.md": metrics.page,
    "docs/reference/policy-file.md": policy_file.page,
    "config/sentinel_config.schema.json": policy_file.schema_file,
}
"""Each file, relative to the repository, with its maker, which is given the repository's folder."""


def outdated(repository: Path) -> dict[Path, str]:
    """The files that are missing or say something else, each with what it should say."""
    made = {repository / name: maker(repository) for name, maker in FILES.items()}
    return {path: text for path, text in made.items() if not path.is_file() or path.read_text() != text}

"""Canonical forms of argument texts, by the `format` that a policy declares for a parameter.

A condition such as `file_path.startswith('confidential/')` is only worth something if every spelling of one place reads
the same. The canonical form is what rules see *and* what is forwarded. A text that has no single meaning (a percent
escape in a path, a look-alike letter, an octal address) is refused rather than guessed at. Every form is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sentinel_rag.gateway.argument_formats.emails import canonical_email
from sentinel_rag.gateway.argument_formats.hosts import canonical_host, canonical_ip
from sentinel_rag.gateway.argument_formats.paths import canonical_path, canonical_path_any_case
from sentinel_rag.gateway.argument_formats.refusals import NotCanonical
from sentinel_rag.gateway.argument_formats.template_names import canonical_template
from sentinel_rag.gateway.argument_formats.times import canonical_time
from sentinel_rag.gateway.argument_formats.urls import canonical_url
from sentinel_rag.gateway.argument_formats.workspace_names import canonical_workspace

__all__ = ["FORMATS", "NotCanonical", "canonical_path"]

FORMATS: Mapping[str, Callable[[str], str]] = {
    "path": canonical_path,
    "path-any-case": canonical_path_any_case,
    "url": canonical_url,
    "host": canonical_host,
    "ip": canonical_ip,
    "email": canonical_email,
    "time": canonical_time,
    "kql-template": canonical_template,
    "workspace": canonical_workspace,
}
"""The known values of `format`; each function raises NotCanonical."""

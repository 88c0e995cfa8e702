"""The tool servers of this product, by the names under which policies, deployments and the plan of a run know them."""

from __future__ import annotations

OWN_SERVERS = ("sentinel", "knowledge", "files", "web")
"""A policy may not declare others by these names. Where zones run apart each listens on a port of its own, in this
order, so a new one comes at the end."""

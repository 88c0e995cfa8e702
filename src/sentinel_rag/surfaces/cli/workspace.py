"""`sentinel workspace`: fill the embedded workspace, look at it, run KQL on it."""

from __future__ import annotations

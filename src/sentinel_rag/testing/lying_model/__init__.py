"""A scripted model that lies, for whoever tests a check of answers: true answers and answers with one planted fault."""

from __future__ import annotations

from sentinel_rag.testing.lying_model.answers import FAMILIES, FAULTS, LiarsAnswer, LyingModel
from sentinel_rag.testing.lying_model.estate import Estate

__all__ = ["FAMILIES", "FAULTS", "Estate", "LiarsAnswer", "LyingModel"]

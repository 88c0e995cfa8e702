"""The gateway's state in PostgreSQL: the same tables and statements as in SQLite, with any number of gateways.

`PostgresDatabase` takes the place of `Database`. Every batch of its writer is one transaction that holds the advisory
lock of the schema from its first statement to its commit; so the batches of all gateways follow one another, each sees
what every one before it has written, and all that holds with the one writer of a file holds here too. Only `state`
and the commands import this package: its library comes with the extra `postgres`.
"""

from sentinel_rag.storage.postgres.database import PostgresDatabase as PostgresDatabase
from sentinel_rag.storage.postgres.database import one_moment as one_moment
from sentinel_rag.storage.postgres.members import PostgresInstance as PostgresInstance
from sentinel_rag.storage.postgres.record_schema import RecordSchema as RecordSchema

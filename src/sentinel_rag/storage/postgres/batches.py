"""How a batch of jobs becomes one transaction of PostgreSQL, which no other gateway's overlaps."""

from __future__ import annotations

import hashlib
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from sentinel_rag.storage.jobs import Job
from sentinel_rag.storage.postgres.connecting import Connector, Lost, StateConnection, is_lost


def lock_of(schema: str) -> int:
    """The number of the advisory lock that a schema's writers hold by turns; locks are the database's, so the name of
    the schema is in it."""
    return int.from_bytes(hashlib.sha256(f"sentinel-rag state {schema}".encode()).digest()[:8], "big", signed=True)


def commit(connection: StateConnection, batch: list[Job[Any]], connector: Connector, lock: int) -> None:
    """Do the jobs in one transaction and set result or error of each. Raises Lost if the connection ended.

    A job that raises undoes its own changes only. If the transaction itself fails, every job has the error.
    """
    alone = len(batch) == 1
    in_commit = False
    connection.forget()
    try:
        # What comes behind the lock sees all that was committed before it was given: READ COMMITTED looks anew for
        # each statement.
        begin = ["BEGIN ISOLATION LEVEL READ COMMITTED", f"SELECT pg_advisory_xact_lock({lock})"]
        connection.steer(*begin, *([] if alone else ["SAVEPOINT job"]))
        for left, job in enumerate(batch, 1 - len(batch)):
            following = ["SAVEPOINT job"] if left else []
            if _done(job, connection, connector):
                if alone:
                    break
                try:
                    # What the job has put fails here, so it is its own.
                    connection.steer("RELEASE job", *following)
                    continue
                except psycopg.Error as error:
                    if is_lost(connection.raw, error):
                        raise
                    job.error = connector.away(error)
            connection.forget()
            if not alone:
                connection.steer("ROLLBACK TO job", "RELEASE job", *following)
        if alone and batch[0].error is not None:
            connection.steer("ROLLBACK")
            return
        in_commit = True
        ended = connection.steer("COMMIT")
        if ended is None or ended.statusmessage != "COMMIT":
            raise psycopg.OperationalError("the transaction was undone")
    except psycopg.Error as error:
        connection.forget()
        if is_lost(connection.raw, error):
            raise Lost(error, in_commit=in_commit) from error
        _roll_back(connection.raw)
        for job in batch:
            job.error = connector.away(error)


def _done(job: Job[Any], connection: StateConnection, connector: Connector) -> bool:
    """Run one job and keep its result or its error; whether it went well. Raises psycopg.Error if the connection was
    lost by it."""
    raw = connection.raw
    job.result = job.error = None
    try:
        job.result = job.work(connection)
    except psycopg.Error as error:
        if is_lost(raw, error):
            raise
        job.error = connector.away(error)
    except Exception as error:  # whatever one job raises is its caller's, not the other jobs'
        job.error = error
    if job.error is None and raw.info.transaction_status is TransactionStatus.INERROR:
        # It caught an error of the server's itself: what it had done is gone, whatever it returned.
        job.error = connector.away(psycopg.OperationalError("a statement failed"))
    return job.error is None


def _roll_back(raw: psycopg.Connection[Any]) -> None:
    try:
        raw.execute("ROLLBACK", prepare=False)
    except psycopg.Error as error:
        raise Lost(error) from error

"""What a person may choose about the sample estate. A value; checks itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.json_values import JsonForm

DEFAULT_DAYS = 21
DEFAULT_EVENTS = 12_000
EARLIEST_YEAR, LATEST_YEAR = 1980, 2200


@dataclass(frozen=True, slots=True)
class EstateOptions(JsonForm):
    """`days` of history that end at `end` (default: now, down to the hour), about `events` rows of benign telemetry.

    The same options give the same rows, byte for byte. Raises UsageError for values that make no estate.
    """

    days: int = DEFAULT_DAYS
    events: int = DEFAULT_EVENTS
    seed: int = 7
    end: datetime | None = None

    def __post_init__(self) -> None:
        if not 7 <= self.days <= 400:
            raise UsageError(
                f"A sample estate of {self.days} days cannot be made.", next_step="Choose between 7 and 400 days."
            )
        if not 0 <= self.events <= 20_000_000:
            raise UsageError(
                f"A sample estate of {self.events:,} events cannot be made.",
                next_step="Choose between 0 and 20,000,000 events.",
            )
        if self.end is not None and not EARLIEST_YEAR <= self.end.year <= LATEST_YEAR:
            raise UsageError(
                f"A sample estate that ends in the year {self.end.year} cannot be made.",
                next_step=f"Choose an end between {EARLIEST_YEAR} and {LATEST_YEAR}.",
            )
        if self.end is not None and self.end.tzinfo is None:
            raise UsageError("The end of a sample estate needs a time zone.", next_step="Write it with Z.")

    def end_time(self) -> datetime:
        """The moment at which the history ends, UTC, without zone mark (as rows are stored)."""
        end = self.end if self.end is not None else datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        return end.astimezone(UTC).replace(tzinfo=None)

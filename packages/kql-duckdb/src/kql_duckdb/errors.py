"""The one error of this package: why a query cannot be read, bound or run, in KQL's own words.

Raised by every stage. Whoever knows the place of the construct adds it with `at`. An error of DuckDB never passes this
border: it is at most the `__cause__` of one of these.
"""

from __future__ import annotations


class KqlError(Exception):
    """A query is refused or failed."""

    def __init__(
        self,
        message: str,
        code: str = "SEM0001",
        line: int | None = None,
        column: int | None = None,
        *,
        token: str = "",
        suggestions: tuple[str, ...] = (),
        known: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """Kusto's code, such as `SEM0100` or `SYN0002`; `KDB0001` is valid KQL that this engine does not run, `KDB0002`
        a failure while the rows were computed."""
        self.line = line
        """Counted from 1; None where the place is not known."""
        self.column = column
        """Counted from 1; None where the place is not known."""

        self.token = token
        """The name or construct that is refused, where there is one."""
        self.suggestions = suggestions
        """Names that are like an unknown one, best first."""
        self.known = known
        """All names that an unknown one could have been."""

    def at(self, line: int, column: int) -> KqlError:
        """Return this error with a place, unless it has one."""
        if self.line is None:
            self.line, self.column = line, column
        return self

    def __str__(self) -> str:
        place = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        return f"{self.code}: {self.message}{place}"


def not_supported(construct: str, why: str = "") -> KqlError:
    """Make the error for valid KQL that this engine does not run, which is better than an answer that is wrong."""
    return KqlError(f"'{construct}' is not supported here{f': {why}' if why else ''}.", "KDB0001", token=construct)

"""Why a query was refused, in the terms that Azure's error bodies use.

Raised by the translation and the execution beside this module; the wire server turns them into JSON and a terminal
prints the sentence. No library error passes this border.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import Actor, UnavailableError, UsageError

if TYPE_CHECKING:
    from kql_duckdb.errors import KqlError as PackageError


class KqlError(UsageError):
    """The query cannot run. `kql_code` is Kusto's (`SEM0100`, `SYN0002`) or ours (`SEN...`).

    `line` counts from 1 and `position` from 0, both None where the place is unknown.
    """

    code = "kql"
    actor = Actor.USER
    kind = "SemanticError"
    summary = "A semantic error occurred."

    def __init__(
        self,
        message: str,
        *,
        kql_code: str,
        line: int | None = None,
        position: int | None = None,
        token: str = "",
        suggestions: tuple[str, ...] = (),
        next_step: str = "",
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.kql_code = kql_code
        self.line = line
        self.position = position
        self.token = token
        self.suggestions = suggestions


class KqlSyntaxError(KqlError):
    """The text is not KQL."""

    kind = "SyntaxError"
    summary = "A recognition error occurred in the query."


class KqlTimeoutError(UnavailableError):
    """The query ran past its deadline and was interrupted."""

    code = "timeout"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The query did not finish within {seconds:g} seconds and was stopped.",
            next_step="Narrow the time range, filter before joining, or raise the time limit.",
        )
        self.seconds = seconds


class KqlCancelledError(UnavailableError):
    """Whoever asked went away, and the query was interrupted."""

    code = "cancelled"

    def __init__(self) -> None:
        super().__init__("The query was cancelled and stopped.", next_step="Ask again if the answer is still wanted.")


class KqlMemoryError(KqlError):
    """The query needs more memory than a query may have; the workspace goes on."""

    kind = "EngineError"
    summary = "The query ran out of memory."

    def __init__(self) -> None:
        super().__init__(
            "The query needs more memory than the workspace may use and was stopped "
            "(E_LOW_MEMORY_CONDITION; see https://aka.ms/kustoquerylimits).",
            kql_code="E_LOW_MEMORY_CONDITION",
            next_step="Narrow the time range, summarize before joining, or take fewer columns.",
        )


_NEXT_STEPS = {
    "KDB0001": "Write the query without it, or run it on Azure.",
    "KDB0002": "Check the types of the values compared.",
    "SEM0100": "`sentinel workspace tables` lists what there is.",
    "SEM0219": "Check the arguments of its functions.",
}
_CODES = {"KDB0001": "SEN0001", "KDB0002": "SEN0002"}


def told(error: PackageError) -> KqlError:
    """What kql-duckdb refuses, with what to do next."""
    if error.code == "E_LOW_MEMORY_CONDITION":
        return KqlMemoryError()
    kind = KqlSyntaxError if error.code.startswith("SYN") else KqlError
    near = error.suggestions
    return kind(
        error.message,
        kql_code=_CODES.get(error.code, error.code),
        line=error.line,
        position=None if error.column is None else error.column - 1,
        token=error.token,
        suggestions=near,
        next_step=f"Use {near[0]}." if near else _NEXT_STEPS.get(error.code, "Correct the query at this place."),
    )


def unresolved(
    what: str, name: str, known: Iterable[str], *, line: int | None = None, position: int | None = None
) -> KqlError:
    """SEM0100 for a table or column that does not exist, with the nearest names that do."""
    nearest = nearest_names(name, known)
    hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    return KqlError(
        f"Failed to resolve {what} expression named '{name}'.{hint}",
        kql_code="SEM0100",
        line=line,
        position=position,
        token=name,
        suggestions=nearest,
        next_step=f"Use {nearest[0]}." if nearest else "`sentinel workspace tables` lists what there is.",
    )


def not_supported(construct: str, *, line: int | None = None, position: int | None = None, hint: str = "") -> KqlError:
    """Refuse valid KQL that this workspace does not run: better than an answer that might be wrong."""
    why = f": {hint}" if hint else ""
    return KqlError(
        f"The embedded workspace does not run '{construct}'{why}.",
        kql_code="SEN0001",
        line=line,
        position=position,
        token=construct,
        next_step="Write the query without it, or run it on Azure.",
    )


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three known names that look like `name`, best first; another spelling of the case comes before all."""
    names = list(dict.fromkeys(known))
    same = [candidate for candidate in names if candidate.lower() == name.lower()]
    if same:
        return tuple(same[:1])
    by_lower = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.75)
    return tuple(by_lower[candidate] for candidate in close)

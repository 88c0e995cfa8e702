"""The KQL guard: whether a query that nobody reviewed may run, and what is wrong with it otherwise.

`KqlGuard.check` is the way in. Microsoft's parser reads the query where node is there (`official_parser`), the
parser of kql_duckdb otherwise, stricter; both give an `analysis`, on which rules decide. Nothing here runs a query.
"""

from sentinel_rag.sentinel.kql_guard.analysis import COMPUTED_TIME, GuardReport, KqlProblem
from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser, installed_parser
from sentinel_rag.sentinel.kql_guard.rules import KqlGuard

__all__ = ["COMPUTED_TIME", "GuardReport", "KqlGuard", "KqlProblem", "OfficialParser", "installed_parser"]

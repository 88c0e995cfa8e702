"""The KQL guard: whether a query that nobody reviewed may run, and what is wrong with it otherwise.

`KqlGuard.check` is the way in. Microsoft's parser reads the query where node is there (`parser_installation`), the
parser of duckdb-kql otherwise, stricter; both give an `analysis`, on which rules decide. Nothing here runs a query.
"""

from sentinel_rag.sentinel.kql_guard.guard import KqlGuard
from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser
from sentinel_rag.sentinel.kql_guard.parser_installation import installed_parser
from sentinel_rag.sentinel.kql_guard.report import COMPUTED_TIME, GuardReport, KqlProblem

__all__ = ["COMPUTED_TIME", "GuardReport", "KqlGuard", "KqlProblem", "OfficialParser", "installed_parser"]

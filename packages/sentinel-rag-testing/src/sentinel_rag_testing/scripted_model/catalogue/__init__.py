"""The shipped scenarios: every trap of the OpenAI wire that we know of, each with the outcome it must have."""

from sentinel_rag_testing.scripted_model.catalogue.answers import ANSWERS
from sentinel_rag_testing.scripted_model.catalogue.broken_streams import BROKEN_STREAMS
from sentinel_rag_testing.scripted_model.catalogue.dialects import DIALECTS
from sentinel_rag_testing.scripted_model.catalogue.refusals import REFUSALS
from sentinel_rag_testing.scripted_model.catalogue.tool_calls import TOOL_CALLS

SCENARIOS = (*ANSWERS, *TOOL_CALLS, *BROKEN_STREAMS, *REFUSALS, *DIALECTS)
SCENARIOS_BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}

__all__ = ["SCENARIOS", "SCENARIOS_BY_NAME"]

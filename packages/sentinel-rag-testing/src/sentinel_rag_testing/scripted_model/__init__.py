"""A scripted model over the OpenAI wire, for people who test against a model without one. See docs/models.md.

In a test: `with ScriptedModel([text_reply("Hello")]).running() as url`. As a process:
`python -m sentinel_rag_testing.scripted_model --scenario FILE`.
"""

from sentinel_rag_testing.scripted_model.catalogue import SCENARIOS, SCENARIOS_BY_NAME
from sentinel_rag_testing.scripted_model.replies import Reply, calls_reply, json_reply, stream_reply, text_reply
from sentinel_rag_testing.scripted_model.scenarios import Answered, ExpectedCall, Failed, Scenario, scenario_replies
from sentinel_rag_testing.scripted_model.server import ModelHttpRequest, ScriptedModel

__all__ = [
    "SCENARIOS",
    "SCENARIOS_BY_NAME",
    "Answered",
    "ExpectedCall",
    "Failed",
    "ModelHttpRequest",
    "Reply",
    "Scenario",
    "ScriptedModel",
    "calls_reply",
    "json_reply",
    "scenario_replies",
    "stream_reply",
    "text_reply",
]

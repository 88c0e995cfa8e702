"""Tool calls in the forms that servers send them: each is given out whole, or with the reason why it must not run."""

from __future__ import annotations

from sentinel_rag.agent.models.failures import FailureKind
from sentinel_rag.agent.models.port import CallProblem, FinishReason
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag_testing.scripted_model.replies import (
    DONE,
    Cut,
    Part,
    Repeated,
    Reply,
    call_piece,
    calls_reply,
    chunk,
    completion,
    ending,
    event_bytes,
    json_reply,
    stream_reply,
)
from sentinel_rag_testing.scripted_model.scenarios import Answered, ExpectedCall, Failed, Scenario

ALERTS = ExpectedCall("query_alerts", {"time_window": "last_24h"})
INCIDENTS = ExpectedCall("query_incidents", {"time_window": "last_7d", "limit": 5})
_A = '{"time_window": "last_24h"}'
_I = '{"time_window": "last_7d", "limit": 5}'


def _pieces(*pieces: JsonObject, finish: str = "tool_calls") -> Reply:
    """A stream with one piece of a call in each chunk."""
    return stream_reply(*(chunk({"tool_calls": [piece]}) for piece in pieces), *ending(finish))


def _calls(name: str, about: str, reply: Reply, *calls: ExpectedCall, text: str = "", counted: bool = True) -> Scenario:
    return Scenario(name, about, (reply,), Answered(text, calls, FinishReason.TOOL_CALLS, counted=counted))


def _bad(name: str, about: str, arguments: str) -> Scenario:
    reply = _pieces(call_piece("query_alerts", arguments, call_id="call_1"))
    return _calls(name, about, reply, ExpectedCall("query_alerts", None, CallProblem.NO_ARGUMENTS_OBJECT))


def _unknown(name: str, about: str, said: str, shown: str) -> Scenario:
    reply = _pieces(call_piece(said, "{}", call_id="call_1"))
    return _calls(name, about, reply, ExpectedCall(shown, None, CallProblem.UNKNOWN_TOOL))


_WRAPPED: JsonObject = {
    "tool_uses": [
        {"recipient_name": "functions.query_alerts", "parameters": {"time_window": "last_24h"}},
        {"recipient_name": "functions.query_incidents", "parameters": {"time_window": "last_7d", "limit": 5}},
    ]
}
_HALF: tuple[Part, ...] = (
    chunk({"content": "Looking. "}),
    chunk({"tool_calls": [call_piece("query_alerts", "", call_id="call_1")]}),
    chunk({"tool_calls": [call_piece(arguments='{"time_win')]}),
)

TOOL_CALLS: tuple[Scenario, ...] = (
    _calls("one_call", "the documented form", calls_reply(("query_alerts", {"time_window": "last_24h"})), ALERTS),
    _calls(
        "two_parallel_calls",
        "the documented form",
        calls_reply(
            ("query_alerts", {"time_window": "last_24h"}), ("query_incidents", {"time_window": "last_7d", "limit": 5})
        ),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "pieces_of_two_calls_mixed",
        "several calls written at once",
        _pieces(
            call_piece("query_alerts", "", index=0, call_id="call_1"),
            call_piece("query_incidents", "", index=1, call_id="call_2"),
            call_piece(arguments=_I[:9], index=1),
            call_piece(arguments=_A[:4], index=0),
            call_piece(arguments=_I[9:], index=1),
            call_piece(arguments=_A[4:], index=0),
        ),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "whole_calls_in_one_chunk",
        "Ollama",
        stream_reply(
            chunk(
                {
                    "tool_calls": [
                        call_piece("query_alerts", _A, call_id="c1"),
                        call_piece("query_incidents", _I, index=1, call_id="c2"),
                    ]
                }
            ),
            *ending("tool_calls"),
        ),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "calls_in_a_whole_completion",
        "a server that ignores stream=true",
        json_reply(
            completion(
                {"content": None, "tool_calls": [call_piece("query_alerts", _A, index=None, call_id="c1")]},
                "tool_calls",
            )
        ),
        ALERTS,
    ),
    _calls(
        "index_missing",
        "Gemini's endpoint; openai-python#2806",
        _pieces(
            call_piece("query_alerts", _A, index=None, call_id="c1"),
            call_piece("query_incidents", _I, index=None, call_id="c2"),
        ),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "index_missing_in_pieces",
        "servers that number nothing",
        _pieces(
            call_piece("query_alerts", "", index=None, call_id="c1"),
            call_piece(arguments=_A[:8], index=None),
            call_piece(arguments=_A[8:], index=None),
            call_piece("query_incidents", "", index=None, call_id="c2"),
            call_piece(arguments=_I, index=None),
        ),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "index_zero_for_all",
        "litellm#33678, gcli2api#406",
        _pieces(call_piece("query_alerts", _A, call_id="c1"), call_piece("query_incidents", _I, call_id="c2")),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "index_zero_for_all_in_pieces",
        "litellm#33678",
        _pieces(
            call_piece("query_alerts", "", call_id="c1"),
            call_piece(arguments=_A),
            call_piece("query_incidents", "", call_id="c2"),
            call_piece(arguments=_I[:5]),
            call_piece(arguments=_I[5:]),
        ),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "index_zero_and_no_ids",
        "omnigent#28",
        _pieces(call_piece("query_alerts", _A), call_piece("query_incidents", _I)),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "index_zero_after_a_call_without_arguments",
        "litellm#33678, the first tool has no parameters",
        _pieces(
            call_piece("list_tables", "", call_id="c1"),
            call_piece("list_tables", "", call_id="c2"),
            call_piece("query_alerts", _A, call_id="c3"),
        ),
        ExpectedCall("list_tables"),
        ExpectedCall("list_tables"),
        ALERTS,
    ),
    _calls(
        "no_index_no_id_after_a_call_without_arguments",
        "omnigent#28, the first tool has no parameters",
        _pieces(call_piece("list_tables", "", index=None), call_piece("query_alerts", _A, index=None)),
        ExpectedCall("list_tables"),
        ALERTS,
    ),
    _calls(
        "same_index_twice_in_one_chunk",
        "openai-python#3201",
        stream_reply(
            chunk(
                {
                    "tool_calls": [
                        call_piece("query_alerts", _A, call_id="c1"),
                        call_piece("query_incidents", _I, call_id="c2"),
                    ]
                }
            ),
            *ending("tool_calls"),
        ),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "first_index_above_zero",
        "pipecat#5342",
        _pieces(call_piece("query_alerts", _A[:3], index=1, call_id="c1"), call_piece(arguments=_A[3:], index=1)),
        ALERTS,
    ),
    _calls(
        "id_in_every_piece",
        "several gateways",
        _pieces(
            call_piece("query_alerts", _A[:6], call_id="c1"),
            call_piece(arguments=_A[6:12], call_id="c1"),
            call_piece(arguments=_A[12:], call_id="c1"),
        ),
        ALERTS,
    ),
    _calls(
        "name_in_every_piece",
        "several gateways",
        _pieces(
            call_piece("query_alerts", _A[:6], call_id="c1"),
            call_piece("query_alerts", _A[6:], call_id="c1"),
        ),
        ALERTS,
    ),
    _calls(
        "name_in_pieces",
        "servers that stream token by token",
        _pieces(call_piece("query_", call_id="c1"), call_piece("alerts"), call_piece(arguments=_A)),
        ALERTS,
    ),
    _calls(
        "ids_missing",
        "llama.cpp, older",
        _pieces(call_piece("query_alerts", _A), call_piece("query_incidents", _I, index=1)),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "ids_repeated",
        "servers with one id for all",
        _pieces(
            call_piece("query_alerts", _A, call_id="call"), call_piece("query_incidents", _I, index=1, call_id="call")
        ),
        ALERTS,
        INCIDENTS,
    ),
    _calls(
        "id_illegal",
        "ids with blanks and slashes",
        _pieces(call_piece("query_alerts", _A, call_id="call /1 " * 20)),
        ALERTS,
    ),
    _calls(
        "arguments_as_object",
        "servers that parse for you",
        _pieces(call_piece("query_alerts", {"time_window": "last_24h"}, call_id="c1")),
        ALERTS,
    ),
    _calls(
        "arguments_encoded_twice",
        "small models",
        _pieces(call_piece("query_alerts", '"{\\"time_window\\": \\"last_24h\\"}"', call_id="c1")),
        ALERTS,
    ),
    _calls(
        "arguments_empty",
        "tools without parameters",
        _pieces(call_piece("list_tables", "", call_id="c1")),
        ExpectedCall("list_tables"),
    ),
    _calls(
        "arguments_null",
        "tools without parameters",
        _pieces(call_piece("list_tables", "null", call_id="c1")),
        ExpectedCall("list_tables"),
    ),
    _calls(
        "reason_stop_with_calls",
        "many servers",
        _pieces(call_piece("query_alerts", _A, call_id="c1"), finish="stop"),
        ALERTS,
    ),
    _calls(
        "text_and_calls",
        "models that announce their calls",
        stream_reply(
            chunk({"content": "Looking. "}),
            chunk({"tool_calls": [call_piece("query_alerts", _A, call_id="c1")]}),
            *ending("tool_calls"),
        ),
        ALERTS,
        text="Looking. ",
    ),
    _calls(
        "function_call_of_old",
        "servers from before tool calls",
        stream_reply(
            chunk({"function_call": {"name": "query_alerts", "arguments": _A[:5]}}),
            chunk({"function_call": {"arguments": _A[5:]}}),
            *ending("function_call"),
        ),
        ALERTS,
    ),
    _calls(
        "parallel_wrapper",
        "craft-agents-oss#449, vercel/ai#19067",
        calls_reply(("multi_tool_use.parallel", _WRAPPED)),
        ALERTS,
        INCIDENTS,
    ),
    _calls("parallel_wrapper_renamed", "ControlFlow#107", calls_reply(("parallel", _WRAPPED)), ALERTS, INCIDENTS),
    _calls(
        "parallel_wrapper_broken",
        "the wrapper with other contents",
        calls_reply(("multi_tool_use.parallel", {"calls": []})),
        ExpectedCall("multi_tool_use_parallel", None, CallProblem.UNKNOWN_TOOL),
    ),
    _calls(
        "functions_prefix",
        "models that remember their training",
        _pieces(call_piece("functions.query_alerts", _A, call_id="c1")),
        ALERTS,
    ),
    _unknown("unknown_tool", "a tool that was never offered", "delete_incident", "delete_incident"),
    _unknown("illegal_tool_name", "a name that no wire carries back", "query alerts (KQL)!", "query_alerts_KQL_"),
    _unknown("tool_without_name", "a nameless call", "", "unnamed_tool"),
    _bad("arguments_not_json", "a model that forgets a quote", '{"time_window": last_24h}'),
    _bad("arguments_two_objects", "continue#5590, hass_local_openai_llm#12", _A + _I),
    _bad("arguments_list", "a list of arguments", '["last_24h"]'),
    _bad("arguments_not_a_number", "NaN, which JSON has not", '{"limit": NaN}'),
    _bad("arguments_deep", "nesting without end", '{"a":' * 5000),
    Scenario(
        "length_cuts_the_last_call",
        "max_tokens reached amid a call",
        (
            stream_reply(
                chunk({"tool_calls": [call_piece("query_alerts", _A, call_id="c1")]}),
                chunk({"tool_calls": [call_piece("query_incidents", _I[:20], index=1, call_id="c2")]}),
                *ending("length"),
            ),
        ),
        Answered(
            calls=(ALERTS, ExpectedCall("query_incidents", None, CallProblem.CUT_OFF)), reason=FinishReason.LENGTH
        ),
    ),
    Scenario(
        "reason_missing_after_calls",
        "a server that only says it is done",
        (stream_reply(chunk({"tool_calls": [call_piece("query_alerts", _A, call_id="c1")]}), DONE),),
        Answered(calls=(ALERTS,), reason=FinishReason.TOOL_CALLS, stated=False, counted=False),
    ),
    Scenario(
        "done_amid_arguments",
        "a gateway that closes in order after its upstream broke",
        (stream_reply(*_HALF, DONE),),
        Failed(FailureKind.CUT_OFF, delivered=True),
    ),
    Scenario(
        "end_amid_arguments",
        "a stream that just ends",
        (stream_reply(*_HALF),),
        Failed(FailureKind.CUT_OFF, delivered=True),
    ),
    Scenario(
        "cut_amid_arguments",
        "openai-python#2356: a lost connection",
        (stream_reply(*_HALF, Cut()),),
        Failed(FailureKind.CUT_OFF, delivered=True),
    ),
    Scenario(
        "cut_after_whole_calls",
        "whole calls, but no word that they are all",
        (stream_reply(chunk({"tool_calls": [call_piece("query_alerts", _A, call_id="c1")]}), Cut()),),
        Failed(FailureKind.CUT_OFF),
    ),
    Scenario(
        "too_many_calls",
        "a model in a loop",
        (
            stream_reply(
                *(
                    chunk({"tool_calls": [call_piece("query_alerts", _A, index=n, call_id=f"c{n}")]})
                    for n in range(100)
                ),
                *ending("tool_calls"),
            ),
        ),
        Failed(FailureKind.BAD_ANSWER),
    ),
    Scenario(
        "endless_arguments",
        "a model in a loop",
        (
            stream_reply(
                chunk({"tool_calls": [call_piece("query_alerts", '{"time_window": "', call_id="c1")]}),
                Repeated(
                    event_bytes(
                        {"choices": [{"index": 0, "delta": {"tool_calls": [call_piece(arguments="x" * 5000)]}}]}
                    ),
                    500,
                ),
            ),
        ),
        Failed(FailureKind.BAD_ANSWER),
    ),
)

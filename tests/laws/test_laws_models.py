"""Laws of the model port: how a stream is cut into packets, or a call into pieces, never changes what it says."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversation_rules import conversation_faults
from law_examples import examples
from sentinel_rag.agent.models.answer_parts import (
    AnswerParts,
    EventDecoder,
    ServerEvent,
    StreamTooLargeError,
    ToolCallParts,
)
from sentinel_rag.agent.models.endpoints import Dialect, request_body
from sentinel_rag.agent.models.failures import Asked, ModelError, failure_of_error, failure_of_response
from sentinel_rag.agent.models.port import AssistantMessage, ModelRequest, TextDelta, ToolResultMessage, UserMessage
from sentinel_rag_testing.scripted_model.request_rules import request_fault

pytestmark = pytest.mark.requirement("OPS-3")

PATIENT = settings(max_examples=examples(100, 50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_objects = st.dictionaries(st.text(min_size=1, max_size=8), _json, max_size=4)
_names = st.sampled_from(["query_alerts", "query_incidents", "list_tables"])
OFFERED = ("query_alerts", "query_incidents", "list_tables")


def _cut(content: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(content)) for cut in cuts})
    return [content[start:end] for start, end in zip([0, *places], [*places, len(content)], strict=True)]


@given(
    st.lists(_objects, max_size=5),
    st.sampled_from(["\n\n", "\r\n\r\n", "\r\r", "\n"]),
    st.sampled_from(["data: ", "data:", "id: 1\ndata: ", ": hm\ndata: "]),
    st.lists(st.integers(0, 400), max_size=30),
)
@settings(PATIENT)
def test_packets_do_not_change_the_events(documents: list[object], end: str, prefix: str, cuts: list[int]) -> None:
    content = "".join(f"{prefix}{json.dumps(document)}{end}" for document in documents).encode()
    decoder = EventDecoder()
    found = [event for packet in _cut(content, cuts) for event in decoder.feed(packet)] + decoder.finish()
    read = [json.loads(line) for event in found for line in event.data.splitlines()]
    assert read == documents


@given(st.binary(max_size=3_000), st.lists(st.integers(0, 3_000), max_size=10))
@settings(PATIENT)
def test_any_bytes_are_read_alike_in_any_packets_and_within_bounds(content: bytes, cuts: list[int]) -> None:
    def read(packets: list[bytes]) -> list[ServerEvent]:
        decoder = EventDecoder()
        return [event for packet in packets for event in decoder.feed(packet)] + decoder.finish()

    assert read(_cut(content, cuts)) == read([content])


@given(st.integers(1, 2_000), st.integers(1, 2_000))
@settings(PATIENT)
def test_a_stream_over_the_limit_is_never_held(limit: int, size: int) -> None:
    decoder = EventDecoder(max_stream=limit)
    content = b"data: " + b"x" * size
    if len(content) <= limit:
        assert decoder.feed(content) == []
    else:
        with pytest.raises(StreamTooLargeError):
            decoder.feed(content)


Calls = list[tuple[str, dict[str, object]]]


@st.composite
def _call_streams(draw: st.DrawFn) -> tuple[Calls, list[dict[str, object]]]:
    """Calls, and pieces of them as one of the known kinds of server sends them."""
    calls = draw(st.lists(st.tuples(_names, _objects), min_size=1, max_size=4))
    has_index, has_id = draw(st.booleans()), draw(st.booleans())
    same_index = has_index and has_id and draw(st.booleans())
    repeats_id, mixes = draw(st.booleans()), draw(st.booleans())
    queues: list[list[dict[str, object]]] = []
    for place, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        cuts = draw(st.lists(st.integers(0, len(text)), max_size=4))
        pieces: list[dict[str, object]] = []
        for number, part in enumerate(_cut(text.encode(), cuts)):
            piece: dict[str, object] = {"function": {"arguments": part.decode()}}
            if number == 0:
                piece["function"] = {"name": name, "arguments": part.decode()}
            if has_index:
                piece["index"] = 0 if same_index else place
            if has_id and (number == 0 or repeats_id):
                piece["id"] = f"id_{place}"
            pieces.append(piece)
        queues.append(pieces)
    if mixes and has_index and not same_index:
        order = draw(st.permutations([place for place, pieces in enumerate(queues) for _ in pieces]))
        # The first piece of each call comes in the order of the calls, as servers number them.
        opened = [queue.pop(0) for queue in queues]
        rest = [queues[place].pop(0) for place in order if queues[place]]
        return calls, [*opened, *rest]
    return calls, [piece for queue in queues for piece in queue]


@given(_call_streams())
@settings(PATIENT, max_examples=examples(150, 60))
def test_pieces_do_not_change_the_calls(stream: tuple[Calls, list[dict[str, object]]]) -> None:
    calls, pieces = stream
    parts = ToolCallParts(OFFERED)
    for piece in pieces:
        parts.add(piece)
    found = parts.calls()
    assert [(call.name, call.arguments) for call in found] == calls
    assert all(call.problem is None for call in found)
    assert len({call.call_id for call in found}) == len(calls)


_odd_names = st.text(max_size=90) | st.sampled_from(["multi_tool_use.parallel", "functions.list_tables"])
_pieces = st.fixed_dictionaries(
    {},
    optional={
        "index": st.none() | st.integers(-1, 3) | st.booleans() | st.text(max_size=2),
        "id": st.none() | st.sampled_from(["", "a", "b", "call_1", "x y", "\ud800"]) | st.integers(),
        "function": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "name": st.none() | _names | _odd_names,
                "arguments": st.none() | st.text(max_size=20) | _json | _objects.map(json.dumps),
            },
        ),
    },
)


@given(st.lists(_pieces | _json, max_size=12), st.booleans())
@settings(PATIENT, max_examples=examples(150, 60))
def test_whatever_calls_a_model_writes_the_conversation_stays_valid(pieces: list[object], is_cut: bool) -> None:
    """Each call has a legal name, an id of its own, and arguments exactly if it may run: a service takes the replay."""
    taken = ("call_1", "a")
    parts = ToolCallParts(OFFERED, taken)
    try:
        for piece in pieces:
            parts.add(piece)
        calls = parts.calls(last_is_cut=is_cut)
    except ModelError:
        return
    assert all((call.arguments is None) == (call.problem is not None) == bool(call.explanation) for call in calls)
    assert all(call.name in OFFERED for call in calls if call.problem is None)
    assert not {call.call_id for call in calls} & set(taken)
    messages = [UserMessage("?"), AssistantMessage("x", calls), *(ToolResultMessage(c.call_id, "") for c in calls)]
    assert conversation_faults(messages) == ()
    request = ModelRequest(messages)
    assert len(request.call_ids()) == len(calls)
    body = request_body(request, "m", Dialect())
    assert request_fault(json.loads(json.dumps(body))) is None


@given(st.text(max_size=60), st.lists(st.integers(0, 120), max_size=8))
@settings(PATIENT)
def test_a_text_cut_between_the_halves_of_a_character_is_whole_again(text: str, cuts: list[int]) -> None:
    units = text.encode("utf-16-le")
    pieces = [piece.decode("utf-16-le", "surrogatepass") for piece in _cut(units, [2 * cut for cut in cuts])]
    parts = AnswerParts(Asked("m"))
    events = [event for piece in pieces for event in parts.add({"choices": [{"delta": {"content": piece}}]})]
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said == text
    said.encode()


_chunks = st.fixed_dictionaries({"choices": st.lists(_json | st.fixed_dictionaries({"delta": _json}))})


@given(st.lists(_json | _chunks, max_size=6))
@settings(PATIENT)
def test_any_json_ends_in_an_answer_or_in_a_typed_failure(documents: list[object]) -> None:
    parts = AnswerParts(Asked("m"), offered=OFFERED)
    failure: ModelError | None = None
    try:
        for document in documents:
            parts.add(document)
        parts.end(in_order=True)
    except ModelError as error:
        failure = error
    assert failure is None or failure.next_step


_headers = st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text(max_size=12))


@given(
    st.integers(300, 599),
    _json,
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text(max_size=12)),
)
@settings(PATIENT)
def test_any_refusal_is_a_typed_failure_without_the_provider_s_words(
    status: int, body: object, headers: dict[str, str]
) -> None:
    marked = {"error": body, "message": "canary-77"}
    failures = [
        failure_of_response(status, headers, json.dumps(document).encode(), asked=Asked("m"))
        for document in (body, marked)
    ]
    for failure in [*failures, failure_of_error(marked, asked=Asked("m"))]:
        assert failure.next_step
        assert "canary" not in str(failure) + failure.next_step
        wait = failure.retry_after_s
        assert wait is None or 0 <= wait <= 86_400

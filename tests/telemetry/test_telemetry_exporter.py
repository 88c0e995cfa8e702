"""Spans reach a real receiver over HTTP; one that is away, slow or unwilling costs spans, which are counted."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

import anyio
import pytest
from tests.support.otlp_receiver import OtlpReceiver, running_receiver

from sentinel_rag.telemetry.exporter import MAX_BATCH, Collector, CollectorConnection, ExportRefused, SpanExporter
from sentinel_rag.telemetry.otlp import SpanEncoder, resource
from sentinel_rag.telemetry.spans import Span, SpanKind
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("OBS-1")


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with running_receiver() as running:
        yield running


def an_exporter(url: str, **options: int) -> SpanExporter:
    return SpanExporter(
        Collector(url, {"x-api-key": "collector-key"}), SpanEncoder(resource({}), "1"), wait_s=0.05, **options
    )


def a_span(number: int = 1) -> Span:
    span = Span("agent.invoke", SpanKind.INTERNAL, 7, 0, number, lambda _: None)
    span.set("sentinel.tool.calls", number)
    span.ended_ns = span.started_ns
    return span


def test_spans_arrive_in_batches_on_the_path_of_otlp(receiver: OtlpReceiver) -> None:
    exporter = an_exporter(receiver.url)
    for number in range(1, MAX_BATCH + 101):
        exporter.take(a_span(number))
    exporter.close()
    assert [span.attributes["sentinel.tool.calls"] for span in receiver.spans()] == [*range(1, MAX_BATCH + 101)]
    assert len(receiver.bodies) < 10
    assert set(receiver.paths) == {"/v1/traces"}
    assert {each["x-api-key"] for each in receiver.headers} == {"collector-key"}
    assert {each["content-type"] for each in receiver.headers} == {"application/x-protobuf"}
    assert (exporter.counts.exported, exporter.counts.dropped, exporter.counts.failed) == (MAX_BATCH + 100, 0, 0)


def test_the_path_of_an_address_stays_in_front(receiver: OtlpReceiver) -> None:
    exporter = an_exporter(f"{receiver.url}/otlp/")
    exporter.take(a_span())
    exporter.close()
    assert receiver.paths == ["/otlp/v1/traces"]


def test_a_collector_that_is_away_takes_no_time_of_a_call(caplog: pytest.LogCaptureFixture) -> None:
    with running_receiver() as gone:
        url = gone.url
    exporter = an_exporter(url)
    with caplog.at_level(logging.WARNING):
        for number in range(1, 1_001):
            exporter.take(a_span(number))
        exporter.close()
    assert exporter.counts.exported == 0
    assert exporter.counts.failed == 1_000
    told = [record.getMessage() for record in caplog.records if "collector" in record.getMessage()]
    assert told == ["the collector does not take spans (ConnectionRefusedError)"]


def test_a_collector_that_does_not_answer_fills_the_queue_and_what_is_over_is_counted(receiver: OtlpReceiver) -> None:
    receiver.held.set()
    exporter = an_exporter(receiver.url, max_queued=10)
    for number in range(1, 11):
        exporter.take(a_span(number))
    assert receiver.asked.wait(WAIT_S)  # the thread has taken them, and waits for the answer
    for number in range(11, 31):
        exporter.take(a_span(number))
    assert exporter.counts.dropped == 10
    receiver.held.clear()
    receiver.released.set()
    exporter.close()
    assert exporter.counts.exported == 20


def test_a_collector_that_asks_for_patience_gets_the_spans_later(receiver: OtlpReceiver) -> None:
    receiver.status = 503
    exporter = an_exporter(receiver.url)
    exporter.take(a_span())
    assert receiver.asked.wait(WAIT_S)
    receiver.status = 200
    assert receiver.wait_for(1)[0].attributes == {"sentinel.tool.calls": 1}
    exporter.close()
    assert (exporter.counts.exported, exporter.counts.failed) == (1, 0)


def test_a_collector_that_refuses_is_not_asked_again(receiver: OtlpReceiver) -> None:
    receiver.status = 401
    exporter = an_exporter(receiver.url)
    exporter.take(a_span())
    exporter.close()
    assert len(receiver.paths) == 1
    assert (exporter.counts.exported, exporter.counts.failed) == (0, 1)


def test_spans_that_the_collector_rejects_do_not_count_as_exported(receiver: OtlpReceiver) -> None:
    receiver.answer = b"\x0a\x02\x08\x01"
    exporter = an_exporter(receiver.url)
    exporter.take(a_span(1))
    exporter.take(a_span(2))
    exporter.close()
    assert (exporter.counts.exported, exporter.counts.failed) == (1, 1)


def test_a_span_that_cannot_be_written_costs_its_batch_and_no_more(
    receiver: OtlpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    broken = a_span()
    broken.trace_id = 1 << 200
    exporter = an_exporter(receiver.url)
    exporter.take(broken)
    exporter.close()
    assert exporter.counts.failed == 1
    assert receiver.bodies == []
    assert "a span could not be written" in caplog.text


def test_one_request_says_whether_a_collector_is_there(receiver: OtlpReceiver) -> None:
    connection = CollectorConnection(Collector(receiver.url))
    assert connection.post(b"") == b""
    receiver.status = 404
    with pytest.raises(ExportRefused, match="404"):
        connection.post(b"")
    connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="its wheel is for Linux on x86_64")
@pytest.mark.anyio
async def test_a_receiver_of_another_maker_reads_them() -> None:
    oteltap = pytest.importorskip("oteltap", reason="its wheel is for Linux on x86_64")
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = oteltap.OtelTapHttpProtobufReceiverSettings(http_port=port, listen_on_all_interfaces=False)
    async with oteltap.OtelTapHttpProtobufReceiver(settings) as receiver:
        spans = receiver.stream_traces()
        exporter = an_exporter(f"http://127.0.0.1:{port}")
        span = a_span(41)
        span.fail("rule_denies")
        exporter.take(span)
        with anyio.fail_after(WAIT_S):
            found = await anext(spans)
        await anyio.to_thread.run_sync(exporter.close)
    assert found.name == "agent.invoke"
    assert int.from_bytes(found.trace_id, "big") == 7
    told = {each.key: each.value for each in found.attributes}
    assert told["sentinel.tool.calls"].int_value == 41
    assert told["error.type"].string_value == "rule_denies"
    assert found.status.code == 2
    assert exporter.counts.exported == 1

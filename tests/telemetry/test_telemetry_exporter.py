"""Spans reach a real receiver over HTTP; one that is away, slow or unwilling costs spans, which are counted."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

import anyio
import pytest
from tests.support.otlp_receiver import OtlpReceiver, running_receiver

from sentinel_rag.telemetry import SpanKind
from sentinel_rag.telemetry.tracer import MAX_BATCH, Collector, SdkTracer, SpanBatches
from waiting import WAIT_S, until

pytestmark = pytest.mark.requirement("OBS-1")


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with running_receiver() as running:
        yield running


class Sending:
    """Spans of a tracer of one's own, sent to `url`."""

    def __init__(self, url: str, *, timeout_s: float = WAIT_S, max_queued: int = 4_096) -> None:
        collector = Collector(url, {"x-api-key": "collector-key"}, timeout_s)
        self.batches = SpanBatches(collector, wait_s=0.05, max_queued=max_queued)
        self._tracer = SdkTracer(self.batches)

    def span(self, number: int = 1, error: str = "") -> None:
        span = self._tracer.start("agent.invoke", SpanKind.INTERNAL)
        span.set("sentinel.tool.calls", number)
        if error:
            span.fail(error)
        span.end()

    def close(self) -> tuple[int, int, int]:
        """How many spans were exported, dropped and failed in the end."""
        self.batches.shutdown()
        counts = self.batches.counts
        assert counts.queued == 0
        return counts.exported, counts.dropped, counts.failed


def test_spans_arrive_in_batches_on_the_path_of_otlp(receiver: OtlpReceiver) -> None:
    sending = Sending(receiver.url)
    for number in range(1, MAX_BATCH + 101):
        sending.span(number)
    assert sending.close() == (MAX_BATCH + 100, 0, 0)
    assert [span.attributes["sentinel.tool.calls"] for span in receiver.spans()] == [*range(1, MAX_BATCH + 101)]
    assert len(receiver.bodies) < 10
    assert set(receiver.paths) == {"/v1/traces"}
    assert {each["x-api-key"] for each in receiver.headers} == {"collector-key"}
    assert {each["content-type"] for each in receiver.headers} == {"application/x-protobuf"}


def test_the_path_of_an_address_stays_in_front(receiver: OtlpReceiver) -> None:
    sending = Sending(f"{receiver.url}/otlp/")
    sending.span()
    sending.close()
    assert receiver.paths == ["/otlp/v1/traces"]


def test_no_proxy_and_no_headers_of_the_environment_are_used(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9")
    sending = Sending(receiver.url)
    sending.span()
    assert sending.close() == (1, 0, 0)


def test_a_collector_that_is_away_takes_no_time_of_a_call(caplog: pytest.LogCaptureFixture) -> None:
    with running_receiver() as gone:
        url = gone.url
    sending = Sending(url, timeout_s=0.5)
    with caplog.at_level(logging.WARNING):
        for number in range(1, 1_001):
            sending.span(number)
        assert sending.close() == (0, 0, 1_000)
    assert [record.getMessage() for record in caplog.records] == ["the collector does not take spans"]


def test_a_collector_that_does_not_answer_fills_the_queue_and_what_is_over_is_counted(receiver: OtlpReceiver) -> None:
    receiver.held.set()
    sending = Sending(receiver.url, max_queued=10)
    for number in range(1, 11):
        sending.span(number)
    assert receiver.asked.wait(WAIT_S)  # the thread has taken them, and waits for the answer
    until(lambda: sending.batches.counts.queued == 0)
    for number in range(11, 31):
        sending.span(number)
    assert (sending.batches.counts.dropped, sending.batches.counts.queued) == (10, 10)
    receiver.held.clear()
    receiver.released.set()
    assert sending.close() == (20, 10, 0)


def test_a_collector_that_asks_for_patience_gets_the_spans_later(receiver: OtlpReceiver) -> None:
    receiver.status = 503
    sending = Sending(receiver.url)
    sending.span()
    assert receiver.asked.wait(WAIT_S)
    receiver.status = 200
    assert receiver.wait_for(1)[0].attributes == {"sentinel.tool.calls": 1}
    assert sending.close() == (1, 0, 0)


@pytest.mark.parametrize("status", [302, 401, 404])
def test_a_collector_that_refuses_is_not_asked_again(receiver: OtlpReceiver, status: int) -> None:
    receiver.status = status
    sending = Sending(receiver.url)
    sending.span()
    assert sending.close() == (0, 0, 1)
    assert len(receiver.paths) == 1


def test_the_log_says_once_that_it_is_away_and_once_that_it_is_back(
    receiver: OtlpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    sending = Sending(receiver.url)
    with caplog.at_level(logging.WARNING):
        for status in (401, 401, 200, 200):
            receiver.status = status
            sending.span()
            assert sending.batches.force_flush()
    sending.close()
    assert [record.getMessage() for record in caplog.records] == [
        "the collector does not take spans",
        "the collector takes spans again",
    ]


def test_spans_that_the_collector_rejects_do_not_count_as_exported(receiver: OtlpReceiver) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 1
    receiver.answer = answer.SerializeToString()
    sending = Sending(receiver.url)
    sending.span(1)
    assert sending.close() == (0, 0, 1)


@pytest.mark.parametrize("answer", [b"<html>", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b""])
def test_an_answer_that_is_none_of_otlp_changes_nothing(receiver: OtlpReceiver, answer: bytes) -> None:
    receiver.answer = answer
    sending = Sending(receiver.url)
    sending.span()
    assert sending.close() == (1, 0, 0)


def test_one_request_says_whether_a_collector_is_there(receiver: OtlpReceiver) -> None:
    assert Collector(receiver.url).status(WAIT_S) == 200
    receiver.status = 404
    assert Collector(receiver.url).status(WAIT_S) == 404


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
        sending = Sending(f"http://127.0.0.1:{port}")
        sending.span(41, "rule_denies")
        with anyio.fail_after(WAIT_S):
            found = await anext(spans)
        counts = await anyio.to_thread.run_sync(sending.close)
    assert found.name == "agent.invoke"
    told = {each.key: each.value for each in found.attributes}
    assert told["sentinel.tool.calls"].int_value == 41
    assert told["error.type"].string_value == "rule_denies"
    assert found.status.code == 2
    assert counts == (1, 0, 0)

"""A conversation that stays open keeps no other command waiting: they ask its zones, and it says when they are gone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from waiting import WAIT_S

QUESTION = "how many incidents are open?"


@contextmanager
def open_chat(product: Any) -> Iterator[subprocess.Popen[str]]:
    with fork_server.Process(
        [SENTINEL, "chat"],
        env=product.environment,
        cwd=product.home.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as chat:
        try:
            yield chat
        finally:
            chat.kill()


def answered(chat: Any) -> str:
    """The first line of the answer to one question, once all of it was printed."""
    chat.stdin.write(f"{QUESTION}\n")
    chat.stdin.flush()
    lines = [chat.stdout.readline()]
    while lines[-1] and not lines[-1].startswith("Source: "):
        lines.append(chat.stdout.readline())
    assert lines[-1], "".join(lines)
    return lines[0].strip()


@pytest.mark.requirement("SURF-2")
def test_commands_ask_the_zones_of_an_open_chat(generated: Any) -> None:
    with open_chat(generated) as first:
        count = answered(first)
        assert "incidents" in count
        asked = generated.run("ask", QUESTION)
        assert (asked.returncode, asked.stdout.splitlines()[0]) == (0, count)
        with open_chat(generated) as second:
            assert answered(second) == count
            first.communicate(timeout=WAIT_S)
            assert first.returncode == 0
            _, errors = second.communicate(f"{QUESTION}\n", timeout=WAIT_S)
            assert second.returncode == 1
            assert "have ended with the command that ran them" in errors
            assert "sentinel chat --resume" in errors

"""`sentinel plan` and `sentinel ask --plan`: how questions are read without a model, and which calls they become.

Nothing is executed: no workspace is asked for its names and no zone is started.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.agent.planner import Decision, Planner, StoredQueries, Talk, as_dict, as_lines
from sentinel_rag.agent.row_text import zone_named
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.language.frames import Reader
from sentinel_rag.language.times import Now, read_time_in_its_zone
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """One question, with those that came before it in its conversation."""

    question: str
    after: Sequence[str] = ()


def run_file(file: str, *, as_json: bool) -> int:
    """Print one line, or some for people, for each question of a file of JSON lines."""
    planning = _Planning(load_settings())
    for asked in _questions(file):
        _print(asked, planning, as_json=as_json)
    return 0


def run_question(question: str, *, as_json: bool) -> int:
    """Print how one question is read and planned."""
    _print(PlannedQuestion(question), _Planning(load_settings()), as_json=as_json, indent=2)
    return 0


def _print(asked: PlannedQuestion, planning: _Planning, *, as_json: bool, indent: int | None = None) -> None:
    decision = planning.decided(asked)
    if as_json:
        print(json.dumps(as_dict(asked.question, decision), ensure_ascii=False, indent=indent))
    else:
        print("\n".join(as_lines(asked.question, decision)))


class _Planning:
    """Reader and planner at one moment, over the stored queries of this home."""

    def __init__(self, settings: Settings) -> None:
        now = Now(utc_now(), zone_named(settings.timezone))
        self._moment = now.moment
        self._reader = Reader(lambda text: read_time_in_its_zone(text, now))
        templates = load_templates(own=settings.templates).values()
        self._planner = Planner(StoredQueries([template.to_row() for template in templates], self._reader))

    def decided(self, asked: PlannedQuestion) -> Decision:
        """What becomes of the last sentence, behind those before it."""
        talk = Talk()
        for before in asked.after:
            talk.remember(talk.decide(self._planner, self._reader, before, self._moment))
        return talk.decide(self._planner, self._reader, asked.question, self._moment)


def _questions(path: str) -> Iterator[PlannedQuestion]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read.", next_step="Give a file of JSON lines, or - to pipe it in."
        ) from error
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            yield (
                PlannedQuestion(told, ())
                if isinstance(told, str)
                else PlannedQuestion(str(told["q"]), tuple(told.get("after", ())))
            )
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"Line {number} of {path} holds no question.",
                next_step='Each line is {"q": "...", "after": ["..."]} or a string.',
            ) from error

"""The page itself: weaknesses first, then each group of results, then the machines.

Pure but for `write_page`. The same results give the same bytes, so that a test can hold the page against them.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report.results import NoSuchFigure, Result

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
WEAKNESSES = HERE / "weaknesses.md"
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
GROUPS = {
    "security": "Security",
    "correctness": "Correctness",
    "speed": "Speed",
    "endurance": "Endurance",
}
OTHERWISE = "correctness"
MOST_UNNAMED = 12
_PLACEHOLDER = re.compile(r"«(?P<name>[a-z0-9_]+): (?P<path>[^|»]+?)(?: \| (?P<form>[^»]+))?»")


_INTRODUCTION = """# Benchmarks

Written by `python -m bench report` from the files in [bench/results](../bench/results/); nothing on this page is typed
by hand but the first section and the captions. `python -m bench NAME` measures one of them again, `make bench` all of
them. What is compared is measured in one run, in turn, so that a busy machine slows both; figures of different
benchmarks, or of different days, are not comparable. A line says how busy the machine was where its result does.
"""


@dataclass(frozen=True, slots=True)
class Caption:
    """What `figures.toml` says of one result: where it stands, its heading, and (label, path, form) of its figures.
    `rows` is the path of an object each of whose keys is a row of a second table, with `columns` like figures."""

    group: str
    title: str
    command: str
    figures: tuple[tuple[str, str, str], ...]
    rows: str = ""
    columns: tuple[tuple[str, str, str], ...] = ()


def captions() -> Mapping[str, Caption]:
    """By the name of the result."""
    return {
        name: Caption(
            entry["group"],
            entry["title"],
            entry.get("command", f"python -m bench {name}"),
            _formed(entry["figures"]),
            entry.get("rows", ""),
            _formed(entry.get("columns", ())),
        )
        for name, entry in tomllib.loads((HERE / "figures.toml").read_text()).items()
    }


def _formed(figures: Sequence[Sequence[str]]) -> tuple[tuple[str, str, str], ...]:
    return tuple((label, path, (form or ["{}"])[0]) for label, path, *form in figures)


def page(results: Path = RESULTS) -> str:
    """The whole page for the result files in a folder."""
    found = {path.stem: Result.read(path) for path in sorted(results.glob("*.json"))}
    known = captions()
    machines = list(dict.fromkeys(_machine(result) for result in found.values()))
    parts = [_INTRODUCTION, weaknesses(WEAKNESSES.read_text(), found)]
    for group, heading in GROUPS.items():
        members = [name for name in [*known, *found] if name in found and _group(found[name], known) == group]
        parts.append(f"## {heading}\n")
        parts += [_section(found[name], known.get(name), machines) for name in dict.fromkeys(members)]
    parts.append(_machines(machines))
    return "\n".join(part.rstrip() + "\n" for part in parts)


def write_page() -> None:
    from bench.report.sizing import SIZING, sizing

    PAGE.write_text(page())
    SIZING.write_text(sizing())


def weaknesses(text: str, found: Mapping[str, Result]) -> str:
    """The text with each `«result: path | form»` as that figure; an item of a list that names a result which was not
    measured, or not whole, is left out; a test tells which those are."""
    kept: list[str] = []
    for item in re.split(r"\n(?=- |\n)", text):
        with suppress(NoSuchFigure):
            kept.append(with_figures(item, found))
    return "\n".join(kept)


def with_figures(text: str, found: Mapping[str, Result], *, page: str = "") -> str:
    """The text with each `«result: path | form»` as that figure, linked to its section of `page` (empty: the same one).
    Raises NoSuchFigure."""
    return _PLACEHOLDER.sub(lambda match: _placed(match, found, page), text)


def _placed(match: re.Match[str], found: Mapping[str, Result], page: str = "") -> str:
    if match["name"] not in found:
        raise NoSuchFigure(f"{match['name']} was not measured")
    text = _shown(found[match["name"]].figure(match["path"]), match["form"] or "{}")
    return f"[{text}]({page}#{match['name']})"


def _group(result: Result, known: Mapping[str, Caption]) -> str:
    wanted = known[result.name].group if result.name in known else result.group
    return wanted if wanted in GROUPS else OTHERWISE


def _section(result: Result, caption: Caption | None, machines: Sequence[str]) -> str:
    title = caption.title if caption else result.name.replace("_", " ").capitalize()
    command = caption.command if caption else f"python -m bench {result.name}"
    tables = "\n\n".join(filter(None, (_figures_table(result, caption), _rows_table(result, caption))))
    when = f"{result.measured_at:%Y-%m-%d %H:%M} UTC"
    machine = f"machine {_letter(machines.index(_machine(result)))}"
    load = f" · load {result.busy}" if result.busy else ""
    return (
        f'<a id="{result.name}"></a>\n\n### {title}\n\n{_sentence(result.claim)}\n\n'
        f"{tables}\n\n"
        f"`{command}` · [{result.name}.json](../bench/results/{result.name}.json) · {when} · {machine}{load}\n"
    )


def _figures_table(result: Result, caption: Caption | None) -> str:
    rows = _figures(result, caption)
    table = "\n".join(f"| {_cell(label)} | {_cell(text)} |" for label, text in rows)
    return f"| figure | value |\n|---|---|\n{table}" if rows else ""


def _rows_table(result: Result, caption: Caption | None) -> str:
    """The second table, a row for each key; a cell is empty where a row lacks the figure."""
    if caption is None or not caption.columns:
        return ""
    try:
        members = result.figure(caption.rows)
    except NoSuchFigure:
        return ""
    lines = [
        f"| | {' | '.join(_cell(label) for label, _, _ in caption.columns)} |",
        "|---" * (len(caption.columns) + 1) + "|",
    ]
    for key in members:
        cells: list[str] = []
        for _, path, form in caption.columns:
            try:
                cells.append(_cell(_shown(result.figure(f"{caption.rows}/{key}/{path}"), form)))
            except NoSuchFigure:
                cells.append("")
        lines.append(f"| {_cell(str(key).replace('_', ' '))} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _figures(result: Result, caption: Caption | None) -> list[tuple[str, str]]:
    if caption is not None and (caption.figures or caption.columns):
        found: list[tuple[str, str]] = []
        for label, path, form in caption.figures:
            try:
                found.append((label, _shown(result.figure(path), form)))
            except NoSuchFigure:
                continue  # of an older or a newer run; a test tells which captions have no figure
        return found
    if result.figures:
        return list(result.figures)
    leaves = [(path.replace("/", ", ").replace("_", " "), _shown(value, "{}")) for path, value in result.leaves()]
    more = len(leaves) - MOST_UNNAMED
    return leaves[:MOST_UNNAMED] + ([("and more", f"{more} figures in the file")] if more > 0 else [])


def _shown(value: Any, form: str) -> str:
    if isinstance(value, list):  # what went wrong, as a rule: the list is empty or it is the finding
        value = len(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if form == "{}" and isinstance(value, int | float) and not isinstance(value, bool):
        form = "{:,}" if isinstance(value, int) else "{:,.0f}" if abs(value) >= 100 else "{:.3g}"
    return form.format(value)


def _sentence(claim: str) -> str:
    return claim[:1].upper() + claim[1:] + ("" if claim.endswith((".", "!", "?")) else ".")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _machine(result: Result) -> str:
    return json.dumps(result.machine, sort_keys=True)


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else str(place + 1)


def _machines(machines: Sequence[str]) -> str:
    rows: list[str] = []
    for place, text in enumerate(machines):
        told = json.loads(text)
        packages = ", ".join(f"{name} {version}" for name, version in told["packages"].items())
        rows.append(
            f"| {_letter(place)} | {told['cores']} cores, {told['memory_gib']} GiB, {told['system']} | "
            f"{told['python']} | {packages} |"
        )
    return "## Machines\n\n| | machine | Python | packages |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"

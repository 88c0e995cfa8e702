"""The playbooks that are shipped: each is whole, mapped to ATT&CK, and its KQL is right and runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sentinel_rag.knowledge.chunking import chunks_of
from sentinel_rag.knowledge.documents import BlockKind, Document, FileOutcome, read_folder
from sentinel_rag.language.attack import known_techniques
from sentinel_rag.sentinel.workspace_tables import KNOWN_TABLES
from sentinel_rag.surfaces.cli import main
from sentinel_rag.workspace.workspace import Workspace

PLAYBOOKS = Path(__file__).resolve().parents[2] / "data" / "playbooks"
PATHS = sorted(PLAYBOOKS.glob("*.md"))
SECTIONS = (
    "When to use it",
    "Triage",
    "Scope",
    "Containment",
    "Eradication",
    "Recovery",
    "Evidence to keep",
    "Closing",
)
CLASSIFICATIONS = re.compile(
    r"TruePositive, SuspiciousActivity|BenignPositive, (SuspiciousButExpected|SecurityTesting)"
    r"|FalsePositive, (IncorrectAlertLogic|InaccurateData)"
)
QUERIES = [
    pytest.param(path, kql, id=f"{path.stem}-{number}")
    for path in PATHS
    for number, kql in enumerate(re.findall(r"^```kql\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL), 1)
]


@pytest.fixture(scope="module")
def documents() -> dict[str, Document]:
    readings = list(read_folder(PLAYBOOKS))
    assert [each.line for each in readings if each.outcome is not FileOutcome.READ or each.said] == []
    return {each.source: each.document for each in readings if each.document is not None}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path_factory.mktemp("playbooks") / "empty")
    yield opened
    opened.close()


def front_matter(path: Path) -> dict[str, object]:
    found = yaml.safe_load(path.read_text().split("---\n")[1])
    assert isinstance(found, dict)
    return found


@pytest.mark.requirement("KNOW-1")
def test_the_ten_kinds_of_incident_have_one() -> None:
    assert {path.stem for path in PATHS} >= {
        "phishing",
        "ransomware",
        "identity-compromise",
        "lateral-movement",
        "business-email-compromise",
        "data-theft",
        "malicious-insider",
        "web-shell",
        "cloud-key-leak",
        "denial-of-service",
    }


@pytest.mark.requirement("KNOW-1")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_is_whole(path: Path, documents: dict[str, Document]) -> None:
    document = documents[path.name]
    under_title = [section.path[1] for section in document.sections if len(section.path) > 1]
    assert tuple(dict.fromkeys(under_title)) == SECTIONS
    assert document.title == front_matter(path)["title"]
    kinds = {section.path[1]: {block.kind for block in section.blocks} for section in document.sections}
    assert BlockKind.TABLE in kinds["Containment"]
    assert BlockKind.LIST_ITEM in kinds["Triage"] & kinds["Eradication"] & kinds["Evidence to keep"]
    closing = next(section for section in document.sections if section.path[1] == "Closing")
    assert all(CLASSIFICATIONS.search(block.text) for block in closing.blocks)
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text()):
        assert (path.parent / target).is_file(), target


@pytest.mark.requirement("KNOW-1")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_is_mapped_to_attack(path: Path, documents: dict[str, Document]) -> None:
    facets = documents[path.name].facets
    assert len(facets.techniques) >= 5
    tactics = {tactic for technique in facets.techniques for tactic in known_techniques()[technique].tactics}
    assert set(facets.tactics) <= tactics, "a tactic that none of the techniques has"
    assert all(set(known_techniques()[each].tactics) & set(facets.tactics) for each in facets.techniques)
    assert facets.severity
    assert facets.time is not None


@pytest.mark.requirement("KNOW-1")
@pytest.mark.parametrize(("path", "kql"), QUERIES)
def test_its_kql_runs_and_is_bounded_in_time(path: Path, kql: str, workspace: Workspace) -> None:
    assert workspace.query(kql).columns
    assert re.search(r"TimeGenerated (> ago\(|between \()|LastSeen < ago\(", kql)
    read = {name for name in KNOWN_TABLES if re.search(rf"^\W*(let \w+ = )?{name}$", kql, re.MULTILINE)}
    assert read
    assert read <= set(front_matter(path)["tables"])  # type: ignore[call-overload]


@pytest.mark.requirement("KNOW-1")
def test_the_command_that_checks_kql_finds_them_sound_and_fit_for_the_guard(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kql", "check", str(PLAYBOOKS), "--guard"]) == 0
    assert f"{len(QUERIES)} queries" in capsys.readouterr().out


@pytest.mark.requirement("KNOW-1")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_query_and_table_is_in_one_chunk(path: Path, documents: dict[str, Document]) -> None:
    chunks = [chunk.text for chunk in chunks_of(documents[path.name])]
    for pattern in (r"^```kql\n.*?^```$", r"(?:^\|.*\|\n)+"):
        for block in re.findall(
            pattern, path.read_text(), re.MULTILINE | re.DOTALL if "kql" in pattern else re.MULTILINE
        ):
            assert sum(block.strip() in text for text in chunks) == 1

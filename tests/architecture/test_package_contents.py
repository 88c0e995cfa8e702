"""The wheel holds all that the product reads, and works away from the clone; the sdist makes the same wheel.

`make package-check` installs it into an empty environment as well, which takes minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from bench.package import build, constraints, names

from sentinel_rag import __version__
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("OPS-1")
OF_EXTRAS = {"chromadb", "onnxruntime", "openai", "psycopg", "pypdf", "selectolax", "tiktoken", "tokenizers"}
REPOSITORY = Path(__file__).resolve().parents[2]


def tracked(*folders: str) -> list[str]:
    """Files of the clone that git knows or would take."""
    command = ["git", "ls-files", "-co", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (REPOSITORY / name).is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("dist"))


def test_the_wheel_holds_what_the_product_reads_and_nothing_else(built: tuple[Path, Path]) -> None:
    found = names(built[0])
    product = {name for name in found if name.startswith("sentinel_rag/")}
    expected = {
        name.replace("src/", "", 1)
        .replace("config/", "sentinel_rag/default_config/", 1 if name.startswith("config/") else 0)
        .replace("data/playbooks/", "sentinel_rag/default_playbooks/")
        for name in tracked("src/sentinel_rag", "config", "data/playbooks")
    }
    page = {name for name in product if name.startswith("sentinel_rag/surfaces/web/page/")}
    assert product - page == expected
    engine = {name for name in found if name.startswith("kql_duckdb/")}
    assert engine == {name.partition("/src/")[2] for name in tracked("packages/kql-duckdb/src")}
    folders = {name.split("/")[0] for name in found}
    assert folders == {"sentinel_rag", "kql_duckdb", f"sentinel_rag-{__version__}.dist-info"}
    assert not [name for name in found if "node_modules" in name or name.endswith((".pyc", ".map"))]


def test_the_sdist_holds_every_source(built: tuple[Path, Path]) -> None:
    """So that it makes the same wheel, which `make package-check` does."""
    with tarfile.open(built[1]) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert [name for name in tracked() if name not in found] == []


def test_the_wheel_works_away_from_the_clone(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Its own copy of the policy and the playbooks is found, and nothing needs a package of an extra."""
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(OF_EXTRAS)})); sys.path.insert(0, sys.argv.pop(1)); "
        "from sentinel_rag.surfaces.cli import main; sys.exit(main())"
    )
    rows = tmp_path / "rows.csv"
    rows.write_text("TimeGenerated,Computer,SyslogMessage\n2024-01-01T00:00:00Z,web1,hello\n")

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "site"), *arguments],
            cwd=tmp_path,
            env={"SENTINEL_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert str(tmp_path / "site" / "sentinel_rag" / "default_config") in run("policy", "check")
    assert ": 10 new" in run("knowledge", "ingest", "--only", "playbooks", "--by-words")
    assert "phishing.md" in run("knowledge", "search", "phished account")
    run("workspace", "import", str(rows), "--table", "Syslog")
    assert "found by words only" in run("doctor")


def test_what_the_wheel_says_of_itself(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as archive:
        about = Parser().parsestr(archive.read(f"sentinel_rag-{__version__}.dist-info/METADATA").decode())
        programs = archive.read(f"sentinel_rag-{__version__}.dist-info/entry_points.txt").decode()
    assert (about["License-Expression"], about["Requires-Python"]) == ("MIT", ">=3.11")
    assert set(about.get_all("Provides-Extra")) >= {"openai", "knowledge", "chroma", "postgres", "kql-parser"}
    assert "sentinel = sentinel_rag.surfaces.cli:main" in programs
    assert "# Sentinel RAG" in about.get_payload()


def test_every_locked_version_constrains_an_installation() -> None:
    pinned = [line for line in (REPOSITORY / "requirements.lock").read_text().splitlines() if "==" in line]
    assert len(constraints().splitlines()) == len(pinned) > 60

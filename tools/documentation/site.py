"""The site: the pages of `docs/` and what they refer to, staged in one folder and built by zensical with strict links.

Pages link to files beside `docs/` too, which no site builder follows. A Markdown file of those becomes a page of the
site, any other file a copy in it, and a folder's name stays as text. Nothing of the site is loaded from another host.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

CONFIGURATION = Path("tools/documentation/site.yml")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)]*)?\)")


def build(repository: Path, builder: Path, output: Path) -> int:
    """Build the site into `output`, replacing what is there, with the zensical that lies in the folder `builder`. The
    exit code is the builder's."""
    with tempfile.TemporaryDirectory() as folder:
        stage(repository, Path(folder))
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(builder)},
            check=False,
        )
        if done.returncode == 0:
            shutil.rmtree(output, ignore_errors=True)
            shutil.copytree(Path(folder) / "site", output)
            shutil.copy(repository / "llms.txt", output)
            (output / "llms-full.txt").write_text(all_pages(repository))
            print(f"The site is in {output}; open {output / 'index.html'} or run: python3 -m http.server -d {output}")
    return done.returncode


def stage(repository: Path, folder: Path) -> None:
    """Put the configuration and every page, with its links rewritten, into the empty `folder`."""
    docs = repository / "docs"
    navigation = yaml.safe_dump({"nav": navigation_of((docs / "README.md").read_text())}, allow_unicode=True)
    shutil.copytree(repository / "tools" / "documentation" / "styles", folder / "docs" / "styles")
    shutil.copytree(docs / "pictures", folder / "docs" / "pictures")
    (folder / "mkdocs.yml").write_text((repository / CONFIGURATION).read_text() + navigation)
    waiting = [(page, page.relative_to(docs)) for page in sorted(docs.rglob("*.md"))]
    placed = dict(waiting)
    while waiting:
        source, place = waiting.pop()
        text, found = _linked(source, place, repository)
        target = folder / "docs" / _index(place)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        for other, where in found.items():
            if other in placed:
                continue
            placed[other] = where
            if where.suffix == ".md":
                waiting.append((other, where))
            else:
                copy = folder / "docs" / where
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(other, copy)


def all_pages(repository: Path) -> str:
    """Every page that llms.txt names, in its order, in one text for a reader who takes no links."""
    index = (repository / "llms.txt").read_text()
    names = dict.fromkeys(target for _, target, _ in _LINK.findall(index) if target.endswith(".md"))
    pages = [f"<!-- {name} -->\n\n{(repository / name).read_text().strip()}\n" for name in names]
    return "\n".join([f"{index.strip()}\n", *pages])


def navigation_of(index: str) -> list[dict[str, Any]]:
    """The navigation by the index page: what it links before its first heading stands alone, what it links below a
    heading makes a section. A page that is linked twice stands where it is linked first."""
    taken = {"README.md"}
    made: list[dict[str, Any]] = [{"Home": "index.md"}]
    for part in re.split(r"^## ", index, flags=re.MULTILINE):
        heading, _, body = part.partition("\n")
        entries = []
        for words, target, fragment in _LINK.findall(body):
            place = _PROJECT.get(target.removeprefix("../"), Path(target))
            if target in taken or fragment or place.suffix != ".md":
                continue
            taken.add(target)
            entries.append({_title(words): _index(place).as_posix()})
        if part is index or part.startswith("# "):
            made += entries
        elif entries:
            made.append({heading.strip(): entries})
    return made


def _title(words: str) -> str:
    plain = words.replace("`", "")
    return plain[0].upper() + plain[1:]


def _index(place: Path) -> Path:
    return place.with_name("index.md") if place.name == "README.md" else place


_PROJECT = {
    name: Path("project") / f"{name.removesuffix('.md').lower()}.md"
    for name in ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md")
}
"""Pages of the repository's root, by their place in the site."""


def _linked(source: Path, place: Path, repository: Path) -> tuple[str, dict[Path, Path]]:
    """The text of `source` for its `place`, and the files outside of `docs/` that it refers to, by their places."""
    found: dict[Path, Path] = {}

    def link(match: re.Match[str]) -> str:
        words, target, fragment = match[1], match[2], match[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        file = (source.parent / target).resolve()
        if file.is_relative_to(repository / "docs") and file.is_file():
            where = _index(file.relative_to(repository / "docs"))
        elif file.is_file():
            name = file.relative_to(repository)
            where = _PROJECT.get(str(name), Path("files") / name)
            found[file] = where
        else:
            return words  # a folder of the repository, or nothing; tests/docs tells which
        up = "../" * (len(place.parts) - 1)
        return f"[{words}]({up}{where.as_posix()}{fragment})"

    parts, last, text = [], 0, source.read_text()
    for fence in [*_FENCE.finditer(text), None]:
        end = fence.start() if fence else len(text)
        parts.append(_LINK.sub(link, text[last:end]))
        if fence:
            parts.append(fence[0])
            last = fence.end()
    return "".join(parts), found

"""What an installation of the product brings along: packages, licences and sizes, by extra.

`python -m bench.dependencies` prints every dependency with its licence (`make licences`). Read from what is installed
here, which is what the lock files name.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parent.parent
PRODUCT = "sentinel-rag"
EXTRAS = ("openai", "kql-parser", "knowledge", "documents", "chroma", "postgres", "langchain", "openai-agents")
OF_THEIR_OWN = {"chroma": "chroma", "langchain": "langchain", "openai-agents": "langchain"}
"""Extras whose packages `make test` puts into a folder of the environment."""

NPM_LOCKS = {
    "the web page": REPOSITORY / "frontend" / "package-lock.json",
    "the KQL parser": REPOSITORY / "src/sentinel_rag/sentinel/kql_guard/microsoft_parser/package-lock.json",
}
"""npm packages that are shipped in the page, or installed by `sentinel kql install`."""

ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CNRI-Python",
    "ISC",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "MPL-2.0",
    "PSF-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}
"""SPDX ids that ask for no more than notices, or (MPL-2.0) for the sources of changed files of the package itself."""

ALLOWED_IN_EXTRAS = {"psycopg": "LGPL-3.0-only", "psycopg-binary": "LGPL-3.0-only"}
"""Imported as a library, unchanged, and by who asks for the extra alone."""

SPELLINGS = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "gnu lesser general public license v3 (lgplv3)": "LGPL-3.0-only",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
}
"""How packages without an SPDX expression write theirs."""


def installed(name: str) -> metadata.Distribution | None:
    """The distribution of that name, also from the folder of an extra; None if it is not here."""
    for path in (None, *([str(Path(sys.prefix) / folder)] for folder in sorted(set(OF_THEIR_OWN.values())))):
        found = metadata.distributions(name=name) if path is None else metadata.distributions(name=name, path=path)
        for distribution in found:
            return distribution
    return None


def closure(extras: Iterable[str] = ()) -> dict[str, metadata.Distribution]:
    """Every package that the product needs here with these extras, by name, without the product itself.

    Raises LookupError for one that is not installed: then this environment is not the locked one.
    """
    found: dict[str, metadata.Distribution] = {}
    waiting = [(PRODUCT, frozenset(extras))]
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in done:
            continue
        done.add((name, wanted))
        distribution = installed(name)
        if distribution is None:
            raise LookupError(name)
        if name != PRODUCT:
            found[name] = distribution
        waiting += [(canonicalize_name(each.name), frozenset(each.extras)) for each in _needs(distribution, wanted)]
    return found


def _needs(distribution: metadata.Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    for text in distribution.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""}) | {""}):
            yield requirement


def licence_of(distribution: metadata.Distribution) -> str:
    """An SPDX expression; what the package says where it says something else; empty where it says nothing."""
    about = distribution.metadata
    if expression := about.get("License-Expression"):
        return str(expression)
    classifiers = [each.rsplit(" :: ", 1)[-1] for each in about.get_all("Classifier", []) if each.startswith("License")]
    named = [each for each in classifiers if each != "OSI Approved"] or [(about.get("License") or "").splitlines()[0:1]]
    texts = [each if isinstance(each, str) else "".join(each) for each in named]
    return " OR ".join(sorted({SPELLINGS.get(text.strip().casefold(), text.strip()) for text in texts if text}))


def permitted(name: str, licence: str) -> bool:
    """Whether the allow-list takes it: one choice of an OR, every part of an AND."""
    if ALLOWED_IN_EXTRAS.get(name) == licence:
        return True
    choices = [re.split(r"\s+AND\s+", choice.strip(" ()")) for choice in re.split(r"\s+OR\s+", licence)]
    return any(all(_plain(part) in ALLOWED for part in choice) for choice in choices)


def _plain(part: str) -> str:
    return part.strip(" ()").partition(" WITH ")[0]


def npm_packages(lock: Path) -> dict[str, tuple[str, str]]:
    """Version and licence of what a lock file of npm brings to a user; what only builds or tests is left out."""
    packages: dict[str, dict[str, Any]] = json.loads(lock.read_text())["packages"]
    return {
        place.removeprefix("node_modules/"): (each["version"], each.get("license", ""))
        for place, each in packages.items()
        if place and not each.get("dev")
    }


def size_of(distribution: metadata.Distribution) -> int:
    """Bytes of its files on this disk."""
    paths = [Path(str(file.locate())) for file in distribution.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file())


def listed() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Every dependency as name, version and licence, by the heading under which it is told."""
    default = closure()
    for extra in ("", *EXTRAS):
        try:
            packages = closure([extra]) if extra else default
        except LookupError as error:
            print(f"The extra {extra} is not installed here ({error}).", file=sys.stderr)
            continue
        names = sorted(packages.keys() - (default.keys() if extra else set()))
        heading = f"Extra {extra}, besides" if extra else "Default"
        yield heading, [(name, packages[name].version, licence_of(packages[name])) for name in names]
    for part, lock in NPM_LOCKS.items():
        yield f"npm, in {part}", [(name, *each) for name, each in npm_packages(lock).items()]


def main() -> int:
    """Print all as Markdown; 1 if the allow-list refuses one."""
    argparse.ArgumentParser(prog="python -m bench.dependencies", description=__doc__).parse_args()
    refused = 0
    for heading, packages in listed():
        print(f"\n## {heading}\n\n| package | version | licence |\n|---|---|---|")
        for name, version, licence in packages:
            mark = "" if permitted(name, licence) else " (NOT ON THE ALLOW-LIST)"
            refused += bool(mark)
            print(f"| {name} | {version} | {licence or 'none told'}{mark} |")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())

"""What an installation takes on disk: the wheel in an empty environment, after a first use; each extra on top.

The default install is made and tried (`bench/package.py`). What the extras add is summed from the packages that are
installed here, which is exact to what pip compiles.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import harness
from bench.dependencies import EXTRAS, closure, size_of
from bench.package import build, installed_into, names, try_out, unpacked

PROMISE_MB = 400
PAGE = "sentinel_rag/surfaces/web/page/index.html"


def main() -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheel, sdist = build(folder)
        if PAGE not in names(wheel):
            print("The wheel has no web page: run make page first.", file=sys.stderr)
            return 1
        again, _ = build(folder / "from-sdist", unpacked(sdist, folder / "sdist"))
        lost = names(wheel) ^ names(again)
        if lost:
            print(f"The wheel of the sdist differs: {sorted(lost)}", file=sys.stderr)
            return 1
        began = time.monotonic()
        binaries = installed_into(folder, wheel)
        seconds = time.monotonic() - began
        try:
            printed = try_out(binaries, folder)
        except subprocess.CalledProcessError as error:
            print(f"{error}\n{error.stdout}{error.stderr}", file=sys.stderr)
            return 1
        print(printed.splitlines()[-1])
        packages = next((binaries.parent / "lib").glob("python*/site-packages"))
        pip = [packages / "pip", packages / "setuptools", packages / "pkg_resources"]
        added = extras()
        total = size_below(packages) - sum(map(size_below, pip))
        measured = {
            "wheel_mb": mega(wheel.stat().st_size),
            "sdist_mb": mega(sdist.stat().st_size),
            "default_mb": mega(total),
            "default_packages": len(closure()),
            "install_s": round(seconds, 1),
            "largest_mb": {
                path.name: mega(size_below(path)) for path in sorted(packages.iterdir(), key=size_below)[:-9:-1]
            },
            "extras_add": added,
        }
    harness.write(
        "install_size",
        measured,
        claim=f"The default install takes less than {PROMISE_MB} MB.",
        figures={
            "megabytes of the default install": measured["default_mb"],
            "packages that it brings": measured["default_packages"],
            "megabytes of the wheel itself": measured["wheel_mb"],
            **{f"the extra {extra} adds": told(each) for extra, each in added.items()},
        },
        group="endurance",
    )
    return 0 if mega(total) < PROMISE_MB else 1


def extras() -> dict[str, dict[str, float] | str]:
    """Megabytes and packages that each extra adds to the default."""
    default, found = closure().keys(), {}
    for extra in EXTRAS:
        try:
            more = {name: each for name, each in closure([extra]).items() if name not in default}
        except LookupError as missing:
            found[extra] = f"not measured: {missing} is not installed here"
            continue
        found[extra] = {"mb": mega(sum(map(size_of, more.values()))), "packages": len(more)}
    return found


def told(added: dict[str, float] | str) -> str:
    return added if isinstance(added, str) else f"{added['mb']} MB in {added['packages']} packages"


def size_below(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files if each.is_file() and not each.is_symlink())


def mega(size: int) -> float:
    return round(size / 1e6, 1)


if __name__ == "__main__":
    sys.exit(main())

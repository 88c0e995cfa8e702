"""Measure the size of the house; fail when a figure is worse than the committed one.

`python tools/budget.py` compares with `tools/budget.json`, `--write` takes the figures of now, `--entered` also counts
the modules that one warm question enters, over all processes (about 20 s). `make check` runs it with `--entered`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ROOT / "src" / "sentinel_rag"
COMMITTED = Path(__file__).with_suffix(".json")
SMALL = 60
"""Lines below which a module with one importer is taken for a paragraph that became a file."""
QUESTION = "how many high severity alerts?"
WAIT_S = 120


def modules() -> dict[str, str]:
    """The source of each module of the product, by its dotted name."""
    found = {}
    for path in PRODUCT.rglob("*.py"):
        name = ".".join(path.relative_to(PRODUCT.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path.read_text()
    return found


def statements(of: ast.AST) -> Iterator[ast.stmt]:
    """All statements of a module, however deep; no expression holds one."""
    for node in ast.iter_child_nodes(of):
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from statements(node)


def importers(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Which modules import each module; an import of a package's name counts for the package."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for node in statements(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    found[inner if inner in trees else node.module].add(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.name].add(name)
    return found


def public_classes(trees: dict[str, ast.Module]) -> Counter[str]:
    """How many classes bear each public name."""
    return Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


_REPLACED = """
import pkgutil, sys
import sentinel_rag, uvicorn
from sentinel_rag.gateway import app
from sentinel_rag.workspace import workspace
found = set()
for name, module in list(sys.modules.items()):
    if name.split(".")[0] in ("sentinel_rag", "__main__"):
        continue
    classes = [(f"{name}.{key}", value) for key, value in vars(module).items() if isinstance(value, type)]
    for place, holder in [(name, module), *classes]:
        if isinstance(holder, type) and holder.__module__ != name:
            continue
        for key, value in list(vars(holder).items()):
            if str(getattr(value, "__module__", "") or "").split(".")[0] == "sentinel_rag":
                found.add(f"{place}.{key}")
print(len(found))
"""


def replaced() -> int:
    """Attributes of other libraries' modules and classes that are ours after all zones' libraries are loaded."""
    done = subprocess.run([sys.executable, "-c", _REPLACED], capture_output=True, text=True, check=True)
    return int(done.stdout)


# Runs in every process that comes of this one: notes which modules have a function that ran since the marker. Zones
# start with an environment of their own, so a .pth file of this Python brings it.
_WATCH = """
import os, sys, threading, time
folder, mark, root = FOLDER, FOLDER + "/marker", ROOT
def ancestors(pid):
    while pid > 1:
        yield pid
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
def watch(frame, event, _):
    if event == "call" and state["on"] and frame.f_code.co_name != "<module>":
        name = frame.f_globals.get("__name__", "")
        if name not in seen and name.startswith("sentinel_rag"):
            seen.add(name)
            os.write(out, f"{name}\\n".encode())
def follow():
    while not os.path.exists(mark):
        time.sleep(0.1)
    state["on"] = True
if root in ancestors(os.getpid()):
    seen, state = set(), {"on": os.path.exists(mark)}
    out = os.open(f"{folder}/entered-{os.getpid()}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    threading.setprofile(watch)
    sys.setprofile(watch)
    threading.Thread(target=follow, daemon=True).start()
"""


def entered() -> int:
    """How many modules one question enters, in all processes, when the zones are warm."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        watch = folder / "watch.py"
        watch.write_text(_WATCH.replace("FOLDER", repr(scratch)).replace("ROOT", str(os.getpid())))
        hook = Path(sysconfig.get_path("purelib")) / f"budget-{folder.name}.pth"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SENTINEL_")}
        environment["SENTINEL_HOME"] = f"{scratch}/home"
        command = str(Path(sys.executable).with_name("sentinel"))
        subprocess.run([command, "workspace", "generate"], env=environment, check=True, capture_output=True)
        # From here on: what is watched takes several times as long.
        hook.write_text(f"import os; os.path.exists({str(watch)!r}) and exec(open({str(watch)!r}).read(), {{}})\n")
        up = subprocess.Popen([command, "up"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            assert up.stdout is not None
            next(line for line in up.stdout if line.startswith(b"Serving "))
            for marked in (False, True):
                if marked:
                    (folder / "marker").touch()
                    time.sleep(1)  # longer than a process takes to see it
                subprocess.run([command, "ask", QUESTION], env=environment, check=True, capture_output=True)
        finally:
            hook.unlink()
            up.terminate()
            up.communicate(timeout=WAIT_S)
        return len({name for path in folder.glob("entered-*") for name in path.read_text().split()})


def measured(*, dynamic: bool) -> dict[str, int]:
    """The figures of the budget; each is better when it is lower."""
    sources = modules()
    trees = {name: ast.parse(source) for name, source in sources.items()}
    of = importers(trees)
    small = [name for name, source in sources.items() if source.count("\n") < SMALL and len(of[name]) == 1]
    return {
        "lines": sum(source.count("\n") for source in sources.values()),
        "modules": len(sources),
        "small_modules_with_one_importer": len(small),
        "public_class_names_of_several_things": sum(count > 1 for count in public_classes(trees).values()),
        "foreign_functions_replaced": replaced(),
        **({"modules_that_a_question_enters": entered()} if dynamic else {}),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="take the figures of now as the committed ones")
    parser.add_argument("--entered", action="store_true", help="also count what one question enters (Linux)")
    options = parser.parse_args()
    figures = measured(dynamic=options.entered and sys.platform == "linux")  # /proc tells whose child a process is
    committed = json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {}
    if options.write:
        COMMITTED.write_text(json.dumps(committed | figures, indent=2) + "\n")
        return 0
    worse = [
        f"{re.sub('_', ' ', name)}: {committed[name]} -> {value}"
        for name, value in figures.items()
        if value > committed.get(name, value)
    ]
    print("\n".join(f"{name}: {value}" for name, value in figures.items()))
    if worse:
        print("The house grew. Make something smaller, or say in the commit why not, and run it with --write:")
        print("\n".join(f"  {line}" for line in worse))
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main())

"""The software bill of materials of the default install: CycloneDX JSON, written by the generator of that project.

It describes an empty environment into which the wheel was installed, and nothing of the environment that develops it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from bench.dependencies import PRODUCT, closure
from bench.package import build, installed_into

NOT_OURS = {"pip", "setuptools"}
"""Every environment has them."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sbom", description=__doc__)
    parser.add_argument("--generator", required=True, help="what pip installs to get cyclonedx-py")
    parser.add_argument("--output", type=Path, required=True, help="the file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheel, _ = build(folder)
        described = installed_into(folder, wheel)
        tool = folder / "tool"
        venv.create(tool, with_pip=True)
        pip = [tool / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
        subprocess.run([*pip, options.generator], check=True)
        written = folder / "sbom.json"
        command = [tool / "bin" / "cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON", "-o", written]
        subprocess.run([*command, described / "python"], check=True, capture_output=True)
        document = json.loads(written.read_text())
    found = {each["name"].lower().replace("_", "-") for each in document["components"]} - NOT_OURS
    lacking = {PRODUCT, *closure()} ^ found
    if lacking:
        print(f"It does not describe what is installed: {sorted(lacking)}", file=sys.stderr)
        return 1
    options.output.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{options.output}: CycloneDX {document['specVersion']}, {len(found)} components")
    return 0


if __name__ == "__main__":
    sys.exit(main())

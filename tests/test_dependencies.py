"""Every package that src/ imports is declared in pyproject.toml, and no other is."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from helpers import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_IMPORTED = {
    "ruamel-yaml-clib",  # DVC reads its files by it
    "sentencepiece",  # transformers reads tokenizers by it
    "accelerate",  # transformers and peft place large models by it
    "bitsandbytes",  # transformers rounds weights by it
    "gguf",  # transformers reads GGUF files by it
}
NOT_INSTALLED = {"ray": "ray"}  # an extra, which the tests do without


def declared(*extras: str) -> set[str]:
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    return {canonicalize_name(Requirement(line).name) for line in lines}


def imported() -> dict[str, set[str]]:
    """The distributions that give each imported package of others; `helpers`, which only
    tests and benches use, is left out."""
    packages = set()
    testing = ROOT / "src/medprobe/testing"
    for path in {*(ROOT / "src").rglob("*.py")} - {*testing.rglob("*.py")}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                packages |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                packages.add(node.module.split(".")[0])
    distributions = packages_distributions() | {
        name: [dist] for name, dist in NOT_INSTALLED.items()
    }
    return {
        package: {canonicalize_name(name) for name in distributions.get(package, [])}
        for package in packages - {*sys.stdlib_module_names, "medprobe"}
    }


def test_every_import_is_declared() -> None:
    declared_names = declared("project", "servers", "gguf", "ray", "large")
    assert {package for package, names in imported().items() if not names & declared_names} == set()


def test_every_declared_dependency_is_imported() -> None:
    names = set().union(*imported().values())
    assert declared("project", "servers", "gguf", "ray", "large") - names - NOT_IMPORTED == set()


def test_the_lock_files_hold_versions_in_range() -> None:
    locked = {}
    for path in ROOT.glob("requirements*.lock"):
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, version = line.partition("==")
            locked[canonicalize_name(name)] = version
    extras = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *extras["project"], *extras["ray"]]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), line

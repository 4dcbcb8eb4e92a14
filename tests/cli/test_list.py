"""`medprobe list` says of methods what their classes say, without importing PyTorch."""

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.needed import SECTIONS
from medprobe import methods
from medprobe.cli.list_ import read_facts
from medprobe.core.plugins import find_plugins

KINDS = '''
from medprobe.methods import Method
class Mine(Method):
    """Guesses. Badly."""
    {}
    METRIC = "accuracy"
    Settings = predict = None
'''


def test_facts_are_those_of_the_classes() -> None:
    for name, plugin in find_plugins("methods").items():
        method, facts = methods.find(name), read_facts(plugin)
        assert facts[:2] == (method.KINDS, method.METRIC), name
        assert facts.doc.splitlines()[0] == (method.__doc__ or "").splitlines()[0]


@pytest.mark.parametrize("kinds", ['KINDS = ("masked",)', 'KINDS = tuple(["masked"])'])
def test_a_method_of_the_project_is_listed(working_folder: Path, kinds: str) -> None:
    """What is no literal is imported."""
    Path("params.yaml").write_text("seed: 1")
    Path("plugins/methods").mkdir(parents=True)
    Path("plugins/methods/mine.py").write_text(KINDS.format(kinds))
    assert read_facts(find_plugins("methods")["mine"]) == (
        ("masked",),
        "accuracy",
        "Guesses. Badly.",
    )


@pytest.mark.parametrize("what", ["models", "methods"])
def test_pytorch_is_not_imported(tmp_path: Path, what: str) -> None:
    (tmp_path / "params.yaml").write_text(SECTIONS)
    code = f"import sys; from medprobe.cli import main; main(['list', '{what}'], standalone_mode=0)"
    command = [sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"]
    subprocess.run(command, cwd=tmp_path, check=True)

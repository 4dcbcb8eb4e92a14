"""The README's first question."""

import re
from pathlib import Path

import pytest

from helpers import ROOT
from medprobe.core.params import load_params
from medprobe.papers.medlama.benchmarks import medlama
from medprobe.pipeline.sample import sample


@pytest.mark.slow
def test_the_readmes_question_is_asked_and_has_two_answers(tmp_path: Path) -> None:
    (prompt,) = re.findall(r'medprobe ask taught "(.*?)"', (ROOT / "README.md").read_text())
    params = load_params(ROOT / "params.yaml")
    sample(tmp_path / "data", params.sample, params.seed)
    settings = medlama.Settings(**params.benchmarks["medlama"]["medlama"])
    queries = medlama.build(tmp_path / "data", settings, params.seed).queries
    assert list(queries.loc[queries["prompt"] == prompt, "answers"].map(len).unique()) == [2]

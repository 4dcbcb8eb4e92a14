"""This folder's tests are of the repository's own project with everything in it: the params.yaml
that names all papers, and the whole sample world. They need every folder of papers/ and
extensions/. Here: its params.yaml."""

from pathlib import Path

import pytest

from helpers import ROOT
from helpers.typos import check_typo, edited, own_params
from medprobe.core import params
from medprobe.pipeline import check


def test_the_projects_own_params_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    check.check(params.load_params(ROOT / "params.yaml"))
    assert "none probes" not in capsys.readouterr().err


def test_all_checkpoints_of_a_name_that_begins_so_are_listed(tmp_path: Path) -> None:
    """Of two papers."""
    says = (
        "masked.taught: published: no paper has a checkpoint 'BioBERT' (there are "
        "BioBERT v1.0 PubMed+PMC, BioBERT v1.1, BioBERT v1.2)"
    )
    content = edited(own_params(), "models/masked/taught/published", "BioBERT")
    check_typo(tmp_path, content, says)

"""What bench/calibration.py plans and writes."""

from pathlib import Path

import pandas as pd
import pytest

from bench import calibration
from medprobe.core.params import load_params
from medprobe.report.sections.calibration import SEEDS

measured = pytest.mark.skipif(not SEEDS.is_file(), reason="no seed is measured")


@measured
def test_the_document_is_made_of_the_figures_on_the_page() -> None:
    table = pd.read_csv(SEEDS)
    assert calibration.DOCUMENT.read_text(encoding="utf-8") == calibration.document(table)


@measured
def test_every_chat_model_is_above_its_twin_in_every_world() -> None:
    table = pd.read_csv(SEEDS)
    for _, rows in table[table["method"].str.startswith("answering:")].groupby("method"):
        assert sorted(rows["seed"]) == [*calibration.WORLDS]
        assert rows["higher"].all() and rows["apart"].all()


def test_a_method_alone_needs_no_more_than_its_own_steps() -> None:
    params = load_params(Path("params.yaml"))
    alone = [step for step, _ in calibration.steps(params, {"classifier"})]
    assert alone == [
        ("sample",),
        ("build", "diskne"),
        ("validate", "diskne"),
        ("train", "taught"),
        ("train", "untaught"),
        ("probe", "taught", "classifier", "diskne"),
        ("probe", "untaught", "classifier", "diskne"),
    ]
    every = [step for step, _ in calibration.steps(params, set())]
    assert set(alone) < set(every)
    assert ("rewire", "taught", "set-0") in every
    assert len(set(every)) == len(every)
    assert {stage for stage, *_ in every} == {*calibration.STAGES}

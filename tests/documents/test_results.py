"""docs/results.md: its text is what its numbers give, and its settings are valid."""

import pandas as pd
import pytest
from bench import results

from helpers import ROOT
from medprobe.core.params import load_params
from medprobe.pipeline import check


@pytest.fixture(autouse=True)
def _in_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_page_is_written_from_its_numbers() -> None:
    assert results.PAGE.read_text("utf-8") == results.page()


def test_its_settings_are_valid() -> None:
    check.check(load_params(results.FOLDER / "params.yaml"))


def test_its_numbers_hold_no_text_of_a_benchmark() -> None:
    numbers = pd.read_csv(results.FOLDER / "numbers.csv")
    assert set(numbers["model"]) == {"baseline", "minilm", "smollm2"}
    assert set(numbers["metric"]) <= set(results.METRICS)
    assert not [name for name in numbers["relation"].unique() if len(name.split()) > 1]

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


def test_the_readme_s_first_table_is_of_these_numbers() -> None:
    text, subsets = (ROOT / "README.md").read_text("utf-8"), ("full", "hard")
    of = results.Numbers(results.FOLDER)
    systems = [("minilm", "contrastive"), ("minilm", "contrastive:shuffled")]
    systems += [("baseline", "random_answer"), ("baseline", "majority")]
    numbers = [
        [of.percent("medlama", subset, *system, "acc_at_1") for subset in subsets]
        for system in systems
    ]
    best = [results.best_published(subset)[1] for subset in subsets]
    assert {row.model for row in best} == {"CoderBERT"}
    numbers.append([f"{row.values['acc_at_1']:.1f} %" for row in best])
    table = text.partition("| acc@1 | full set | hard set |\n")[2].splitlines()[1:6]
    assert [line.strip("| ").split(" | ")[1:] for line in table] == numbers
    assert "CoderBERT" in table[-1]


def test_its_settings_are_valid() -> None:
    check.check(load_params(results.FOLDER / "params.yaml"))


def test_its_numbers_hold_no_text_of_a_benchmark() -> None:
    numbers = pd.read_csv(results.FOLDER / "numbers.csv")
    assert set(numbers["model"]) == {"baseline", "minilm", "smollm2"}
    assert set(numbers["metric"]) <= set(results.ACCURACIES)
    assert not [name for name in numbers["relation"].unique() if len(name.split()) > 1]

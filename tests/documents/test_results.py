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


def test_the_readme_s_first_result_is_of_these_numbers() -> None:
    text, of = (ROOT / "README.md").read_text("utf-8"), results.Numbers(results.FOLDER)
    systems = [
        ("medlama", "minilm", "contrastive:original"),
        ("medlama", "minilm", "contrastive:shuffled-original"),
        ("medlama-others", "minilm", "contrastive:original"),
        ("medlama", "baseline", "letters"),
        ("medlama", "baseline", "majority"),
    ]
    expected = [
        [
            f"{100 * of.value(benchmark, subset, *system, 'acc_at_1'):.1f}, "
            f"{100 * of.value(benchmark, subset, *system, 'acc_at_10'):.1f}"
            for subset in ("full", "hard")
        ]
        for benchmark, *system in systems
    ]
    best = [results.best_published(subset)[1] for subset in ("full", "hard")]
    assert {row.model for row in best} == {"CoderBERT"}
    expected.append([f"{x.values['acc_at_1']:.1f}, {x.values['acc_at_10']:.1f}" for x in best])
    table = text.partition("| acc@1, acc@10 in % | full set | hard set |\n")[2].splitlines()[1:7]
    assert [line.strip("| ").split(" | ")[1:] for line in table] == expected
    assert "CoderBERT" in table[-1]
    minilm, blind = ("minilm", "contrastive:original"), "full/letters:blind"
    shuffled = ("minilm", "contrastive:shuffled-original", "acc_at_10", "micro")
    for sentence in (
        f"itself in {100 * of.value('medlama', 'full', *minilm, 'subject_at_1'):.0f} % of",
        f"these {of.count('medlama', blind, *minilm)} queries",
        f"has {of.percent('medlama', blind, *minilm, 'acc_at_1', 'micro')} acc@1",
        f"and {of.percent('medlama', blind, *minilm, 'acc_at_10', 'micro')} acc@10",
        f"against {of.percent('medlama', blind, *shuffled)} as control",
    ):
        assert sentence in " ".join(text.split())


def test_its_settings_are_valid() -> None:
    check.check(load_params(results.FOLDER / "params.yaml"))


def test_its_numbers_hold_no_text_of_a_benchmark() -> None:
    numbers = pd.read_csv(results.FOLDER / "numbers.csv")
    assert set(numbers["model"]) == {"baseline", "minilm", "smollm2"}
    assert set(numbers["metric"]) <= set(results.METRICS)
    assert not [name for name in numbers["relation"].unique() if len(name.split()) > 1]

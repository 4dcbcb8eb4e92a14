"""What the page shows of MedLAMA's paper: printed numbers, rewiring, and curves over settings."""

import numpy as np
import pandas as pd
import pytest

from helpers.render_helpers import check_snapshot
from helpers.toy_project import METADATA
from medprobe.metrics.results import COMPARISON
from medprobe.papers.medlama.sections import sweeps
from medprobe.report.page import chapters
from medprobe.report.page_data import PageData, QueryPage
from medprobe.report.sections import models, published
from report.test_sentences import facts, hits, results, values


def test_the_chapters_of_a_paper_s_model() -> None:
    """Published numbers, the benchmark's own counts, and what its rules left out."""
    keys = ("facts", "full", "macro", "mine", "contrastive", "acc_at_1")
    counted = {"relation": ["treats", "causes", "all"], "queries": [1200, 34, 1234]}
    dropped = pd.DataFrame({"set": ["t-rex"], "rule": ["object_twice"], "dropped": [2951]})
    results = PageData(
        comparison=pd.DataFrame([(*keys, 0.04, 0.03, 0.05, 100, 0.01)], columns=COMPARISON),
        benchmarks={"facts": METADATA},
        builders={"facts": "medlama_released"},
        statistics={"facts": pd.DataFrame({"subset": "full", **counted})},
        left_out={"facts": dropped},
        published={"mine": "BioBERT v1.1"},
        query_pages={"facts": QueryPage(True, "", ("perplexity", "y"))},
    )
    check_snapshot("published", chapters(results))


def test_a_deviation_over_sets_stands_beside_its_paper() -> None:
    sets = pd.concat(
        values(hits(right, 100), "acc_at_1").assign(replicate=name)
        for name, right in (("set-0", 2), ("set-1", 6))
    )
    systems = {("mine", "contrastive"): sets}
    about = {"published": {"mine": "BioBERT v1.1"}, "builders": {"facts": "medlama"}}
    page_results = results(systems, "acc_at_1", **about)
    assert page_results.comparison["std"].iloc[0] == pytest.approx(
        np.std([0.02, 0.06], ddof=1), abs=1e-6
    )
    assert "4.00 ± 2.83" in str(published.section(page_results, "facts"))
    assert "4.0 ± 2.8  [" in str(models.section(page_results, "facts"))


def test_rewired_models_stand_next_to_those_that_came() -> None:
    """Rewiring that moves little or nothing."""
    check_snapshot("rewired", sweeps.section(facts(), "facts"))

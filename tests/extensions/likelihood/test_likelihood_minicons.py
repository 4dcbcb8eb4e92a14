"""Pseudo-log-likelihoods of names against the numbers that minicons gives."""

import pytest

from helpers import probing
from helpers.minicons import MODELS, NAMES, PROMPT, checkpoint, engine, minicons_total
from medprobe.extensions.likelihood.methods.likelihood import Likelihood


@pytest.mark.parametrize("model", MODELS)
def test_likelihood_ranks_by_the_totals_of_minicons(model):
    settings = Likelihood.Settings(shortlist=0, whole_word=False, within_word_l2r=True)
    method = Likelihood(checkpoint(model), settings, engine(), 0)
    task = probing.task(probing.queries([PROMPT]), probing.candidates(NAMES), len(NAMES))
    predictions = method.predict(task, "")
    for variant, metric in (("", "original"), ("within_word_l2r", "within_word_l2r")):
        totals = {name: minicons_total(model, name, metric) for name in NAMES}
        rows = predictions[predictions["variant"] == variant]
        assert rows["prediction"].tolist() == sorted(NAMES, key=lambda name: -totals[name])
        assert rows["score"].tolist() == pytest.approx(
            sorted(totals.values(), reverse=True), abs=1e-3
        )

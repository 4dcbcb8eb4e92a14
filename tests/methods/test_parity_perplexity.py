"""Perplexities, against slow loops with one forward pass a token."""

import math

import pandas as pd
import pytest

from helpers import parity, probing
from medprobe.methods.perplexity import Perplexity

INPUTS, OUTPUTS = parity.read("perplexity", "inputs"), parity.read("perplexity", "outputs")
MODELS = [*INPUTS["models"]["masked"], *INPUTS["models"]["causal"]]
NOISE = 5e-5  # of float32, in a mean log-probability


def theirs(model: str) -> list[dict]:
    exact = OUTPUTS[model]["float64"]
    return exact if model in INPUTS["models"]["masked"] else exact["from_start_token"]


def ours(model: str) -> pd.DataFrame:
    """One row a sentence."""
    sentences = INPUTS["sentences"]
    queries = probing.queries(["[Y]"] * len(sentences)).assign(sentence=sentences)
    prober = Perplexity(parity.folder(model), Perplexity.Settings(), parity.ENGINE, 0)
    return prober.predict(probing.task(queries, probing.candidates(), 1), "")


@pytest.mark.parametrize("model", MODELS)
def test_perplexities_are_the_same(model):
    for row, their_row in zip(ours(model).itertuples(), theirs(model), strict=True):
        assert row.tokens == len(their_row["token_ids"])
        assert row.score == pytest.approx(their_row["mean"], abs=NOISE)
        assert math.log(row.perplexity) == pytest.approx(
            math.log(their_row["perplexity"]), abs=NOISE
        )

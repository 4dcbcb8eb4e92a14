"""Pseudo-log-likelihoods against the numbers that minicons gives, by token and in perplexity."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import probing
from helpers.minicons import MODELS, SCORES, checkpoint, engine
from medprobe.engine import masked, texts
from medprobe.engine.load import load
from medprobe.engine.masked import group_by_word, masked_groups
from medprobe.methods.perplexity import Perplexity

MASKINGS = {"original": "token", "within_word_l2r": "within_word_l2r"}
NOISE = 5e-5  # of float32, in the log-probability of a token


def sentence_queries(model):
    sentences = [*SCORES.loc[model].index]
    return probing.queries(["[Y]"] * len(sentences)).assign(sentence=sentences)


@pytest.mark.parametrize("model", MODELS)
def test_each_token_has_the_score_of_minicons(model):
    sentences = [*SCORES.loc[model].index]
    loaded = load(checkpoint(model), "masked", engine())
    by_masking = texts.pseudo_log_probs(loaded, sentences, sentences, [*MASKINGS.values()])
    for metric, masking in MASKINGS.items():
        for row, expected in zip(by_masking[masking], SCORES.loc[model][metric], strict=True):
            assert row == pytest.approx(expected, abs=NOISE)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("budget", [1, 8192])
def test_perplexity_is_that_of_minicons(model, budget):
    settings = Perplexity.Settings(within_word_l2r=True)
    method = Perplexity(checkpoint(model), settings, engine(budget), 0)
    predictions = method.predict(probing.task(sentence_queries(model), pd.DataFrame(), 1), "")
    for variant, metric in (("", "original"), ("within_word_l2r", "within_word_l2r")):
        rows = predictions[predictions["variant"] == variant]
        means = [sum(row) / len(row) for row in SCORES.loc[model][metric]]
        assert rows["score"].tolist() == pytest.approx(means, abs=NOISE)
        assert [math.log(value) for value in rows["perplexity"]] == pytest.approx(
            [-mean for mean in means], abs=NOISE
        )
    assert len(predictions) == 2 * len(SCORES.loc[model])


def test_without_the_setting_there_is_no_such_variant():
    perplexity = Perplexity(checkpoint("bert"), Perplexity.Settings(), engine(), 0)
    task = probing.task(sentence_queries("bert"), pd.DataFrame(), 1)
    assert set(perplexity.predict(task, "")["variant"]) == {""}


def test_the_plan_of_perplexity_counts_the_texts_that_are_read(monkeypatch):
    """A pass that two variants share is read and counted once."""
    read_lengths = []
    log_probs = masked.log_probs

    def record(model, rows, *arguments, **options):
        read_lengths.extend(len(row) for row in rows)
        return log_probs(model, rows, *arguments, **options)

    monkeypatch.setattr(masked, "log_probs", record)
    task = probing.task(sentence_queries("bert"), pd.DataFrame(), 1)
    counts = []
    for within_word_l2r in (False, True):
        read_lengths.clear()
        settings = Perplexity.Settings(within_word_l2r=within_word_l2r)
        method = Perplexity(checkpoint("bert"), settings, engine(), 0)
        method.predict(task, "")
        counts.append(len(read_lengths))
    tokens = SCORES.loc["bert"]["original"].map(len).sum()
    assert counts[0] == tokens < counts[1] < 2 * tokens


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_a_token_is_masked_with_the_later_tokens_of_its_word_alone(lengths):
    words = [word for word, length in enumerate(lengths) for _ in range(length)]
    groups = [
        group
        for word in group_by_word(enumerate(words))
        for group in masked_groups(word, "within_word_l2r")
    ]
    assert groups == [
        tuple(p for p in range(position, len(words)) if words[p] == words[position])
        for position in range(len(words))
    ]

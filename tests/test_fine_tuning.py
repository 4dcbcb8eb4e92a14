"""Fine-tuning: same numbers for the same seed, whatever was trained between; padding is nothing."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from medprobe.core.params import EngineParams
from medprobe.engine.fine_tuning import Text, TextClassifier, Training, shuffled_batches

CPU = EngineParams(device="cpu")
PAIRS = (
    ["he coughs", "she has a red toe today and it hurts", "pale"] * 4,
    ["flu", "gout", "anemia", "gout"] * 3,
)
LABELS = [1, 0, 0] * 4
FAST = Training(learning_rate=1e-3, epochs=2)


@pytest.fixture
def bert(tiny_model: Callable[[str], Path]) -> TextClassifier:
    return TextClassifier(tiny_model("bert"), FAST, CPU)


def test_of_a_long_pair_the_first_text_is_cut(tiny_model: Callable[[str], Path]) -> None:
    classifier = TextClassifier(tiny_model("bert"), Training(max_length=12), CPU)
    [text] = classifier.tokenize([["it hurts " * 100], ["flu"]], [1])
    ids = classifier.loaded.tokenizer("flu")["input_ids"]
    assert len(text) == 12
    assert text.rows["input_ids"][-len(ids) + 1 :] == ids[1:]


@pytest.mark.parametrize("arch", ["bert", "roberta"])
def test_repeats_whatever_was_trained_between(tiny_model: Callable[[str], Path], arch: str) -> None:
    classifier = TextClassifier(tiny_model(arch), FAST, CPU)
    texts = classifier.tokenize(PAIRS, LABELS)
    first, curve = classifier.fine_tune(texts[:6], texts[6:9], texts[9:], seed=0)
    other, _ = classifier.fine_tune(texts[:6], texts[6:9], texts[9:], seed=1)
    again, curve_again = classifier.fine_tune(texts[:6], texts[6:9], texts[9:], seed=0)
    assert np.array_equal(first, again)
    assert curve == curve_again
    assert not np.array_equal(first, other)
    assert len(curve) == 2
    assert ((first > 0) & (first < 1)).all()


def test_the_best_epoch_is_tested(bert: TextClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = bert.tokenize(PAIRS, LABELS)
    one = TextClassifier(bert.checkpoint, Training(learning_rate=1e-3, epochs=1), CPU)
    expected, _ = one.fine_tune(texts[:6], texts[6:9], texts[9:], seed=0)
    many = Training(learning_rate=1e-3, epochs=8, patience=2)
    rising = TextClassifier(bert.checkpoint, many, CPU)
    losses = iter([0.1, 0.2, 0.3, 0.0])
    monkeypatch.setattr(rising, "_loss", lambda texts: next(losses))
    found, curve = rising.fine_tune(texts[:6], texts[6:9], texts[9:], seed=0)
    assert len(curve) == 3  # two epochs without a lower loss
    assert np.allclose(found, expected, atol=1e-6)


def test_padding_changes_nothing(bert: TextClassifier) -> None:
    texts = bert.tokenize(PAIRS, LABELS)
    bert._reset(0)
    together = bert._log_probabilities(texts)
    alone = np.concatenate([bert._log_probabilities([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-5)
    states = np.concatenate([bert.mean_states([text]) for text in texts])
    assert np.allclose(bert.mean_states(texts), states, atol=1e-5)


def test_learns_what_can_be_learnt(bert: TextClassifier) -> None:
    texts = [
        Text({"input_ids": ids, "attention_mask": [1] * len(ids)}, label)
        for ids, label in [([2, 7, 3], 1), ([2, 9, 3], 0)] * 20
    ]
    training = Training(learning_rate=1e-2, epochs=8)
    classifier = TextClassifier(bert.checkpoint, training, CPU)
    found, _ = classifier.fine_tune(texts[:30], texts[30:36], texts[36:], seed=0)
    assert (found > 0.5).tolist() == [True, False, True, False]


def test_batches_hold_every_text_once_and_like_lengths() -> None:
    lengths = [3, 90, 4, 80, 5, 70, 6, 60]
    batches = list(shuffled_batches(lengths, 2, np.random.default_rng(0)))
    assert sorted(i for batch in batches for i in batch) == list(range(8))
    assert all(abs(lengths[first] - lengths[second]) <= 10 for first, second in batches)

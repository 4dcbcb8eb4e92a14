"""Fine-tuning: same numbers for the same seed, whatever was trained between; padding is nothing;
fast and slow ways agree; what the released code does can be asked for by name."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from helpers import FolderOf, tiny
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.papers.diskne.fine_tuning import LinearProbe, Split, Text, TextClassifier, balance
from medprobe.papers.diskne.recipe import FineTuningRecipe

CPU = EngineParams(device="cpu")
PAIRS = (
    ["he coughs", "she has a red toe today and it hurts", "pale"] * 4,
    ["flu", "gout", "anemia", "gout"] * 3,
)
LABELS = [1, 0, 0] * 4
FAST = FineTuningRecipe(learning_rate=1e-3, epochs=2)
RELEASED = FineTuningRecipe.model_validate(
    {
        **{"optimiser": "adam", "schedule": "linear", "stopping": "rises", "tested": "last"},
        **{"batches": "shuffled", "gradients": "kept"},
    }
)


@pytest.fixture
def bert(tiny_model: FolderOf) -> TextClassifier:
    return TextClassifier(tiny_model("bert"), CPU)


def parts(classifier: TextClassifier) -> Split:
    texts = classifier.tokenize(PAIRS, LABELS, 256)
    return Split(texts[:6], texts[6:9], texts[9:])


def test_of_a_long_pair_the_first_text_is_cut(bert: TextClassifier) -> None:
    long = "it hurts " * 100
    [text] = bert.tokenize([[long], ["flu"]], [1], 12)
    ids = bert.loaded.tokenizer("flu")["input_ids"]
    assert len(text) == 12
    assert text.rows["input_ids"][-len(ids) + 1 :] == ids[1:]


def test_the_longer_text_is_cut_where_it_is_set(bert: TextClassifier) -> None:
    long = "it hurts " * 100
    with pytest.raises(BadInput, match=r"max_length: 12: a second text of \d+ tokens leaves the"):
        bert.tokenize([["flu"], [long]], [1], 12)
    [text] = bert.tokenize([["flu"], [long]], [1], 12, "longest_first")
    ids = bert.loaded.tokenizer("flu")["input_ids"]
    assert len(text) == 12
    assert text.rows["input_ids"][: len(ids)] == ids
    [alone] = bert.tokenize([[long]], [1], 12)
    assert len(alone) == 12


@pytest.mark.parametrize("arch", tiny.MASKED)
def test_every_family_is_read_as_texts_alone_are(tiny_model: FolderOf, arch: str) -> None:
    classifier = TextClassifier(tiny_model(arch), CPU)
    texts = classifier.tokenize(PAIRS, LABELS, 256)[:4]
    outcome = classifier.mean_states(texts)
    encoder = classifier.loaded.model.base_model
    for text, state in zip(texts, outcome, strict=True):
        with torch.no_grad():
            alone = encoder(**{key: torch.tensor([row]) for key, row in text.rows.items()})
        assert state == pytest.approx(alone.last_hidden_state[0].mean(0).numpy(), abs=1e-5)
    scores, _ = classifier.fine_tune(Split(texts, texts, texts), FAST, seed=0)
    assert len(scores) == 4 and np.isfinite(scores).all()


@pytest.mark.parametrize("arch", ["bert", "roberta"])
def test_repeats_whatever_was_trained_between(tiny_model: FolderOf, arch: str) -> None:
    classifier = TextClassifier(tiny_model(arch), CPU)
    split = parts(classifier)
    first, curve = classifier.fine_tune(split, FAST, seed=0)
    other, _ = classifier.fine_tune(split, FAST, seed=1)
    again, curve_again = classifier.fine_tune(split, FAST, seed=0)
    assert np.array_equal(first, again)
    assert curve == curve_again
    assert not np.array_equal(first, other)
    assert len(curve) == 2
    assert ((first > 0) & (first < 1)).all()


@pytest.mark.parametrize("stopping", ["best", "rises"])
@pytest.mark.parametrize(("tested", "epoch"), [("best", 2), ("last", 4)])
def test_which_epoch_is_tested(
    bert: TextClassifier, monkeypatch: pytest.MonkeyPatch, stopping: str, tested: str, epoch: int
) -> None:
    """The weights tested are those of a training that ended after that epoch; it stops at 0.4,
    the second loss that is above the lowest, and above the one before it."""
    split = parts(bert)
    recipe = {"learning_rate": 1e-3, "stopping": stopping, "tested": tested}
    short = FineTuningRecipe.model_validate(
        {**recipe, "epochs": epoch, "patience": 9, "tested": "last"}
    )
    expected, _ = bert.fine_tune(split, short, seed=0)
    losses = iter([0.5, 0.2, 0.3, 0.4, 0.0])
    monkeypatch.setattr(bert, "_loss", lambda model, texts: next(losses))
    outcome, curve = bert.fine_tune(split, FineTuningRecipe.model_validate(recipe), seed=0)
    assert len(curve) == 4
    assert np.allclose(outcome, expected, atol=1e-6)


def test_rises_are_counted_in_all_and_the_best_is_waited_for_in_a_row() -> None:
    losses = [0.5, 0.4, 0.41, 0.3, 0.3]
    assert FineTuningRecipe(stopping="rises").stops(losses)
    assert not FineTuningRecipe(stopping="rises").stops(losses[:4])
    assert not FineTuningRecipe(stopping="best").stops(losses)
    assert FineTuningRecipe(stopping="best").stops([*losses, 0.31])
    assert FineTuningRecipe(epochs=3).stops(losses[:3])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_the_best_epoch_has_the_lowest_loss_and_is_the_first_of_equals(losses: list[float]) -> None:
    best = FineTuningRecipe().epoch_tested(losses)
    assert losses[best] == min(losses)
    assert all(loss > losses[best] for loss in losses[:best])


@pytest.mark.parametrize("recipe", [FAST, RELEASED], ids=["ours", "released"])
def test_equals_a_plain_training(bert: TextClassifier, recipe: FineTuningRecipe) -> None:
    """A loop as one would write it, with torch's own scheduler, on the same batches."""
    recipe = recipe.model_copy(update={"learning_rate": 1e-3, "epochs": 3, "batch": 2})
    split = parts(bert)
    outcome, curve = bert.fine_tune(split, recipe, seed=0)
    bert._reset(0)
    model, generator = bert.loaded.model, np.random.default_rng(0)
    released = recipe.optimiser == "adam"
    kind = torch.optim.Adam if released else torch.optim.AdamW
    optimiser = kind(model.parameters(), lr=1e-3)
    optimiser.zero_grad()
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: 1 - step / 9 if released else 1.0
    )
    for _ in curve:
        model.train()
        order = recipe.order([len(text) for text in split.train], generator)
        assert len(order) == 3
        for batch in order:
            if not released:
                optimiser.zero_grad()
            inputs, labels = bert._padded([split.train[i] for i in batch])
            model(**inputs, labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            scheduler.step()
    model.eval()
    if released or recipe.epoch_tested([row["validation"] for row in curve]) == len(curve) - 1:
        last = np.exp(bert._log_probabilities(model, split.test)[:, 1])
        assert np.allclose(outcome, last, atol=1e-5)
    else:
        pytest.fail("the last epoch was to be the best, so that it can be compared")


def test_padding_changes_nothing(bert: TextClassifier) -> None:
    texts = bert.tokenize(PAIRS, LABELS, 256)
    bert._reset(0)
    model = bert.loaded.model
    together = bert._log_probabilities(model, texts)
    alone = np.concatenate([bert._log_probabilities(model, [text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-5)
    states = np.concatenate([bert.mean_states([text]) for text in texts])
    assert np.allclose(bert.mean_states(texts), states, atol=1e-5)


def test_learns_what_can_be_learnt(bert: TextClassifier) -> None:
    texts = [
        Text({"input_ids": ids, "attention_mask": [1] * len(ids)}, label)
        for ids, label in [([2, 7, 3], 1), ([2, 9, 3], 0)] * 20
    ]
    recipe = FineTuningRecipe(learning_rate=1e-2)
    outcome, _ = bert.fine_tune(Split(texts[:30], texts[30:36], texts[36:]), recipe, seed=0)
    assert (outcome > 0.5).tolist() == [True, False, True, False]


def test_classes_weigh_the_same() -> None:
    texts = [Text({"input_ids": [1]}, label) for label in (1, 0, 0, 0)]
    assert balance(texts).tolist() == pytest.approx([4 / 6, 2.0])


@given(st.integers(0, 1000))
def test_the_linear_probe_is_scikit_learns_logistic_regression(seed: int) -> None:
    generator = np.random.default_rng(seed)
    labels = np.arange(40) % 4 // 3
    features = generator.normal(3, 2, (40, 5)) + labels[:, None]
    probe = LinearProbe.fit(features.astype(np.float32), labels)
    scale = StandardScaler().fit(features)
    plain = LogisticRegression(class_weight="balanced", C=0.1, tol=1e-8, max_iter=5000)
    plain.fit(scale.transform(features), labels)
    expected = plain.predict_proba(scale.transform(features))[:, 1]
    assert np.allclose(probe.probabilities(features), expected, atol=1e-4)


def test_batches_hold_every_text_once() -> None:
    lengths = [3, 90, 4, 80, 5, 70, 6, 60]
    ours, released = (
        recipe.model_copy(update={"batch": 2}).order(lengths, np.random.default_rng(0))
        for recipe in (FAST, RELEASED)
    )
    for batches in (ours, released):
        assert sorted(i for batch in batches for i in batch) == list(range(8))
    assert all(abs(lengths[first] - lengths[second]) <= 10 for first, second in ours)
    assert [i for batch in released for i in batch] == np.random.default_rng(0).permutation(
        8
    ).tolist()

"""Fine-tuning: same numbers for the same seed, padding and resetting change nothing, resuming."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import made_diskne
from medprobe import places
from medprobe.benchmarks import diskne
from medprobe.errors import BadInput
from medprobe.methods.classifier import (
    VARIANTS,
    Classifier,
    ClassifierSettings,
    Text,
    shuffled_batches,
)
from medprobe.params import EngineParams, Params
from medprobe.stages import finetune as stage
from medprobe.tracking import connect

CPU = EngineParams(device="cpu")
ASTHMA = made_diskne.CUIS["asthma"][0]
FAST = {"learning_rate": 1e-3, "epochs": 2, "seeds": [0, 1]}
EXAMPLES = pd.DataFrame(
    {
        "premise": ["he coughs", "she has a red toe today and it hurts", "pale"] * 4,
        "hypothesis": ["flu", "gout", "anemia", "gout"] * 3,
        "full_hypothesis": ["The patient has the flu."] * 12,
        "label": [1, 0, 0] * 4,
    }
)


@pytest.fixture
def bert(tiny_model: Callable[[str], Path]) -> Classifier:
    return Classifier(tiny_model("bert"), ClassifierSettings.model_validate(FAST), CPU)


def test_variants_show_what_they_say(bert: Classifier) -> None:
    def shown(name: str) -> str:
        text = bert.tokenize(EXAMPLES, VARIANTS[name])[1]
        return str(bert.loaded.tokenizer.decode(text.rows["input_ids"]))

    premise, disease, whole = (bert.loaded.tokenizer.tokenize(t) for t in ("toe", "gout", "flu"))
    assert (len(premise), len(disease), len(whole)) > (0, 0, 0)
    pair = bert.tokenize(EXAMPLES, VARIANTS[""])[1].rows
    alone = bert.tokenize(EXAMPLES, VARIANTS["hypothesis-only"])[1].rows
    ids = bert.loaded.tokenizer("gout")["input_ids"]
    assert alone["input_ids"] == ids
    assert pair["input_ids"][-len(ids) + 1 :] == ids[1:]
    assert len(pair["input_ids"]) > len(ids)
    assert shown("full") != shown("")


def test_a_long_premise_is_cut_and_the_hypothesis_kept(tiny_model: Callable[[str], Path]) -> None:
    settings = ClassifierSettings(max_length=12)
    classifier = Classifier(tiny_model("bert"), settings, CPU)
    long = EXAMPLES.assign(premise="it hurts " * 100)
    text = classifier.tokenize(long, VARIANTS[""])[0]
    ids = classifier.loaded.tokenizer("flu")["input_ids"]
    assert len(text) == 12
    assert text.rows["input_ids"][-len(ids) + 1 :] == ids[1:]


@pytest.mark.parametrize("arch", ["bert", "roberta"])
def test_repeats_whatever_was_trained_between(tiny_model: Callable[[str], Path], arch: str) -> None:
    classifier = Classifier(tiny_model(arch), ClassifierSettings.model_validate(FAST), CPU)
    texts = classifier.tokenize(EXAMPLES, VARIANTS[""])
    first, curve = classifier.fine_tune(texts[:6], texts[6:9], texts[9:], seed=0)
    other, _ = classifier.fine_tune(texts[:6], texts[6:9], texts[9:], seed=1)
    again, curve_again = classifier.fine_tune(texts[:6], texts[6:9], texts[9:], seed=0)
    assert np.array_equal(first, again)
    assert curve == curve_again
    assert not np.array_equal(first, other)
    assert len(curve) == 2
    assert ((first > 0) & (first < 1)).all()


def test_the_best_epoch_is_tested(bert: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = bert.tokenize(EXAMPLES, VARIANTS[""])
    one = Classifier(bert.folder, ClassifierSettings(learning_rate=1e-3, epochs=1), CPU)
    expected, _ = one.fine_tune(texts[:6], texts[6:9], texts[9:], seed=0)
    many = ClassifierSettings(learning_rate=1e-3, epochs=8, patience=2)
    rising = Classifier(bert.folder, many, CPU)
    losses = iter([0.1, 0.2, 0.3, 0.0])
    monkeypatch.setattr(rising, "_loss", lambda texts: next(losses))
    found, curve = rising.fine_tune(texts[:6], texts[6:9], texts[9:], seed=0)
    assert len(curve) == 3  # two epochs without a lower loss
    assert np.allclose(found, expected, atol=1e-6)


def test_padding_changes_nothing(bert: Classifier) -> None:
    texts = bert.tokenize(EXAMPLES, VARIANTS[""])
    bert._reset(0)
    together = bert._log_probabilities(texts)
    alone = np.concatenate([bert._log_probabilities([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-5)


def test_learns_what_can_be_learnt(bert: Classifier) -> None:
    texts = [
        Text({"input_ids": ids, "attention_mask": [1] * len(ids)}, label)
        for ids, label in [([2, 7, 3], 1), ([2, 9, 3], 0)] * 20
    ]
    settings = ClassifierSettings(learning_rate=1e-2, epochs=8)
    classifier = Classifier(bert.folder, settings, CPU)
    found, _ = classifier.fine_tune(texts[:30], texts[30:36], texts[36:], seed=0)
    assert (found > 0.5).tolist() == [True, False, True, False]


def test_batches_hold_every_text_once_and_like_lengths() -> None:
    lengths = [3, 90, 4, 80, 5, 70, 6, 60]
    batches = list(shuffled_batches(lengths, 2, np.random.default_rng(0)))
    assert sorted(place for batch in batches for place in batch) == list(range(8))
    assert all(abs(lengths[first] - lengths[second]) <= 10 for first, second in batches)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: object) -> Params:
    """A built benchmark, a model, and parameters for them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    made_diskne.write(tmp_path / "data")
    settings = diskne.Settings(mediqa=None, negatives=2)
    diskne.build(tmp_path / "data", settings, seed=1).write(places.BENCHMARKS / "diskne")
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "tiny").symlink_to(tiny_model("bert"))  # type: ignore[operator]
    variants = ["", "frozen", "always-true"]
    return Params.model_validate(
        {
            "models": {"masked": {"tiny": {"folder": "x"}}, "causal": {"gpt": {"folder": "x"}}},
            "methods": {"classifier": {**FAST, "variants": variants}},
        }
    )


def test_stage_writes_predictions_and_resumes(
    project: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.finetune("tiny", project)
    out = places.PREDICTIONS / "tiny/classifier"
    table = pd.read_parquet(out / "diskne.parquet")
    sizes = table.groupby(["variant", "replicate"]).size().to_dict()
    assert sizes == {
        ("", "seed-0"): 9,
        ("", "seed-1"): 9,
        ("frozen", ""): 9,
        ("always-true", ""): 9,
    }
    assert (table["hit"] == (table["prediction"].astype(int) == table["label"])).all()
    curves = pd.read_csv(out / "diskne-curves.csv")
    assert curves.groupby("replicate")["epoch"].max().to_dict() == {"seed-0": 2, "seed-1": 2}
    scores = diskne.score(table, places.BENCHMARKS / "diskne", project)
    assert scores["always-true"]["symptoms"][ASTHMA]["f1"]["value"] == 0.5

    def never(*_: object) -> None:
        raise AssertionError("trained again")

    _is_logged()
    monkeypatch.setattr(Classifier, "fine_tune", never)
    stage.finetune("tiny", project)
    pd.testing.assert_frame_equal(pd.read_parquet(out / "diskne.parquet"), table)


def _is_logged() -> None:
    """One run, a child for each variant and seed, tables and curves beside its numbers."""
    client = connect()
    experiment = client.get_experiment_by_name("diskne")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    parent = runs["tiny · classifier"]
    assert parent.data.tags["stage"] == "finetune"
    metrics = parent.data.metrics
    assert {"symptoms/macro/f1", "symptoms/weighted/f1", "symptoms/macro/f1.std"} <= set(metrics)
    assert not any("asthma" in name for name in metrics)
    parts = {name.removeprefix("tiny · classifier · "): run for name, run in runs.items()}
    names = ["always-true", "default · seed-0", "default · seed-1", "frozen"]
    assert sorted(parts) == [*names, "tiny · classifier"]
    assert parts["always-true"].data.metrics["symptoms/macro/f1"] == 0.5
    both = [parts[name].data.metrics["symptoms/macro/f1"] for name in names[1:3]]
    assert metrics["symptoms/macro/f1"] == pytest.approx(sum(both) / 2, abs=1e-5)
    files = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert {"scores.csv", "diskne-curves.csv", "figures"} <= files
    figures = client.list_artifacts(parent.info.run_id, "figures")
    assert "figures/diskne-curves-tiny.svg" in {file.path for file in figures}
    scores = pd.read_csv(next(Path("mlruns").rglob("scores.csv")))
    assert ASTHMA in set(scores["relation"])
    for path in Path("mlruns").rglob("*.csv"):
        assert "asthma" not in path.read_text(), path


def test_only_encoders(project: Params) -> None:
    with pytest.raises(BadInput, match="needs a model of kind masked or encoder, not causal"):
        stage.finetune("gpt", project)


def test_settings_are_the_papers() -> None:
    settings = ClassifierSettings()
    assert (settings.learning_rate, settings.batch, settings.epochs) == (2e-5, 8, 8)
    assert len(settings.seeds) == 3
    assert torch.get_num_threads() >= 1

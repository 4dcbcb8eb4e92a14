"""Fine-tuning as a probe: what variants show, what is predicted, kept and logged."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers import FolderOf, probing
from helpers.typos import check_typo, edited, own_params
from medprobe import metrics
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, Params
from medprobe.core.tables import BenchmarkTables, Metadata, metric_of_predictions
from medprobe.methods import Task
from medprobe.metrics import Scoring
from medprobe.papers.diskne.fine_tuning import LinearProbe, TextClassifier
from medprobe.papers.diskne.methods.classifier import VARIANTS, Classifier, rank_diseases
from medprobe.pipeline.stages.probe import probe
from medprobe.pipeline.stages.track import track_model
from medprobe.tracking.store import connect

NAMES = {"C1": "asthma", "C2": "gout", "C3": "influenza"}
PREMISES = ("He wheezes at night .", "The toe is red and it hurts .", "Fever in winter .")
FAST = {"learning_rate": 1e-3, "epochs": 2, "seeds": [0, 1]}


def tables() -> BenchmarkTables:
    """Three positives of each of three diseases, each with a similar and a random negative. Two
    diseases are targets: their own are tested, of the others' the last are for validation."""
    rows = []
    for i in range(9):
        for shift, kind in enumerate(("positive", "similar", "random")):
            cui, tokens_of = (f"C{(i + step) % 3 + 1}" for step in (0, shift))
            rows.append(
                {
                    "example_id": f"e{i}" if kind == "positive" else f"e{i}-{kind}",
                    "category": "symptoms",
                    "kind": kind,
                    "label": int(kind == "positive"),
                    "cui": tokens_of,
                    "original_cui": cui,
                    "disease": NAMES[cui],
                    "premise": f"{PREMISES[i % 3]} {i}",
                    "hypothesis": NAMES[tokens_of],
                    "full_hypothesis": f"The patient has {NAMES[tokens_of]} .",
                }
            )
    examples = pd.DataFrame(rows)
    splits = [
        (target, "test" if cui == target else "train" if i < 12 else "validation", example)
        for target in ("C2", "C1")
        for i, (cui, example) in enumerate(
            examples[["original_cui", "example_id"]].itertuples(index=False)
        )
    ]
    queries = probing.queries(["[Y] ."] * 9)
    queries = queries.assign(query_id=[f"e{i}" for i in range(9)])
    queries["relation"] = [f"C{i % 3 + 1}" for i in range(9)]
    others = {
        "examples": examples,
        "splits": pd.DataFrame(splits, columns=["target", "split", "example_id"]).assign(fewest=2),
    }
    return BenchmarkTables(queries, probing.candidates(), {}, others, builder="diskne")


def classifier(folder: Path, **settings: object) -> Classifier:
    chosen = Classifier.Settings.model_validate({**FAST, **settings})
    return Classifier(folder, chosen, EngineParams(device="cpu"), 0)


def test_variants_show_what_they_say(tiny_model: FolderOf) -> None:
    prober, examples = classifier(tiny_model("bert")), tables().others["examples"]

    def tokens_of(name: str) -> list[int]:
        return prober.tokenize(VARIANTS[name].view, examples)[0].rows["input_ids"]

    tokenizer = prober.classifier.loaded.tokenizer
    disease, whole = (
        tokenizer(text)["input_ids"] for text in ("asthma", "The patient has asthma .")
    )
    premise = tokenizer(examples["premise"][0])["input_ids"]
    assert tokens_of("hypothesis-only") == disease
    assert tokens_of("full-hypothesis-only") == whole
    assert tokens_of("") == premise + disease[1:]
    assert tokens_of("full") == premise + whole[1:]


def test_tasks_are_diseases_and_passes_are_variants_and_seeds(tmp_path: Path) -> None:
    prober = classifier(tmp_path, variants=["", "frozen", "always-true"])
    assert prober.passes() == ["/0", "/1", "frozen/", "always-true/"]
    assert [prober.inputs(pass_) for pass_ in prober.passes()] == [[tmp_path]] * 3 + [[]]
    tasks = prober.tasks(tables(), 10)
    assert [task.name for task in tasks] == ["C1", "C2"]
    assert tasks[0].tables["splits"]["target"].unique().tolist() == ["C1"]
    assert tasks[0].queries["query_id"].tolist() == ["e0", "e3", "e6"]


def test_diseases_with_the_most_positives_are_taken() -> None:
    examples = pd.DataFrame({"cui": ["a", "b", "b", "c", "d", "d"], "label": [1, 1, 1, 1, 1, 1]})
    splits = pd.DataFrame({"target": ["d", "c", "b", "a"]})
    assert rank_diseases(examples, splits) == ["b", "d", "a", "c"]
    assert rank_diseases(examples, splits[splits["target"] != "b"])[:2] == ["d", "a"]


@pytest.mark.parametrize(
    ("diseases", "tested_diseases"),
    [
        (None, {"/0": ["C1", "C2"], "frozen/": ["C1", "C2"]}),
        (1, {"/0": ["C1"], "frozen/": ["C1"]}),
        ({"": 1}, {"/0": ["C1"], "frozen/": ["C1", "C2"]}),
    ],
)
def test_how_many_diseases_a_variant_is_asked_about(
    tmp_path: Path, diseases: object, tested_diseases: dict[str, list[str]]
) -> None:
    prober = classifier(tmp_path, variants=["", "frozen"], seeds=[0], diseases=diseases)
    tasks = prober.tasks(tables(), 10)
    assert tested_diseases == {
        pass_: [task.name for task in tasks if task.is_of(pass_)] for pass_ in prober.passes()
    }


def test_equal_texts_are_read_once(tiny_model: FolderOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disease alone is the same text in many examples; the features are as if each was read."""
    prober, examples = classifier(tiny_model("bert")), tables().others["examples"]
    shows = VARIANTS["frozen-hypothesis-only"].view
    one_by_one = prober.classifier.mean_states(prober.tokenize(shows, examples))
    read: list[int] = []
    states = prober.classifier.mean_states
    monkeypatch.setattr(
        prober.classifier, "mean_states", lambda texts: [read.append(len(texts)), states(texts)][1]
    )
    assert np.allclose(prober._mean_states(shows, examples), one_by_one, atol=1e-5)
    assert read == [examples["hypothesis"].nunique()]


def test_lp_ft_has_a_recipe_of_its_own_and_starts_from_the_probe(tiny_model: FolderOf) -> None:
    """With a rate of nearly nothing it says what a probe of the training examples says."""
    still = {"learning_rate": 1e-12, "epochs": 1}
    prober = classifier(tiny_model("bert"), variants=["lp-ft"], lp_ft=still)
    task = prober.tasks(tables(), 10)[0]
    assert prober.passes() == ["lp-ft/0", "lp-ft/1"]
    tuned = prober.predict(task, "lp-ft/0")
    [curve] = tuned["curves"].unique()
    [epoch] = json.loads(curve)
    assert tuple(epoch) == Classifier.SIDE_TABLES["curves"]
    tokens_of = examples_of(task)
    train, test = (tokens_of["example_id"].isin(ids(task, name)) for name in ("train", "test"))
    features = prober._mean_states(VARIANTS["lp-ft"].view, tokens_of)
    probe = LinearProbe.fit(features[train], tokens_of.loc[train, "label"].to_numpy())
    assert np.allclose(tuned["score"], probe.probabilities(features[test]), atol=1e-4)


def examples_of(task: Task) -> pd.DataFrame:
    examples = task.tables["examples"]
    return examples[examples["kind"] != "random"].reset_index(drop=True)


def ids(task: Task, split: str) -> pd.Series:
    splits = task.tables["splits"]
    return splits.loc[splits["split"] == split, "example_id"]


def test_random_negatives_are_tested_where_they_are_asked_for(tiny_model: FolderOf) -> None:
    prober = classifier(tiny_model("bert"), epochs=1)
    task = prober.tasks(tables(), 10)[0]
    for name, kind in (("", "similar"), ("random", "random")):
        tested_ids = prober.predict(task, f"{name}/0")["query_id"]
        assert sorted(tested_ids) == sorted(
            f"e{i}{end}" for i in (0, 3, 6) for end in ("", f"-{kind}")
        )


def test_a_benchmark_without_examples_is_refused(tmp_path: Path) -> None:
    incomplete = tables()
    with pytest.raises(BadInput, match="toy: no table examples"):
        classifier(tmp_path).tasks(BenchmarkTables(incomplete.queries, incomplete.candidates), 10)
    others = {**incomplete.others, "splits": incomplete.others["splits"].drop(columns="split")}
    with pytest.raises(BadInput, match="no table splits with a column split"):
        classifier(tmp_path).tasks(
            BenchmarkTables(incomplete.queries, incomplete.candidates, others=others), 10
        )


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_without_its_negatives_is_refused(tmp_path: Path, name: str) -> None:
    """As where one of the two released folders was imported: F1 over positives alone is high."""
    whole, kind = tables(), VARIANTS[name].view.negatives
    examples = whole.others["examples"]
    others = {**whole.others, "examples": examples[examples["kind"] != kind]}
    lacking = BenchmarkTables(whole.queries, whole.candidates, others=others)
    prober = classifier(tmp_path, variants=[name])
    assert prober.tasks(whole, 10)
    with pytest.raises(BadInput, match=f"toy: no {kind} negatives in it for variant '{name}'"):
        prober.tasks(lacking, 10)


def params(**settings: object) -> Params:
    chosen = {**FAST, "variants": ["", "frozen", "always-true"], **settings}
    models: dict[str, object] = {"masked": {"tiny": {}}, "causal": {"gpt": {}}}
    methods = {kind: {"classifier": {"small": chosen}} for kind in ("masked", "causal")}
    return Params.model_validate({"models": models, "methods": methods})


@pytest.fixture
def out(working_folder: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: FolderOf) -> Path:
    """A project with a benchmark and a model; the folder of its predictions."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    tables().write(places.BENCHMARKS / "small")
    Metadata("made up", "nobody", "none", (), "f1", many_relations=True).write(
        places.ABOUT / "small.json"
    )
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "tiny").symlink_to(tiny_model("bert"))
    return places.PREDICTIONS / "tiny/classifier"


def test_predictions_and_curves_are_written_and_kept(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe("tiny", "classifier", "small", params())
    table = pd.read_parquet(out / "small.parquet")
    sizes = table.groupby(["variant", "replicate"]).size().to_dict()
    assert sizes == {
        ("", "seed-0"): 12,
        ("", "seed-1"): 12,
        ("frozen", ""): 12,
        ("always-true", ""): 12,
    }
    assert (table["hit"] == (table["prediction"].astype(int) == table["label"])).all()
    curves = pd.read_csv(out / "small-curves.csv")
    assert curves.groupby(["replicate", "target"]).size().to_dict() == {
        (f"seed-{seed}", target): 2 for seed in (0, 1) for target in ("C1", "C2")
    }
    assert metric_of_predictions(out / "small.parquet") == "f1"
    scoring = Scoring(params().score, 0)
    scores = metrics.find("f1").score(
        table, BenchmarkTables.read(places.BENCHMARKS / "small"), scoring
    )
    assert scores["always-true"]["symptoms"]["C1"]["f1"]["value"] == pytest.approx(2 / 3, abs=1e-5)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(TextClassifier, "fine_tune", never)
    probe("tiny", "classifier", "small", params())
    pd.testing.assert_frame_equal(pd.read_parquet(out / "small.parquet"), table)
    pd.testing.assert_frame_equal(pd.read_csv(out / "small-curves.csv"), curves)
    probe("tiny", "classifier", "small", params(seeds=[1], diseases=1, variants=[""]))
    fewer = pd.read_parquet(out / "small.parquet")
    assert set(fewer["replicate"]) == {"seed-1"}
    with pytest.raises(AssertionError, match="trained again"):
        probe("tiny", "classifier", "small", params(epochs=3))


def test_a_result_is_logged_with_its_curves(out: Path) -> None:
    """One run, a child for each variant and seed, tables and curves beside its numbers."""
    probe("tiny", "classifier", "small", params())
    track_model("tiny", params())
    client = connect()
    experiment = client.get_experiment_by_name("small")
    assert experiment
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    parent = runs["tiny · classifier"]
    logged = parent.data.metrics
    assert "f1" in logged and "f1_low" not in logged  # of two diseases
    assert not any("asthma" in name for name in logged)
    parts = {name.removeprefix("tiny · classifier · "): run for name, run in runs.items()}
    names = ["always-true", "default · seed-0", "default · seed-1", "frozen"]
    assert sorted(parts) == [*names, "tiny · classifier"]
    always = parts["always-true"].data.metrics["f1"]
    assert always == pytest.approx(2 / 3, abs=1e-5)
    both = [parts[name].data.metrics["f1"] for name in names[1:3]]
    assert logged["f1"] == pytest.approx(sum(both) / 2, abs=1e-5)
    files = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert {"scores.csv", "small-curves.csv"} <= files
    for path in Path("mlruns").rglob("*.csv"):
        assert "asthma" not in path.read_text(), path


def test_only_encoders() -> None:
    with pytest.raises(BadInput, match="needs a model of kind masked or encoder, this one is caus"):
        probe("gpt", "classifier", "small", params())


def test_a_benchmark_without_examples_is_refused_before_any_stage_runs(tmp_path: Path) -> None:
    content = edited(own_params(), "methods/masked/classifier/medlama", {})
    check_typo(tmp_path, content, "the method needs a table examples, which the")

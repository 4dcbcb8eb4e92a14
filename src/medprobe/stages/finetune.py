"""Stage `finetune`: DisKnE's classifiers of one model, one a disease, variant and seed."""

import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich import progress
from rich.console import Console

from medprobe import methods, places
from medprobe.errors import BadInput
from medprobe.files import replacing
from medprobe.keep import fingerprint, kept, table_fingerprint
from medprobe.methods.classifier import (
    KINDS,
    VARIANTS,
    Classifier,
    ClassifierSettings,
    logistic_regression,
)
from medprobe.params import Params, section
from medprobe.stages.track import track
from medprobe.tables import PREDICTION_COLUMNS, read_table, write_table

EXAMPLES = ["example_id", "category", "kind", "label", "cui", "hypothesis", "original_cui"]
EXAMPLES += ["disease", "premise", "full_hypothesis"]


def finetune(model: str, params: Params) -> None:
    """Write `outputs/predictions/<model>/classifier/diskne.parquet`, and the training curves beside
    it as `diskne-curves.csv`; log the result to MLflow.

    Each finished disease, variant and seed is kept, so that a stopped run goes on where it stopped.
    Raises BadInput where the model is no encoder.
    """
    kind, _ = params.models.find(model)
    if kind not in KINDS:
        raise BadInput(model, f"fine-tuning needs a model of kind {' or '.join(KINDS)}, not {kind}")
    choices = params.methods.get("classifier", {})
    settings = section(ClassifierSettings, choices, "params.yaml: methods.classifier")
    folder = places.BENCHMARKS / "diskne"
    examples = read_table(folder / "examples.parquet", EXAMPLES)
    splits = read_table(folder / "splits.parquet", ["target", "split", "example_id"])
    splits = splits[splits["target"].isin(targets(examples, splits, settings.diseases))]
    classifier = Classifier(places.MODELS / model, settings, params.engine)
    about = {
        "settings": settings.model_dump(exclude={"variants", "seeds", "diseases"}),
        "precision": params.engine.precision,
        "model": fingerprint([places.MODELS / model]),
        "code": fingerprint([Path(inspect.getfile(methods)).parent / "classifier.py"]),
    }
    jobs = [
        job for name in settings.variants for job in _jobs(name, settings.seeds, examples, splits)
    ]
    console = Console(stderr=True)
    quiet = not console.is_terminal
    done = progress.track(jobs, f"{model}, DisKnE", console=console, disable=quiet)
    table = pd.concat([_part(classifier, job, about) for job in done], ignore_index=True)
    out = places.PREDICTIONS / model / "classifier"
    with replacing(out / "diskne-curves.csv") as path:
        _curves(table).to_csv(path, index=False, lineterminator="\n")
    write_table(table.drop(columns="curve"), out / "diskne.parquet", PREDICTION_COLUMNS)
    track(params, model, "classifier")


def targets(examples: pd.DataFrame, splits: pd.DataFrame, most: int | None) -> list[str]:
    """The diseases to test, those with the most positives first, ties by CUI; at most `most`."""
    positives = examples[examples["label"] == 1]
    sizes = positives.groupby("cui").size().loc[lambda sizes: sizes.index.isin(splits["target"])]
    order = sorted(sizes.index, key=lambda cui: (-sizes[cui], cui))
    return order[:most]


@dataclass(frozen=True)
class Job:
    """One disease, variant and seed: `examples` as the variant has them, and the rows of each
    split's. Jobs of one variant share their examples."""

    variant: str
    seed: int | None  # None where nothing is drawn
    target: str
    examples: pd.DataFrame
    rows: dict[str, NDArray[np.intp]]


def _jobs(
    name: str, seeds: Sequence[int], examples: pd.DataFrame, splits: pd.DataFrame
) -> Iterator[Job]:
    variant = VARIANTS[name]
    shown = examples[examples["kind"].isin(["positive", variant.negatives])].reset_index(drop=True)
    drawn = seeds if variant.learning == "fine-tuned" else [None]
    for target, part in splits.groupby("target", sort=True):
        rows = {
            which: np.flatnonzero(shown["example_id"].isin(ids).to_numpy())
            for which, ids in part.groupby("split")["example_id"]
        }
        for seed in drawn:
            yield Job(name, seed, str(target), shown, rows)


def _part(classifier: Classifier, job: Job, about: dict[str, Any]) -> pd.DataFrame:
    """The predictions of a job, from the disk where they have been made before."""
    used = job.examples.iloc[np.concatenate([job.rows[which] for which in sorted(job.rows)])]
    key = {
        **about,
        "variant": job.variant,
        "seed": job.seed,
        "target": job.target,
        "examples": table_fingerprint(used),
        "sizes": {which: len(rows) for which, rows in job.rows.items()},
    }
    return kept(places.PARTS, key, lambda: _predictions(job, *_learn(classifier, job)))


def _learn(classifier: Classifier, job: Job) -> tuple[NDArray[np.float64], list[dict[str, float]]]:
    """Probabilities for the job's test examples, and the training curve, if there is one."""
    variant = VARIANTS[job.variant]
    if variant.learning == "none":
        return np.ones(len(job.rows["test"])), []
    train, validation, test = (job.rows[which] for which in ("train", "validation", "test"))
    if variant.learning == "frozen":
        features = classifier.features(job.examples, variant)
        known = np.concatenate([train, validation])
        labels = job.examples["label"].to_numpy()[known]
        return logistic_regression(features[known], labels, features[test]), []
    texts = classifier.tokenize(job.examples, variant)
    learnt, held, asked = ([texts[row] for row in rows] for rows in (train, validation, test))
    return classifier.fine_tune(learnt, held, asked, job.seed or 0)


def _predictions(
    job: Job, probabilities: NDArray[np.float64], curve: list[dict[str, float]]
) -> pd.DataFrame:
    tested = job.examples.iloc[job.rows["test"]]
    said = probabilities > 0.5
    return pd.DataFrame(
        {
            "variant": job.variant,
            "replicate": "" if job.seed is None else f"seed-{job.seed}",
            "query_id": tested["example_id"].to_numpy(),
            "rank": 1,
            "prediction": said.astype(int).astype(str),
            "prediction_id": tested["cui"].to_numpy(),
            "score": probabilities,
            "hit": said == (tested["label"].to_numpy() == 1),
            "label": tested["label"].to_numpy(),
            "target": job.target,
            "disease": tested["disease"].to_numpy(),
            "category": tested["category"].to_numpy(),
            "curve": json.dumps(curve),
        }
    )


def _curves(table: pd.DataFrame) -> pd.DataFrame:
    """`variant, replicate, target, epoch, train, validation`: the losses of each epoch."""
    columns = ["variant", "replicate", "target"]
    jobs = table.drop_duplicates(["variant", "replicate", "target"])
    rows = [
        {**{column: getattr(job, column) for column in columns}, **epoch}
        for job in jobs.itertuples()
        for epoch in json.loads(job.curve)
    ]
    return pd.DataFrame(rows, columns=[*columns, "epoch", "train", "validation"])

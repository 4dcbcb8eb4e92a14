"""Stage `probe`: one model under one method, over all of that method's benchmarks."""

import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from medprobe import benchmarks, methods, places
from medprobe.errors import BadInput
from medprobe.keep import fingerprint, kept, table_fingerprint
from medprobe.params import Params, section
from medprobe.stages.track import track
from medprobe.tables import DISTRACTOR, PREDICTION_COLUMNS, Benchmark, write_table

K = 10  # predictions kept for each query: acc@10 is the deepest that the papers report


def probe(model: str, method: str, params: Params) -> None:
    """Rank the candidates of every query, write `outputs/predictions/<model>/<method>/`, and log
    the result to MLflow.

    Raises BadInput where the method cannot serve a model of this kind, before anything is read.
    """
    kind, _ = params.models.find(model)
    found = methods.find(method)
    if kind not in found.KINDS:
        others = ", ".join(name for name in methods.names() if kind in methods.find(name).KINDS)
        raise BadInput(
            f"{method} on {model}",
            f"the method needs a model of kind {' or '.join(found.KINDS)}, this one is {kind}",
            f"choose one of: {others}",
        )
    if method not in params.methods:
        raise BadInput("params.yaml", f"methods: no section '{method}'")
    choices = dict(params.methods[method])
    names = choices.pop("benchmarks", [])
    settings = section(found.Settings, choices, f"params.yaml: methods.{method}")
    prober = found(model, places.MODELS / model, settings, params.engine, params.seed)
    if hasattr(prober, "sets"):  # DVC leaves what was rewired on sets that are named no longer
        prober.sets = params.rewire.get("sets")
    inputs = prober.inputs() if hasattr(prober, "inputs") else [places.MODELS / model]
    about = {
        "method": method,
        "settings": settings.model_dump(mode="json"),
        "precision": params.engine.precision,
        "seed": params.seed,
        "inputs": fingerprint(inputs),
        "code": fingerprint(_code(found)),
    }
    for name in names:
        rules = benchmarks.find(name)
        if name not in params.benchmarks:
            continue
        folder = places.BENCHMARKS / name
        table = pd.concat(_parts(prober, Benchmark.read(folder), about), ignore_index=True)
        table = with_hits(table, Benchmark.read(folder), rules)
        out = places.PREDICTIONS / model / method / f"{name}.parquet"
        write_table(table, out, PREDICTION_COLUMNS)
    track(params, model, method)


def _code(found: type) -> list[Path]:
    engine = Path(inspect.getfile(methods)).parent.parent / "engine"
    return [Path(inspect.getfile(found)), engine]


def _parts(prober: Any, benchmark: Benchmark, about: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """One table a pass, relation and subset: the parts that a stopped run does not do again.

    A relation's subsets follow one another, so that a method can score a shared prompt once.
    """
    candidates = {}
    for subset, _, names in benchmark.subsets():
        distractors = names["type"] == DISTRACTOR
        knows = getattr(prober, "KNOWS_DISTRACTORS", False)
        candidates[subset] = names if knows else names[~distractors]
    hashes = {subset: table_fingerprint(names) for subset, names in candidates.items()}
    for which in methods.passes(prober):
        for (relation, subset), part in benchmark.queries.groupby(["relation", "subset"]):
            queries = part.reset_index(drop=True)
            key = {
                **about,
                "pass": which,
                "subset": subset,
                "relation": relation,
                "queries": table_fingerprint(queries),
                "candidates": hashes[subset],
            }
            yield kept(
                places.PARTS,
                key,
                partial(prober.rank, queries, candidates[subset], K, which),
            )


def with_hits(predictions: pd.DataFrame, benchmark: Benchmark, module: Any) -> pd.DataFrame:
    """Add `prediction_id` and, where the method did not say it itself, `hit`: equality with one of
    the query's answers, both normalised by the benchmark's own rule (`normalise`, if it has one).
    """
    normalise = getattr(module, "normalise", str)
    ids = dict(zip(benchmark.candidates["name"], benchmark.candidates["id"], strict=True))
    predictions = predictions.assign(
        prediction_id=[ids.get(name, "") for name in predictions["prediction"]]
    )
    if "hit" in predictions:
        return predictions
    answers = {
        row.query_id: {normalise(answer) for answer in row.answers}
        for row in benchmark.queries.itertuples()
    }
    hits = [
        normalise(name) in answers[query]
        for query, name in zip(predictions["query_id"], predictions["prediction"], strict=True)
    ]
    return predictions.assign(hit=hits)

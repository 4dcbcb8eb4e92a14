"""How often single intervals hold the truth: simulations for each kind of metric.

    python -m bench.coverage                     # the tables of docs/concepts/statistics.md
    python -m bench.coverage --simulations 20    # roughly

Units are drawn from a population whose value is known from a far larger draw: queries for accuracy,
reciprocal ranks and perplexity, diseases for F1, top-1 and AUC, subjects for UCM. Then intervals
of a method that is run several times (seeds, sentence sets): drawing clusters alone, and replicates
too.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import norm

from bench.significance import print_table
from medprobe.core.params import ScoreParams
from medprobe.metrics import Scoring, find
from medprobe.metrics.summary import summarise
from medprobe.papers.context.rank_changes import shares
from medprobe.papers.diskne.metrics.f1 import SCORER as F1

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 300
SHARED: Final = 0.8  # deviation of a cluster, in that of a single answer

Row = dict[str, str | int | float]
Intervals = dict[str, tuple[float, float]]  # of each metric


def _scoring(resamples: int = RESAMPLES) -> Scoring:
    return Scoring(ScoreParams(bootstrap=resamples, confidence=CONFIDENCE), seed=0)


def _rows(
    unit: str, units: int, size: int, truth: dict[str, float], draws: Iterator[Intervals]
) -> list[Row]:
    """Count how often the intervals of each metric hold its true value."""
    counts, simulations = dict.fromkeys(truth, 0), 0
    for intervals in draws:
        simulations += 1
        for metric, value in truth.items():
            low, high = intervals.get(metric, (np.nan, np.nan))
            counts[metric] += low <= value <= high
    return [
        {
            "metric": metric,
            "drawn": f"{units:,} {unit}",
            "queries per cluster": size,
            "true value": f"{truth[metric]:.3g}",
            "holds": count / simulations,
        }
        for metric, count in counts.items()
    ]


def queries(units: int, size: int, simulations: int) -> list[Row]:
    """Accuracies, reciprocal ranks and perplexities of queries in clusters of one size."""
    draw = np.random.default_rng([3, units, size])
    metrics = [*find("accuracy").METRICS, *find("perplexity").METRICS]
    truth = _query_values(400_000, size, draw).drop(columns="cluster").mean().to_dict()

    def intervals() -> Iterator[Intervals]:
        for _ in range(simulations):
            values = _query_values(units, size, draw)
            names = values.index.astype(str)
            about = {"variant": "", "replicate": "", "query_id": names, "subset": "all"}
            rows = values.assign(**about, relation="r", cluster=values["cluster"].astype(str))
            numbers = summarise(rows, _scoring(), metrics)["default"]["all"]["micro"]
            yield {name: (n["low"], n["high"]) for name, n in numbers.items() if "low" in n}

    return _rows("queries", units, size, truth, intervals())


def _query_values(count: int, size: int, draw: np.random.Generator) -> pd.DataFrame:
    groups = np.arange(count) // size
    shared = (SHARED if size > 1 else 0) * draw.normal(size=groups.max() + 1)[groups]
    noise = draw.normal(size=count)
    spread = np.sqrt(1 + (SHARED**2 if size > 1 else 0))
    ability = {rate: norm.ppf(rate) * spread + shared + noise for rate in (0.02, 0.05, 0.3)}
    table = pd.DataFrame({"cluster": groups})
    for rate, level in ability.items():
        table[f"acc@1 of {rate}"] = (level > 0).astype(float)
    ranks = np.clip(np.ceil(np.exp(np.clip(-1.5 * ability[0.05], 0, None))), 1, 300)
    table["MRR"] = 1 / ranks
    table["perplexity"] = np.exp(3 + shared / 2 + noise)
    return table


def diseases(units: int, simulations: int) -> list[Row]:
    """F1, top-1 and AUC: macro means over diseases of differing difficulty."""
    draw = np.random.default_rng([4, units])

    def numbers(count: int, resamples: int) -> dict[str, dict[str, float]]:
        table = F1.score(_disease_rows(count, draw), Path(), _scoring(resamples))
        macro: dict[str, dict[str, float]] = table["default"]["tests"]["macro"]
        return macro

    truth = {name: number["value"] for name, number in numbers(1500, 2).items()}

    def intervals() -> Iterator[Intervals]:
        for _ in range(simulations):
            macro = numbers(units, RESAMPLES)
            yield {name: (n["low"], n["high"]) for name, n in macro.items() if "low" in n}

    return _rows("diseases", units, 1, truth, intervals())


def _disease_rows(count: int, draw: np.random.Generator) -> pd.DataFrame:
    """Predictions for diseases with 3 to 20 positives, each with two negatives made from it."""
    positives = draw.integers(3, 21, count)
    disease = np.repeat(np.arange(count), 3 * positives)
    group = np.repeat(np.arange(positives.sum()), 3)
    label = np.tile([1, 0, 0], positives.sum())
    ability = 0.7 + SHARED * draw.normal(size=count)[disease]
    score = norm.cdf((label - 0.5) * ability + draw.normal(size=len(disease)) / 2)
    suffix = np.tile(["", "-similar-1", "-similar-2"], positives.sum())
    return pd.DataFrame(
        {
            "variant": "",
            "replicate": "seed-0",
            "query_id": np.char.add(group.astype(str), suffix),
            "target": disease.astype(str),
            "disease": disease.astype(str),
            "category": "tests",
            "label": label,
            "prediction": (score > 0.5).astype(int).astype(str),
            "score": score,
            "fewest": 2,
        }
    )


def subjects(units: int, simulations: int) -> list[Row]:
    """UCM: the micro shares of steps, in subjects with one to three triples of six steps each."""
    draw = np.random.default_rng([5, units])

    def micro(count: int, resamples: int) -> pd.DataFrame:
        table = shares(_steps(count, draw), resamples, CONFIDENCE, 0)
        return table[table["relation"] == "micro"].set_index("metric")

    truth = micro(50_000, 2)["value"].to_dict()

    def intervals() -> Iterator[Intervals]:
        for _ in range(simulations):
            table = micro(units, RESAMPLES)
            bounds = zip(table.index, table["low"], table["high"], strict=True)
            yield {str(metric): (low, high) for metric, low, high in bounds}

    return _rows("subjects", units, 1, truth, intervals())


def _steps(count: int, draw: np.random.Generator) -> pd.DataFrame:
    triples = draw.integers(1, 4, count)
    subject = np.repeat(np.arange(count), 6 * triples)
    triple = np.repeat(np.arange(triples.sum()), 6)
    tendency = SHARED * draw.normal(size=count)[subject]
    tendency += SHARED * draw.normal(size=triples.sum())[triple]
    moves = np.round(2 * tendency + 2 * draw.normal(size=len(subject)))
    return pd.DataFrame(
        {
            "relation": "r",
            "subject_id": subject.astype(str),
            "fact_id": triple.astype(str),
            "resource": "notes",
            "rc_target": -moves,
            "added_role": "correct",
            "cluster": subject.astype(str),
            "weight": 1.0,
        }
    )


CASES: Final[list[Callable[[int], list[Row]]]] = [
    *(partial(queries, *case) for case in ((40, 1), (216, 1), (200, 5), (1900, 1), (1900, 5))),
    partial(queries, 19_000, 1),
    *(partial(diseases, count) for count in (3, 6, 12, 40)),
    *(partial(subjects, count) for count in (6, 20, 80)),
]

REPLICATES: Final = (2, 3, 5, 10)
MEAN: Final = 0.3
RUN: Final = 0.25  # deviation of a replicate, in that of a single answer


def replicated(replicates: int, simulations: int, queries: int = 200) -> dict[str, Any]:
    """How often intervals hold the accuracy that queries and replicates without end would have:
    of means over replicates, from clusters alone, and as they are."""
    draw = np.random.default_rng([1, replicates])
    scoring = _scoring(500)
    level = norm.ppf(MEAN) * np.sqrt(1 + SHARED**2 + RUN**2)
    alone, both = [], []
    for _ in range(simulations):
        shared = SHARED * draw.normal(size=(queries, 1)) + RUN * draw.normal(size=replicates)
        hits = (level + shared + draw.normal(size=shared.shape) > 0).astype(float)
        for holds, values in ((both, hits), (alone, hits.mean(axis=1, keepdims=True))):
            query, replicate = np.indices(values.shape).reshape(2, -1)
            names = query.astype(str)
            keys = {"variant": "", "replicate": replicate.astype(str), "query_id": names}
            about = {"subset": "all", "relation": "r", "cluster": names}
            rows = pd.DataFrame({**keys, **about, "hit": values.ravel()})
            numbers = summarise(rows, scoring)["default"]["all"]["micro"]["hit"]
            holds.append(numbers["low"] <= MEAN <= numbers["high"])
    return {
        "replicates": str(replicates),
        "intervals that hold, of clusters alone": float(np.mean(alone)),
        "of both": float(np.mean(both)),
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=100)
    size = parser.parse_args().simulations
    table = pd.DataFrame([row for case in CASES for row in case(size)])
    table["drawn"] += [f", {n} per cluster" if n > 1 else "" for n in table["queries per cluster"]]
    units = table["drawn"].str.extract(r" (\w+)")[0]
    for _, part in table.groupby(units, sort=False):
        wide = part.pivot(index="metric", columns="drawn", values="holds")
        wide = wide.loc[part["metric"].unique(), part["drawn"].unique()]
        print_table(iter(wide.reset_index().to_dict("records")))
    print_table(replicated(count, size) for count in REPLICATES)


if __name__ == "__main__":
    main()

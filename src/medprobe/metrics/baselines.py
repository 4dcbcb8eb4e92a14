"""The scores of the baselines `majority`, `random_answer` and `chance` (`core.baselines`)."""

import hashlib
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe import metrics
from medprobe.core.baselines import (
    CHANCE,
    MAJORITY,
    RANDOM_ANSWER,
    RANKED,
    chance,
    majority,
    random_answer,
)
from medprobe.core.parts import code_fingerprint, fingerprint
from medprobe.core.places import PARTS
from medprobe.core.tables import BenchmarkTables
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.accuracy import Accuracy
from medprobe.metrics.results import read_scores, write_scores
from medprobe.metrics.splits import with_parts
from medprobe.metrics.summary import (
    KEYS,
    QUERY_KEYS,
    add_scores,
    check_queries,
    read_queries,
    summarise,
)

RANKING: Final = "accuracy"  # scores the majority, with all other scorers of its tables
EXPECTED: Final = tuple(metric for metric in Accuracy.METRICS if metric.name.startswith("acc_at_"))


def baselines_part(folder: Path, scoring: Scoring) -> Path:
    """Where the scores of a benchmark's baselines are kept."""
    code = code_fingerprint(__name__, {"metrics": metrics.scorers_of(RANKING)})
    text = f"{fingerprint(sorted(folder.glob('*.parquet')))} {code} {scoring.settings}"
    return PARTS / f"baselines-{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def score_baselines(folder: Path, scoring: Scoring) -> dict[str, Scores]:
    """Score the baselines of a benchmark, or read their scores from outputs/parts.

    Args:
        folder: the folder `outputs/benchmarks/<name>`.
        scoring: how the benchmark's results are scored.

    Returns:
        The scores by baseline; none of `majority` and `random_answer` where each relation has one
        answer.
    """
    part = baselines_part(folder, scoring)
    if (scores := read_scores(part)) is None:
        tables = BenchmarkTables.read(folder)
        ranked = majority(tables, RANKED)
        scores = {MAJORITY: {}}
        for scorer in metrics.scorers_of(RANKING) if len(ranked) else ():
            add_scores(scores[MAJORITY], metrics.find(scorer).score(ranked, folder, scoring))
        for name, table in ((RANDOM_ANSWER, random_answer(tables)), (CHANCE, chance(tables))):
            scores[name] = _average(table, folder, scoring) if len(table) else {}
        write_scores(scores, part)
    return {name: of_name for name, of_name in scores.items() if of_name}


def _average(expected: pd.DataFrame, folder: Path, scoring: Scoring) -> Scores:
    """Average expected accuracies by subset, part of a subset and relation, as accuracy does."""
    queries = read_queries(folder, scoring.cluster)
    check_queries(expected, queries)
    values = expected.pivot_table(index=KEYS, columns="prediction", values="score").reset_index()
    parts = with_parts(values.merge(queries[QUERY_KEYS], on="query_id"), queries, scoring.facts)
    return summarise(parts, scoring, EXPECTED)

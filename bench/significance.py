"""Do tests and intervals keep their promise? Simulations with known truth.

    python -m bench.significance          # the tables of docs/concepts/statistics.md
    python -m bench.significance --simulations 20 --table 2   # one of them, roughly

Hits are drawn with a difficulty of each query and of each cluster, such as a subject, that all
models share, and with a skill of each model for each cluster, so that differences of two models run
together within clusters. If
`MEDPROBE_RELEASED_DATA` names the folder of released files, tables 2 and 4 take relation, subject
and answer of each query from its `medlama-released`. The tables:

1. Paired tests between 16 models. First no model knows more than another: every difference that is
   called significant is a false alarm. Then eight models know more, by just the smallest difference
   that the page would have called detectable.
2. The same on MedLAMA's structure, with skills by subject and by answer: for these answers, and for
   the relation. `medlama_structure.csv` has how many queries each answer and each subject of the
   released files has, and no names.
3. How often single intervals hold the true value (`bench/coverage.py`).
4. The same on MedLAMA's structure, where a model's skill differs by subject and by answer.
5. How often intervals of trust hold the truth where few answers are right.
6. How often a model that knows nothing of the subjects is above its strongest baseline.
7. Intervals where a method is run several times (seeds, sentence sets): drawing clusters alone, and
   replicates too.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import norm

from bench import coverage
from medprobe.benchmarks import find as find_builder
from medprobe.core.baselines import baselines
from medprobe.core.commonest import answer_keys
from medprobe.core.params import ScoreParams
from medprobe.core.tables import (
    BASELINE,
    CANDIDATE_COLUMNS,
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
)
from medprobe.extensions.trust.metrics import trust
from medprobe.library.probing import pair
from medprobe.metrics import Scoring
from medprobe.metrics.comparisons import (
    difference_interval,
    holm,
    permutation,
    smallest_difference,
)
from medprobe.metrics.significance import significance, split_by_variant, strongest_baselines
from medprobe.metrics.summary import summarise
from medprobe.metrics.two_way import paired_test

MODELS: Final = 16
LEVEL: Final = 0.05
ACCURACY: Final = 0.3
CASES: Final = (  # queries, cluster size
    *((2000, 1), (2000, 5), (2000, 20), (2000, 100)),
    *((200, 1), (200, 5), (200, 20), (40, 1)),
)
QUERY, CLUSTER, SKILL = 0.8, 0.8, 0.6  # deviations, in those of a single answer
SPREAD: Final = np.sqrt(1 + QUERY**2 + CLUSTER**2 + SKILL**2)


def clusters(queries: int, size: int, draw: np.random.Generator) -> np.ndarray:
    """The cluster of each query: of sizes from 1 to twice the mean, less 1, evenly drawn."""
    sizes = draw.integers(1, 2 * size, 4 * queries // size)
    return np.repeat(np.arange(len(sizes)), sizes)[:queries]


def draw_hits(of: np.ndarray, accuracies: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Which queries each model gets right: models x queries, as numbers."""
    models, groups = len(accuracies), of.max() + 1
    common = QUERY * draw.normal(size=len(of)) + CLUSTER * draw.normal(size=groups)[of]
    skill = SKILL * draw.normal(size=(models, groups))[:, of]
    level = norm.ppf(accuracies) * SPREAD
    return (level[:, None] + common + skill + draw.normal(size=(models, len(of))) > 0).astype(float)


def by_cluster(hits: np.ndarray, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hits of each model in each cluster, and the clusters' sizes."""
    sums = np.stack([np.bincount(of, row) for row in hits])
    return sums, np.bincount(of).astype(float)


def simulate(queries: int, size: int, simulations: int, seed: int = 0) -> dict[str, float]:
    """The rates of one case, as a row of the table."""
    draw = np.random.default_rng([seed, queries, size])
    pairs = list(combinations(range(MODELS), 2))
    apart = [(2 * pair, 2 * pair + 1) for pair in range(MODELS // 2)]  # share no model
    level = LEVEL / len(pairs)
    single, naive, any_alarm, coverage, smallest = [], [], [], [], []
    for _ in range(simulations):
        of = clusters(queries, size, draw)
        hits = draw_hits(of, np.full(MODELS, ACCURACY), draw)
        sums, sizes = by_cluster(hits, of)
        p = np.array([permutation(sums[a] - sums[b]) for a, b in pairs])
        single.append((p < LEVEL).mean())
        any_alarm.append((holm(p) < LEVEL).any())
        for a, b in apart:
            naive.append(permutation(hits[a] - hits[b]) < LEVEL)
            low, high = difference_interval(sums[a] - sums[b], sizes, 1000, 1 - LEVEL, seed)
            coverage.append(low <= 0 <= high)
            smallest.append(smallest_difference(sums[a] - sums[b], sizes, level))
    true = float(np.median(smallest))
    power, corrected = [], []
    accuracies = ACCURACY + true * ((np.arange(MODELS) >= MODELS // 2) - 0.5)
    better = [pairs.index(pair) for pair in product(range(MODELS // 2), range(MODELS // 2, MODELS))]
    for _ in range(simulations if np.isfinite(true) else 0):  # too few clusters for any
        of = clusters(queries, size, draw)
        sums, _ = by_cluster(draw_hits(of, accuracies, draw), of)
        p = np.array([permutation(sums[a] - sums[b]) for a, b in pairs])
        power.append((p[better] < level).mean())
        corrected.append((holm(p)[better] < LEVEL).mean())
    return {
        "queries": queries,
        "queries per cluster": size,
        "false alarms": float(np.mean(single)),
        "query by query": float(np.mean(naive)),
        "any of 120, corrected": float(np.mean(any_alarm)),
        "intervals that hold": float(np.mean(coverage)),
        "smallest difference": true,
        "found": float(np.mean(power)) if power else np.nan,
        "found after Holm": float(np.mean(corrected)) if power else np.nan,
    }


STRUCTURE: Final = Path(__file__).with_name("medlama_structure.csv")
SKILLS: Final = ((0.0, 0.0), (0.6, 0.0), (0.6, 0.3), (0.6, 0.6))  # by subject, by answer
RARE: Final = 0.05  # accuracy on MedLAMA, about that of the published models


RELEASED: Final = Path(os.environ.get("MEDPROBE_RELEASED_DATA", ""), "medlama-released")


@cache
def released() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The relation, subject and answer of each query of the released MedLAMA, as codes."""
    with TemporaryDirectory() as folder:
        Path(folder, "medlama").mkdir()
        for path in [*RELEASED.glob("2021AA/*.csv"), RELEASED / "prompts.csv"]:
            Path(folder, "medlama", path.name).symlink_to(path.resolve())
        builder = find_builder("medlama_released")
        queries = builder.build(Path(folder), builder.settings(), 2021).queries
    queries = queries[queries["subset"] == "full"]
    answers = queries["relation"] + " " + answer_keys(queries).str[0]
    relation, subject, answer = (
        pd.factorize(column)[0] for column in (queries["relation"], queries["subject_id"], answers)
    )
    return relation, subject, answer


def medlama(draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The relation, subject and answer of each query of the released MedLAMA, or of one like it.

    Without the released files, each answer has as many queries as there; each subject too, in
    whatever relations chance gives.
    """
    if RELEASED.is_dir():
        return released()
    counts = pd.read_csv(STRUCTURE, keep_default_na=False)
    of_answers = counts[counts["unit"] == "answers"]
    sizes = np.repeat(of_answers["queries"], of_answers["units"])
    answers = np.repeat(np.arange(len(sizes)), sizes)
    codes = pd.factorize(np.repeat(of_answers["relation"], of_answers["units"]))[0]
    of_subjects = counts[counts["unit"] == "subjects"]
    queries = np.repeat(of_subjects["queries"], of_subjects["units"])
    subjects = draw.permutation(np.repeat(np.arange(len(queries)), queries))
    return codes[answers], subjects, answers


def on_medlama(by_subject: float, by_answer: float, simulations: int) -> dict[str, float]:
    """False alarms and power on MedLAMA's structure, as a row of the table, for both questions."""
    draw = np.random.default_rng([2, round(10 * by_subject), round(10 * by_answer)])
    relations, subjects, answers = medlama(draw)
    weights = (1 / np.bincount(relations))[relations] / (relations.max() + 1)
    spread = np.sqrt(1 + QUERY**2 + CLUSTER**2 + by_subject**2 + by_answer**2)

    def right(accuracies: np.ndarray) -> np.ndarray:
        """Which queries each model gets right."""
        common = QUERY * draw.normal(size=len(subjects))
        common += CLUSTER * draw.normal(size=subjects.max() + 1)[subjects]
        rows = []
        for accuracy in accuracies:
            skill = by_subject * draw.normal(size=subjects.max() + 1)[subjects]
            skill += by_answer * draw.normal(size=answers.max() + 1)[answers]
            level = norm.ppf(accuracy) * spread + common + skill
            rows.append((level + draw.normal(size=len(level)) > 0).astype(float))
        return np.stack(rows)

    def chances(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """p of each pair: for these answers, and for the relation."""
        alone, both = [], []
        for first, second in combinations(range(MODELS), 2):
            differences = rows[first] - rows[second]
            p = permutation(np.bincount(subjects, weights * differences))
            test = paired_test(
                differences, weights, subjects, answers, level=LEVEL, confidence=1 - LEVEL
            )
            alone.append(p)
            both.append(max(p, test.p))
        return np.array(alone), np.array(both)

    better = [(a < MODELS // 2) != (b < MODELS // 2) for a, b in combinations(range(MODELS), 2)]
    numbers: dict[str, list[float]] = {}
    for _ in range(simulations):
        equal = chances(right(np.full(MODELS, RARE)))
        more = chances(right(RARE + 0.03 * (np.arange(MODELS) >= MODELS // 2)))
        for name, p, q in zip(("these answers", "the relation"), equal, more, strict=True):
            numbers.setdefault(f"{name}: false alarms", []).append((p < LEVEL).mean())
            numbers.setdefault(f"{name}: any of 120", []).append((holm(p) < LEVEL).any())
            numbers.setdefault(f"{name}: 3 points found", []).append(
                (holm(q)[better] < LEVEL).mean()
            )
    row = {"skill by subject": by_subject, "skill by answer": by_answer}
    return row | {name: float(np.mean(values)) for name, values in numbers.items()}


ABILITIES: Final = (  # accuracy, skill by subject, by answer
    *((0.25, 0.0, 0.0), (0.05, 0.6, 0.6), (0.05, 0.8, 0.8), (0.25, 0.8, 0.8)),
)


def single_on_medlama(
    accuracy: float, by_subject: float, by_answer: float, simulations: int
) -> dict[str, float]:
    """How often intervals of one model's accuracy hold it, on MedLAMA's structure."""
    draw = np.random.default_rng([6, *(round(100 * x) for x in (accuracy, by_subject, by_answer))])
    relations, subjects, answers = medlama(draw)
    scoring = Scoring(ScoreParams(bootstrap=200, confidence=1 - LEVEL), seed=0)
    spread = np.sqrt(1 + QUERY**2 + CLUSTER**2 + by_subject**2 + by_answer**2)
    by_units = np.sqrt(CLUSTER**2 + by_subject**2)
    names = np.arange(len(subjects)).astype(str)
    keys = {"variant": "", "replicate": "", "query_id": names, "subset": "full"}
    units = {"relation": relations, "cluster": subjects, "answer": answers}
    rows = pd.DataFrame({**keys, **units})
    holds: dict[str, list[bool]] = {}
    for _ in range(simulations):
        level = (
            norm.ppf(accuracy) * spread + by_units * draw.normal(size=subjects.max() + 1)[subjects]
        )
        level += by_answer * draw.normal(size=answers.max() + 1)[answers]
        level += np.sqrt(1 + QUERY**2) * draw.normal(size=len(level))
        table = summarise(rows.assign(hit=(level > 0).astype(float)), scoring)["default"]["full"]
        for name, numbers in table.items():
            low, high = (numbers["hit"].get(edge, np.nan) for edge in ("low", "high"))
            holds.setdefault(name, []).append(low <= accuracy <= high)
    shares = {name: float(np.mean(results)) for name, results in holds.items()}
    by_relation = [share for name, share in shares.items() if name not in ("macro", "micro")]
    return {
        "accuracy": accuracy,
        "skill by subject": by_subject,
        "skill by answer": by_answer,
        "macro": shares["macro"],
        "micro": shares["micro"],
        "mean relation": float(np.mean(by_relation)),
        "worst relation": min(by_relation),
    }


TRUSTED: Final = (  # queries, accuracy
    *((40, 0.1), (216, 0.014), (216, 0.05), (216, 0.3), (216, 0.97)),
)


def trusted(queries: int, accuracy: float, simulations: int) -> dict[str, Any]:
    """How often intervals of trust hold the truth, if surer queries are right more often."""
    draw = np.random.default_rng([8, queries, round(1000 * accuracy)])
    scoring = Scoring(ScoreParams(bootstrap=300, confidence=1 - LEVEL), seed=0)

    def sample(size: int) -> pd.DataFrame:
        names, sure = np.arange(size).astype(str), draw.normal(size=size)
        right = sure + draw.normal(size=size) > norm.ppf(1 - accuracy) * np.sqrt(2)
        rows = pd.DataFrame({"query_id": names, "cluster": names, "sure": sure})
        return rows.assign(relation="r", replicate="", right=right.astype(float))

    population = sample(400_000)
    names = [metric.name for metric in trust.Trust.METRICS]
    values = trust.estimate(population, np.ones((1, len(population))))[0]
    truth = dict(zip(names, values, strict=False))
    holds: dict[str, list[bool]] = {
        name: [] for name in ("trust_auroc", "right_at_20", "right_at_50_gain", "risk_area_gain")
    }
    for _ in range(simulations):
        numbers = trust.summarise(sample(queries), scoring)["micro"]
        for name, results in holds.items():
            if "low" in numbers[name]:
                results.append(numbers[name]["low"] <= truth[name] <= numbers[name]["high"])
    shares = {
        name: float(np.mean(results)) if results else np.nan for name, results in holds.items()
    }
    with_auroc = len(holds["trust_auroc"]) / simulations
    return {"queries": queries, "right": f"{accuracy:.1%}", "have AUROC": with_auroc, **shares}


WORLDS: Final = tuple(product(("evenly frequent", "skewed"), ("guesses", "one order", "usual")))


def untaught(answers: str, order: str, simulations: int) -> dict[str, Any]:
    """How often a model that looks at no subject is above its strongest baseline.

    A world has six relations of 36 queries with 18 answers or so. The model ranks the answers of a
    relation in an order for each query (`guesses`), in one order that has nothing to do with their
    frequency, or by the frequency that they have in the population (`usual`).
    """
    draw = np.random.default_rng([7, *map(ord, answers[:2] + order[:2])])
    params = ScoreParams(bootstrap=50, confidence=1 - LEVEL)
    scoring = Scoring(params, seed=0, cluster="subject_id")
    above: dict[str, list[bool]] = {}
    for _ in range(simulations):
        tables, frequency = _world(answers, draw)
        ranked = _rank(tables, frequency, order, draw)
        systems = split_by_variant(pair(ranked, tables, "accuracy", scoring), "m", "x")
        for name, (table, family) in baselines(tables, "subject_id").items():
            systems |= split_by_variant(pair(table, tables, family, scoring), BASELINE, name)
        strongest = strongest_baselines(significance(systems, "", params, 0)).set_index("metric")
        for metric in ("acc_at_1", "acc_at_10"):
            row = strongest.loc[metric]
            above.setdefault(metric, []).append(row["difference"] > 0 and row["p"] < LEVEL)
    shares = {f"above at {metric}": float(np.mean(results)) for metric, results in above.items()}
    return {"answers": answers, "order": order, **shares}


def _world(answers: str, draw: np.random.Generator) -> tuple[BenchmarkTables, dict[str, float]]:
    """Queries of six relations, and how frequent each answer is in the population."""
    rows, frequency = [], {}
    for relation in "abcdef":
        weights = np.ones(18) if answers == "evenly frequent" else 1 / np.arange(1, 19)
        names = [f"{relation} {number}" for number in range(18)]
        frequency |= dict(zip(names, weights, strict=True))
        drawn = (
            draw.permutation(np.repeat(names, 2))
            if answers == "evenly frequent"
            else draw.choice(names, 36, p=weights / weights.sum())
        )
        for number, name in enumerate(drawn):
            subject = f"{relation}{number}"
            rows.append((subject, "b", relation, subject, subject, "[Y] .", [name], [name], "full"))
    candidates = [(name, name, name[0], "full") for name in frequency]
    tables = BenchmarkTables(
        pd.DataFrame(rows, columns=QUERY_COLUMNS),
        pd.DataFrame(candidates, columns=CANDIDATE_COLUMNS),
    )
    return tables, frequency


def _rank(
    tables: BenchmarkTables, frequency: Mapping[str, float], order: str, draw: np.random.Generator
) -> pd.DataFrame:
    """The model's predictions."""
    habits = {name: float(draw.normal()) for name in frequency}
    rows = []
    for query in tables.queries.itertuples():
        names = [name for name in frequency if name[0] == query.relation]
        values = {
            "guesses": lambda name: float(draw.normal()),
            "one order": habits.__getitem__,
            "usual": lambda name: frequency[name] + habits[name] / 1000,
        }[order]
        scores = {name: values(name) for name in names}
        for rank, name in enumerate(sorted(names, key=scores.__getitem__, reverse=True)[:10], 1):
            hit = name in query.answers
            rows.append(("", "", query.query_id, rank, name, name, scores[name], hit))
    return pd.DataFrame(rows, columns=PREDICTION_COLUMNS)


REPLICATES: Final = (2, 3, 5, 10)
RUN: Final = 0.25  # deviation of a replicate, in that of a single answer


def replicated(replicates: int, simulations: int, queries: int = 200) -> dict[str, float]:
    """How often intervals hold the accuracy that queries and replicates without end would have:
    of means over replicates, from clusters alone, and as they are."""
    draw = np.random.default_rng([1, replicates])
    scoring = Scoring(ScoreParams(bootstrap=500, confidence=1 - LEVEL), seed=0)
    level = norm.ppf(ACCURACY) * np.sqrt(1 + QUERY**2 + RUN**2)
    alone, both = [], []
    for _ in range(simulations):
        shared = QUERY * draw.normal(size=(queries, 1)) + RUN * draw.normal(size=replicates)
        hits = (level + shared + draw.normal(size=shared.shape) > 0).astype(float)
        for holds, values in ((both, hits), (alone, hits.mean(axis=1, keepdims=True))):
            query, replicate = np.indices(values.shape).reshape(2, -1)
            names = query.astype(str)
            keys = {"variant": "", "replicate": replicate.astype(str), "query_id": names}
            about = {"subset": "all", "relation": "r", "cluster": names}
            rows = pd.DataFrame({**keys, **about, "hit": values.ravel()})
            numbers = summarise(rows, scoring)["default"]["all"]["micro"]["hit"]
            holds.append(numbers["low"] <= ACCURACY <= numbers["high"])
    return {
        "replicates": replicates,
        "intervals that hold, of clusters alone": float(np.mean(alone)),
        "of both": float(np.mean(both)),
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--table", type=int, choices=range(1, 8), help="one table; default: all")
    arguments = parser.parse_args()
    size = arguments.simulations
    tables = {
        1: lambda: print_table([simulate(*case, size) for case in CASES], 2),
        2: lambda: print_table([on_medlama(*skills, size) for skills in SKILLS], 2),
        3: lambda: print_coverage([row for case in coverage.CASES for row in case(size)]),
        4: lambda: print_table([single_on_medlama(*case, size) for case in ABILITIES], 3),
        5: lambda: print_table([trusted(*case, size) for case in TRUSTED], 2),
        6: lambda: print_table([untaught(*world, size) for world in WORLDS], 2),
        7: lambda: print_table([replicated(count, size) for count in REPLICATES], 1),
    }
    for number, print_rows in tables.items():
        if arguments.table in (None, number):
            print_rows()


def print_table(rows: Sequence[Mapping[str, Any]], counts: int) -> None:
    """Print rows as a table whose first columns are counts and all others shares."""
    heads = list(rows[0])
    print("\n|", " | ".join(heads), "|")
    print("|" + " ---: |" * len(heads))
    for row in rows:
        cells = [str(row[head]) for head in heads[:counts]]
        shares = [row[head] for head in heads[counts:]]
        cells += [f"{100 * share:.1f} %" if np.isfinite(share) else "–" for share in shares]
        print("|", " | ".join(cells), "|")


def print_coverage(rows: Sequence[coverage.Row]) -> None:
    """Print how often intervals hold: one table per unit, one row per metric."""
    table = pd.DataFrame(rows)
    sizes = table["queries per cluster"]
    table["drawn"] += [f", {size} per cluster" if size > 1 else "" for size in sizes]
    units = table["drawn"].str.extract(r" (\w+)")[0]
    for _, part in table.groupby(units, sort=False):
        wide = part.pivot(index="metric", columns="drawn", values="holds")
        wide = wide.loc[part["metric"].unique(), part["drawn"].unique()]
        print_table(wide.reset_index().to_dict("records"), 1)


if __name__ == "__main__":
    main()

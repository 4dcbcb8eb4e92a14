"""Do tests and intervals keep their promise? Simulations with known truth, for statistics.md.

    python -m bench.significance --medlama FOLDER     # 2021AA/ and prompts.csv, as released
    python -m bench.significance --worlds 5 --table 3 # five times as many worlds, and one table

Without the folder, structures are like that of MedLAMA: `medlama_structure.csv` has how many
queries each answer and each subject of the released files has, and no names. The tables:

1. How often a model that knows no fact is above its own answers, shuffled.
2. How often one that knows few facts is.
3. How often the interval of a model's accuracy holds it, and that of the difference of two models
   theirs, if skill differs by subject, answer or name; how often two equal models seem to differ.
4. The same of differences, where few answers have most queries.
5. How often anything is wrongly claimed on the first screen of a project whose models know nothing.
6. How many of forty models, or of eight templates for each of seven, are above their controls.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from bench.habits import HABITS, Habit, codes_of, gradually
from bench.worlds import (
    IGNORANT,
    LONGEST,
    MakeWorld,
    Structure,
    World,
    clusters_of,
    hits_of,
    like_medlama,
    made,
    released,
    worlds,
)
from medprobe.core.params import ScoreParams
from medprobe.metrics import Scoring
from medprobe.metrics.shuffled import exchange_clusters, shuffled_means
from medprobe.metrics.statistics import (
    Clusters,
    PairedTest,
    control_test,
    exchanges,
    holm,
    paired_test,
)
from medprobe.metrics.summary import summarise

LEVEL: Final = 0.05
EXCHANGES: Final = 399


def against_control(
    world: World, lists: Sequence[np.ndarray], k: int, seed: int, drawn: int = EXCHANGES
) -> PairedTest:
    """Test a model against its own answers to other subjects, as the stage `score` does."""
    draw, own, exchanged, weights = np.random.default_rng(seed), [], [], []
    for relation, hits in zip(world, hits_of(world, lists, k), strict=True):
        clusters = np.unique(relation.clusters, return_inverse=True)[1]
        expected = shuffled_means(hits, clusters)
        given = exchange_clusters(clusters, drawn, draw)
        own.append(np.diagonal(hits) - expected)
        exchanged.append(hits[np.arange(len(hits)), given] - expected)
        weights.append(np.full(len(hits), 1 / len(hits)))
    return control_test(
        np.concatenate(own),
        [np.concatenate(exchanged, axis=1)],
        np.concatenate(weights),
        clusters_of(world),
    )


def is_above(world: World, lists: Sequence[np.ndarray], k: int, seed: int) -> bool:
    """Is a model significantly above its own answers, shuffled?"""
    test = against_control(world, lists, k, seed)
    return test.difference > 0 and test.p < LEVEL


def ignorant(name: str, make: MakeWorld, count: int) -> Iterator[dict[str, Any]]:
    """Table 1: a row for acc@1 and one for acc@10 of a world."""
    alarms: dict[tuple[int, str], list[bool]] = {}
    for seed in range(count):
        draw = np.random.default_rng([1, seed])
        world = make(draw)
        for model, lists_of in IGNORANT.items():
            lists = [lists_of(relation, draw) for relation in world]
            for k in (1, LONGEST):
                alarms.setdefault((k, model), []).append(is_above(world, lists, k, seed))
    for k in (1, LONGEST):
        shares = {model: float(np.mean(alarms[k, model])) for model in IGNORANT}
        yield {"world": name, "worlds": str(count), "acc@k": f"acc@{k}", **shares}


KNOWN: Final = (0.01, 0.03, 0.05)  # of the facts


def knowing(name: str, make: MakeWorld, count: int, habit: str) -> dict[str, Any]:
    """Table 2: models that know some facts for certain, and else have a habit."""
    found: dict[str, list[bool]] = {}
    for seed in range(count):
        draw = np.random.default_rng([2, seed])
        world = make(draw)
        for share in KNOWN:
            lists = [IGNORANT[habit](relation, draw).copy() for relation in world]
            for ranked, relation in zip(lists, world, strict=True):
                known = draw.random(len(ranked)) < share
                ranked[known, 0] = relation.answers[known, 0]
            found.setdefault(f"{share:.0%} known", []).append(is_above(world, lists, 1, seed))
    shares = {head: float(np.mean(results)) for head, results in found.items()}
    return {"world": name, "worlds": str(count), "else": habit, **shares}


MORE: Final = 0.03  # of the facts, that the better of two models knows


def single(structure: Structure, clusters: np.ndarray, hits: np.ndarray) -> dict[str, np.ndarray]:
    """The intervals of each mean, [bounds, worlds], drawing these clusters."""
    rows = pd.DataFrame(hits.astype(float)).add_prefix("world ")
    names = np.arange(len(rows)).astype(str)
    about = {"variant": "", "replicate": "", "query_id": names, "subset": "full"}
    answers = codes_of(structure, "answer_cluster")
    drawn = {"relation": structure.relation, "cluster": clusters, "answer": answers}
    scoring = Scoring(ScoreParams(bootstrap=200, confidence=1 - LEVEL), seed=0)
    means = summarise(rows.assign(**about, **drawn), scoring)["default"]["full"]
    return {
        mean: np.array(
            [[numbers[world].get(edge, np.nan) for world in rows] for edge in ("low", "high")]
        )
        for mean, numbers in means.items()
    }


def holds(bounds: np.ndarray, truth: float) -> float:
    """In how many worlds an interval holds the truth, of those that have one."""
    low, high = bounds[:, ~np.isnan(bounds[0])]
    return float(((low <= truth) & (truth <= high)).mean()) if len(low) else np.nan


def coverage(
    structure: Structure, name: str, habit: Habit, accuracy: float, count: int
) -> dict[str, Any]:
    """Table 3: intervals of single models and of differences, and tests of equal models."""
    draw = np.random.default_rng([3, round(100 * accuracy), *map(ord, name)])
    (hits, chance), (others, _), (better, more) = (
        habit(structure, level, count, draw) for level in (accuracy, accuracy, accuracy + MORE)
    )
    sizes = np.bincount(structure.relation)
    truths = {
        str(relation): truth
        for relation, truth in enumerate(np.bincount(structure.relation, chance) / sizes)
    }
    macro = float(np.mean([*truths.values()]))
    truths |= {"macro": macro, "micro": chance.mean()}
    by_subject, by_cluster = (
        single(structure, clusters, hits) for clusters in (structure.subject, structure.cluster)
    )
    shares = {mean: holds(bounds, truths[mean]) for mean, bounds in by_cluster.items()}
    of_relations = [shares[str(relation)] for relation in range(len(sizes))]
    widths = [np.diff(bounds["macro"], axis=0).mean() for bounds in (by_subject, by_cluster)]
    alarms, differences = [], []
    for world in range(count):
        equal = compare(structure, hits[:, world], others[:, world])
        alarms.append(equal.p < LEVEL)
        test = compare(structure, better[:, world], hits[:, world])
        differences.append((test.low, test.high))
    gain = float(np.mean(np.bincount(structure.relation, more - chance) / sizes))
    return {
        "skill by": name,
        "accuracy": f"{accuracy:.0%}",
        "macro, subjects drawn": holds(by_subject["macro"], macro),
        "clusters drawn": shares["macro"],
        "micro": shares["micro"],
        "mean relation": float(np.mean(of_relations)),
        "worst relation": min(of_relations),
        "width, clusters to subjects": widths[1] / widths[0],
        "difference": holds(np.array(differences).T, gain),
        "false alarms": float(np.mean(alarms)),
    }


def compare(structure: Structure, first: np.ndarray, second: np.ndarray) -> PairedTest:
    """Test the difference of two models' macro means."""
    return paired_test(
        first.astype(float) - second,
        (1 / np.bincount(structure.relation))[structure.relation],
        Clusters.of(structure.cluster, codes_of(structure, "answer_cluster")),
    )


SKEWED: Final = (  # relations, queries of each, answers, skew; accuracies
    ((1, 200, 12, 1.5), (0.2, 0.3)),
    ((1, 200, 30, 2.0), (0.3, 0.3)),
    ((6, 36, 18, 1.0), (0.2, 0.3)),
    ((19, 100, 60, 1.5), (0.2, 0.3)),
)


def skewed(
    shape: tuple[int, int, int, float],
    accuracies: tuple[float, float],
    deviation: float,
    count: int,
) -> dict[str, Any]:
    """Table 4: the difference of two models where few answers have most queries."""
    relations, queries, answers, skew = shape
    first, second = accuracies
    draw = np.random.default_rng([4, relations, answers, round(10 * deviation)])
    habit = gradually(answer=deviation)
    alarms, differences = [], []
    for _ in range(count):
        world = made(relations, queries, answers, skew, draw)
        relation = np.repeat(np.arange(relations), queries)
        codes = np.concatenate([part.answers[:, 0] for part in world]) + answers * relation
        alone = np.arange(len(codes))
        answer = pd.factorize(codes)[0]
        names = {"cluster": alone, "answer_cluster": answer, "last_word": alone}
        structure = Structure(relation, alone, answer, **names)
        drawn = [habit(structure, level, 1, draw)[0][:, 0] for level in (first, first, second)]
        alarms.append(compare(structure, drawn[0], drawn[1]).p < LEVEL)
        test = compare(structure, drawn[2], drawn[0])
        differences.append((test.low, test.high))
    bounds = np.array(differences).T
    return {
        "queries": f"{relations} × {queries}",
        "answers": f"{answers}, skew {skew:g}",
        "skill by answer": f"{deviation:g}",
        "false alarms": float(np.mean(alarms)),
        "have an interval": float(np.mean(~np.isnan(bounds[0]))),
        "difference": holds(bounds, second - first),
    }


SCREEN: Final = (  # relations, queries of each, answers, skew; models that are asked
    ((6, 36, 18, 1.0), 6),
    ((1, 40, 30, 0.7), 6),
    ((4, 25, 40, 0.7), 6),
    ((2, 36, 18, 1.0), 4),
    ((1, 100, 60, 0.8), 4),
)


def tests_of(
    world: World, lists: Mapping[str, Sequence[np.ndarray]], seed: int
) -> tuple[list[PairedTest], bool]:
    """The tests of main results against their controls; and whether any two seem to differ."""
    most = exchanges(sum(models for _, models in SCREEN))
    tests = [
        against_control(world, own, 1, seed + at, most) for at, own in enumerate(lists.values())
    ]
    clusters = clusters_of(world)
    weights = np.concatenate(
        [np.full(len(part.clusters), 1 / len(part.clusters)) for part in world]
    )
    hits = [
        np.concatenate([np.diagonal(own) for own in hits_of(world, of_model, 1)])
        for of_model in lists.values()
    ]
    ps = [paired_test(a - b, weights, clusters).p for a, b in combinations(hits, 2)]
    return tests, bool((holm(np.array(ps)) < LEVEL).any())


def projects(habit: str, count: int) -> dict[str, Any]:
    """Table 5: models without knowledge and of one habit, on five benchmarks."""
    wrong_controls, wrong_pairs, wrong = [], [], []
    for seed in range(count):
        draw = np.random.default_rng([5, seed])
        tests, differ = [], []
        for shape, models in SCREEN:
            world = made(*shape, draw)
            lists = {
                str(model): [IGNORANT[habit](relation, draw) for relation in world]
                for model in range(models)
            }
            found, any_differ = tests_of(world, lists, seed)
            tests += found
            differ.append(any_differ)
        corrected = holm(np.array([test.p for test in tests]))
        above = [
            test.difference > 0 and p < LEVEL for test, p in zip(tests, corrected, strict=True)
        ]
        wrong_controls.append(any(above))
        wrong_pairs.append(any(differ))
        wrong.append(any(above) or any(differ))
    return {
        "models": habit,
        "projects": str(count),
        "any above its control": float(np.mean(wrong_controls)),
        "any pair differs": float(np.mean(wrong_pairs)),
        "any claim": float(np.mean(wrong)),
    }


def many(models: int, variants: int, count: int) -> dict[str, Any]:
    """Table 6: models that know a fifth of a hundred facts, each under some templates."""
    found = []
    for seed in range(count):
        draw = np.random.default_rng([6, models, seed])
        world = made(4, 25, 40, 0.7, draw)
        ps = []
        for model in range(models):
            lists = [IGNORANT["guesses by how usual"](relation, draw) for relation in world]
            for ranked, relation in zip(lists, world, strict=True):
                known = draw.random(len(ranked)) < 0.2
                ranked[known, 0] = relation.answers[known, 0]
            ps.append(against_control(world, lists, 1, seed + model, exchanges(models)).p)
        found.append(np.mean(holm(np.array(ps)) < LEVEL))
    return {
        "models": str(models),
        "templates of each": str(variants),  # one of them is the main result
        "worlds": str(count),
        "significant": float(np.mean(found)),
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--medlama", type=Path, help="folder of the released files")
    parser.add_argument("--worlds", type=float, default=1, help="how many times as many")
    parser.add_argument("--table", type=int, choices=range(1, 7), help="one table; default: all")
    options = parser.parse_args()
    structure = (
        released(options.medlama) if options.medlama else like_medlama(np.random.default_rng(0))
    )

    def times(count: int) -> int:
        return max(2, round(options.worlds * count))

    drawn = worlds(structure)
    powers = (
        "MedLAMA, 100 a relation",
        "MedLAMA, 1,000 a relation, answers redrawn",
        "6 × 36, 18 answers, skew 1, names alike",
    )
    habits = ("how usual answers are", "guesses by how usual", "an answer for each cluster")
    tables: dict[int, Iterator[dict[str, Any]]] = {
        1: (
            row
            for name, (make, count) in drawn.items()
            for row in ignorant(name, make, times(count))
        ),
        2: (
            knowing(name, drawn[name][0], times(drawn[name][1]), habit)
            for name in powers
            for habit in habits
        ),
        3: (
            coverage(structure, name, habit, accuracy, times(60))
            for name, habit, accuracies in HABITS
            for accuracy in accuracies
        ),
        4: (skewed(*case, deviation, times(300)) for case in SKEWED for deviation in (0, 0.8)),
        5: (projects(habit, times(60)) for habit in IGNORANT),
        6: (many(models, variants, times(10)) for models, variants in ((40, 1), (7, 8))),
    }
    for number, rows in tables.items():
        if options.table in (None, number):
            print_table(rows)


def print_table(rows: Iterator[Mapping[str, Any]]) -> None:
    """Print rows as a table, each as it comes: numbers are shares."""
    for number, row in enumerate(rows):
        if not number:
            print("\n|", " | ".join(row), "|")
            print("|" + " ---: |" * len(row))
        cells = [
            value
            if isinstance(value, str)
            else f"{100 * value:.0f} %"
            if np.isfinite(value)
            else "–"
            for value in row.values()
        ]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()

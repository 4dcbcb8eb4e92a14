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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm

from medprobe.benchmarks import find as find_builder
from medprobe.core.benchmark_statistics import answer_keys
from medprobe.core.params import ScoreParams
from medprobe.metrics import Scoring
from medprobe.metrics.clusters import name_clusters
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
from medprobe.sources.releases import import_files

LEVEL: Final = 0.05
STRUCTURE: Final = Path(__file__).with_name("medlama_structure.csv")
LONGEST: Final = 10  # answers that a model lists
EXCHANGES: Final = 399
KINDS: Final = 12  # of subjects, which are wider than clusters of names
NAMES: Final = 2000  # words that made names end in


class Structure(NamedTuple):
    """What each query has in common with others, as codes from 0."""

    relation: np.ndarray
    subject: np.ndarray
    answer: np.ndarray  # of one relation
    cluster: np.ndarray  # of the subject's name
    answer_cluster: np.ndarray
    last_word: np.ndarray  # of the subject's name, even if most subjects of a relation share it


def released(folder: Path) -> Structure:
    """That of the released MedLAMA."""
    with TemporaryDirectory() as source:
        import_files("medlama", folder, Path(source))
        builder = find_builder("medlama_released")
        queries = builder.build(Path(source), builder.settings(), 2021).queries
    queries = queries[queries["subset"] == "full"].assign(key=queries["subject_id"])
    answers = queries["relation"] + " " + answer_keys(queries).str[0]
    named = queries.assign(subject=queries["answers"].str[0], key=answers)
    last_words = queries["subject"].str.casefold().str.split().str[-1]
    clusters = name_clusters(queries), name_clusters(named)
    columns = (queries["relation"], queries["key"], answers, *clusters, last_words)
    return Structure(*(pd.factorize(column)[0] for column in columns))


def like_medlama(draw: np.random.Generator) -> Structure:
    """One with as many queries of each answer and subject, in whatever relations chance gives."""
    counts = pd.read_csv(STRUCTURE, keep_default_na=False)
    of_answers, of_subjects = (counts[counts["unit"] == unit] for unit in ("answers", "subjects"))
    sizes = np.repeat(of_answers["queries"], of_answers["units"])
    relations = np.repeat(pd.factorize(of_answers["relation"])[0], of_answers["units"])
    queries = np.repeat(of_subjects["queries"], of_subjects["units"])
    subject = draw.permutation(np.repeat(np.arange(len(queries)), queries))
    answer = np.repeat(np.arange(len(sizes)), sizes)
    cluster, answer_cluster = (
        draw.choice(NAMES, units, p=_zipf(NAMES, 1)) for units in (len(queries), len(sizes))
    )
    of_query = pd.factorize(cluster[subject])[0]
    codes = (relations[answer], subject, answer, of_query, answer_cluster[answer], of_query)
    return Structure(*codes)


def _zipf(size: int, skew: float) -> np.ndarray:
    weights = 1 / np.arange(1, size + 1) ** skew
    return np.asarray(weights / weights.sum())


class Relation(NamedTuple):
    """One of a world in which models rank answers."""

    answers: np.ndarray  # right ones, [queries, of each]
    clusters: np.ndarray  # of each query
    weights: np.ndarray  # how usual each answer is in the population


World = list[Relation]


def part_of(structure: Structure, size: int, redrawn: bool, draw: np.random.Generator) -> World:
    """As many queries of each relation of a structure; perhaps other answers, as usual as these."""
    world = []
    for relation in range(structure.relation.max() + 1):
        places = np.flatnonzero(structure.relation == relation)
        answers, codes = np.unique(structure.answer[places], return_inverse=True)
        weights = np.bincount(codes) / len(codes)
        if redrawn:
            codes = draw.choice(len(answers), len(codes), p=weights)
        kept = draw.permutation(len(places))[:size]
        world.append(Relation(codes[kept][:, None], structure.cluster[places[kept]], weights))
    return world


def made(
    relations: int,
    queries: int,
    answers: int,
    skew: float,
    draw: np.random.Generator,
    *,
    of_subject: int = 1,
    right: int = 1,
    named: bool = False,
) -> World:
    """A world of relations that are alike.

    Args:
        relations: how many.
        queries: of each.
        answers: of each.
        skew: the exponent of how usual an answer is by its place; evenly often where it is 0.
        draw: of what is drawn.
        of_subject: queries about one subject.
        right: answers of a query.
        named: whether subjects have names that end alike, and 70 % of them their cluster's answer.
    """
    weights, world = _zipf(answers, skew), []
    for _ in range(relations):
        if skew:
            drawn = draw.choice(answers, (queries, right), p=weights)
        else:
            drawn = draw.permutation(np.resize(np.arange(answers), queries * right))
            drawn = drawn.reshape(queries, right)
        clusters = np.arange(queries) // of_subject
        if named:
            clusters = draw.choice(queries, queries, p=_zipf(queries, 1))[clusters]
            alike = draw.choice(answers, queries, p=weights)[clusters]
            drawn[:, 0] = np.where(draw.random(queries) < 0.7, alike, drawn[:, 0])
        world.append(Relation(drawn, clusters, weights))
    return world


def _ranked(worth: np.ndarray) -> np.ndarray:
    return np.argsort(-worth, axis=-1)[..., :LONGEST]


def _usual(relation: Relation, draw: np.random.Generator) -> np.ndarray:
    return np.tile(_ranked(relation.weights), (len(relation.clusters), 1))


def _noisy(relation: Relation, draw: np.random.Generator) -> np.ndarray:
    worth = np.log(relation.weights) + draw.normal(size=len(relation.weights))
    return np.tile(_ranked(worth), (len(relation.clusters), 1))


def _one_order(relation: Relation, draw: np.random.Generator) -> np.ndarray:
    order = draw.permutation(len(relation.weights))[:LONGEST]
    return np.tile(order, (len(relation.clusters), 1))


def _guesses(relation: Relation, draw: np.random.Generator) -> np.ndarray:
    return _ranked(draw.random((len(relation.clusters), len(relation.weights))))


def _usual_guesses(relation: Relation, draw: np.random.Generator) -> np.ndarray:
    size = (len(relation.clusters), len(relation.weights))
    return _ranked(np.log(relation.weights) + draw.gumbel(size=size))  # drawn by their weights


def _by_cluster(relation: Relation, draw: np.random.Generator) -> np.ndarray:
    names, cluster = np.unique(relation.clusters, return_inverse=True)
    worth = np.log(relation.weights) + draw.gumbel(size=(len(names), len(relation.weights)))
    return _ranked(worth)[cluster]


def _by_kind(relation: Relation, draw: np.random.Generator) -> np.ndarray:
    kind = relation.clusters % KINDS
    worth = np.log(relation.weights) + draw.gumbel(size=(KINDS, len(relation.weights)))
    return _ranked(worth)[kind]


Model = Callable[[Relation, np.random.Generator], np.ndarray]  # the lists of a relation's queries
IGNORANT: Final[dict[str, Model]] = {
    "how usual answers are": _usual,
    "roughly how usual": _noisy,
    "one order": _one_order,
    "guesses": _guesses,
    "guesses by how usual": _usual_guesses,
    "an answer for each cluster": _by_cluster,
    "an answer for each of twelve kinds": _by_kind,
}


def hits_of(world: World, lists: Sequence[np.ndarray], k: int) -> list[np.ndarray]:
    """Of each relation, whether the list given to a query holds an answer of another."""
    hits = []
    for relation, ranked in zip(world, lists, strict=True):
        listed = np.zeros((len(relation.weights), len(ranked)), dtype=bool)
        listed[ranked[:, :k], np.arange(len(ranked))[:, None]] = True
        hits.append(listed[relation.answers].any(axis=1).astype(np.float32))
    return hits


def clusters_of(world: World) -> Clusters:
    """The clusters of all queries of a world; an answer is of one relation."""
    subjects = np.concatenate([relation.clusters for relation in world])
    most = 1 + max(int(relation.answers.max()) for relation in world)
    answers = [relation.answers[:, 0] + most * at for at, relation in enumerate(world)]
    return Clusters.of(subjects, np.concatenate(answers))


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


MakeWorld = Callable[[np.random.Generator], World]


def worlds(structure: Structure) -> dict[str, tuple[MakeWorld, int]]:
    """Worlds to shuffle in, and how many are drawn of each."""
    return {
        "MedLAMA, 20 a relation": (partial(part_of, structure, 20, False), 100),
        "MedLAMA, 100 a relation": (partial(part_of, structure, 100, False), 60),
        "MedLAMA, 1,000 a relation, answers redrawn": (partial(part_of, structure, 1000, True), 20),
        "19 × 100, 200 answers, skew .7": (partial(made, 19, 100, 200, 0.7), 60),
        "19 × 1,000, 300 answers, skew .8": (partial(made, 19, 1000, 300, 0.8), 20),
        "1 × 1,000, 1,000 answers, skew .3": (partial(made, 1, 1000, 1000, 0.3), 60),
        "6 × 36, 18 answers, even": (partial(made, 6, 36, 18, 0), 400),
        "6 × 36, 18 answers, skew 1": (partial(made, 6, 36, 18, 1), 400),
        "6 × 36, 18 answers, skew 1, 3 queries a subject": (
            partial(made, 6, 36, 18, 1, of_subject=3),
            200,
        ),
        "6 × 36, 18 answers, skew 1, 3 answers a query": (
            partial(made, 6, 36, 18, 1, right=3),
            200,
        ),
        "6 × 36, 18 answers, skew 1, names alike": (partial(made, 6, 36, 18, 1, named=True), 400),
        "19 × 100, 200 answers, names alike": (partial(made, 19, 100, 200, 0.7, named=True), 60),
    }


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


Drawn = tuple[np.ndarray, np.ndarray]  # hits [queries, worlds], and the chance of each query
Chances = Callable[[float, tuple[int, int], np.random.Generator], np.ndarray]
Habit = Callable[[Structure, float, int, np.random.Generator], Drawn]


def _gradual(
    structure: Structure,
    accuracy: float,
    count: int,
    draw: np.random.Generator,
    *,
    parts: Mapping[str, float],
) -> Drawn:
    """Skills of a normal deviation, for what each query has in common with others."""
    spread = np.sqrt(1 + sum(deviation**2 for deviation in parts.values()))
    level = norm.ppf(accuracy) * spread + draw.normal(size=(len(structure.relation), count))
    for name, deviation in parts.items():
        codes = _codes(structure, name)
        level += deviation * draw.normal(size=(codes.max() + 1, count))[codes]
    return level > 0, np.full(len(level), accuracy)


def _codes(structure: Structure, name: str) -> np.ndarray:
    """The codes of a column; words count by relation."""
    codes: np.ndarray = getattr(structure, name)
    if name not in ("subject", "answer"):
        codes = np.unique(codes + (codes.max() + 1) * structure.relation, return_inverse=True)[1]
    return codes


def _by_frequency(
    structure: Structure, accuracy: float, count: int, draw: np.random.Generator
) -> Drawn:
    """Answers are known the better the commoner they are in their relation, and by chance."""
    often = pd.Series(np.log(np.bincount(structure.answer))[structure.answer])
    rise = 0.5 * (often - often.groupby(structure.relation).transform("mean")).to_numpy()
    spread = np.sqrt(1 + 0.8**2)

    def chance(level: float) -> np.ndarray:
        return np.asarray(norm.cdf((level + rise) / spread))

    middle = brentq(lambda level: chance(level).mean() - accuracy, -9, 9)
    level = middle + rise[:, None] + draw.normal(size=(len(rise), count))
    level += 0.8 * draw.normal(size=(structure.answer.max() + 1, count))[structure.answer]
    return level > 0, chance(middle)


def _of_units(
    structure: Structure,
    accuracy: float,
    count: int,
    draw: np.random.Generator,
    *,
    name: str,
    chances: Chances,
) -> Drawn:
    """Each subject, or answer, has a chance of its own."""
    codes = _codes(structure, name)
    chance = chances(accuracy, (codes.max() + 1, count), draw)[codes]
    return draw.random(chance.shape) < chance, np.full(len(codes), accuracy)


def _beta(
    alike: float, accuracy: float, size: tuple[int, int], draw: np.random.Generator
) -> np.ndarray:
    """Chances whose intraclass correlation is `alike`."""
    total = 1 / alike - 1
    return draw.beta(accuracy * total, (1 - accuracy) * total, size)


def _heavy(accuracy: float, size: tuple[int, int], draw: np.random.Generator) -> np.ndarray:
    many = 0.8 * np.random.default_rng(0).standard_t(3, 100_000)
    middle = brentq(lambda level: norm.cdf(level + many).mean() - accuracy, -12, 12)
    return np.asarray(norm.cdf(middle + 0.8 * draw.standard_t(3, size)))


def _two_kinds(
    high: float, low: float, accuracy: float, size: tuple[int, int], draw: np.random.Generator
) -> np.ndarray:
    is_known = draw.random(size) < (accuracy - low) / (high - low)
    return np.where(is_known, high, low)


def _gradually(**parts: float) -> Habit:
    return partial(_gradual, parts=parts)


def _each(name: str, chances: Callable[..., np.ndarray], *settings: float) -> Habit:
    return partial(_of_units, name=name, chances=partial(chances, *settings))


HABITS: Final[list[tuple[str, Habit, tuple[float, ...]]]] = [
    ("none", _gradually(), (0.05,)),
    ("subject .8, answer .8", _gradually(subject=0.8, answer=0.8), (0.02, 0.05, 0.25, 0.6)),
    ("subject 2", _gradually(subject=2), (0.05,)),
    ("subject, two kinds", _each("subject", _two_kinds, 0.5, 0.01), (0.05,)),
    ("answer, beta .1", _each("answer", _beta, 0.1), (0.05,)),
    ("answer, beta .3", _each("answer", _beta, 0.3), (0.25,)),
    ("answer, rises with frequency", _by_frequency, (0.05, 0.25)),
    ("answer, heavy tails", _each("answer", _heavy), (0.05, 0.25)),
    ("answer 1.5", _gradually(answer=1.5), (0.02, 0.05, 0.25, 0.6)),
    ("answer 3", _gradually(answer=3), (0.05,)),
    ("answer, known to 90 % or hardly", _each("answer", _two_kinds, 0.9, 0.01), (0.05, 0.25, 0.6)),
    ("answer, always or never", _each("answer", _two_kinds, 1, 0), (0.05, 0.25)),
    ("subject's cluster .8", _gradually(cluster=0.8), (0.05, 0.25, 0.6)),
    ("answer's cluster .8", _gradually(answer_cluster=0.8), (0.05, 0.6)),
    (
        "both clusters .5, subject .5, answer .5",
        _gradually(cluster=0.5, answer_cluster=0.5, subject=0.5, answer=0.5),
        (0.05, 0.25),
    ),
    ("subject's last word .8", _gradually(last_word=0.8), (0.05, 0.25)),
]
MORE: Final = 0.03  # of the facts, that the better of two models knows


def single(structure: Structure, clusters: np.ndarray, hits: np.ndarray) -> dict[str, np.ndarray]:
    """The intervals of each mean, [bounds, worlds], drawing these clusters."""
    rows = pd.DataFrame(hits.astype(float)).add_prefix("world ")
    names = np.arange(len(rows)).astype(str)
    about = {"variant": "", "replicate": "", "query_id": names, "subset": "full"}
    answers = _codes(structure, "answer_cluster")
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
        Clusters.of(structure.cluster, _codes(structure, "answer_cluster")),
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
    habit = _gradually(answer=deviation)
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
            lists = [_usual_guesses(relation, draw) for relation in world]
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

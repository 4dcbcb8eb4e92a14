"""Worlds in which models rank answers, and models that know none of their facts."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe.benchmarks import find as find_builder
from medprobe.core.benchmark_statistics import answer_keys
from medprobe.metrics.clusters import name_clusters
from medprobe.metrics.statistics import Clusters
from medprobe.sources.releases import import_files

STRUCTURE: Final = Path(__file__).with_name("medlama_structure.csv")
LONGEST: Final = 10  # answers that a model lists
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

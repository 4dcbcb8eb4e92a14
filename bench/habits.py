"""Skills that differ by subject, answer or name: how often a model is right about each query."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm

from bench.worlds import Structure

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
        codes = codes_of(structure, name)
        level += deviation * draw.normal(size=(codes.max() + 1, count))[codes]
    return level > 0, np.full(len(level), accuracy)


def codes_of(structure: Structure, name: str) -> np.ndarray:
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
    codes = codes_of(structure, name)
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


def gradually(**parts: float) -> Habit:
    return partial(_gradual, parts=parts)


def _each(name: str, chances: Callable[..., np.ndarray], *settings: float) -> Habit:
    return partial(_of_units, name=name, chances=partial(chances, *settings))


HABITS: Final[list[tuple[str, Habit, tuple[float, ...]]]] = [
    ("none", gradually(), (0.05,)),
    ("subject .8, answer .8", gradually(subject=0.8, answer=0.8), (0.02, 0.05, 0.25, 0.6)),
    ("subject 2", gradually(subject=2), (0.05,)),
    ("subject, two kinds", _each("subject", _two_kinds, 0.5, 0.01), (0.05,)),
    ("answer, beta .1", _each("answer", _beta, 0.1), (0.05,)),
    ("answer, beta .3", _each("answer", _beta, 0.3), (0.25,)),
    ("answer, rises with frequency", _by_frequency, (0.05, 0.25)),
    ("answer, heavy tails", _each("answer", _heavy), (0.05, 0.25)),
    ("answer 1.5", gradually(answer=1.5), (0.02, 0.05, 0.25, 0.6)),
    ("answer 3", gradually(answer=3), (0.05,)),
    ("answer, known to 90 % or hardly", _each("answer", _two_kinds, 0.9, 0.01), (0.05, 0.25, 0.6)),
    ("answer, always or never", _each("answer", _two_kinds, 1, 0), (0.05, 0.25)),
    ("subject's cluster .8", gradually(cluster=0.8), (0.05, 0.25, 0.6)),
    ("answer's cluster .8", gradually(answer_cluster=0.8), (0.05, 0.6)),
    (
        "both clusters .5, subject .5, answer .5",
        gradually(cluster=0.5, answer_cluster=0.5, subject=0.5, answer=0.5),
        (0.05, 0.25),
    ),
    ("subject's last word .8", gradually(last_word=0.8), (0.05, 0.25)),
]

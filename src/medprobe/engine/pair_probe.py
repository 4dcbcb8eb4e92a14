"""A linear probe that ranks right over wrong statements, fitted without iterations.

The direction is the mean difference between the right and the wrong statement of a pair, corrected
by the covariance of all statements (Fisher's linear discriminant). All that a fit needs are sums,
so that leaving a group of statements out is a subtraction.

Source: Marks and Tegmark 2023, section 4.1 of the first version (mass-mean probing); the ridge is
ours.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

RIDGE: Final = 0.1  # added to the variance of each standardised feature, which is 1
CONSTANT: Final = 1e-5  # the deviation below which a feature is rounding, and left out

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Sums over statements and over the differences of their pairs."""

    statements: int
    sums: Array  # [hidden]
    products: Array  # [hidden, hidden]
    pairs: int
    differences: Array  # right less wrong, [hidden]

    @classmethod
    def of(cls, states: Array, differences: Array) -> "Moments":
        """Sum over statements, [statements, hidden], and differences, [pairs, hidden]."""
        return cls(
            len(states),
            states.sum(axis=0),
            states.T @ states,
            len(differences),
            differences.sum(axis=0),
        )

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            self.statements + other.statements,
            self.sums + other.sums,
            self.products + other.products,
            self.pairs + other.pairs,
            self.differences + other.differences,
        )

    def __sub__(self, other: "Moments") -> "Moments":
        return Moments(
            self.statements - other.statements,
            self.sums - other.sums,
            self.products - other.products,
            self.pairs - other.pairs,
            self.differences - other.differences,
        )

    def direction(self, differences: Array | None = None) -> Array:
        """Return the weights by which `state @ weights` is higher for right statements.

        Features are standardised by these statements. Without pairs, all weights are 0.

        Args:
            differences: Other sums over the pairs, such as those with other signs, [hidden, fits].

        Returns:
            [hidden], or [hidden, fits].
        """
        sums = self.differences if differences is None else differences
        count = max(self.statements, 1)
        mean = self.sums / count
        covariance = self.products / count - np.outer(mean, mean)
        deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        varies = deviation > CONSTANT
        scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
        matrix = covariance * scale * scale[:, None] + RIDGE * np.eye(len(scale))
        means = (scale * sums.T).T / max(self.pairs, 1)
        weights: Array = (scale * solve(matrix, means, assume_a="pos").T).T
        return weights


@dataclass(frozen=True)
class PairProbes:
    """Probes at several places of a network, each tested on statements that it is not trained on.

    Attributes:
        states: Of each statement at each place, [statements, places, hidden].
        pairs: The right and the wrong statement of each pair, [pairs, 2].
        groups: The group of each statement from 0, such as its relation. Each group has pairs, and
            the statements of a pair are of one group.
    """

    states: NDArray[np.float32]
    pairs: NDArray[np.int64]
    groups: NDArray[np.int64]

    def across_groups(self) -> tuple[Array, NDArray[np.int64]]:
        """Score each group by the probes that are trained on all other groups.

        The place of a group is the one where most pairs of the other groups are ranked right, by
        probes that are trained without the group and without the one that they are tested on.

        Returns:
            `(scores, places)`: [statements, places], and the place chosen for each group.
        """
        count = int(self.groups.max()) + 1
        scores = np.zeros(self.states.shape[:2])
        held_out = np.zeros((count, self.states.shape[1]))
        for place in range(self.states.shape[1]):
            states, differences = self._at(place)
            parts = [differences[self._pair_groups == group] for group in range(count)]
            moments = [
                Moments.of(states[self.groups == group], part) for group, part in enumerate(parts)
            ]
            whole = sum(moments[1:], moments[0])
            for group in range(count):
                members = self.groups == group
                weights = (whole - moments[group]).direction()
                scores[members, place] = states[members] @ weights
            for a, b in combinations(range(count), 2):
                weights = (whole - moments[a] - moments[b]).direction()
                held_out[a, place] += share_ranked(parts[b] @ weights)
                held_out[b, place] += share_ranked(parts[a] @ weights)
        return scores, held_out.argmax(axis=1)

    def within_groups(
        self, places: NDArray[np.int64], folds: NDArray[np.int64], pair_folds: NDArray[np.int64]
    ) -> Array:
        """Score each fold of a group by the probe that is trained on the group's other folds.

        Args:
            places: Of each group.
            folds: The fold of each statement.
            pair_folds: The folds that a pair touches, [pairs, 2]. It trains no probe of these.

        Returns:
            [statements].
        """
        scores = np.zeros(len(self.states))
        for group, place in enumerate(places):
            states, differences = self._at(place)
            for fold in np.unique(folds):
                train = (self._pair_groups == group) & (pair_folds != fold).all(axis=1)
                test = (self.groups == group) & (folds == fold)
                statements = np.unique(self.pairs[train])
                weights = Moments.of(states[statements], differences[train]).direction()
                scores[test] = states[test] @ weights
        return scores

    def across_groups_shuffled(self, places: NDArray[np.int64], draws: int, seed: int) -> Array:
        """Score each group as `across_groups` does, with right and wrong exchanged by chance.

        Args:
            places: Of each group.
            draws: How often the labels of the training pairs are drawn.
            seed: Of the draws.

        Returns:
            [statements, draws].
        """
        scores = np.zeros((len(self.states), draws))
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (len(self.pairs), draws))
        for group, place in enumerate(places):
            train, members = self._pair_groups != group, self.groups == group
            states, differences = self._at(place)
            moments = Moments.of(states[~members], differences[train])
            weights = moments.direction(differences[train].T @ signs[train])
            scores[members] = states[members] @ weights
        return scores

    @property
    def _pair_groups(self) -> NDArray[np.int64]:
        return self.groups[self.pairs[:, 0]]

    def _at(self, place: int) -> tuple[Array, Array]:
        """The states at a place, and the differences of its pairs, [pairs, hidden]."""
        states = self.states[:, place].astype(float)
        return states, states[self.pairs[:, 0]] - states[self.pairs[:, 1]]


def share_ranked(differences: Array) -> float:
    """Return the share of pairs whose right statement scores higher; ties count half.

    >>> share_ranked(np.array([0.5, 0.0, -1.0, 2.0]))
    0.625
    """
    return float(np.mean((np.sign(differences) + 1) / 2))

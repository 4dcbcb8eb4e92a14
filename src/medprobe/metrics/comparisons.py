"""Which differences between two models are more than chance: paired tests on the same queries."""

from statistics import NormalDist

import numpy as np

from medprobe.metrics.intervals import resampled_means


def permutation(differences: np.ndarray, resamples: int, seed: int) -> float:
    """Two-sided p of a paired permutation test: each query's difference could as well have had
    the other sign (Fisher 1935; Dror et al. 2018, section 3.2).

    Equal differences are drawn together, as one binomial number, so that the cost does not grow
    with the number of queries. p is in (0, 1]: the observed outcome counts as one of the draws.
    """
    sizes, counts = np.unique(np.abs(np.round(differences, 9)), return_counts=True)
    generator = np.random.default_rng(seed)
    signs = 2 * generator.binomial(counts, 0.5, (resamples, len(counts))) - counts
    sums = np.abs(signs @ sizes)
    extreme = int((sums >= abs(differences.sum()) - 1e-9).sum())
    return (1 + extreme) / (1 + resamples)


def difference_interval(
    differences: np.ndarray, resamples: int, confidence: float, seed: int
) -> tuple[float, float]:
    """Paired bootstrap interval of the mean difference."""
    means = resampled_means(differences[:, None], resamples, np.random.default_rng(seed))
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    mean = differences.mean()
    return float(min(low, mean)), float(max(high, mean))


def holm(chances: np.ndarray) -> np.ndarray:
    """p-values corrected for their number (Holm 1979), in the order given.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(chances, kind="stable")
    steps = np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1))
    corrected = np.empty(len(chances))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected


def smallest_difference(differences: np.ndarray, alpha: float = 0.05, power: float = 0.8) -> float:
    """The true mean difference that a paired test on so many queries, of this spread, would find
    with the given power (Cohen 1988, normal approximation)."""
    if len(differences) < 2:
        return float("nan")
    reach = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
    return float(reach * differences.std(ddof=1) / np.sqrt(len(differences)))

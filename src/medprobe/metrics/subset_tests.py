"""Whether a system is better on one subset than on another whose queries it only partly shares.

The difference of the two means is that of all clusters' influences on it. Its variance is that of
their sum, so that queries about one subject, in both subsets, count as one observation. Source:
Liang and Zeger 1986, with t of as many degrees of freedom as there are clusters, less one.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from medprobe import metrics
from medprobe.core.tables import BASELINE
from medprobe.metrics.results import is_swept

FAMILY: Final = "subsets"


def subset_tests(
    systems: Mapping[tuple[str, str], pd.DataFrame],
    contrasts: Iterable[tuple[str, str]],
    confidence: float,
) -> pd.DataFrame:
    """Test each system on the pairs of subsets that it has."""
    tested = {name for name, metric in metrics.catalog().items() if metric.tested}
    rows = []
    for (model, method), table in sorted(systems.items()):
        present = {*table["subset"]}
        for first, second in contrasts:
            if {first, second} <= present and not (is_swept(method) or model == BASELINE):
                a, b = (table[table["subset"] == subset] for subset in (first, second))
                subset = f"{first} - {second}"
                keys = {"subset": subset, "relation": "macro", "family": FAMILY}
                both = {f"{key}_{side}": name for side in "ab"
                        for key, name in (("model", model), ("method", method))}  # fmt: skip
                rows += [
                    {**keys, **both, "metric": name, **_compare(a, b, name, confidence)}
                    for name in sorted(tested & set(table))
                    if a[name].notna().any() and b[name].notna().any()
                ]
    return pd.DataFrame(rows)


def _compare(a: pd.DataFrame, b: pd.DataFrame, name: str, confidence: float) -> dict[str, float]:
    """The difference of the means of two subsets, its interval and p; nothing is claimed of it."""
    means, influences = [], []
    for rows in (a.dropna(subset=name), b.dropna(subset=name)):
        weights = rows["weight"] / rows["weight"].sum()
        means.append(float((weights * rows[name]).sum()))
        influence = weights * (rows[name] - means[-1])
        influences.append(influence.groupby(rows["cluster"]).sum())
    sums = influences[0].sub(influences[1], fill_value=0).to_numpy(float)
    difference, clusters = means[0] - means[1], len(sums)
    deviation = float(np.sqrt((sums**2).sum() * clusters / max(clusters - 1, 1)))
    reach = deviation * float(stdtrit(clusters - 1, (1 + confidence) / 2))
    if deviation > 0:
        p = float(2 * stdtr(clusters - 1, -abs(difference) / deviation))
    else:  # all clusters say the same: as rare as equal signs
        p = 2.0 ** (1 - clusters) if difference else 1.0
    low, high = difference - reach, difference + reach
    return {"difference": difference, "low": low, "high": high, "p": p, "n": len(a),
            "units": clusters}  # fmt: skip

"""How far raters agree, beyond what chance would give.

Cohen's kappa (1960) of each two raters, plain and with quadratic weights (1968); Fleiss' kappa
(1971) of all raters over the items that all rated; Krippendorff's alpha (2011) over all ratings,
which may be missing. Values are not a number where all ratings are one and the same.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Final, Literal

import pandas as pd

COLUMNS: Final = ["of", "measure", "raters", "items", "value"]
MeasureRow = tuple[str, str, str, int, float]


def agreement(ratings: pd.DataFrame, *, ordinal: bool) -> pd.DataFrame:
    """Measure how far the raters agree, one row per measure.

    `of` what (`rating`, and where the scale is ordinal `right`, the verdict), `measure`, `raters`,
    `items` that it is over, `value`.

    `ratings` has the columns `item, rater, rating, right`, one row per rating. Ratings of an
    ordinal scale are whole numbers as text, such as `4`.
    """
    rows = list(_measures(ratings, "rating", ordinal))
    if ordinal:
        rows += _measures(ratings.assign(right=ratings["right"].astype(str)), "right", False)
    return pd.DataFrame(rows, columns=COLUMNS)


def _measures(ratings: pd.DataFrame, of: str, ordinal: bool) -> Iterator[MeasureRow]:
    labels = sorted(ratings[of].unique())
    code = int if ordinal else labels.index  # a rating's distance counts the levels nobody gave
    codes = ratings.assign(code=ratings[of].map(code))
    table = codes.pivot_table(index="item", columns="rater", values="code", aggfunc="first")
    for a, b in combinations(table.columns, 2):
        both = table[[a, b]].dropna().astype(int)
        pair = f"{a}, {b}"
        agreed = float((both[a] == both[b]).mean()) if len(both) else float("nan")
        yield of, "agreed", pair, len(both), agreed
        yield of, "Cohen's kappa", pair, len(both), _cohen(both[a], both[b], None)
        if ordinal:
            weighted = _cohen(both[a], both[b], "quadratic")
            yield of, "Cohen's kappa, quadratic weights", pair, len(both), weighted
    if table.shape[1] > 1:
        whole = table.dropna().astype(int)
        yield of, "Fleiss' kappa", "all", len(whole), _fleiss(whole)
        level: Literal["ordinal", "nominal"] = "ordinal" if ordinal else "nominal"
        several = int((table.notna().sum(axis=1) > 1).sum())
        yield of, f"Krippendorff's alpha, {level}", "all", several, _alpha(table, level)


def _cohen(a: pd.Series, b: pd.Series, weights: str | None) -> float:
    from sklearn.metrics import cohen_kappa_score

    codes = {*a, *b}
    if len(codes) < 2:
        return float("nan")
    levels = list(range(min(codes), max(codes) + 1))
    return float(cohen_kappa_score(a, b, labels=levels, weights=weights))


def _fleiss(table: pd.DataFrame) -> float:
    """Fleiss' kappa: the pairs of raters who agree, beyond what the labels' shares let expect.

    Args:
        table: a row per item, a column per rater, the label's code in each cell.

    >>> _fleiss(pd.DataFrame([[0, 0], [0, 0], [1, 1], [0, 1]]))  # (3/4 - 34/64) / (1 - 34/64)
    0.4666666666666667
    """
    if table.empty or len(pd.unique(table.to_numpy().ravel())) < 2:
        return float("nan")
    counts = table.apply(pd.Series.value_counts, axis=1).fillna(0).to_numpy()  # items, labels
    raters = table.shape[1]
    agreed = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))
    expected = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
    return float((agreed.mean() - expected) / (1 - expected))


def _alpha(table: pd.DataFrame, level: Literal["ordinal", "nominal"]) -> float:
    import krippendorff

    paired = table[table.notna().sum(axis=1) > 1]
    if len(pd.unique(paired.stack())) < 2:
        return float("nan")
    values = paired.to_numpy(float).T
    return float(krippendorff.alpha(reliability_data=values, level_of_measurement=level))


def rated(items: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Count how far each rater came, one row per rater and subset.

    The columns are `rater, subset, items, rated, right`.
    """
    subsets = items.set_index("item")["subset"]
    parts = ratings.groupby(["rater", ratings["item"].map(subsets).rename("subset")], sort=True)
    table = parts["right"].agg(rated="size", right="sum").reset_index()
    table.insert(2, "items", table["subset"].map(subsets.value_counts()))
    return table

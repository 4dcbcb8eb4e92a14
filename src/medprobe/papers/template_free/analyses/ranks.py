"""Do data sets rank models alike? Research questions 1 and 3 of Shaier et al.

All pairs of data sets are compared. Pairs of one kind are the baseline: their rankings differ too,
by their facts and by chance, so that only what pairs of both kinds differ beyond them is of the
kind. Intervals draw the queries of both data sets, by cluster; models are not drawn.

Groups of models, and pairs of a small and a large one (sections 4, 5.5 and 6), are compared over
the same queries, so that intervals and tests are paired and draw clusters of queries.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe.core.params import Params
from medprobe.metrics.resampling import resampled_interval
from medprobe.papers.template_free.analyses.by_query import QueryScores, corrected, paired
from medprobe.papers.template_free.analyses.data_sets import Counted, DataSet, select_counted

FEWEST: Final = 5  # models: a ranking of fewer says nothing
FEWEST_OF_GROUP: Final = 3  # models: of two, τ is 1 or -1
BETWEEN: Final = "between the kinds"
DIFFERENCE: Final = "between less within"
BOTH: Final = "both"  # a pair of data sets of two domains


class SetMeans(NamedTuple):
    """The models' mean accuracies on a data set."""

    data: DataSet
    models: list[str]
    means: np.ndarray  # [1 + resamples, models]; those of the data set itself come first
    clusters: int


class PairOfSets(NamedTuple):
    """Two data sets, and how differently they rank the models."""

    first: DataSet
    second: DataSet
    models: list[str]
    moved: np.ndarray  # absolute rank displacement of each model
    numbers: np.ndarray  # [1 + resamples, 2]: mean displacement and Kendall's tau-b of the group
    clusters: int  # of the data set that has fewer

    @property
    def domain(self) -> str:
        """The domain of the data sets, or `both`."""
        return self.first.domain if self.first.domain == self.second.domain else BOTH

    @property
    def kinds(self) -> str:
        """Whether the data sets are of one kind."""
        return f"within {self.first.kind}" if self.first.kind == self.second.kind else BETWEEN


def compare_rankings(
    scores: Sequence[QueryScores], counted: Counted, params: Params
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Compare how each two data sets rank the models by acc@1.

    Only models that both data sets have and count, and only where these are five or more.

    Returns:
        By pair of data sets: `mean` and `largest` absolute rank displacement, the `model` that
        moves most, and Kendall's `tau`; mean and tau have bootstrap intervals. Then
        their means over the pairs of a domain and of one kind or both, with the difference of pairs
        between the kinds from those within. And these means by group of models: how far its models
        move among all of them, and tau over its own models.
    """
    means = [_means(item, counted, params) for item in scores]
    pairs = _pairs(means)
    by_group = [
        {"group": group, **row}
        for group, members in find_groups(params).items()
        for row in _summarise(_pairs(means, members), params)
    ]
    rows = [_row(pair, params) for pair in pairs]
    return pd.DataFrame(rows), pd.DataFrame(_summarise(pairs, params)), pd.DataFrame(by_group)


def find_groups(params: Params) -> dict[str, list[str]]:
    """Return the models of each group of params.yaml."""
    groups: dict[str, list[str]] = {}
    for name, model in params.models.all().items():
        if model.group:
            groups.setdefault(model.group, []).append(name)
    return dict(sorted(groups.items()))


def _means(scores: QueryScores, counted: Counted, params: Params) -> SetMeans:
    models = [name for name in sorted(scores.accuracy) if counted(name, scores.data.subset)]
    columns = [scores.accuracy[name] for name in models]
    clusters = int(scores.cluster.max()) + 1
    return SetMeans(scores.data, models, scores.draw_means(columns, params), clusters)


def _pairs(means: Sequence[SetMeans], group: Sequence[str] | None = None) -> list[PairOfSets]:
    """All pairs of data sets that can be compared, with the numbers of a group of models."""
    return [pair for a, b in combinations(means, 2) if (pair := _compare(a, b, group)) is not None]


def _compare(a: SetMeans, b: SetMeans, group: Sequence[str] | None) -> PairOfSets | None:
    from scipy.stats import rankdata

    models = [name for name in a.models if name in b.models]
    if len(models) < FEWEST:
        return None
    first, second = (item.means[:, [item.models.index(name) for name in models]] for item in (a, b))
    moved = np.abs(rankdata(-first, axis=1) - rankdata(-second, axis=1))
    chosen = [place for place, name in enumerate(models) if group is None or name in group]
    if not chosen:
        return None
    taus = tau(first[:, chosen], second[:, chosen])
    taus = taus if len(chosen) >= FEWEST_OF_GROUP else np.full(len(taus), np.nan)
    numbers = np.column_stack([moved[:, chosen].mean(axis=1), taus])
    clusters = min(a.clusters, b.clusters)
    return PairOfSets(a.data, b.data, models, moved[0], numbers, clusters)


def tau(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b of each row of two tables; NaN where a side has one value only.

    >>> tau(np.array([[1.0, 2.0, 3.0]]), np.array([[3.0, 2.0, 2.0]])).round(2).tolist()
    [-0.82]
    """
    rows, columns = np.triu_indices(first.shape[1], 1)
    signs = [np.sign(table[:, rows] - table[:, columns]) for table in (first, second)]
    sizes = np.prod([(sign != 0).sum(axis=1) for sign in signs], axis=0).astype(float)
    sums = (signs[0] * signs[1]).sum(axis=1)
    return np.divide(sums, np.sqrt(sizes), out=np.full(len(sums), np.nan), where=sizes > 0)


def _row(pair: PairOfSets, params: Params) -> dict[str, object]:
    place = int(pair.moved.argmax())
    return {
        **{"first": pair.first.name, "second": pair.second.name},
        **{"domain": pair.domain, "kinds": pair.kinds, "models": len(pair.models)},
        **_numbers(pair.numbers, pair.clusters, params),
        **{"largest": pair.moved[place], "model": pair.models[place]},
    }


def _summarise(pairs: list[PairOfSets], params: Params) -> list[dict[str, object]]:
    """Means over the pairs of a domain and of one kind or both, and what kinds add."""
    rows: list[dict[str, object]] = []
    for domain in sorted({pair.domain for pair in pairs}, key=lambda name: (name == BOTH, name)):
        of_domain = [pair for pair in pairs if pair.domain == domain]
        within = [pair for pair in of_domain if pair.kinds != BETWEEN]
        between = [pair for pair in of_domain if pair.kinds == BETWEEN]
        clusters = min(pair.clusters for pair in of_domain)
        for kinds in sorted({pair.kinds for pair in of_domain}):
            part = [pair for pair in of_domain if pair.kinds == kinds]
            numbers = _numbers(_mean(part), clusters, params)
            rows.append({"domain": domain, "kinds": kinds, "pairs": len(part), **numbers})
        if within and between:
            numbers = _numbers(_mean(between) - _mean(within), clusters, params, signed=True)
            about = {"domain": domain, "kinds": DIFFERENCE, "pairs": len(of_domain)}
            rows.append({**about, **numbers})
    return rows


def _mean(pairs: list[PairOfSets]) -> np.ndarray:
    return np.mean([pair.numbers for pair in pairs], axis=0)


def _numbers(
    draws: np.ndarray, clusters: int, params: Params, *, signed: bool = False
) -> dict[str, float]:
    """Mean displacement and tau with their intervals, within their ranges unless `signed`."""
    confidence = params.score.confidence
    low, high = resampled_interval(
        draws[0], draws[1:], confidence, clusters, scales=["plain", "plain"]
    )
    if not signed:
        low, high = np.maximum(low, [0.0, -1.0]), np.minimum(high, [np.inf, 1.0])
    return {
        **{"mean": draws[0, 0], "low_mean": low[0], "high_mean": high[0]},
        **{"tau": draws[0, 1], "low_tau": low[1], "high_tau": high[1]},
    }


def describe_models(
    scores: pd.DataFrame, params: Params, parameters: Mapping[str, int], counted: Counted
) -> pd.DataFrame:
    """List the models by size: group, parameters, and means over the data sets of a kind."""
    if "acc_at_1" not in scores:
        return pd.DataFrame()
    group_of = {name: model.group or "" for name, model in params.models.all().items()}
    values = [name for name in ("acc_at_1", "perplexity") if name in scores]
    groups = select_counted(scores, counted).groupby(["model", "kind"])
    table = groups[values].mean().assign(sets=groups["name"].nunique()).reset_index()
    table["group"] = table["model"].map(group_of).fillna("")
    table["parameters"] = table["model"].map(dict(parameters)).astype(float)
    columns = ["model", "group", "parameters", "kind", "sets", *values]
    return table.sort_values(["parameters", "model", "kind"])[columns].reset_index(drop=True)


def compare_groups(
    scores: Sequence[QueryScores], params: Params, counted: Counted
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare the groups of models by their mean acc@1 on each data set.

    Returns:
        By data set and group the number of `models` and the mean, with its bootstrap interval; and
        by data set and two groups their `difference` with its paired interval and permutation p,
        `p_holm` corrected over all.
    """
    group_of = {name: model.group for name, model in params.models.all().items() if model.group}
    means, differences = [], []
    for item in scores:
        members: dict[str, list[np.ndarray]] = {}
        for model, accuracy in item.accuracy.items():
            if model in group_of and counted(model, item.data.subset):
                members.setdefault(group_of[model], []).append(accuracy)
        columns = {name: np.mean(members[name], axis=0) for name in sorted(members)}
        if not columns:
            continue
        about = {"name": item.data.name, "kind": item.data.kind, "domain": item.data.domain}
        draws = item.draw_means([*columns.values()], params)
        units = int(item.cluster.max()) + 1
        low, high = resampled_interval(draws[0], draws[1:], params.score.confidence, units)
        for place, name in enumerate(columns):
            numbers = {"value": draws[0, place], "low": low[place], "high": high[place]}
            means.append({**about, "group": name, "models": len(members[name]), **numbers})
        for first, second in combinations(columns, 2):
            difference = columns[first] - columns[second]
            numbers = paired(difference, item.cluster.to_numpy(), params)
            differences.append({**about, "group": first, "other": second, **numbers})
    return pd.DataFrame(means), corrected(differences)


def compare_sizes(
    scores: Sequence[QueryScores],
    by_set: pd.DataFrame,
    params: Params,
    parameters: Mapping[str, int],
) -> pd.DataFrame:
    """Compare each model with the smaller one of its family (`larger_than`) on each data set.

    Returns:
        `name, kind, smaller, larger`, their `parameters` in millions, their acc@1, the `difference`
        (larger minus smaller) with its paired interval and permutation p, `p_holm` corrected over
        all, and the mean perplexity of both where it was measured.
    """
    pairs = [
        (model.larger_than, name)
        for name, model in params.models.all().items()
        if model.larger_than is not None
    ]
    perplexity = (
        by_set.set_index(["name", "model"])["perplexity"].to_dict()
        if "perplexity" in by_set
        else {}
    )
    rows = []
    for item in scores:
        for smaller, larger in pairs:
            if smaller in item.accuracy and larger in item.accuracy:
                small, large = item.accuracy[smaller], item.accuracy[larger]
                rows.append(
                    {
                        **{"name": item.data.name, "kind": item.data.kind},
                        **{"smaller": smaller, "larger": larger},
                        "parameters_smaller": parameters.get(smaller, np.nan),
                        "parameters_larger": parameters.get(larger, np.nan),
                        **{"acc_smaller": small.mean(), "acc_larger": large.mean()},
                        **paired(large - small, item.cluster.to_numpy(), params),
                        "perplexity_smaller": perplexity.get((item.data.name, smaller), np.nan),
                        "perplexity_larger": perplexity.get((item.data.name, larger), np.nan),
                    }
                )
    return corrected(rows)

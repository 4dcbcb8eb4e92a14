"""Groups of models, and pairs of a small and a large one.

Source: Shaier et al., research question 3, and what sections 4, 5.5 and 6 say of model size. Both
compare models over the same queries, so that intervals and tests are paired and draw clusters of
queries. The models are those of the project; none is drawn.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from medprobe.core.params import ModelParams, Params
from medprobe.metrics.comparisons import difference_interval, holm, permutation
from medprobe.metrics.intervals import interval
from medprobe.papers.template_free.analyses.by_query import QueryScores
from medprobe.papers.template_free.analyses.data_sets import Counted, select_counted


def describe_models(
    scores: pd.DataFrame, params: Params, parameters: Mapping[str, int], counted: Counted
) -> pd.DataFrame:
    """List the models by size: group, number of parameters, and means over the data sets of a kind.

    Args:
        scores: as `scores.per_data_set` gives them.
        params: has the groups.
        parameters: of the models whose checkpoint is known.
        counted: whether a model counts in means on a subset.

    Returns:
        One row per model: `model, group, parameters, kind, sets, acc_at_1` and `perplexity`.
    """
    if "acc_at_1" not in scores:
        return pd.DataFrame()
    models = params.models.all()
    values = [name for name in ("acc_at_1", "perplexity") if name in scores]
    groups = select_counted(scores, counted).groupby(["model", "kind"])
    table = groups[values].mean().assign(sets=groups["name"].nunique()).reset_index()
    about = [
        (models.get(name, ModelParams()).group, parameters.get(name)) for name in table["model"]
    ]
    table["group"] = [group or "" for group, _ in about]
    table["parameters"] = [float("nan") if size is None else float(size) for _, size in about]
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
        low, high = interval(draws[0], draws[1:], params.score.confidence, units)
        for place, name in enumerate(columns):
            numbers = {"value": draws[0, place], "low": low[place], "high": high[place]}
            means.append({**about, "group": name, "models": len(members[name]), **numbers})
        for first, second in combinations(columns, 2):
            numbers = paired(item, columns[first], columns[second], params)
            differences.append({**about, "group": first, "other": second, **numbers})
    return pd.DataFrame(means), _corrected(differences)


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
                        **paired(item, large, small, params),
                        "perplexity_smaller": perplexity.get((item.data.name, smaller), np.nan),
                        "perplexity_larger": perplexity.get((item.data.name, larger), np.nan),
                    }
                )
    return _corrected(rows)


def paired(
    scores: QueryScores, first: np.ndarray, second: np.ndarray, params: Params
) -> dict[str, float]:
    """The difference of two means over the same queries, first minus second, interval and p."""
    sums, sizes = scores.sums([first - second]).T
    settings = params.score
    low, high = difference_interval(
        sums, sizes, settings.bootstrap, settings.confidence, params.seed
    )
    difference = float(sums.sum() / sizes.sum())
    return {"difference": difference, "low": low, "high": high, "p": permutation(sums)}


def _corrected(rows: list[dict[str, object]]) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p"].to_numpy(float))) if len(table) else table

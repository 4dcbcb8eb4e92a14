"""All analyses of template-based against template-free probing (Shaier et al.), as tables.

Accuracies are those of entity ranking over a data set's own entities (`mask_average`); no model is
run.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from medprobe.core.params import Params
from medprobe.core.spreadsheets import read_csv
from medprobe.papers.template_free.analyses import predicted, ranks, scores
from medprobe.papers.template_free.analyses.by_query import read_scores
from medprobe.papers.template_free.analyses.data_sets import cut_off, data_sets, forms


def analyses(
    comparison: pd.DataFrame,
    predictions: Path,
    benchmarks: Path,
    builders: Mapping[str, str],
    params: Params,
    *,
    parameters: Mapping[str, int] | None = None,
) -> dict[str, pd.DataFrame]:
    """Compute all analyses."""
    sets = data_sets(builders)
    models = params.models.all()

    def counted(model: str, subset: str) -> bool:
        return model not in models or models[model].counts_in(subset)

    sizes = parameters or {}
    by_set = scores.per_data_set(comparison, sets)
    by_query = read_scores(predictions, benchmarks, sets, params)
    points = scores.select_points(by_set, counted)
    named = predicted.count_by_data_set(predictions, benchmarks, sets, params)
    shares = predicted.overconfidence(named)
    pairs, pair_means, pairs_by_group = ranks.compare_rankings(by_query, counted, params)
    parallel, parallel_groups = predicted.parallel(predictions, benchmarks, sets, params, counted)
    groups, group_differences = ranks.compare_groups(by_query, params, counted)
    tables = {
        "rankings": scores.rankings(by_set),
        "displacement": pairs,
        "displacement-means": pair_means,
        "displacement-groups": pairs_by_group,
        "means": scores.average(by_set, counted),
        "models": ranks.describe_models(by_set, params, sizes, counted),
        "groups": groups,
        "group-differences": group_differences,
        "sizes": ranks.compare_sizes(by_query, by_set, params, sizes),
        "parallel": parallel,
        "parallel-groups": parallel_groups,
        "perplexity": points,
        "correlation": scores.correlate(points),
        "templates": scores.templates(comparison, sets, counted),
        "overconfidence": shares.drop(columns="subset", errors="ignore"),
        "overconfidence-means": predicted.average_overconfidence(shares, counted),
        "variety": predicted.correlate_variety(shares, by_set, counted),
        "frequent": predicted.frequent(named),
        "distractors": scores.distractors(comparison, benchmarks, sets),
    }
    for lipid in forms(builders, "lipid")[:1]:
        probed = comparison.loc[comparison["benchmark"] == lipid, "model"]
        tables["cut-off"] = cut_off(params.models, benchmarks / lipid, sorted(probed.unique()))
        for name in ("appearances", "agreement"):  # notes of its builder, and of its annotators
            if (path := benchmarks / lipid / f"{name}.csv").is_file():
                tables[name] = read_csv(path)
    hidden = [] if params.track.text else ["entity", "favourite"]
    return {
        name: table.drop(columns=hidden, errors="ignore")
        for name, table in tables.items()
        if len(table)
    }

"""All analyses of template-based against template-free probing, as tables."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from medprobe.core.params import Params
from medprobe.metrics.template_free import predicted, scores
from medprobe.metrics.template_free.cut_off import cut_off
from medprobe.metrics.template_free.data_sets import data_sets, forms


def analyses(
    comparison: pd.DataFrame,
    predictions: Path,
    benchmarks: Path,
    builders: Mapping[str, str],
    params: Params,
) -> dict[str, pd.DataFrame]:
    """Compute all analyses.

    Args:
        comparison: all scores, as `metrics.results.comparison` reads them.
        predictions: the folder of prediction tables.
        benchmarks: the folder of benchmarks.
        builders: each benchmark's builder.
        params: names the results; `track.text` says whether names of entities, which may be
            licensed, are kept.

    Returns:
        Tables by name, without the empty ones.
    """
    sets = data_sets(builders)
    left_out = [name for name, model in params.models.all().items() if not model.averaged]
    by_set = scores.per_data_set(comparison, sets)
    ranks, points = scores.rankings(by_set), scores.with_perplexity(by_set, left_out)
    named = predicted.count_by_data_set(predictions, benchmarks, sets, params)
    tables = {
        "rankings": ranks,
        "displacement": scores.displacement(ranks),
        "parallel": predicted.parallel(predictions, benchmarks, sets, params),
        "perplexity": points,
        "correlation": scores.correlation(points),
        "templates": scores.templates(comparison, sets, left_out),
        "overconfidence": predicted.overconfidence(named),
        "frequent": predicted.frequent(named),
        "distractors": scores.distractors(comparison, benchmarks, sets),
    }
    for lipid in forms(builders, "lipid")[:1]:
        probed = comparison.loc[comparison["benchmark"] == lipid, "model"]
        tables["cut-off"] = cut_off(params.models, benchmarks / lipid, sorted(probed.unique()))
        tables |= _notes(benchmarks / lipid)
    hidden = [] if params.track.text else ["entity", "favourite"]
    return {
        name: table.drop(columns=hidden, errors="ignore")
        for name, table in tables.items()
        if len(table)
    }


def _notes(folder: Path) -> dict[str, pd.DataFrame]:
    """Read how often LIPID's entities appear, and how far its annotators agree."""
    paths = {name: folder / f"{name}.csv" for name in ("appearances", "agreement")}
    return {name: pd.read_csv(path) for name, path in paths.items() if path.is_file()}

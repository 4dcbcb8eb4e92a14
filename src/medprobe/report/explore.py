"""What the page's explorer chooses from: a benchmark's numbers, few enough to stand in the page."""

from typing import Any, Final

import pandas as pd

from medprobe.figures.rows import without_sweeps
from medprobe.metrics.summary import MEANS
from medprobe.report.numbers import metric
from medprobe.report.results import Results
from medprobe.report.verdicts import chance

KEYS: Final = ["subset", "relation", "model", "method", "metric"]
VALUES: Final = ["value", "low", "high", "n"]
TIED: Final = "_tied"  # ends the names of accuracies with ties shared: a check, not a choice


def numbers(results: Results, benchmark: str) -> dict[str, Any]:
    """All means of the benchmark, and its main metric by relation and by part of a subset.

    `keys` names the values of each of KEYS; a row of `rows` has their places in it, then VALUES,
    four significant digits each, shares in per cent. `metrics` says how a metric is called, its
    `unit` and which direction is better on which subset; `chance` what names in random order
    reach. Sweeps are left out; they have drawings of their own.
    """
    main, about = results.primary(benchmark), results.benchmarks[benchmark]
    rows = without_sweeps(results.rows(benchmark))
    rows = rows[~rows["metric"].str.endswith(TIED)]
    is_mean, is_part = rows["relation"].isin(MEANS), rows["subset"].str.contains("/", regex=False)
    by_relation = ~is_mean & ~is_part & (not about.many_relations)
    parts = is_part & (rows["relation"] == "micro")
    wanted = (is_mean & ~is_part) | ((by_relation | parts) & (rows["metric"] == main))
    rows = rows[wanted].dropna(subset="value")
    keys = {key: list(dict.fromkeys(rows[key])) for key in KEYS}
    keys["subset"].sort(key=_in_order([*results.subsets(benchmark)]))
    names = keys["metric"] = sorted(keys["metric"], key=_in_order([main]))
    places = pd.DataFrame({key: rows[key].map(keys[key].index) for key in KEYS})
    scale = rows["metric"].map(lambda name: 100.0 if metric(name).share else 1.0)
    values = rows[VALUES].astype(float).mul(scale, axis=0).assign(n=rows["n"].astype(float))
    whole = results.subsets(benchmark)
    return {
        "keys": keys,
        "rows": [
            [*place, *(None if pd.isna(x) else float(f"{x:.4g}") for x in value)]
            for place, value in zip(places.to_numpy().tolist(), values.to_numpy(), strict=True)
        ],
        "metrics": {
            name: {
                "title": metric(name).title,
                "unit": "%" if metric(name).share else "",
                "better": {subset: metric(name).better_on(subset) for subset in whole},
            }
            for name in names
        },
        "chance": {
            subset: {
                name: round(100 * value, 2)
                for name in names
                if (value := chance(results, benchmark, subset, name)) is not None
            }
            for subset in whole
        },
    }


def _in_order(first: list[str]) -> Any:
    """A key to sort by: these first, in their order; then by name."""
    return lambda name: (first.index(name) if name in first else len(first), name)

"""What the page's explorer chooses from: a benchmark's numbers, few enough to stand in the page."""

from typing import Any, Final

import pandas as pd

from medprobe.figures.rows import without_sweeps
from medprobe.metrics.summary import MEANS
from medprobe.report.numbers import metric
from medprobe.report.results import Results
from medprobe.report.verdicts import chance

KEYS: Final = ["subset", "relation", "model", "method", "metric"]
VALUES: Final = ["value", "low", "high"]
TIED: Final = "_tied"  # ends the names of accuracies with ties shared: a check, not a choice


def numbers(results: Results, benchmark: str) -> dict[str, Any]:
    """All means of the benchmark, and its main metric by relation and by part of a subset.

    `keys` names the values of each of KEYS; a row of `rows` has their places in it, then VALUES as
    tables show them, shares in per cent, and the number of queries. `metrics` says how a metric is
    called, its `unit` and which direction is better on which subset; `chance` what names in random
    order reach. Sweeps are left out; they have drawings of their own.
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
    whole = results.subsets(benchmark)
    return {
        "keys": keys,
        "rows": [
            [*place, *(_rounded(row["metric"], row[value]) for value in VALUES), row["n"]]
            for place, row in zip(places.to_numpy().tolist(), rows.to_dict("records"), strict=True)
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


def _rounded(name: str, value: float | None) -> float | None:
    """A metric's value, rounded once: the page, which writes one digit after a share's point, shows
    what tables do.

    >>> _rounded("acc_at_1", 0.311512), _rounded("perplexity", 12345.6), _rounded("f1", None)
    (31.2, 12350.0, None)
    """
    if value is None or pd.isna(value):
        return None
    return float(f"{100 * value:.1f}" if metric(name).share else f"{value:.4g}")


def _in_order(first: list[str]) -> Any:
    """A key to sort by: these first, in their order; then by name."""
    return lambda name: (first.index(name) if name in first else len(first), name)

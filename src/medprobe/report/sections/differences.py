"""Which differences are more than chance: paired tests over the same queries."""

from medprobe.report import html
from medprobe.report.html import Cell
from medprobe.report.results import Results, metric_of, shown

LEVEL = 0.05


def section(results: Results, benchmark: str) -> str:
    """The paired tests of the benchmark's main metric, with Holm's correction."""
    tests = results.significance
    subset, metric = results.subsets(benchmark)[0], results.primary(benchmark)
    chosen = (tests["benchmark"] == benchmark) & (tests["subset"] == subset)
    tests = tests[chosen & (tests["metric"] == metric)]
    if tests.empty:
        return ""
    clear = int((tests["p_holm"] < LEVEL).sum())
    median = shown(metric, tests["smallest_difference"].median())
    text = (
        f"Each pair is compared query by query: {clear} of {len(tests)} differences in "
        f"{metric_of(metric).title} are significant at {LEVEL:g} (permutation test, two-sided, "
        f"Holm's correction for all {len(tests)}). On so many queries a true difference of about "
        f"{median} would be found four times in five; a smaller one may well be missed."
    )
    body = [
        [
            *(f"{row.model_a} · {row.method_a}", f"{row.model_b} · {row.method_b}"),
            Cell(_signed(metric, row.difference), row.difference),
            f"[{_signed(metric, row.low)}, {_signed(metric, row.high)}]",
            Cell(f"{row.p_holm:.4f}", row.p_holm),
            "yes" if row.p_holm < LEVEL else "no",
        ]
        for row in tests.itertuples()
    ]
    unit = " (points)" if metric_of(metric).share else ""
    heads = ["a", "b", f"a − b{unit}", "interval", "p, corrected", f"p < {LEVEL:g}"]
    return html.section(
        "Differences and chance",
        html.paragraph(text) + html.folded("All pairs", html.table(heads, body)),
    )


def _signed(metric: str, value: float) -> str:
    return f"{100 * value:+.1f}" if metric_of(metric).share else f"{value:+.4g}"

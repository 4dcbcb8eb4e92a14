"""Which differences are more than chance: paired tests over the same queries."""

from medprobe.report.blocks import Cell, Part, Table, folded, paragraph, part
from medprobe.report.numbers import metric, shown, signed
from medprobe.report.results import LEVEL, Results


def section(results: Results, benchmark: str) -> list[Part]:
    """The paired tests of the benchmark's main metric, with Holm's correction."""
    subset, name = results.subsets(benchmark)[0], results.primary(benchmark)
    tests = results.tests(benchmark, subset, name)
    if tests.empty:
        return []
    clear = int((tests["p_holm"] < LEVEL).sum())
    median = shown(name, tests["smallest_difference"].median())
    text = (
        f"Each pair is compared query by query: {clear} of {len(tests)} differences in "
        f"{metric(name).title} are significant at {LEVEL:g} (permutation test, two-sided, "
        f"Holm's correction for all {len(tests)}). On so many queries a true difference of about "
        f"{median} would be found four times in five; a smaller one may well be missed."
    )
    body = [
        [
            *(f"{row.model_a} · {row.method_a}", f"{row.model_b} · {row.method_b}"),
            Cell(signed(name, row.difference), row.difference),
            f"[{signed(name, row.low)}, {signed(name, row.high)}]",
            Cell(f"{row.p_holm:.4f}", row.p_holm),
            "yes" if row.p_holm < LEVEL else "no",
        ]
        for row in tests.itertuples()
    ]
    unit = " (points)" if metric(name).share else ""
    heads = ["a", "b", f"a − b{unit}", "interval", "p, corrected", f"p < {LEVEL:g}"]
    return part(
        "Differences and chance", paragraph(text), folded("All pairs", [Table(heads, body)])
    )

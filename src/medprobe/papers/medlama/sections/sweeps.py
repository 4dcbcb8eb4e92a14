"""By rewiring step, layer, mask ratio: whatever a method's numbered variants sweep over."""

from medprobe.papers.medlama.sweeps import START, by_relation, draw
from medprobe.report.blocks import Block, Cell, Part, Table, folded, part
from medprobe.report.numbers import cell, metric_head
from medprobe.report.results import Results
from medprobe.report.sections import Section
from medprobe.report.verdicts import SIGNS, difference, verdict


def section(results: Results, benchmark: str) -> list[Part]:
    """A table of rewired against original models, and a drawing for each sweep."""
    rows, about = results.rows(benchmark), results.benchmarks[benchmark]
    return part(
        "By setting of the method",
        _rewiring(results, benchmark),
        draw(rows, about, results.models),
        folded("By relation", by_relation(rows, about)),
    )


def _rewiring(results: Results, benchmark: str) -> list[Block]:
    """Each model before and after rewiring, with the paired test."""
    subset, name = results.main_subset(benchmark), results.primary(benchmark)
    rows = results.rows(benchmark, subset=subset, relation="macro", metric=name)
    values = rows.set_index(["model", "method"])["value"]
    tests = results.tests(benchmark, subset, name)
    body: list[list[str | Cell]] = []
    for model, variant in sorted(values.index):
        method, _, setting = variant.partition(":")
        if setting == START and (test := verdict(tests, (model, method), (model, variant))):
            both = (cell(name, values[model, variant_name]) for variant_name in (variant, method))
            body.append([model, method, *both, difference(name, test)])
    title = metric_head(name)
    heads = ["model", "method", f"original, {title}", f"rewired, {title}", "difference"]
    table = Table(heads, body, f"Before and after rewiring ({subset}, macro). {SIGNS}")
    return [table] if body else []


SECTION = Section(90, section, draw=lambda result: draw(result.rows, result.metadata))

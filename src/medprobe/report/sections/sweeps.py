"""By rewiring step, layer, mask ratio: whatever a method's numbered variants sweep over."""

from medprobe.figures.sweeps import START, by_relation, drawn
from medprobe.report.blocks import Part, folded, paragraph, part
from medprobe.report.numbers import metric, shown
from medprobe.report.results import Results
from medprobe.report.verdicts import verdict


def section(results: Results, benchmark: str) -> list[Part]:
    """A drawing for each sweep, and a sentence on rewired against original models."""
    return part(
        "By setting of the method",
        paragraph(*_rewiring(results, benchmark)),
        drawn(results.rows(benchmark), results.benchmarks[benchmark]),
        folded("By relation", by_relation(results.rows(benchmark), results.benchmarks[benchmark])),
    )


def _rewiring(results: Results, benchmark: str) -> list[str]:
    """For each model: does rewiring beat no rewiring, by the paired test?"""
    subset, name = results.subsets(benchmark)[0], results.primary(benchmark)
    rows = results.rows(benchmark, subset=subset, relation="macro", metric=name)
    sentences = []
    for model, some in rows.groupby("model", sort=True):
        methods = some.set_index("method")
        for variant in some["method"]:
            method, _, of_method = variant.partition(":")
            if of_method != START or method not in methods.index:
                continue
            tests = results.tests(benchmark, subset, name)
            if test := verdict(tests, (str(model), method), (str(model), variant)):
                before, after = (
                    shown(name, methods.loc[one, "value"]) for one in (variant, method)
                )
                title = metric(name).title
                sentences.append(
                    f"Rewiring leaves {model} at {after} {title} under {method}."
                    if test.difference == 0
                    else f"Rewiring takes {model} from {before} to {after} {title} under {method}, "
                    f"a difference that is {test.words}."
                )
    return sentences

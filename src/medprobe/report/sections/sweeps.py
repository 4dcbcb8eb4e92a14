"""By rewiring step, layer, mask ratio: whatever a method's numbered variants sweep over."""

import pandas as pd

from medprobe.report import figures, html
from medprobe.report.results import Results, metric_of, overlap, shown
from medprobe.report.tables import sweep

START = "original"  # the variant of a model that is not rewired: step 0


def section(results: Results, benchmark: str) -> str:
    """A drawing for each sweep, and a sentence on rewired against original models."""
    parts = [_rewiring(results, benchmark)]
    for subset in results.subsets(benchmark):
        metric = results.primary(benchmark)
        rows = results.rows(benchmark, subset=subset, relation="macro", metric=metric)
        found = {sweep(method): method for method in rows["method"]}
        kinds = {(method.partition(":")[0], at[0]) for at, method in found.items() if at}
        for method, name in sorted(kinds):
            parts.append(_sweep(results, rows, method, name))
    return html.section("By setting of the method", "".join(parts))


def _sweep(results: Results, rows: pd.DataFrame, method: str, name: str) -> str:
    """Lines over the settings `name-<number>` of a method, a model each."""
    at = {variant: sweep(variant) for variant in rows["method"].unique()}
    places = {variant: n[1] for variant, n in at.items() if n and n[0] == name}
    places = {v: n for v, n in places.items() if v.startswith(f"{method}:")}
    if name == "step":
        places[f"{method}:{START}"] = 0.0
    drawn = rows.assign(at=rows["method"].map(places)).dropna(subset="at")
    if drawn["at"].nunique() < 2:
        return ""
    one = drawn.iloc[0]
    look = metric_of(one["metric"])
    label = look.title + (", per cent" if look.share else "")
    words = name.replace("-", " ").replace("_", " ")
    svg = figures.curves(drawn, "at", "model", (words, label), look.share)
    results.figures[f"{one['benchmark']}-{one['subset']}-{method}-{name}"] = svg
    caption = f"{look.title} by {words} of {method} ({one['benchmark']}, {one['subset']})"
    note = "; 0 is the model before rewiring." if 0.0 in set(drawn["at"]) else "."
    return html.figure(svg, caption + note)


def _rewiring(results: Results, benchmark: str) -> str:
    """For each model: does rewiring beat no rewiring?"""
    subset, metric = results.subsets(benchmark)[0], results.primary(benchmark)
    rows = results.rows(benchmark, subset=subset, relation="macro", metric=metric)
    sentences = []
    for model, part in rows.groupby("model", sort=True):
        methods = part.set_index("method")
        for method in part["method"]:
            if method.endswith(f":{START}") and (name := method.partition(":")[0]) in methods.index:
                before, after = methods.loc[method], methods.loc[name]
                verdict = "overlap" if overlap(before, after) else "do not overlap"
                sentences.append(
                    f"Rewiring takes {model} from {shown(metric, before['value'])} to "
                    f"{shown(metric, after['value'])} {metric_of(metric).title} under {name}; "
                    f"the intervals {verdict}."
                )
    return html.paragraph(*sentences)

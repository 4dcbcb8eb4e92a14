"""Calibration: does a method find what a model was taught, and only that?

Some models come in pairs of one size and training length: one has read the facts, each a known
number of times, its untaught twin (`untaught_twin_of` in params.yaml) has not. A sound method ranks
the first above the second, and facts that were read above facts that were not.
"""

from medprobe.figures import plots
from medprobe.figures.rows import Drawing, without_sweeps
from medprobe.report.blocks import Block, Cell, Part, Table, paragraph, part
from medprobe.report.numbers import cell, metric
from medprobe.report.results import Results, overlap, without_controls


def section(results: Results, benchmark: str) -> list[Part]:
    """A table of pairs with a verdict for each method, and accuracy by times read."""
    models = set(results.rows(benchmark)["model"])
    pairs = sorted((taught, twin) for twin, taught in results.twins.items())
    pairs = [pair for pair in pairs if models.issuperset(pair)]
    if not pairs:
        return []
    return part(
        "Calibration: against the truth of what was taught",
        paragraph(
            "These models were trained here, so what they can know is no guess: a taught model has "
            "read the facts, its untaught twin has not. A method that cannot tell the two apart "
            "measures something else."
        ),
        _pairs(results, benchmark, pairs),
        *(_times(results, benchmark, taught) for taught, _ in pairs),
    )


def _pairs(results: Results, benchmark: str, pairs: list[tuple[str, str]]) -> list[Block]:
    name, subset = results.primary(benchmark), results.subsets(benchmark)[0]
    rows = results.rows(benchmark, subset=subset, relation="macro", metric=name)
    rows = without_controls(without_sweeps(rows)).set_index(["model", "method"]).sort_index()
    body: list[list[str | Cell]] = []
    apart = 0
    for taught, untaught in pairs:
        for method in (method for model, method in rows.index if model == taught):
            if (untaught, method) not in rows.index:
                continue
            a, b = rows.loc[(taught, method)], rows.loc[(untaught, method)]
            lower = metric(name).better == "lower"
            won = a["value"] < b["value"] if lower else a["value"] > b["value"]
            clear = won and not overlap(a, b)
            apart += clear
            verdict = "taught, intervals apart" if clear else "taught, intervals overlap"
            cells = [cell(name, one["value"], one["low"], one["high"]) for one in (a, b)]
            body.append([f"{taught} / {untaught}", method, *cells, verdict if won else "untaught"])
    if not body:
        return []
    title = metric(name).title
    return [
        *paragraph(
            f"Taught models are above untaught ones, with {100 * results.confidence:.0f} % "
            f"intervals that do not overlap, in {apart} of {len(body)} comparisons."
        ),
        Table(["models", "method", f"taught, {title}", f"untaught, {title}", "higher"], body),
    ]


def _times(results: Results, benchmark: str, model: str) -> list[Block]:
    """Accuracy by how often a taught model has read the fact, a line a method."""
    name, subset = results.primary(benchmark), results.subsets(benchmark)[0]
    rows = results.rows(benchmark, relation="micro", metric=name, model=model)
    rows = without_sweeps(rows[rows["subset"].str.startswith(f"{subset}/read:")])
    rows = rows.assign(times=rows["subset"].str.split(":").str[-1])
    if rows["times"].nunique() < 2:
        return []
    rows = rows.sort_values("times", key=lambda names: names.map(_first), kind="stable")
    axes = ("times that the fact was read in training", plots.label(name))
    svg = plots.curves(rows, "times", "method", axes, metric(name).share)
    caption = f"{metric(name).title} of {model} by how often it has read the fact."
    return [Drawing(f"{benchmark}-{model}-calibration", svg, caption)]


def _first(times: str) -> int:
    return int(times.removeprefix("over-").partition("-")[0]) + times.startswith("over")

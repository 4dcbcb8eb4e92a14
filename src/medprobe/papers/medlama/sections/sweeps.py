"""By rewiring step, layer, mask ratio: whatever a method's numbered variants sweep over."""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from medprobe.core.tables import Metadata, list_replicates
from medprobe.core.variants import curve, swept_settings
from medprobe.metrics import catalog
from medprobe.metrics.results import (
    primary_metric,
    select,
    subsets,
)
from medprobe.metrics.summary import MEANS
from medprobe.papers.medlama.rewired import LOSSES, ORIGINAL, READ, REWIRED, Pass
from medprobe.report.blocks import Block, Cell, Drawing, Part, Table, folded, part
from medprobe.report.figures import plots
from medprobe.report.numbers import cell, metric_head
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section, SingleResult, Steps
from medprobe.report.verdicts import SIGNS, difference, verdict


def section(results: PageData, benchmark: str) -> list[Part]:
    """A table of rewired against original models, and a drawing for each sweep."""
    rows, about = results.rows(benchmark), results.benchmarks[benchmark]
    return part(
        "By setting of the method",
        _rewiring(results, benchmark),
        draw(rows, about, results.models),
        folded("By relation", by_relation(rows, about)),
    )


def _rewiring(results: PageData, benchmark: str) -> list[Block]:
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


HIGHEST: Final = 9  # relations that are drawn, as in the paper
STEP: Final = "step"  # the sweep over steps of rewiring
START: Final = ORIGINAL  # the variant of a model that is not rewired: step 0
CUT: Final = "layers"  # the sweep over first layers that are rewired alone


def draw(rows: pd.DataFrame, metadata: Metadata, models: Sequence[str] = ()) -> list[Drawing]:
    """Draw for each subset and sweep one line per model over the settings.

    The two sweeps over layers are one drawing. A sweep whose values were probed at several steps
    has a drawing per model too, one line per value over the steps (Meng et al., ACL 2022, Figure
    9). Bands are the deviation over replicates if there are several, otherwise intervals.

    `models` are all models.
    """
    drawings = []
    for subset in subsets(rows, metadata):
        chosen = select(
            rows, subset=subset, relation="macro", metric=primary_metric(rows, metadata)
        )
        for method, name in _sweeps(chosen):
            drawings += _sweep(chosen, method, name, models)
        drawings += _by_step(chosen)
    return drawings


def _sweeps(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Methods, and what variants of theirs sweep over, other settings aside."""
    swept = {
        (method, *settings)
        for method, _, variant in (name.partition(":") for name in rows["method"].unique())
        if len(settings := swept_settings(variant)) == 1
    }
    return sorted((method, name) for method, name in swept)


def _sweep(rows: pd.DataFrame, method: str, name: str, models: Sequence[str]) -> list[Drawing]:
    """Lines over the settings `name-<number>` of a method."""
    points, note = _points(rows, method, name), ""
    if name in (CUT, READ) and len(cut := _points(rows, method, CUT)):
        if name == READ:
            return []  # drawn with the other
        read = _points(rows, method, READ)
        points = pd.concat(
            part.assign(model=part["model"] + label)
            for part, label in ((cut, ", cut"), (read, ", read"))
        )
        note = "; cut: rewired without the layers above"
        note += "; read: a layer of the whole rewired encoder" * bool(len(read))
        models = [f"{model}{label}" for model in models for label in (", cut", ", read")]
    if points["at"].nunique() < 2:
        return []
    first = points.iloc[0]
    about = f"by {_words(name)} of {method} ({first['benchmark']}, {first['subset']}){note}"
    file = f"{first['benchmark']}-{first['subset']}-{method}-{name}"
    return [_curves(points, "model", name, file, about, order=models)]


def _curves(
    points: pd.DataFrame, line: str, by: str, file: str, about: str, *, order: Sequence[str] = ()
) -> Drawing:
    """Draw a line for each value of the column `line`, in this order, over the setting `by`."""
    metric = catalog()[points["metric"].iloc[0]]
    points, bands = _with_bands(points)
    axes = (_words(by), plots.label(metric.name))
    plot = plots.curves(points, "at", line, axes, metric.share, order=order)
    return Drawing(file, plot, f"{metric.title} {about}; {bands}.")


def _by_step(rows: pd.DataFrame) -> list[Drawing]:
    """Draw for each model and setting one line per value over a second setting, the steps."""
    points = []
    for row in rows.to_dict("records"):
        method, _, variant = row["method"].partition(":")
        settings = [*swept_settings(variant).items()]
        if len(settings) == 2:
            (setting, number), (by, at) = settings
            name = {"name": method, "setting": _words(setting)}
            points.append(row | name | {"number": number, "by": by, "at": at})
    if not points:
        return []
    keys = ["model", "name", "setting", "by"]
    drawings = []
    for (model, method, setting, by), group in pd.DataFrame(points).groupby(keys):
        lines = group.sort_values(["number", "at"])
        lines["line"] = [f"{setting} {number:g}" for number in lines["number"]]
        first = lines.iloc[0]
        where_ = f"{first['benchmark']}, {first['subset']}"
        about = f"of {model} by {_words(by)} and {setting} of {method} ({where_})"
        file = f"{first['benchmark']}-{first['subset']}-{model}-{method}-{setting}-{by}"
        drawings.append(
            _curves(lines, "line", by, file.replace(" ", "_"), about, order=[*lines["line"]])
        )
    return drawings


def _words(name: str) -> str:
    return name.replace("-", " ").replace("_", " ")


def _with_bands(points: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Points with the ends of their bands, and a caption's words about these.

    Bands are the deviation over replicates wherever a point has one. A point without one then has
    no band: its interval is another quantity.
    """
    deviation = points["std"].astype(float)
    is_start = points["method"].str.endswith(f":{START}")
    start = "0 is the model before rewiring" if is_start.any() else ""
    if deviation.isna().all():
        return points, "; ".join(filter(None, (start, "bands are intervals")))
    if start and deviation[is_start].isna().all():
        start += ", which has no replicates and no band"
    value = points["value"]
    points = points.assign(low=value - deviation, high=value + deviation)
    return points, "; ".join(filter(None, (start, "bands are the deviation over replicates")))


def _points(rows: pd.DataFrame, method: str, name: str) -> pd.DataFrame:
    """Select the rows of a sweep, with the place `at` of each."""
    places = {}
    for system in rows["method"].unique():
        base, _, variant = system.partition(":")
        if base == method and (point := curve(variant)) and point[0] == name:
            places[system] = point[1]
    if name == STEP:
        places[f"{method}:{START}"] = 0.0
    return rows.assign(at=rows["method"].map(places)).dropna(subset="at")


def by_relation(rows: pd.DataFrame, metadata: Metadata) -> list[Drawing]:
    """Draw for each sweep and model, on the main subset, one line per relation over the settings.

    These are the relations with the highest values, and the micro mean. Bands are the deviation
    over replicates if there are several (Meng et al., ACL 2022, Figure 4), otherwise intervals.
    """
    if metadata.many_relations or rows.empty:
        return []
    subset = subsets(rows, metadata)[0]
    chosen = select(rows, subset=subset, metric=primary_metric(rows, metadata))
    chosen = chosen[~chosen["relation"].isin({*MEANS} - {"micro"})]
    drawings = []
    for model, of_model in chosen.groupby("model", sort=True):
        for method, name in _sweeps(of_model):
            points = _points(of_model, method, name)
            singles = points[points["relation"] != "micro"]
            best = singles.groupby("relation")["value"].max().nlargest(HIGHEST).index
            if points["at"].nunique() < 2 or len(best) < 2:
                continue
            lines = points[points["relation"].isin({*best, "micro"})]
            lines = lines.sort_values("relation", key=lambda names: names == "micro", kind="stable")
            lines["relation"] = lines["relation"].str.replace("_", " ")
            benchmark = lines["benchmark"].iloc[0]
            about = f"of {model} by {_words(name)} of {method}, by relation ({benchmark}, {subset})"
            file = f"{benchmark}-{model}-{method}-{name}-relations"
            drawings.append(_curves(lines, "relation", name, file, about))
    return drawings


def find_rewirings(result: SingleResult) -> list[Pass]:
    """The rewirings of the model that the method probed: on its sets, and of its sweeps."""
    if result.method != "contrastive":
        return []
    replicates = list_replicates(result.path).values()
    sets = sorted({name for names in replicates for name in names} - {""})
    start = f"{result.method}.sweeps."
    values: list[tuple[str, str]] = []
    for name, listed in result.settings.items():
        if name.startswith(start):  # earlier records have the value in the name
            setting, _, value = name.removeprefix(start).partition(".")
            values += [(setting, one) for one in ([value] if value else listed)]
    swept = [Pass(name, setting, value) for name in sets for setting, value in values]
    folder = REWIRED / result.model
    return [*map(Pass, sets), *(pass_ for pass_ in swept if (folder / str(pass_)).is_dir())]


def inputs(result: SingleResult) -> list[str]:
    """The folder of their checkpoints."""
    return [f"{REWIRED}/{result.model}"] if find_rewirings(result) else []


def losses(result: SingleResult) -> dict[str, Steps]:
    """Their losses by step, a series per sentence set."""
    series = {}
    for name in find_rewirings(result):
        if (file := LOSSES / result.model / f"{name}.csv").is_file():
            table = pd.read_csv(file)
            steps = zip(table["step"].tolist(), table["loss"].tolist(), strict=True)
            series[f"rewiring loss/{name}"] = list(steps)
    return series


SECTION = Section(
    90,
    section,
    draw=lambda result: draw(result.rows, result.metadata),
    inputs=inputs,
    series=losses,
)

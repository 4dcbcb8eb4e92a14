"""The first screen: which model is best, by how much, and how sure that is.

It also says how far the methods can be trusted.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from medprobe.report import glance, standings
from medprobe.report.blocks import (
    Block,
    Cell,
    Chapter,
    Choice,
    Links,
    Part,
    Table,
    anchor,
    paragraph,
    part,
)
from medprobe.report.figures.plots import wrapped
from medprobe.report.figures.rows import Drawing
from medprobe.report.numbers import MISSING, metric
from medprobe.report.results import Results
from medprobe.report.sections import calibration, published
from medprobe.report.standings import Standing, standing
from medprobe.report.verdicts import MARK, verdict

BEST_MODELS: Final = "The best model of each benchmark"
BEST: Final = "each model's best"
BY_MODEL: Final = (
    "A rank range counts only significant differences between models under one method. A model's "
    "best method is chosen by its value, which favours models with many methods, and best methods "
    f"are not tested against each other. {MARK} not shown to beat the strongest baseline."
)


def leaderboard(results: Results) -> list[Chapter]:
    """The chapter that comes before all others, or nothing where no benchmark has numbers."""
    rankings = [
        ranking
        for name in results.benchmarks
        if (ranking := standing(results, name, results.main_subset(name), results.primary(name)))
    ]
    if not rankings:
        return []
    best = Part(BEST_MODELS, glance.tables(results, rankings))
    if len({model for ranking in rankings for model in ranking.rows["model"]}) > 1:
        by_benchmark = standings.table("benchmark", [*map(_labelled, rankings)])
        parts = [Part("By benchmark", [by_benchmark]), best]
        parts.append(Part("By model", _models(results, rankings)))
    else:
        parts = [Part("At a glance", best.blocks)]
    parts += part(published.TITLE, _published(results))
    parts += part("By how often a fact was read", _read(results))
    lines = [*_summary(rankings), *_calibration(results), *_synthetic(results)]
    title = (
        "Which model knows most" if len(results.models) > 1 else f"What {results.models[0]} knows"
    )
    return [Chapter("leaderboard", title, lines, parts)]


def _labelled(ranking: Standing) -> tuple[Cell, Standing]:
    unit = " (%)" if metric(ranking.metric).share else ""
    return Cell(
        ranking.benchmark, note=f"{ranking.subset}, {metric(ranking.metric).title}{unit}"
    ), ranking


def _summary(rankings: Sequence[Standing]) -> Iterator[str]:
    """On how many benchmarks the best model is significantly better, and above the baselines."""
    if contested := [ranking for ranking in rankings if len(ranking.other_models)]:
        clear = sum(ranking.clear for ranking in contested)
        yield (
            "The best model is significantly better than every other model under the same method "
            f"on {clear} of {len(contested)} benchmarks."
        )
    measured = [ranking for ranking in rankings if ranking.baselines]
    if len(measured) > 1:
        unbeaten = [ranking for ranking in measured if not ranking.baselines[0].beaten]
        names = (f"{ranking.benchmark} ({ranking.baselines[0].name})" for ranking in unbeaten)
        exceptions = f", not on {', '.join(names)}" if unbeaten else ""
        yield (
            "The best model is shown to beat the strongest baseline on "
            f"{len(measured) - len(unbeaten)} of {len(measured)} benchmarks{exceptions}."
        )


def _calibration(results: Results) -> Iterator[str]:
    """In how many comparisons a taught model is above its untaught twin."""
    if results.twins and (counts := calibration.main_counts(results)).comparisons:
        yield (
            "Calibration: taught models are significantly better than their untaught twins in "
            f"{counts.taught} of {counts.comparisons} comparisons, and significantly worse in "
            f"{counts.untaught}."
        )


def _synthetic(results: Results) -> Iterator[str]:
    """Which models only the sample world has taught."""
    if models := sorted({*results.models} & results.invented):
        names = "all models" if models == results.models else ", ".join(models)
        yield (
            f"Trained on the synthetic sample world: {names}. Their results say nothing about "
            "real models."
        )


def _published(results: Results) -> list[Block]:
    """Links to the comparisons with published numbers."""
    links = [
        (f"#{name}/{anchor(comparison.title)}", f"On {name}, metric by metric")
        for name in results.benchmarks
        for comparison in published.section(results, name)
    ]
    return [Links(links)] if links else []


def _read(results: Results) -> list[Drawing]:
    """Accuracy by times read, of the benchmark and taught model that most methods probed."""
    rows = results.comparison
    rows = rows[rows["subset"].str.contains("/read:") & rows["model"].isin(results.twins.values())]
    invented = {name for name, about in results.benchmarks.items() if about.invented}
    rows = rows[rows["benchmark"].isin(invented)]
    methods = rows.groupby(["benchmark", "model"])["method"].nunique()
    return [] if methods.empty else calibration.draw_times(results, *map(str, methods.idxmax()))


def _models(results: Results, rankings: Sequence[Standing]) -> list[Block]:
    """A row per model, a column per benchmark, under a method that can be chosen."""
    tables = {
        BEST: _table({ranking.benchmark: _bests(results, ranking) for ranking in rankings}),
    }
    for method in sorted({method for ranking in rankings for method in ranking.rows["method"]}):
        columns = {ranking.benchmark: _column(results, ranking, method) for ranking in rankings}
        if any(len(cells) > 1 for cells in columns.values()):
            tables[method] = _table({name: cells for name, cells in columns.items() if cells})
    return [*paragraph(BY_MODEL), Choice("Method", tables)]


def _table(columns: Mapping[str, Mapping[str, Cell]]) -> Table:
    """A row per model, the best first by its mean place; without a value a model is last."""
    models = sorted({model for cells in columns.values() for model in cells})
    places = {
        model: sum([*cells, model].index(model) for cells in columns.values()) for model in models
    }
    models.sort(key=places.__getitem__)
    body = [[model, *(cells.get(model, MISSING) for cells in columns.values())] for model in models]
    return Table(["model", *columns], body)


def _bests(results: Results, ranking: Standing) -> dict[str, Cell]:
    """Each model's best row, with its method."""
    rows = ranking.rows.drop_duplicates("model")
    return {
        str(row["model"]): standings.value(
            ranking.metric, row, wrapped(str(row["method"])), standings.baseline_mark(results, row)
        )
        for _, row in rows.iterrows()
    }


def _column(results: Results, ranking: Standing, method: str) -> dict[str, Cell]:
    """Each model's value under a method, with the ranks that the tests allow."""
    rows = ranking.rows[ranking.rows["method"] == method].set_index("model", drop=False)
    tests = results.tests(ranking.benchmark, ranking.subset, ranking.metric)
    cells = {}
    for model, system in rows.iterrows():
        above = below = 0
        for other in rows.index:
            if (test := verdict(tests, (str(model), method), (other, method))) and test.clear:
                better = test.favours(ranking.metric, ranking.subset)
                above, below = above + (not better), below + better
        first, last = 1 + above, len(rows) - below
        rank = f"rank {first}" if first == last else f"rank {first}–{last}"
        note, mark = rank if len(rows) > 1 else "", standings.baseline_mark(results, system)
        cells[str(model)] = standings.value(ranking.metric, system, note, mark)
    return cells

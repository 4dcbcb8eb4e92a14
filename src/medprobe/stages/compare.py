"""Stage `compare`: all models and methods side by side, as tables, drawings and one page."""

from pathlib import Path

import pandas as pd

from medprobe import benchmarks as registry
from medprobe import places
from medprobe.files import replacing
from medprobe.params import ModelParams, Models, Params
from medprobe.report import benchmark_numbers, paired_tests
from medprobe.report.context import trajectory
from medprobe.report.diskne import curves
from medprobe.report.page import render
from medprobe.report.results import Results
from medprobe.report.tables import comparison, joined, write_csv
from medprobe.report.template_free import analyses


def compare(params: Params, out: Path = places.REPORTS) -> None:
    """Write `comparison.csv`, `significance.csv`, `statistics.csv`, `figures/*.svg` and
    `index.html` to `out`.

    Reads metrics/ and the predictions, benchmarks and models below outputs/; raises BadInput where
    there are no scores. The same input gives the same bytes.
    """
    numbers = comparison(places.METRICS)
    template_free = analyses(numbers, places.PREDICTIONS, places.BENCHMARKS, params)
    drawn = {
        "context-trajectory": trajectory(
            places.PREDICTIONS, places.BENCHMARKS, names=params.track.text
        ),
        "diskne-curves": curves(places.PREDICTIONS),
    }
    statistics = benchmark_numbers.counts(places.BENCHMARKS)
    folders = [places.MODELS / name for name in _models(params.models)]
    tokens = {
        name: benchmark_numbers.tokens(places.BENCHMARKS / name, folders) for name in statistics
    }
    results = Results(
        comparison=numbers,
        significance=paired_tests.tests(places.PREDICTIONS, places.BENCHMARKS, params),
        benchmarks={name: registry.find(name).METADATA for name in chapters(numbers, params)},
        statistics=statistics,
        tokens=tokens,
        analyses=template_free | drawn,
        published=published_names(params.models),
        confidence=params.score.confidence,
    )
    page = render(results)
    with replacing(out) as folder:
        (folder / "figures").mkdir(parents=True)
        counted = benchmark_numbers.rows(statistics, tokens)
        write_csv(joined(numbers, counted), folder / "comparison.csv")
        write_csv(counted.drop(columns=["method", "low", "high"]), folder / "statistics.csv")
        write_csv(results.significance, folder / "significance.csv")
        for name, table in template_free.items():
            write_csv(table, folder / f"template-free-{name}.csv")
        for name, table in drawn.items():
            write_csv(table, folder / f"{name}.csv")
        for name, svg in results.figures.items():
            (folder / "figures" / f"{name.replace(':', '-')}.svg").write_text(svg, encoding="utf-8")
        (folder / "index.html").write_text(page, encoding="utf-8")


def chapters(numbers: pd.DataFrame, params: Params) -> list[str]:
    """The benchmarks that have numbers, in the order of params.yaml, the others behind them."""
    place = {name: number for number, name in enumerate(params.benchmarks)}
    return sorted(
        numbers["benchmark"].unique(), key=lambda name: (place.get(name, len(place)), name)
    )


def published_names(models: Models) -> dict[str, str]:
    """The models that stand in a paper's tables, with their name there."""
    return {name: one.published for name, one in _models(models).items() if one.published}


def _models(models: Models) -> dict[str, ModelParams]:
    kinds = (models.masked, models.encoder, models.causal, models.seq2seq)
    return {name: entry for kind in kinds for name, entry in kind.items()}

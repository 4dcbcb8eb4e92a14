"""A result card for each model, in Markdown.

It says what was asked, how, with which numbers, and what they do not say.
"""

from typing import Any, Final

import pandas as pd

from medprobe.core.tables import BASELINE
from medprobe.metrics.results import COMPARISON, primary_metric, select, sweep, to_rows
from medprobe.report.numbers import format_value
from medprobe.report.numbers import metric as find_metric
from medprobe.tracking.shared import MEAN, ResultRecord, ResultsFile

LIMITS: Final = (
    "A value is true of these queries, prompts and candidates. With other wordings, or with more"
    " candidates, it is another one.",
    "Values of different methods are different quantities. Compare models under one method.",
    "A value that the baseline reaches without reading the subject shows no knowledge of subjects.",
    "Intervals say how far a value moves with other queries. Whether two models differ is a"
    " question for the paired tests.",
    "A model that ranks a fact first may still not say it, and may also say the opposite.",
    "Nothing here says that a model is fit for patients, diagnoses or treatments.",
)
IMPORTED: Final = (
    "Another program asked this model. How it put the prompts, and which weights it loaded, was not"
    " checked here; its answers were scored by the same rules as all others."
)


def cards(file: ResultsFile) -> dict[str, str]:
    """Write the card of each model, baselines aside: path -> Markdown."""
    models = sorted({result.model for result in file.results} - {BASELINE})
    return {f"{model}.md": _card(file, model) for model in models}


def _card(file: ResultsFile, model: str) -> str:
    results = [result for result in file.results if result.model == model]
    kind = next((result.kind for result in results if result.kind), "unknown")
    imported = any("imported.tool" in result.made for result in results)
    parts = [f"# {model}: what it knows, as measured\n\nKind of model: {kind}."]
    if imported:
        parts.append(f"**Imported.** {IMPORTED}")
    for name in sorted({result.benchmark for result in results}):
        parts.append(
            _section(file, name, [result for result in results if result.benchmark == name])
        )
    parts.append("## How it was made\n\n" + _origins(results))
    limits = "\n".join(f"- {limit}" for limit in LIMITS)
    parts.append(f"## What not to conclude\n\n{limits}")
    parts.append(f"Made by medprobe {file.medprobe}.")
    return "\n\n".join(parts) + "\n"


def _section(file: ResultsFile, name: str, results: list[ResultRecord]) -> str:
    """One benchmark: its description, and the main metric by method and subset."""
    benchmark = file.benchmarks[name]
    about = benchmark.metadata
    rows = _rows(results)
    baseline = _rows(
        [result for result in file.results if result.benchmark == name and result.model == BASELINE]
    )
    metric = primary_metric(rows, about)
    lines = [
        f"## {name}\n",
        f"{about.description}. Licence of the sources: {about.licence}. {about.citation}.\n",
        f"The metric is {find_metric(metric).title}, the mean over relations, with its interval.\n",
        "| subset | method | value | interval | queries | baseline |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in select(rows, metric=metric).sort_values(["subset", "method"]).itertuples():
        if "/" in row.subset or sweep(row.method):
            continue
        values = select(baseline, metric=metric, subset=row.subset)["value"]
        lower = find_metric(metric).better_on(row.subset) == "lower"
        strongest = values.min() if lower else values.max()  # NaN without baselines
        interval = [row.low, row.high] if pd.notna(row.low) else []
        cells = [
            row.subset,
            row.method,
            format_value(metric, row.value),
            " to ".join(format_value(metric, value) for value in interval) or "–",
            f"{int(row.n)}" if pd.notna(row.n) else "–",
            format_value(metric, strongest),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if len(baseline):
        lines.append(
            "\nThe baseline is the strongest of chance, any answer of the relation, and the "
            "answers that are commonest for other subjects."
        )
    return "\n".join(lines)


def _rows(results: list[ResultRecord]) -> pd.DataFrame:
    """The means over relations, as rows of the comparison."""
    rows = [
        row
        for result in results
        for row in to_rows({result.benchmark: result.scores}, result.model, result.method)
    ]
    return select(pd.DataFrame(rows, columns=COMPARISON), relation=MEAN)


def _origins(results: list[ResultRecord]) -> str:
    """Code, data and versions of each result, one line per method."""
    lines = []
    for result in results:
        facts: dict[str, Any] = {"code": result.code, **result.inputs}
        facts |= {
            name: value
            for name, value in result.made.items()
            if name.startswith("imported.") and "sha256" not in name
        }
        facts |= {name: result.made[name] for name in ("device", "python") if name in result.made}
        listed = ", ".join(f"{name} {value}" for name, value in facts.items())
        lines.append(f"- {result.benchmark}, {result.method}: {listed}")
    return "\n".join(lines)

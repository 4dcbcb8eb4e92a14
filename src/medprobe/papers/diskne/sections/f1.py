"""F1 in the form of DisKnE's tables.

These are means by category, diseases by models, training curves, and means of what needs no
threshold.

Source: Alghanmi et al. 2021, tables 2 to 8; their numbers are next to those of their models.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core.papers import published
from medprobe.core.tables import read_table
from medprobe.metrics.summary import MEANS
from medprobe.report.blocks import Block, Cell, Choice, Drawing, Part, Table, folded, part
from medprobe.report.figures import plots
from medprobe.report.numbers import MISSING, metric, with_deviation
from medprobe.report.page_data import PageData
from medprobe.report.sections import Layout, Section, SingleResult, Steps
from medprobe.report.sections.published import data_note

LABELS: Final = ("no", "yes")


def _labels(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    labels = np.array(LABELS)[predictions["prediction"].astype(int)]
    pairs = zip(labels, predictions["score"], strict=True)
    values = [f"{label}, {score:.2f}" for label, score in pairs]
    return predictions.assign(prediction=values, prediction_id=values)


def _examples(folder: Path) -> pd.DataFrame:
    """The test examples as queries, with premise and hypothesis."""
    examples = read_table(folder / "examples.parquet", ["example_id", "full_hypothesis"])
    splits = read_table(folder / "splits.parquet", ["target", "split", "example_id"])
    tests = splits[splits["split"] == "test"].drop_duplicates("example_id")
    rows = examples.merge(tests[["example_id", "target"]], on="example_id")
    labels = [[label] for label in np.array(LABELS)[rows["label"].astype(int)]]
    return pd.DataFrame(
        {
            "query_id": rows["example_id"],
            "relation": rows["target"],
            "subject": rows["hypothesis"],
            "subject_id": rows["cui"],
            "prompt": rows["premise"] + " " + rows["full_hypothesis"],
            "answers": labels,
            "answer_ids": labels,
            "subset": rows["category"],
        }
    )


LAYOUT: Final = Layout(
    _examples,
    {"f1": _labels},
    ("does it follow?",),
    labels=LABELS,
    note="Does the hypothesis follow from the premise? The score after each answer runs from "
    "0 (no) to 1 (yes).",
)


KINDS: Final = ["train", "validation"]
KEYS: Final = ["model", "variant", "loss", "epoch"]


def read_epochs(path: Path) -> pd.DataFrame:
    """Read the note `curves` of a prediction table; no rows if nothing was fine-tuned.

    It has a row for each variant, disease, seed and epoch, with a column for each of KINDS.
    """
    note = path.with_name(f"{path.stem}-curves.csv")
    epochs = pd.read_csv(note, keep_default_na=False) if note.is_file() else pd.DataFrame()
    return epochs if {"variant", "epoch", *KINDS} <= set(epochs) else pd.DataFrame()


def table(systems: Mapping[str, Path]) -> pd.DataFrame:
    """Read losses by epoch.

    The columns are `model, variant, loss` (train or validation), `epoch, value, low, high, n`. If
    nothing was fine-tuned, there are no rows.

    `systems` are prediction tables by model; one of fine-tuning has a note `curves`.
    `value` is the median over diseases and seeds, `low` and `high` the quartiles, `n` how many of
    them trained that long.
    """
    parts = [pd.DataFrame(columns=[*KEYS, "value", "low", "high", "n"])]
    for model, path in systems.items():
        if (epochs := read_epochs(path)).empty:
            continue
        rows = epochs.melt(["variant", "epoch"], KINDS, "loss").assign(model=model)
        by = rows.groupby(KEYS, sort=True)["value"]
        numbers = {"value": by.median(), "low": by.quantile(0.25), "high": by.quantile(0.75)}
        parts.append(pd.DataFrame(numbers | {"n": by.size()}).reset_index())
    return pd.concat(parts[1:], ignore_index=True) if len(parts) > 1 else parts[0]


def draw(losses: pd.DataFrame, benchmark: str) -> list[Drawing]:
    """Draw for each model one line per variant and loss."""
    drawings = []
    for model, rows in losses.groupby("model", sort=True):
        named = rows.assign(name=rows["variant"].replace("", "default") + ", " + rows["loss"])
        plot = plots.curves(named, "epoch", "name", ("epoch", "cross-entropy"), False)
        caption = f"{model}: loss by epoch, median and quartiles over diseases and seeds."
        drawings.append(Drawing(f"{benchmark}-curves-{model}", plot, caption))
    return drawings


RANKED: Final = ("top_1", "auc")
WIDE: Final = 5  # models that are columns; if there are more, they are rows


def section(results: PageData, benchmark: str) -> list[Part]:
    """Return the tables of F1, or nothing if no F1 was measured.

    They have both means of every category and variant and of rare and common diseases, F1 of every
    disease, and how it was learnt.
    """
    rows = results.rows(benchmark, metric="f1")
    is_part = rows["subset"].str.contains("/positives:", regex=False)
    parts = rows[is_part].assign(subset=rows["subset"].str.replace(r"^.*:", "", regex=True))
    rows = rows[~is_part]
    is_mean = rows["relation"].isin(MEANS)
    is_whole = ~rows["subset"].str.contains("/", regex=False)
    diseases: list[Block] = []
    for category, group in rows[~is_mean & is_whole].groupby("subset", sort=True):
        table = _table(results, group, {"relation": "disease", "method": "method"})
        diseases += folded(str(category), [table])
    heads = {"subset": "category", "method": "method"}
    frequent = _means(results, parts, {"subset": "positives", "method": "method"})
    learnt = results.tables.get(f"{benchmark}-curves")
    ranked: list[Block] = []
    for name in RANKED:
        means = results.rows(benchmark, metric=name)
        means = means[means["relation"].isin(MEANS) & ~means["subset"].str.contains("/")]
        ranked += folded(f"{metric(name).title} by category", _means(results, means, heads))
    return [
        *part(
            "F1 by category",
            _means(results, rows[is_mean], heads),
            ranked,
            folded("F1 of rare and common diseases, by their positives", frequent),
        ),
        *part("F1 by disease", diseases),
        *part("How the classifiers learn", [] if learnt is None else draw(learnt, benchmark)),
    ]


def _means(results: PageData, rows: pd.DataFrame, heads: dict[str, str]) -> list[Block]:
    """The table of each mean over diseases, of which one is shown."""
    tables = {
        str(mean): _table(results, group, heads)
        for mean, group in rows.groupby("relation", sort=True)
    }
    return [Choice("Mean", tables)] if tables else []


def _table(results: PageData, rows: pd.DataFrame, keys: dict[str, str]) -> Table:
    """A metric of each model, a line for each value of the columns `keys` (column: its heading)."""
    title = metric(rows["metric"].iloc[0]).title
    cells = {row.Index: _cell(results, row) for row in rows.itertuples()}
    is_printed = any("[" in number.text for number in cells.values())
    caption = f"{title}, per cent"
    caption += "; in brackets a paper's number over the same data" if is_printed else ""
    models = sorted(rows["model"].unique())
    if len(models) > WIDE:
        listed = [
            [*(getattr(row, key) for key in ("model", *keys)), cells[row.Index]]
            for row in rows.sort_values("value", ascending=False, kind="stable").itertuples()
        ]
        return Table(["model", *keys.values(), title], listed, caption)
    body: list[list[str | Cell]] = []
    for names, group in rows.groupby(list(keys), sort=True):
        of_group = {row.model: cells[row.Index] for row in group.itertuples()}
        body.append([*names, *(of_group.get(model, MISSING) for model in models)])
    return Table([*keys.values(), *models], body, caption)


def _cell(results: PageData, row: Any) -> Cell:
    """`41.2`, or `41.2 [46 ± 3]` where the paper has this number, of its own data."""
    text = with_deviation(row.metric, row.value, row.std)
    name, printed_as = results.published.get(row.model), results.printed(row.benchmark)
    printed = published(name, printed_as, row.subset, row.relation, row.method) if name else []
    for paper, number, of_paper in printed[:1]:
        data = data_note(results, row, paper, paper.tables[number])
        if row.metric in of_paper.values and not data.startswith("no:"):
            spread = f" ± {of_paper.std[row.metric]:g}" if row.metric in of_paper.std else ""
            text += f" [{of_paper.values[row.metric]:g}{spread}]"
    return Cell(text, row.value)


def tables(results: PageData) -> dict[str, pd.DataFrame]:
    """Losses by epoch, by benchmark."""
    found = {f"{name}-curves": table(results.systems(name)) for name in results.benchmarks}
    return {name: table for name, table in found.items() if len(table)}


def drawings(result: SingleResult) -> list[Drawing]:
    """How the classifiers of one result learn."""
    curves = table({result.path.parent.parent.name: result.path})
    return draw(curves, result.path.stem)


def series(result: SingleResult) -> dict[str, Steps]:
    """Losses by epoch, the mean over diseases and seeds: two series per variant."""
    epochs = read_epochs(result.path)
    if epochs.empty:
        return {}
    means = epochs.groupby(["variant", "epoch"], sort=True)[KINDS].mean()
    return {
        f"{kind} loss/{variant or 'default'}": list(
            zip(part.index.get_level_values("epoch").tolist(), part[kind].tolist(), strict=True)
        )
        for variant, part in means.groupby(level="variant")
        for kind in KINDS
    }


SECTION = Section(50, section, tables=tables, draw=drawings, series=series, layout=LAYOUT)

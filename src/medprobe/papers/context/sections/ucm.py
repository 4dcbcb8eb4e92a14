"""Understanding by rank change: the paper's Tables 1, 2 and 3, their drawings, and the control."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.tables import QUERY_COLUMNS, read_table
from medprobe.metrics.pairs import System
from medprobe.metrics.splits import first_number
from medprobe.papers.context import drawings as ucm
from medprobe.papers.context.drawings import ACC, CONTROL, COPY
from medprobe.papers.context.rank_changes import SERIES, SHARES
from medprobe.report.blocks import Block, Cell, Drawing, Part, Table, folded, paragraph, part
from medprobe.report.numbers import MISSING, cell, count, metric_cells
from medprobe.report.page_data import PageData
from medprobe.report.sections import Layout, Section, SingleResult
from medprobe.report.verdicts import SIGNS, difference, verdict

STEPS: Final = ["context_id", "centre", "kind", "resource", "target", "target_id", "step"]


def _ranks(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """The ranks of each context's target; a hit is a better rank than without a context."""
    steps = queries[["query_id", "steps", "target"]].explode("steps")
    steps["place"] = steps.groupby("query_id").cumcount() + 1
    keys = ["query_id", "prediction"]
    ranks = predictions[["replicate", *keys, "rank"]]
    rows = steps.merge(ranks, left_on=["steps", "target"], right_on=keys, suffixes=("", "_"))
    rows = rows.sort_values(["query_id", "replicate", "place"])
    without_context = rows.groupby(["query_id", "replicate"])["rank"].transform("first")
    values = rows["rank"].astype(str)
    rows = rows.assign(prediction=values, prediction_id=values, hit=rows["rank"] < without_context)
    return rows.assign(rank=rows["place"])


def _contexts(folder: Path) -> pd.DataFrame:
    """One row per context, with its queries in `steps` and what each step adds in `heads`."""
    steps = read_table(folder / "queries.parquet", [*QUERY_COLUMNS, *STEPS, "added_role"])
    steps = steps.sort_values(["context_id", "step"], kind="stable")
    steps = steps.drop_duplicates(["context_id", "step"])
    contexts = steps.groupby("context_id", sort=True)
    starts = contexts.first().drop(columns="query_id").reset_index(names="query_id")
    heads = steps["added_role"].map("+ {}".format).where(steps["step"] > 0, "alone")
    return starts.assign(
        subset=starts["centre"] + ", " + starts["kind"] + ", " + starts["resource"],
        answers=[[name] for name in starts["target"]],
        answer_ids=[[name] for name in starts["target_id"]],
        steps=[*contexts["query_id"].agg(list)],
        heads=[*heads.groupby(steps["context_id"]).agg(list)],
    )


LAYOUT: Final = Layout(
    _contexts,
    {"ucm": _ranks},
    (),
    verdict="higher",
    answers="Target",
    note="The target's rank without a context, then after each step that adds to the context. "
    "✓ marks a better rank than without a context. The last step counts.",
)


NAME: Final = "understand"
CENTRES: Final = ("target", "negative")
TESTED: Final = {  # what tells models apart: the subset and metric of its paired tests
    ACC: ("full", "acc_at_5"),
    **{share.capitalize(): ("target", share) for share in SHARES},
}
SHARES_TEXT: Final = (
    "When a context gains another correct object, the target's rank rises (understand), "
    "stays (confuse) or falls (misunderstand). Around a negative target, an incorrect entity takes "
    "the target's place, and a low Understand is good. The copy control ranks what the context "
    "names first and asks no model."
)
ACCURACY_TEXT: Final = (
    "The full context names the target, so acc@5 with context rises by copying alone. A model "
    "whose acc@5 with context is no higher than the copy control's may only copy. Understand "
    "counts what other evidence does to the target's rank."
)

SPLITS: Final = ("resource:", "objects:", "frequency:")  # parts with accuracy and UCM
BOTH_TEXT: Final = (
    "Macro: the mean over relations of the part's triples; per cent. Objects: how many are correct "
    "for the subject. Frequency: how many documents mention the object."
)


def section(results: PageData, benchmark: str) -> list[Part]:
    """The chapter's parts; empty without rank changes."""
    rows = _sort_models(ucm.select_variants(results.rows(benchmark)))
    if rows.empty:
        return []
    moves = results.tables.get(f"{benchmark}-trajectory")
    return [
        *part(
            "Understand, confuse, misunderstand",
            paragraph(SHARES_TEXT),
            ucm.draw_shares(rows),
            _understand_tests(results, benchmark, rows),
            _shares(ucm.micro(rows), ["model", "subset"]),
        ),
        *part(
            "Accuracy with context, and understanding",
            paragraph(ACCURACY_TEXT),
            ucm.draw_accuracy(rows, results.models),
            _accuracy(rows),
            _pairs_told_apart(results, benchmark, rows),
        ),
        *part(
            "How ranks move",
            _changes(rows),
            [] if moves is None else ucm.draw_ranks(moves, benchmark),
        ),
        *part(
            "Where models understand",
            folded("By kind, resource, objects and frequency", _by_kind(rows)),
            folded(
                "Accuracy and UCM_k by resource, objects and frequency", _accuracy_beside_ucm(rows)
            ),
        ),
    ]


def _sort_models(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the model that understands most first."""
    whole = rows[(rows["relation"] == "macro") & (rows["metric"] == NAME)]
    values = whole[whole["subset"] == CENTRES[0]].set_index("model")["value"]
    places = rows["model"].map(values).astype(float).rank(ascending=False)
    return rows.loc[places.sort_values(kind="stable").index]


def _understand_tests(results: PageData, benchmark: str, rows: pd.DataFrame) -> list[Block]:
    """Understand around both centres, and the tests of each model with itself and the control."""
    whole = rows[(rows["relation"] == "macro") & (rows["metric"] == NAME)]
    values = whole.set_index(["model", "subset"])["value"]
    both = results.tests(benchmark, " - ".join(CENTRES), NAME)
    body: list[list[str | Cell]] = []
    for model, system in _systems(whole).items():
        control = (system[0], f"{system[1].partition(':')[0]}:{COPY}")
        against = (
            verdict(results.tests(benchmark, centre, NAME), system, control) for centre in CENTRES
        )
        body.append(
            [
                model,
                *(cell(NAME, values.get((model, centre), float("nan"))) for centre in CENTRES),
                difference(NAME, verdict(both, system, system)),
                *(difference(NAME, test) for test in against),
            ]
        )
    heads = ["model", "target", "negative target", "difference"]
    heads += ["target, against control", "negative target, against control"]
    caption = f"Understand by UCM_k, per cent; macro: the mean over relations, of triples. {SIGNS}"
    return [Table(heads, body, caption)] if body else []


def _systems(rows: pd.DataFrame) -> dict[str, System]:
    """Each model's name on the page -> the model and its method."""
    return {row.model: (row.asked, row.method) for row in rows.itertuples()}


def _accuracy(rows: pd.DataFrame) -> list[Block]:
    """acc@k without and with context, next to UCM_k (Table 2)."""
    chosen = ucm.label_columns(rows)
    wide = chosen.pivot(index="model", columns="what", values="value")
    wide = wide.loc[list(dict.fromkeys(rows["model"])), list(dict.fromkeys(chosen["what"]))]
    body: list[list[str | Cell]] = [
        [str(model), *(cell(NAME, value) for value in line)]
        for model, line in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    caption = "Macro: the mean over relations, of triples, within a resource first; per cent"
    return [Table(["model", *wide], body, caption)] if body else []


def _pairs_told_apart(results: PageData, benchmark: str, rows: pd.DataFrame) -> list[Block]:
    """How many pairs of models accuracy with context and each share tell apart."""
    measured = ucm.label_columns(rows[rows["model"] != CONTROL])
    pairs = [*combinations(sorted({*_systems(measured).values()}), 2)]
    body: list[list[str | Cell]] = []
    for what, (subset, name) in TESTED.items():
        tests = results.tests(benchmark, subset, name)
        verdicts = [test for a, b in pairs if (test := verdict(tests, a, b))]
        if verdicts:
            body.append([what, count(len(verdicts)), count(sum(test.clear for test in verdicts))])
    caption = "Pairs of models that differ significantly, by paired tests (corrected)"
    return (
        [Table(["measure", "pairs of models", "significantly different"], body, caption)]
        if body
        else []
    )


def _changes(rows: pd.DataFrame) -> list[Block]:
    """Mean rank changes where the added entity is correct and where it is not (Table 1)."""
    chosen = rows[rows["metric"].isin(SERIES) & rows["subset"].str.startswith("target/added:")]
    if chosen.empty:
        return []
    wide = chosen.pivot(index="model", columns=["subset", "metric"], values="value")
    wide = wide.loc[list(dict.fromkeys(chosen["model"]))]
    columns = {
        (f"target/added:{role}", name): f"{name.removeprefix('rc_')}, {role} added"
        for role in ("correct", "incorrect")
        for name in SERIES
        if (f"target/added:{role}", name) in wide
    }
    body: list[list[str | Cell]] = [
        [
            str(model),
            *(MISSING if pd.isna(value) else Cell(f"{value:+.2f}", value) for value in line),
        ]
        for model, line in zip(wide.index, wide[list(columns)].to_numpy(), strict=True)
    ]
    return [
        Table(
            ["model", *columns.values()],
            body,
            "Mean rank change, micro: over all steps; negative is a rise",
        )
    ]


def _by_kind(rows: pd.DataFrame) -> list[Block]:
    """UCM_m by kind, resource, number of correct objects, frequency, times read."""
    chosen = rows[rows["metric"].isin(SHARES) & (rows["relation"] == "micro")]
    chosen = chosen[chosen["subset"].str.contains("/", regex=False)]
    return _shares(chosen.sort_values("subset", kind="stable"), ["subset", "model"])


def _accuracy_beside_ucm(rows: pd.DataFrame) -> list[Block]:
    """acc@k without and with context next to UCM_k, for the parts that both have."""
    split = rows["subset"].str.partition("/")
    chosen = rows.assign(subset=split[0], part=split[2])
    chosen = ucm.label_columns(chosen[chosen["part"].str.startswith(SPLITS)])
    if chosen.empty:
        return []
    wide = chosen.pivot(index=["part", "model"], columns="what", values="value")
    wide = wide[list(dict.fromkeys(chosen["what"]))]
    models = list(dict.fromkeys(rows["model"]))
    order = sorted(wide.index, key=lambda key: (*_place(key[0]), models.index(key[1])))
    body: list[list[str | Cell]] = [
        [part, model, *(cell(NAME, value) for value in wide.loc[(part, model)])]
        for part, model in order
    ]
    return [Table(["part", "model", *wide], body, BOTH_TEXT)]


def _place(part: str) -> tuple[int, float, str]:
    """The place of a part among others: bins in the order of their numbers."""
    name, _, value = part.partition(":")
    return SPLITS.index(f"{name}:"), first_number(value), value


def _shares(rows: pd.DataFrame, keys: list[str]) -> list[Block]:
    """The three shares with their intervals (Table 3)."""
    body: list[list[str | Cell]] = []
    for names, group in rows.groupby(keys, sort=False):
        body.append([*map(str, names), *metric_cells(group, SHARES), count(group["n"].max())])
    heads = [*keys, *(name.capitalize() for name in SHARES), "triples"]
    return [Table(heads, body, "UCM_m, per cent; micro: the mean over all steps")] if body else []


def tables(results: PageData) -> dict[str, pd.DataFrame]:
    """The ranks of one context's entities from step to step, by benchmark."""
    found = {
        f"{name}-trajectory": ucm.rank_table(
            results.systems(name), results.folder(name), results.params.track.text
        )
        for name in results.benchmarks
    }
    return {name: table for name, table in found.items() if len(table)}


def drawings(result: SingleResult) -> Iterator[Drawing]:
    """The shares, the accuracy with context, and how ranks move."""
    rows, benchmark = ucm.select_variants(result.rows), result.path.stem
    yield from ucm.draw_shares(rows)
    yield from ucm.draw_accuracy(rows)
    systems = {result.path.parent.parent.name: result.path}
    moves = ucm.rank_table(systems, result.folder, result.names)
    yield from ucm.draw_ranks(moves, benchmark)


SECTION = Section(40, section, tables=tables, draw=drawings, layout=LAYOUT)

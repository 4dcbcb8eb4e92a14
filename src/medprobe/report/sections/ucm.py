"""Understanding by rank change: the paper's Tables 1, 2 and 3, their drawings, and the control."""

from itertools import combinations
from typing import Final

import pandas as pd

from medprobe.figures import trajectory, ucm
from medprobe.figures.ucm import ACC, CONTROL
from medprobe.metrics.rank_changes import SERIES, SHARES
from medprobe.report.blocks import Block, Cell, Part, Table, folded, paragraph, part
from medprobe.report.numbers import MISSING, cell, count, shown
from medprobe.report.results import Results, overlap

SATURATED: Final = 0.9  # as in the paper, below Table 2: "non-distinguishable 90% scores"


def section(results: Results, benchmark: str) -> list[Part]:
    """All of it, or nothing where the benchmark has no rank changes."""
    rows = ucm.asked(results.rows(benchmark))
    if rows.empty:
        return []
    moves = results.trajectories.get(benchmark)
    return [
        *part("Understand, confuse, misunderstand", _shares(rows)),
        *part("Accuracy with context, and understanding", _accuracy(rows)),
        *part(
            "How ranks move",
            _changes(rows),
            [] if moves is None else trajectory.drawn(moves, benchmark),
        ),
        *part("Where models understand", _parts(rows)),
    ]


def _shares(rows: pd.DataFrame) -> list[Block]:
    """UCM_m around target and negative target (Table 3), stacked, and what the control says."""
    chosen = ucm.micro(rows)
    return [
        *paragraph(
            "Each time that a context gains another correct object, the target's rank rises "
            "(understand), stays (confuse) or falls (misunderstand). Around a negative target, an "
            "incorrect entity takes the target's place."
        ),
        *ucm.shares_drawn(rows),
        *paragraph(*_apart(chosen)),
        *_numbers(chosen, ["model", "subset"]),
    ]


def _apart(rows: pd.DataFrame) -> list[str]:
    """For each model, whether target and negative target can be told apart."""
    sentences = []
    understand = rows[rows["metric"] == "understand"].set_index(["model", "subset"])
    for model in sorted({model for model, _ in understand.index}):
        target, negative = (understand.loc[(model, name)] for name in ("target", "negative"))
        same = overlap(target, negative)
        what = " against ".join(shown("understand", one["value"]) for one in (target, negative))
        if model == CONTROL:
            sentences.append(
                "The control ranks what the context holds first and knows nothing: it understands "
                f"target and negative target alike ({what}). "
                + (
                    "Its intervals overlap, so a model that cannot tell the two apart either "
                    "does no more than copy."
                    if same
                    else "Its intervals do not overlap: the two kinds of context differ by "
                    "themselves, and differences of this size mean nothing."
                )
            )
        else:
            verdict = "cannot be told apart" if same else "are apart"
            sentences.append(f"{model}: target and negative target {verdict} ({what}).")
    return sentences


def _accuracy(rows: pd.DataFrame) -> list[Block]:
    """acc@k without and with context beside UCM_k (Table 2)."""
    chosen = ucm.beside(rows)
    wide = chosen.pivot(index="model", columns="what", values="value")
    wide = wide[list(dict.fromkeys(chosen["what"]))]
    body: list[list[str | Cell]] = [
        [str(model), *(cell("understand", value) for value in line)]
        for model, line in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    return [
        *paragraph(
            "The full context names the target, so acc@5 with context rises by copying alone; "
            "Understand counts only what other evidence does to the target's rank.",
            *_told_apart(chosen),
        ),
        *ucm.accuracy_drawn(rows),
        Table(["model", *wide], body, "acc@k and UCM_k, per cent"),
    ]


def _told_apart(rows: pd.DataFrame) -> list[str]:
    """Whether acc@5 with context saturates, what copying alone reaches, and how many pairs of
    models it and UCM_k tell apart by intervals that do not overlap; `rows` with what each is in the
    column `what`."""
    of_model = rows[rows["model"] != CONTROL].set_index(["what", "model"]).sort_index()
    if ACC not in of_model.index:
        return []
    models = list(of_model.loc[ACC].index)
    values = of_model.loc[ACC]["value"]
    listed = ", ".join(f"{model} {shown('acc_at_5', values[model])}" for model in models)
    below = int((values < SATURATED).sum())
    sentences = [
        f"With context acc@5 saturates in every model ({listed})."
        if not below
        else f"With context acc@5 does not saturate in {below} of {len(models)} models ({listed}), "
        f"it stays below {SATURATED:.0%}."
    ]
    control = rows[(rows["model"] == CONTROL) & (rows["what"] == ACC)]["value"]
    for value in control:
        sentences.append(
            f"The copy control, which knows nothing, has {shown('acc_at_5', value)}"
            + (
                ", as much as any model: acc@5 with context cannot tell copying from understanding."
                if value >= values.max()
                else "."
            )
        )
    pairs = list(combinations(models, 2))
    if not pairs:
        return sentences

    def apart(what: str) -> int:
        part = of_model.loc[what]
        return sum(not overlap(part.loc[a], part.loc[b]) for a, b in pairs)

    counts = ", ".join(f"{what} {apart(what)}" for what in map(str.capitalize, SHARES))
    accuracy, understand = apart(ACC), apart("Understand")
    verdict = (
        "understanding tells models apart that accuracy with context does not"
        if understand > accuracy
        else "understanding tells no more models apart than accuracy with context does"
    )
    sentences.append(
        f"Pairs of models: {len(pairs)}, of which intervals tell apart, by {ACC} {accuracy}, "
        f"{counts}: {verdict}."
    )
    return sentences


def _changes(rows: pd.DataFrame) -> list[Block]:
    """Mean rank changes where the added entity is correct and where it is not (Table 1)."""
    chosen = rows[rows["metric"].isin(SERIES) & rows["subset"].str.startswith("target/added:")]
    if chosen.empty:
        return []
    wide = chosen.pivot(index="model", columns=["subset", "metric"], values="value")
    roles = [(f"target/added:{role}", role) for role in ("correct", "incorrect")]
    columns = {
        (subset, name): f"{name.removeprefix('rc_')}, {role} added"
        for subset, role in roles
        for name in SERIES
        if (subset, name) in wide
    }
    body: list[list[str | Cell]] = [
        [
            str(model),
            *(MISSING if pd.isna(value) else Cell(f"{value:+.2f}", value) for value in line),
        ]
        for model, line in zip(wide.index, wide[list(columns)].to_numpy(), strict=True)
    ]
    heads = ["model", *columns.values()]
    return [Table(heads, body, "mean rank change; negative is a rise")]


def _parts(rows: pd.DataFrame) -> list[Block]:
    """UCM_m by kind, resource, number of correct objects, frequency, times read."""
    chosen = rows[rows["metric"].isin(SHARES) & (rows["relation"] == "micro")]
    chosen = chosen[chosen["subset"].str.contains("/", regex=False)]
    table = _numbers(chosen, ["subset", "model"])
    return folded("By kind, resource, objects and frequency", table)


def _numbers(rows: pd.DataFrame, keys: list[str]) -> list[Block]:
    """A table of the three shares with their intervals."""
    body: list[list[str | Cell]] = []
    for names, some in rows.groupby(keys, sort=True):
        numbers = some.set_index("metric")[["value", "low", "high"]]
        cells = [cell(name, *numbers.loc[name]) for name in SHARES]
        body.append([*map(str, names), *cells, count(some["n"].max())])
    heads = [*keys, *(name.capitalize() for name in SHARES), "triples"]
    return [Table(heads, body, "UCM_m, per cent")] if body else []

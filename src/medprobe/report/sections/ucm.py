"""Understanding by rank change: the paper's Tables 1, 2 and 3, their drawings, and the control."""

from itertools import combinations
from typing import Final

import pandas as pd

from medprobe.figures import trajectory, ucm
from medprobe.figures.ucm import ACC, CONTROL, COPY
from medprobe.metrics.rank_changes import SERIES, SHARES
from medprobe.metrics.significance import contrast
from medprobe.report.blocks import Block, Cell, Part, Table, folded, paragraph, part
from medprobe.report.numbers import MISSING, cell, count, shown
from medprobe.report.results import Results
from medprobe.report.verdicts import Verdict, listed, verdict

NAME: Final = "understand"
CENTRES: Final = ("target", "negative")
TESTED: Final = {  # what tells models apart: the subset and metric of its paired tests
    ACC: ("full", "acc_at_5"),
    **{share.capitalize(): ("target", share) for share in SHARES},
}
SATURATED: Final = 0.9  # as in the paper, below Table 2: "non-distinguishable 90% scores"


def section(results: Results, benchmark: str) -> list[Part]:
    """All of it, or nothing where the benchmark has no rank changes."""
    rows = ucm.asked(results.rows(benchmark))
    if rows.empty:
        return []
    moves = results.trajectories.get(benchmark)
    return [
        *part("Understand, confuse, misunderstand", _shares(results, benchmark, rows)),
        *part("Accuracy with context, and understanding", _accuracy(results, benchmark, rows)),
        *part(
            "How ranks move",
            _changes(rows),
            [] if moves is None else trajectory.drawn(moves, benchmark),
        ),
        *part("Where models understand", _parts(rows)),
    ]


def _shares(results: Results, benchmark: str, rows: pd.DataFrame) -> list[Block]:
    """UCM_m around target and negative target (Table 3), stacked, and what the control says."""
    chosen = ucm.micro(rows)
    return [
        *paragraph(
            "Each time that a context gains another correct object, the target's rank rises "
            "(understand), stays (confuse) or falls (misunderstand). Around a negative target, an "
            "incorrect entity takes the target's place."
        ),
        *ucm.shares_drawn(rows),
        *paragraph(*_apart(results, benchmark, rows)),
        *_numbers(chosen, ["model", "subset"]),
    ]


def _apart(results: Results, benchmark: str, rows: pd.DataFrame) -> list[str]:
    """Whether each model, and the control, understands target and negative target differently, and
    whether a model differs from the control on either, by the paired tests of UCM_k."""
    whole = rows[(rows["relation"] == "macro") & (rows["metric"] == NAME)]
    values = whole.set_index(["model", "subset"])["value"]
    systems = {row.model: (row.asked, row.method) for row in whole.itertuples()}
    both = results.tests(benchmark, contrast(*CENTRES), NAME)
    sentences, only_negative = [], []
    for model, system in sorted(systems.items()):
        if test := verdict(both, system, system):
            target, negative = (shown(NAME, values[model, centre]) for centre in CENTRES)
            sentences.append(
                f"Around targets {_called(model)} understands {target}, around negative targets "
                f"{negative}, a difference that is {test.words}."
            )
    for model, (asked, method) in sorted(systems.items()):
        against = {
            centre: test
            for centre in CENTRES
            if (test := _with_control(results, benchmark, centre, asked, method))
        }
        if len(against) == len(CENTRES) and CONTROL in systems:
            parts = [
                f"around {_centre(centre)} {shown(NAME, values[model, centre])} and "
                f"{shown(NAME, values[CONTROL, centre])}, {test.words}"
                for centre, test in against.items()
            ]
            sentences.append(f"Understand of {model} and the copy control: {'; '.join(parts)}.")
            below = against["negative"].clear and against["negative"].difference < 0
            if below and not against["target"].clear:
                only_negative.append(model)
    if only_negative:
        sentences.append(
            f"Around targets alone {listed(only_negative)} cannot be told from a control that only "
            "copies: what tells them apart is the negative target."
        )
    return sentences


def _with_control(
    results: Results, benchmark: str, centre: str, model: str, method: str
) -> Verdict | None:
    control = f"{method.partition(':')[0]}:{COPY}"
    tests = results.tests(benchmark, centre, NAME)
    return verdict(tests, (model, method), (model, control)) if method != control else None


def _called(model: str) -> str:
    return "the copy control, which knows nothing," if model == CONTROL else model


def _centre(name: str) -> str:
    return {"target": "targets", "negative": "negative targets (low is good)"}[name]


def _accuracy(results: Results, benchmark: str, rows: pd.DataFrame) -> list[Block]:
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
            *_saturated(chosen),
            *_told_apart(results, benchmark, chosen),
        ),
        *ucm.accuracy_drawn(rows),
        Table(["model", *wide], body, "acc@k and UCM_k, per cent"),
    ]


def _saturated(rows: pd.DataFrame) -> list[str]:
    """Whether acc@5 with context saturates, and what copying alone reaches; `rows` with what each
    is in the column `what`."""
    values = rows[(rows["model"] != CONTROL) & (rows["what"] == ACC)].set_index("model")["value"]
    values = values.sort_index()
    if values.empty:
        return []
    named = ", ".join(f"{model} {shown('acc_at_5', value)}" for model, value in values.items())
    below = int((values < SATURATED).sum())
    sentences = [
        f"With context acc@5 saturates in every model ({named})."
        if not below
        else f"With context acc@5 does not saturate in {below} of {len(values)} models ({named}): "
        f"it stays below {SATURATED:.0%}."
    ]
    for value in rows[(rows["model"] == CONTROL) & (rows["what"] == ACC)]["value"]:
        sentences.append(
            f"The copy control, which knows nothing, has {shown('acc_at_5', value)}"
            + (
                ", as much as any model: acc@5 with context cannot tell copying from understanding."
                if value >= values.max()
                else "."
            )
        )
    return sentences


def _told_apart(results: Results, benchmark: str, rows: pd.DataFrame) -> list[str]:
    """How many pairs of models accuracy with context and each share tell apart, by paired tests."""
    known = rows[rows["model"] != CONTROL]
    systems = sorted({(row.asked, row.method) for row in known.itertuples()})
    counts, pairs = {}, 0
    for what, (subset, name) in TESTED.items():
        tests = results.tests(benchmark, subset, name)
        found = [test for a, b in combinations(systems, 2) if (test := verdict(tests, a, b))]
        counts[what], pairs = sum(test.clear for test in found), max(pairs, len(found))
    if not pairs:
        return []
    listing = ", ".join(f"{what} {count}" for what, count in counts.items())
    if pairs == 1:
        told, silent = ([x for x in counts if bool(counts[x]) == side] for side in (True, False))
        if not told:
            return ["No paired test tells the two models apart."]
        rest = f"; by {listed(silent)} they do not" if silent else ""
        return [f"By {listed(told)} the paired tests tell the two models apart{rest}."]
    more = counts["Understand"] > counts[ACC]
    ends = (
        "understanding tells models apart that accuracy with context does not"
        if more
        else "understanding tells no more models apart than accuracy with context does"
    )
    noun = "pair" if pairs == 1 else "pairs"
    return [f"Of {pairs} {noun} of models the paired tests tell apart, by {listing}: {ends}."]


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

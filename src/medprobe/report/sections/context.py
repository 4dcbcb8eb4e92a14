"""Understanding by rank change: the paper's Tables 1, 2 and 3, their drawings, and the control."""

from itertools import combinations

import pandas as pd

from medprobe.report import figures, html
from medprobe.report.context import METHOD
from medprobe.report.html import Cell
from medprobe.report.results import Results, overlap, shown

COPY = f"{METHOD}:copy"
CONTROL = "copy control"
ACC = "acc@5 with context"
SATURATED = 0.9  # as in the paper, below Table 2: "non-distinguishable 90% scores"
SHARES = ["understand", "confuse", "misunderstand"]
SERIES = {
    "rc_target": "target",
    "rc_added": "added",
    "rc_correct": "correct",
    "rc_incorrect": "incorrect",
}


def section(results: Results, benchmark: str) -> str:
    """All of it, or nothing where the benchmark has no rank changes."""
    rows = results.rows(benchmark)
    rows = rows[rows["method"].isin([METHOD, COPY])]
    if not rows["metric"].isin(SHARES).any():
        return ""
    rows = rows.assign(model=rows["model"].where(rows["method"] == METHOD, CONTROL))
    rows = rows.drop_duplicates(["subset", "relation", "model", "metric"])
    return (
        html.section("Understand, confuse, misunderstand", _shares(results, benchmark, rows))
        + html.section("Accuracy with context, and understanding", _accuracy(results, rows))
        + html.section("How ranks move", _changes(rows) + _trajectory(results))
        + html.section("Where models understand", _parts(rows))
    )


def _shares(results: Results, benchmark: str, rows: pd.DataFrame) -> str:
    """UCM_m around target and negative target (Table 3), stacked, and what the control says."""
    chosen = rows[(rows["relation"] == "micro") & rows["metric"].isin(SHARES)]
    chosen = chosen[chosen["subset"].isin(["target", "negative"])]
    wide = chosen.pivot(index=["model", "subset"], columns="metric", values="value")[SHARES]
    wide = wide.sort_index(level=["model", "subset"], ascending=[True, False])
    bars = wide.set_axis([f"{model} · {subset}" for model, subset in wide.index])
    svg = figures.stacked(bars, "share of steps, per cent")
    results.figures[f"{benchmark}-ucm"] = svg
    text = (
        "Each time that a context gains another correct object, the target's rank rises "
        "(understand), stays (confuse) or falls (misunderstand). Around a negative target, an "
        "incorrect entity takes the target's place."
    )
    return (
        html.paragraph(text)
        + html.figure(svg, "Understand, confuse and misunderstand, by model and centre.")
        + html.paragraph(*_apart(chosen))
        + _numbers(chosen, ["model", "subset"], "UCM_m, per cent")
    )


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


def _accuracy(results: Results, rows: pd.DataFrame) -> str:
    """acc@k without and with context beside UCM_k (Table 2)."""
    columns = {
        ("alone", "micro", "acc_at_1"): "acc@1 alone",
        ("alone", "micro", "acc_at_5"): "acc@5 alone",
        ("full", "micro", "acc_at_1"): "acc@1 with context",
        ("full", "micro", "acc_at_5"): ACC,
        ("target", "macro", "understand"): "Understand",
        ("target", "macro", "confuse"): "Confuse",
        ("target", "macro", "misunderstand"): "Misunderstand",
    }
    keys = zip(rows["subset"], rows["relation"], rows["metric"], strict=True)
    rows = rows.assign(what=[columns.get(key, "") for key in keys])
    rows = rows[rows["what"] != ""]
    order = {name: place for place, name in enumerate(columns.values())}
    drawn = rows[rows["what"].isin(["acc@5 alone", ACC, *map(str.capitalize, SHARES)])]
    drawn = drawn.sort_values("what", key=lambda what: what.map(order), kind="stable")
    svg = figures.intervals(drawn, "what", "model", "per cent", True)
    results.figures["context-accuracy"] = svg
    wide = rows.pivot(index="model", columns="what", values="value")
    heads = [name for name in order if name in wide]
    body: list[list[str | Cell]] = [
        [str(model), *(Cell(shown("understand", v).removesuffix(" %"), v, v) for v in line)]
        for model, line in zip(wide.index, wide[heads].to_numpy(), strict=True)
    ]
    text = (
        "The full context names the target, so acc@5 with context rises by copying alone; "
        "Understand counts only what other evidence does to the target's rank."
    )
    return (
        html.paragraph(text, *_told_apart(rows))
        + html.figure(svg, "acc@5 without and with context, and UCM_k, with intervals.")
        + html.table(["model", *heads], body, "acc@k and UCM_k, per cent")
    )


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


def _changes(rows: pd.DataFrame) -> str:
    """Mean rank changes where the added entity is correct and where it is not (Table 1)."""
    chosen = rows[rows["metric"].isin(SERIES) & rows["subset"].str.startswith("target/added:")]
    if chosen.empty:
        return ""
    wide = chosen.pivot(index="model", columns=["subset", "metric"], values="value")
    columns = [
        (f"target/added:{role}", metric) for role in ("correct", "incorrect") for metric in SERIES
    ]
    columns = [column for column in columns if column in wide]
    heads = [f"{SERIES[metric]}, {subset.split(':')[1]} added" for subset, metric in columns]
    body: list[list[str | Cell]] = [
        [str(model), *(Cell(f"{value:+.2f}", value) for value in line)]
        for model, line in zip(wide.index, wide[columns].to_numpy(), strict=True)
    ]
    return html.table(["model", *heads], body, "mean rank change; negative is a rise")


def _trajectory(results: Results) -> str:
    table = results.analyses.get("context-trajectory")
    if table is None or table.empty:
        return ""
    parts = []
    for model, part in table.groupby("model", sort=True):
        named = part.assign(name=part["entity"] + " (" + part["role"] + ")")
        svg = figures.curves(
            named.assign(value=part["rank"], low=part["rank"], high=part["rank"]),
            "step",
            "name",
            ("segments in the context", "rank, 1 is the best"),
            False,
        )
        results.figures[f"context-trajectory-{model}"] = svg
        parts.append(html.figure(svg, f"{model}: ranks as one context grows, segment by segment."))
    return "".join(parts)


def _parts(rows: pd.DataFrame) -> str:
    """UCM_m by kind, resource, number of correct objects, frequency, times read."""
    chosen = rows[rows["metric"].isin(SHARES) & (rows["relation"] == "micro")]
    chosen = chosen[chosen["subset"].str.contains("/", regex=False)]
    table = _numbers(chosen, ["subset", "model"], "UCM_m, per cent")
    return html.folded("By kind, resource, objects and frequency", table)


def _numbers(rows: pd.DataFrame, keys: list[str], caption: str) -> str:
    """A table of the three shares with their intervals."""
    body = []
    for key, part in rows.groupby(keys, sort=True):
        numbers = part.set_index("metric")
        cells: list[str | Cell] = [str(name) for name in key]
        for metric in SHARES:
            one = numbers.loc[metric]
            low, high = shown(metric, one["low"]), shown(metric, one["high"])
            text = f"{shown(metric, one['value'])}  [{low}, {high}]"
            cells.append(Cell(text.replace(" %", ""), one["value"], one["value"]))
        body.append([*cells, Cell(f"{part['n'].max():.0f}", part["n"].max())])
    return html.table([*keys, *(name.capitalize() for name in SHARES), "triples"], body, caption)

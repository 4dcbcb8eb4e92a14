"""Template-based against template-free probing, across data sets: six analyses, each a table and a
drawing (Shaier et al., section 5)."""

import pandas as pd

from medprobe.report import figures, html
from medprobe.report.data_sets import PARALLEL
from medprobe.report.html import Cell
from medprobe.report.results import Results, shown
from medprobe.report.template_free import METHOD, WITH_MORE

LEVEL = 0.05


def section(results: Results) -> str:
    """A chapter of its own, or nothing where no such data set was probed."""
    parts = [
        _rankings(results),
        _parallel(results),
        _perplexity(results),
        _templates(results),
        _overconfidence(results),
        _distractors(results),
        _lipid(results),
    ]
    if not any(parts):
        return ""
    about = "Filled templates against natural sentences: do they measure the same?"
    return (
        '<section class="chapter" id="template-free"><h2>Template-based and template-free</h2>'
        f"{html.paragraph(about)}{''.join(parts)}</section>"
    )


def _rankings(results: Results) -> str:
    ranks = results.analyses.get("rankings")
    if ranks is None:
        return ""
    drawn = ranks.rename(columns={"value": "acc", "rank": "value"}).assign(low=None, high=None)
    svg = figures.intervals(drawn, "name", "model", "rank by acc@1, 1 is the best", False)
    results.figures["template-free-rankings"] = svg
    content = html.figure(svg, "Ranks of the models in each data set.")
    moved = results.analyses.get("displacement")
    if moved is not None:
        by_domain = moved.groupby("domain")[["mean", "tau"]].mean()
        content += html.paragraph(
            *(
                f"In the {domain} domain models move by {row['mean']:.1f} ranks on average between "
                f"a template-based and a template-free set (Kendall's τ {row['tau']:.2f})."
                for domain, row in by_domain.iterrows()
            )
        )
        content += _table(moved, {"mean": "{:.2f}", "tau": "{:.2f}", "p": "{:.3f}"})
    return html.section("Do both kinds rank models alike?", content)


def _parallel(results: Results) -> str:
    table = results.analyses.get("parallel")
    if table is None:
        return ""
    subsets = {
        subset: (name, kind)
        for name, based, free in PARALLEL
        for subset, kind in ((based, "template-based"), (free, "template-free"))
    }
    rows = results.rows("lama", relation="micro", method=METHOD, metric="acc_at_10")
    rows = rows[rows["subset"].isin(list(subsets))]
    rows = rows.assign(
        line=[f"{subsets[s][0]} · {m}" for s, m in zip(rows["subset"], rows["model"], strict=True)],
        kind=[subsets[subset][1] for subset in rows["subset"]],
    ).sort_values(["line", "kind"])
    svg = figures.intervals(rows, "line", "kind", "acc@10, per cent", True)
    results.figures["template-free-parallel"] = svg
    clear = table[table["p_holm"] < LEVEL]
    higher = int((clear["difference"] > 0).sum())
    text = (
        f"The same facts, asked by a template and by a sentence: {len(clear)} of {len(table)} "
        f"differences are significant at {LEVEL:g} (paired permutation test, Holm's correction); "
        f"in {higher} of these the sentence scores higher."
    )
    columns = ["template_based", "template_free", "difference", "low", "high"]
    formats = {**dict.fromkeys(columns, "{:.1%}"), "p": "{:.4f}", "p_holm": "{:.4f}"}
    return html.section(
        "Scores over the same facts",
        html.paragraph(text)
        + html.figure(svg, "acc@10 on the parallel sets, with intervals.")
        + _table(table, formats),
    )


def _perplexity(results: Results) -> str:
    points, found = (results.analyses.get(name) for name in ("perplexity", "correlation"))
    if points is None or found is None:
        return ""
    means = points.groupby(["kind", "name"], as_index=False)[["acc_at_1", "perplexity"]].mean()
    labels = ("perplexity, mean over models", "acc@1, per cent")
    drawn = means.assign(acc_at_1=100 * means["acc_at_1"])
    svg = figures.points(drawn, "perplexity", "acc_at_1", "kind", labels)
    results.figures["template-free-perplexity"] = svg
    sentences = [
        f"Over the {row.n} {row.kind} data sets r is {row.r:.2f} (p = {row.p:.2f})."
        for row in found[found["over"] == "data sets"].dropna().itertuples()
    ]
    return html.section(
        "Perplexity and accuracy",
        html.paragraph(*sentences)
        + html.figure(svg, "Each data set's mean perplexity and accuracy.")
        + _table(found, {"r": "{:.2f}", "p": "{:.3f}"})
        + html.folded("By model", _table(points, {"acc_at_1": "{:.1%}", "perplexity": "{:.4g}"})),
    )


def _templates(results: Results) -> str:
    table = results.analyses.get("templates")
    if table is None:
        return ""
    svg = figures.intervals(table, "relation", "model", "acc@10, per cent", True)
    results.figures["template-free-templates"] = svg
    formats = {**dict.fromkeys(["value", "low", "high"], "{:.1%}"), "n": "{:.0f}"}
    return html.section(
        "Template by template",
        html.figure(svg, "acc@10 of each template of Google-RE.") + _table(table, formats),
    )


def _overconfidence(results: Results) -> str:
    shares, often = (results.analyses.get(name) for name in ("overconfidence", "frequent"))
    if shares is None or often is None:
        return ""
    means = often.groupby(["kind", "name", "place"], as_index=False)["share"].mean()
    drawn = means.rename(columns={"share": "value"})
    drawn = drawn.assign(low=drawn["value"], high=drawn["value"])
    labels = ("the most frequent entities, by place", "queries with it in the top ten, per cent")
    parts = []
    for kind, part in drawn.groupby("kind", sort=True):
        svg = figures.curves(part, "place", "name", labels, True)
        results.figures[f"template-free-frequent-{kind}"] = svg
        parts.append(html.figure(svg, f"How often the same entities come first: {kind} sets."))
    kinds = shares.groupby("kind")["favourite_share"].mean()
    sentences = [
        f"On {kind} sets a model's favourite entity is in its ten best answers to "
        f"{shown('acc_at_1', share)} of the queries."
        for kind, share in kinds.items()
    ]
    columns = ["distinct_at_1", "distinct_at_5", "distinct_at_10", "favourite_share"]
    return html.section(
        "The same answers again and again",
        html.paragraph(*sentences)
        + "".join(parts)
        + _table(shares, dict.fromkeys(columns, "{:.1%}")),
    )


def _distractors(results: Results) -> str:
    table = results.analyses.get("distractors")
    if table is None:
        return ""
    rows = table[table["metric"] == "acc_at_10"]
    edges = ["value", "low", "high"]
    more = rows.drop(columns=edges).rename(columns={f"{edge}_more": edge for edge in edges})
    drawn = pd.concat([rows.assign(among="own entities"), more.assign(among="with distractors")])
    drawn = drawn.assign(line=drawn["name"] + " · " + drawn["model"])
    svg = figures.intervals(drawn, "line", "among", "acc@10, per cent", True)
    results.figures["template-free-distractors"] = svg
    named = table.drop(columns=["benchmark", "subset"])
    formats = dict.fromkeys([*edges, *(f"{edge}_more" for edge in edges)], "{:.1%}")
    caption = f"The same queries among more entities ({METHOD} and {WITH_MORE})."
    return html.section(
        "The number of entities", html.figure(svg, caption) + _table(named, formats)
    )


def _lipid(results: Results) -> str:
    """Its entities, its annotators, and which models may have read its sentences."""
    content = ""
    if (counts := results.analyses.get("appearances")) is not None:
        about = "Prompts, entities, and how many prompts an entity has."
        content += html.paragraph(about) + _table(counts, {"mean": "{:.2f}", "std": "{:.2f}"})
    if (said := results.analyses.get("agreement")) is not None:
        shares = dict.fromkeys(["yes_first", "yes_second", "agreed"], "{:.1%}")
        about = "Two annotators on whether prompts state facts; kappa is Cohen's."
        content += html.paragraph(about) + _table(said, {**shares, "kappa": "{:.2f}"})
    if (table := results.analyses.get("cut-off")) is not None:
        late = table[table["verdict"] != "unseen"]
        head = "Sentences are unseen by a model whose training ended before their cut-off."
        flags = [f"{row.model}: {row.verdict}." for row in late.itertuples()]
        content += html.paragraph(head, *flags) + _table(table, {})
    return html.section("LIPID: entities, annotators, and who may have read it", content)


def _table(table: pd.DataFrame, formats: dict[str, str]) -> str:
    """A table as it is, numbers in the given formats (shares as `{:.1%}`)."""
    body: list[list[str | Cell]] = [
        [_cell(value, formats.get(str(name))) for name, value in row.items()]
        for row in table.to_dict("records")
    ]
    return html.table([str(name).replace("_", " ") for name in table.columns], body)


def _cell(value: object, form: str | None) -> str | Cell:
    if not isinstance(value, int | float):
        return str(value)
    if pd.isna(value):
        return "–"
    text = form.format(value) if form else f"{value:g}"
    return Cell(text.replace("%", " %"), float(value))

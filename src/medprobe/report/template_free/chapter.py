"""The chapter on template-based and template-free probing, across data sets: analyses, each a table
and a drawing (Shaier et al., section 5)."""

from collections.abc import Hashable, Mapping
from typing import Any, Final

import pandas as pd

from medprobe.figures import plots
from medprobe.figures.rows import Drawing
from medprobe.metrics import catalog
from medprobe.report.blocks import Block, Cell, Chapter, Part, Table, folded, paragraph, part
from medprobe.report.numbers import MISSING, shown
from medprobe.report.results import LEVEL, Results
from medprobe.report.template_free import METHOD, WITH_MORE
from medprobe.report.template_free.data_sets import PARALLEL, data_sets, home
from medprobe.report.verdicts import listed

EDGES: Final = {  # the interval of a column
    "value": ("low", "high"),
    "value_more": ("low_more", "high_more"),
    "difference": ("low", "high"),
}


def chapter(results: Results) -> list[Chapter]:
    """A chapter of its own, or nothing where no such data set was probed."""
    parts = [
        *_rankings(results),
        *_parallel(results),
        *_perplexity(results),
        *_templates(results),
        *_overconfidence(results),
        *_distractors(results),
        *_lipid(results),
    ]
    about = "Filled templates against natural sentences: do they measure the same?"
    title = "Template-based and template-free"
    return [Chapter("template-free", title, [about], parts)] if parts else []


def _rankings(results: Results) -> list[Part]:
    ranks, moved = (results.template_free.get(name) for name in ("rankings", "displacement"))
    if ranks is None or moved is None:  # of a few models no ranking is worth a word
        return []
    rows = ranks.rename(columns={"value": "acc", "rank": "value"}).assign(low=None, high=None)
    plot = plots.intervals(rows, "name", "model", "rank by acc@1, 1 is the best", False)
    by_domain = moved.groupby("domain")[["mean", "tau"]].mean()
    told = paragraph(
        *(
            f"In the {domain} domain models move by {row['mean']:.1f} ranks on average between a "
            f"template-based and a template-free set (Kendall's τ {row['tau']:.2f})."
            for domain, row in by_domain.iterrows()
        )
    )
    told.append(_table(moved, {"mean": "{:.2f}", "tau": "{:.2f}", "p": "{:.3f}"}))
    drawing = Drawing("template-free-rankings", plot, "Ranks of the models in each data set.")
    return part("Do both kinds rank models alike?", [drawing], told)


def _parallel(results: Results) -> list[Part]:
    table = results.template_free.get("parallel")
    if table is None:
        return []
    subsets = {
        subset: (name, kind)
        for name, based, free in PARALLEL
        for subset, kind in ((based, "template-based"), (free, "template-free"))
    }
    benchmark = home(data_sets(results.builders), PARALLEL[0][1])
    rows = results.rows(benchmark, relation="micro", method=METHOD, metric="acc_at_10")
    rows = rows[rows["subset"].isin(list(subsets))]
    rows = rows.assign(
        line=[f"{subsets[s][0]} · {m}" for s, m in zip(rows["subset"], rows["model"], strict=True)],
        kind=[subsets[subset][1] for subset in rows["subset"]],
    ).sort_values(["line", "kind"])
    plot = plots.intervals(rows, "line", "kind", plots.label("acc_at_10"), True)
    caption = "acc@10 on the parallel sets, with intervals."
    clear = table[table["p_holm"] < LEVEL]
    higher = int((clear["difference"] > 0).sum())
    text = (
        f"The same facts, asked by a template and by a sentence: {len(clear)} of {len(table)} "
        f"differences are significant at {LEVEL:g} (paired permutation test, Holm's correction)"
        + (f"; in {higher} of these the sentence scores higher." if len(clear) else ".")
    )
    columns = ["template_based", "template_free", "difference"]
    formats = {**dict.fromkeys(columns, "{:.1%}"), "p": "{:.4f}", "p_holm": "{:.4f}"}
    about = {"template_based": "by template", "template_free": "by sentence", "pairs": "facts"}
    drawing = Drawing("template-free-parallel", plot, caption)
    blocks: list[Block] = [drawing, _table(table, formats, **about)]
    return part("Scores over the same facts", paragraph(text), blocks)


def _perplexity(results: Results) -> list[Part]:
    points, found = (results.template_free.get(name) for name in ("perplexity", "correlation"))
    if points is None or found is None:
        return []
    means = points.groupby(["kind", "name"], as_index=False)[["acc_at_1", "perplexity"]].mean()
    labels = ("perplexity, mean over models", plots.label("acc_at_1"))
    drawn = means.assign(acc_at_1=100 * means["acc_at_1"])
    plot = plots.points(drawn, "perplexity", "acc_at_1", "kind", labels)
    caption = "Each data set's mean perplexity and accuracy."
    sentences = [
        f"Over the {row.n} {row.kind} data sets r is {row.r:.2f} (p = {row.p:.2f})."
        for row in found[found["over"] == "data sets"].dropna().itertuples()
    ]
    by_model = _table(points, {"acc_at_1": "{:.1%}", "perplexity": "{:,.1f}"})
    return part(
        "Perplexity and accuracy",
        paragraph(*sentences),
        [Drawing("template-free-perplexity", plot, caption)],
        folded("By data set and model", [by_model]),
        folded(
            "Correlation, by kind and by data set",
            [_table(found.dropna(subset="r"), {"r": "{:.2f}", "p": "{:.3f}"}, n="points")],
        ),
    )


def _templates(results: Results) -> list[Part]:
    table = results.template_free.get("templates")
    if table is None:
        return []
    named = table.assign(relation=table["relation"].str.replace("_", " "))
    plot = plots.intervals(named, "relation", "model", plots.label("acc_at_10"), True)
    formats = {"value": "{:.1%}", "n": "{:.0f}"}
    caption = "acc@10 of each template of Google-RE."
    drawing = Drawing("template-free-templates", plot, caption)
    shown_as = {"relation": "template", "value": "acc@10", "n": "queries"}
    return part("Template by template", [drawing, _table(named, formats, **shown_as)])


def _overconfidence(results: Results) -> list[Part]:
    shares, often = (results.template_free.get(name) for name in ("overconfidence", "frequent"))
    if shares is None or often is None:
        return []
    drawn = often.assign(value=often["share"], low=often["share"], high=often["share"])
    drawn = drawn.assign(name=drawn["name"] + ", " + drawn["kind"])
    labels = ("the most frequent entities, by place", "queries with it, per cent")
    drawings: list[Block] = []
    for model, some in drawn.groupby("model", sort=True):
        plot = plots.curves(some, "place", "name", labels, True)
        caption = f"How often {model} has the same entity among its ten best answers."
        drawings.append(Drawing(f"template-free-frequent-{model}", plot, caption))
    columns = ["distinct_at_1", "distinct_at_5", "distinct_at_10", "favourite_share", "chance"]
    sentences = [
        f"On {kind} sets a model's favourite entity is in its ten best answers to "
        f"{shown('acc_at_1', row['favourite_share'])} of the queries, {row['times_chance']:.1f} "
        f"times as often as in ten names at random ({shown('acc_at_1', row['chance'])})."
        for kind, row in shares.groupby("kind")[[*columns[3:], "times_chance"]].mean().iterrows()
    ]
    formats = {**dict.fromkeys(columns, "{:.1%}"), "times_chance": "{:.1f}"}
    return part(
        "The same answers again and again",
        paragraph(*sentences),
        drawings[:1],
        folded("Other models", drawings[1:]),
        [_table(shares, formats)],
    )


def _distractors(results: Results) -> list[Part]:
    table = results.template_free.get("distractors")
    if table is None:
        return []
    rows = table[table["metric"] == "acc_at_10"]
    edges = ["value", "low", "high"]
    more = rows.drop(columns=edges).rename(columns={f"{edge}_more": edge for edge in edges})
    drawn = pd.concat([rows.assign(among="own entities"), more.assign(among="with distractors")])
    drawn = drawn.assign(line=drawn["name"] + " · " + drawn["model"])
    plot = plots.intervals(drawn, "line", "among", plots.label("acc_at_10"), True)
    named = table.drop(columns=["benchmark", "subset"])
    formats = dict.fromkeys(["value", "value_more"], "{:.1%}")
    about = {
        **{"value": "among its own", "value_more": "with distractors"},
        **{"entities": "its own entities", "entities_more": "with distractors, entities"},
    }
    caption = f"The same queries among more entities ({METHOD} and {WITH_MORE})."
    drawing = Drawing("template-free-distractors", plot, caption)
    return part("The number of entities", [drawing, _table(named, formats, **about)])


def _lipid(results: Results) -> list[Part]:
    """Its entities, its annotators, and which models may have read its sentences."""
    blocks: list[Block] = []
    if (counts := results.template_free.get("appearances")) is not None:
        formats = {"mean": "{:.2f}", "std": "{:.2f}"}
        heads = {"mean": "prompts an entity, mean", "std": "deviation"}
        heads |= {"max": "at most", "min": "at least"}
        blocks.append(_table(counts, formats, **heads))
    if (said := results.template_free.get("agreement")) is not None:
        formats = dict.fromkeys(["yes_first", "yes_second", "agreed"], "{:.1%}")
        about = "Two annotators on whether prompts state facts; kappa is Cohen's."
        blocks += [*paragraph(about), _table(said, {**formats, "kappa": "{:.2f}"})]
    if (table := results.template_free.get("cut-off")) is not None:
        models = table.groupby("verdict")["model"].agg(listed)
        told = ["Sentences are unseen by a model whose training ended before their cut-off."]
        if "may be read" in models:
            told.append(f"Trained later, so that they may be read: {models['may be read']}.")
        if "unknown" in models:
            told.append(
                f"Nothing says when the training of {models['unknown']} ended; trained_until in "
                "params.yaml would."
            )
        blocks += [*paragraph(*told), _table(table, {})]
    return part("LIPID: entities, annotators, and who may have read it", blocks)


def _table(table: pd.DataFrame, formats: dict[str, str], **heads: str) -> Table:
    """A table of numbers in the given formats, shares (`{:.1%}`) with their unit in the head, an
    interval beside its value."""
    titles = {name: one.title for name, one in catalog().items()}
    table = table.replace({"metric": titles}) if "metric" in table else table
    heads = {"name": "data set", "p_holm": "p, corrected", **titles, **heads}
    shares = {name for name, form in formats.items() if form.endswith("%}")}
    units = {name: ", points" if name == "difference" else ", %" for name in shares}
    columns = [name for name in map(str, table) if not name.startswith(("low", "high"))]
    body = [
        [_cell(row, name, formats.get(name, "{:g}")) for name in columns]
        for row in table.to_dict("records")
    ]
    found = [heads.get(name, name.replace("_", " ")) + units.get(name, "") for name in columns]
    return Table(found, body)


def _cell(row: Mapping[Hashable, Any], name: str, form: str) -> str | Cell:
    """A number, and its interval where the row has one of it."""
    value = row[name]
    if not isinstance(value, int | float):
        return str(value)
    if pd.isna(value):
        return MISSING
    edges = [row.get(edge) for edge in EDGES.get(name, ())]
    numbers = [value, *edges] if edges and not any(pd.isna(edge) for edge in edges) else [value]
    said, *interval = (form.format(number).removesuffix("%") for number in numbers)
    return Cell(f"{said}  [{', '.join(interval)}]" if interval else said, float(value))

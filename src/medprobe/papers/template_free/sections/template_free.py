"""The chapter on template-based and template-free probing, across data sets.

Each analysis is a table and a drawing (Shaier et al., section 5).
"""

from collections.abc import Hashable, Mapping
from functools import partial
from math import nan
from typing import Any, Final

import pandas as pd

from medprobe.core import places
from medprobe.core.papers import MEAN, papers, published
from medprobe.metrics import catalog
from medprobe.metrics.statistics import LEVEL
from medprobe.papers.template_free.analyses.analyses import analyses
from medprobe.papers.template_free.analyses.data_sets import (
    METHOD,
    PARALLEL,
    WITH_DISTRACTORS,
    DataSet,
    data_sets,
    home,
)
from medprobe.papers.template_free.comparison_run import ABOUT, PREFIX, list_runs
from medprobe.report.benchmark_numbers import count_parameters
from medprobe.report.blocks import (
    Block,
    Cell,
    Chapter,
    Drawing,
    Part,
    Table,
    folded,
    paragraph,
    part,
)
from medprobe.report.figures import plots
from medprobe.report.numbers import MISSING
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section
from medprobe.report.sections.published import DATA, data_note
from medprobe.report.verdicts import MARK, p_cell

DRAWN: Final = 20  # models, in order of name; `frequent.csv` has all
SHARE: Final = "{:.1%}"
EDGES: Final = {  # the interval of a column
    "value": ("low", "high"),
    "value_more": ("low_more", "high_more"),
    "difference": ("low", "high"),
    **{name: (f"low_{name}", f"high_{name}") for name in ("mean", "tau")},
}
CUT_OFF: Final = (
    "Unseen: the model's training ended by the cut-off date of the sentences. May be read: it "
    "ended later. Unknown: params.yaml has no trained_until for the model."
)
PAIR: Final = ("smaller", "larger")
RANKS: Final = (
    "Means over the pairs of data sets of a domain; both: a pair across domains. Pairs within a "
    "kind are the baseline: what pairs between the kinds differ more by is of the kind. Intervals "
    "draw queries, not models."
)
PAIRS: Final = "Rank displacement of the models between two data sets, and Kendall's τ, by acc@1"
RANKS_BY_GROUP: Final = (
    "How far the group's models move in the ranking of all models, and Kendall's τ over its own "
    "models, of three or more; means over pairs of data sets, as above"
)
FACTS: Final = (
    "The same facts, queried by a template and by a sentence; micro means; difference: sentence "
    f"minus template. {MARK} not significant: the paired permutation test's p, after Holm's "
    f"correction, is {LEVEL:g} or more."
)
FACTS_BY_GROUP: Final = f"Means over the models of the group. {FACTS}"
GROUPS: Final = (
    "Differences of the groups' means over the same queries, points. The models are these and are "
    f"not drawn. {MARK} not significant, as above"
)
MODELS: Final = (
    "Parameters as the model is probed, shared weights once; acc@1 and perplexity are means over "
    "the data sets of a kind"
)
SIZES: Final = (
    "A model and the smaller one of its family (larger_than in params.yaml) over the same queries; "
    f"difference: larger minus smaller; perplexity: micro means. {MARK} not significant: the "
    "corrected p of the paired permutation test is .05 or more"
)
CORRELATIONS: Final = (
    "A few prompts with names that a model never read make most of a mean perplexity, and of r; "
    "the logarithm and ranks (ρ) depend on them less. No p is corrected"
)
VARIETY: Final = (
    "Favourite share and acc@1 over the models of a data set. Negative: models that repeat "
    "themselves less are right more often"
)


def chapter(results: PageData) -> list[Chapter]:
    """A chapter of its own; empty if no such data set was probed."""
    parts = [
        *_rankings(results),
        *_groups(results),
        *_sizes(results),
        *_parallel(results),
        *_means(results),
        *_perplexity(results),
        *_templates(results),
        *_overconfidence(results),
        *_distractors(results),
        *_lipid(results),
    ]
    title = "Template-based and template-free"
    return [Chapter("template-free", title, [ABOUT], parts)] if parts else []


def _rankings(results: PageData) -> list[Part]:
    ranks, moved = (results.tables.get(f"{PREFIX}{name}") for name in ("rankings", "displacement"))
    if ranks is None or moved is None:  # a ranking of a few models says nothing
        return []
    rows = ranks.rename(columns={"value": "acc", "rank": "value"}).assign(low=None, high=None)
    plot = plots.intervals(rows, "name", "model", "rank by acc@1, 1 is the best", False)
    drawing = Drawing("template-free-rankings", plot, "Ranks of the models in each data set.")
    formats = {"mean": "{:.2f}", "tau": "{:.2f}"}
    about = {"mean": "displacement, mean", "tau": "Kendall's τ", "model": "moved most"}
    means = results.tables[f"{PREFIX}displacement-means"]
    return part(
        "Do both kinds rank models alike?",
        [drawing, _table(means, formats, RANKS, **about)],
        folded("Pair by pair", [_table(moved, formats, PAIRS, **about)]),
        _notes("section 4, ranks") if _is_real(results, "lama") else [],
    )


def _groups(results: PageData) -> list[Part]:
    """Research question 3: groups of models, with the models by size."""
    means, models = (results.tables.get(f"{PREFIX}{name}") for name in ("groups", "models"))
    if models is None:
        return []
    blocks: list[Block] = []
    if means is not None:
        label = plots.label("acc_at_1")
        plot = plots.intervals(means, "name", "group", f"{label}, mean over models", True)
        caption = "acc@1 of each group of models on each data set, micro means with intervals."
        blocks.append(Drawing("template-free-groups", plot, caption))
        blocks.append(_table(means, {"value": SHARE}, **{"value": "acc@1, mean over models"}))
    differences = results.tables.get(f"{PREFIX}group-differences")
    if differences is not None:
        table = differences.drop(columns=["p", "domain"])
        blocks.append(_table(table, {"difference": SHARE}, GROUPS, other="less the group"))
    blocks += _answers_by_group(results)
    listed = models.assign(parameters=models["parameters"] / 1e6)
    if not models["group"].any():
        listed = listed.drop(columns="group")
    formats = {"acc_at_1": SHARE, "perplexity": "{:,.1f}", "parameters": "{:,.1f}"}
    heads = {"parameters": "parameters, million", "sets": "data sets"}
    inventory = _table(listed, formats, MODELS, **heads)
    if means is None:
        return part("The models by size", [inventory])
    return part("Groups of models", blocks, folded("The models by size", [inventory]))


def _answers_by_group(results: PageData) -> list[Block]:
    """Research questions 1 and 2 of each group of models."""
    moved, parallel = (
        results.tables.get(f"{PREFIX}{name}") for name in ("displacement-groups", "parallel-groups")
    )
    blocks: list[Block] = []
    if moved is not None:
        formats = {"mean": "{:.2f}", "tau": "{:.2f}"}
        heads = {"mean": "displacement, mean", "tau": "Kendall's τ"}
        blocks.append(_table(moved, formats, RANKS_BY_GROUP, **heads))
    if parallel is not None:
        blocks.append(_facts(parallel, FACTS_BY_GROUP))
    return blocks


def _sizes(results: PageData) -> list[Part]:
    """Pairs of a small and a large model."""
    table = results.tables.get(f"{PREFIX}sizes")
    if table is None:
        return []
    sizes = {f"parameters_{which}": table[f"parameters_{which}"] / 1e6 for which in PAIR}
    shares = dict.fromkeys([*(f"acc_{which}" for which in PAIR), "difference"], SHARE)
    formats = {**shares, **{f"perplexity_{which}": "{:,.1f}" for which in PAIR}}
    formats |= {f"parameters_{which}": "{:,.1f}" for which in PAIR}
    heads = {f"parameters_{which}": f"{which}, million parameters" for which in PAIR}
    heads |= {f"acc_{which}": f"acc@1, {which}" for which in PAIR}
    pairs = table.assign(**sizes).drop(columns="p")
    return part("Small and large models", [_table(pairs, formats, SIZES, **heads)])


def _parallel(results: PageData) -> list[Part]:
    table = results.tables.get(f"{PREFIX}parallel")
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
    drawing = Drawing(
        "template-free-parallel", plot, "acc@10 on the parallel sets, micro means with intervals."
    )
    return part("Scores over the same facts", [drawing, _facts(table, FACTS)])


def _facts(table: pd.DataFrame, caption: str) -> Table:
    """Scores over the same facts; of the two p the corrected one counts."""
    formats = dict.fromkeys(["template_based", "template_free", "difference"], SHARE)
    about = {"template_based": "by template", "template_free": "by sentence", "pairs": "facts"}
    table = table.drop(columns="p")
    if table["sentences"].nunique() == 1:
        table = table.drop(columns="sentences")
    else:
        caption += " Sentences without their subject ask something else than their template."
    return _table(table, formats, caption, **about)


def _means(results: PageData) -> list[Part]:
    """Each data set's means over models, and those that the paper prints."""
    table = results.tables.get(f"{PREFIX}means")
    if table is None:
        return []
    by_name = {data.name: data for data in data_sets(results.builders)}
    data: list[str] = [""] * len(table)
    for metric, method in (("acc_at_1", METHOD), ("perplexity", "perplexity")):
        if metric in table:
            found = [_printed_mean(results, by_name[n], method, metric) for n in table["name"]]
            if any(note for _, note in found):
                table = table.copy()
                numbers = [number for number, _ in found]
                table.insert(list(table).index(metric) + 1, f"{metric} in print", numbers)
                data = [note or other for (_, note), other in zip(found, data, strict=True)]
    if is_printed := any(data):
        table[DATA] = data
    formats = {"acc_at_1": SHARE, "perplexity": "{:,.1f}", "perplexity in print": "{:,.2f}"}
    heads = {"acc_at_1 in print": "acc@1 in print, %"}
    caption = "Micro means of queries, then the mean over models"
    notes = _notes("figure 2", "section 4", "5") if is_printed else []
    return part("Means over models", [_table(table, formats, caption, **heads)], notes)


def _printed_mean(
    results: PageData, data: DataSet, method: str, metric: str, relation: str = "micro"
) -> tuple[float, str]:
    """The mean over the paper's models as it is printed, and whether it is over the same.

    There is none where the facts are invented.
    """
    about = results.benchmarks.get(data.benchmark)
    if about is None or about.invented:
        return nan, ""
    where = {"subset": data.subset, "relation": relation, "method": method, "metric": metric}
    rows = results.rows(data.benchmark, **where)
    models = results.params.models.all()
    rows = rows[[m not in models or models[m].counts_in(data.subset) for m in rows["model"]]]
    printed = published(MEAN, results.printed(data.benchmark), data.subset, relation, method)
    for paper, number, row in printed:
        if metric in row.values and len(rows):
            measured = next(rows.itertuples())
            table, names = paper.tables[number], rows["model"].tolist()
            return row.values[metric], data_note(results, measured, paper, table, names)
    return nan, ""


def _is_real(results: PageData, printed_as: str) -> bool:
    """Whether a benchmark of this name in the papers was probed, and is not of the sample world."""
    return any(
        results.printed(name) == printed_as and not about.invented
        for name, about in results.benchmarks.items()
    )


def _notes(*places: str) -> list[Block]:
    """What contradicts itself in these tables, figures and sections of the paper."""
    tables = papers()["template_free"].tables
    return paragraph(*(note for place in places for note in tables[place].notes))


def _perplexity(results: PageData) -> list[Part]:
    points, correlations = (
        results.tables.get(f"{PREFIX}{name}") for name in ("perplexity", "correlation")
    )
    if points is None or correlations is None:
        return []
    means = points.groupby(["kind", "name"], as_index=False)[["acc_at_1", "perplexity"]].mean()
    labels = ("perplexity, mean over models", plots.label("acc_at_1"))
    drawn = means.assign(acc_at_1=100 * means["acc_at_1"])
    plot = plots.points(drawn, "perplexity", "acc_at_1", "kind", labels, name="name")
    measured = correlations.dropna(subset="r")
    trend = "{kind}, {n} data sets: r {r:.2f}, of the logarithm {r_log:.2f}"
    trends = [
        trend.format_map(row)
        for row in measured[measured["over"] == "data sets"].to_dict("records")
    ]
    caption = "Each data set's mean perplexity and accuracy, over models; micro means of queries"
    drawing = Drawing("template-free-perplexity", plot, "; ".join([caption, *trends]) + ".")
    formats = dict.fromkeys(["r", "r_log", "rho"], "{:.2f}")
    over = " and over the models" if measured["name"].fillna("").any() else ""
    if not over:
        measured = measured.drop(columns=["over", "name"])
    about = f"Perplexity and acc@1, over the data sets of a kind{over}. {CORRELATIONS}"
    heads = {"r": "Pearson's r", "r_log": "r of the logarithm", "rho": "Spearman's ρ"}
    ps = {"p_log": "p of the logarithm", "p_rho": "p of ρ"}
    by_model = _table(points, {"acc_at_1": SHARE, "perplexity": "{:,.1f}"})
    return part(
        "Perplexity and accuracy",
        [drawing],
        [_table(measured, formats, about, n="points", **heads, **ps)] if len(measured) else [],
        folded("By data set and model", [by_model]),
    )


def _templates(results: PageData) -> list[Part]:
    table = results.tables.get(f"{PREFIX}templates")
    if table is None:
        return []
    named = table.assign(relation=table["relation"].str.replace("_", " "))
    named = named.replace({"model": {"mean": "mean of models"}})
    plot = plots.intervals(named, "relation", "model", plots.label("acc_at_10"), True)
    drawing = Drawing("template-free-templates", plot, "acc@10 of each template of Google-RE.")
    about = {"relation": "template", "value": "acc@10", "n": "queries"}
    google_re = next(data for data in data_sets(results.builders) if data.subset == PARALLEL[0][1])
    printed = [
        _printed_mean(results, google_re, METHOD, "acc_at_10", row.relation)
        if row.model == "mean"
        else (nan, "")
        for row in table.itertuples()
    ]
    is_printed = any(note for _, note in printed)
    if is_printed:
        in_print = [number for number, _ in printed]
        named.insert(named.columns.get_loc("value") + 1, "in print, %", in_print)
        named[DATA] = [note for _, note in printed]
    numbers = _table(named, {"value": SHARE, "n": "{:.0f}"}, **about)
    notes = _notes("section 5.2") if is_printed else []
    return part("Template by template", [drawing, numbers], notes)


def _overconfidence(results: PageData) -> list[Part]:
    shares, often = (
        results.tables.get(f"{PREFIX}{name}") for name in ("overconfidence", "frequent")
    )
    if shares is None or often is None:
        return []
    drawn = often.assign(value=often["share"], low=often["share"], high=often["share"])
    drawn = drawn.assign(name=drawn["name"] + ", " + drawn["kind"])
    labels = ("the most frequent entities, by place", "queries with it, per cent")
    drawings: list[Block] = []
    for model, group in [*drawn.groupby("model", sort=True)][:DRAWN]:
        plot = plots.curves(group, "place", "name", labels, True)
        caption = f"How often {model} has the same entity among its ten best answers."
        drawings.append(Drawing(f"template-free-frequent-{model}", plot, caption))
    favourite = ["favourite_share", "chance", "times_chance"]
    distinct = ["distinct_at_1", "distinct_at_5", "distinct_at_10"]
    formats = {**dict.fromkeys([*distinct, *favourite[:2]], SHARE), "times_chance": "{:.1f}"}
    means = results.tables.get(f"{PREFIX}overconfidence-means", pd.DataFrame())
    variety = results.tables.get(f"{PREFIX}variety")
    caption = (
        "Favourite share: queries whose ten best answers hold the model's favourite entity. "
        "Chance: the same for ten names in random order. Means over data sets and models."
    )
    return part(
        "The same answers again and again",
        drawings[:1],
        folded("Other models", drawings[1:]),
        [_table(means, formats, caption)] if len(means) else [],
        []
        if variety is None
        else [_table(variety, {"rho": "{:.2f}"}, VARIETY, rho="Spearman's ρ")],
        [_table(shares, formats, "Distinct: entities that are predicted at all")],
    )


def _distractors(results: PageData) -> list[Part]:
    table = results.tables.get(f"{PREFIX}distractors")
    if table is None:
        return []
    rows = table[table["metric"] == "acc_at_10"]
    edges = ["value", "low", "high"]
    more = rows.drop(columns=edges).rename(columns={f"{edge}_more": edge for edge in edges})
    drawn = pd.concat([rows.assign(among="own entities"), more.assign(among="with distractors")])
    drawn = drawn.assign(line=drawn["name"] + " · " + drawn["model"])
    plot = plots.intervals(drawn, "line", "among", plots.label("acc_at_10"), True)
    place = table.groupby(["name", "model"], sort=False).ngroup()
    order = table["metric"].map([*catalog()].index)
    named = table.assign(place=place, order=order).sort_values(["place", "order"])
    named = named.drop(columns=["benchmark", "subset", "place", "order"])
    about = {
        **{"value": "among its own", "value_more": "with distractors"},
        **{"entities": "its own entities", "entities_more": "with distractors, entities"},
    }
    caption = (
        f"The same queries among more entities ({METHOD} and {WITH_DISTRACTORS}); micro means."
    )
    drawing = Drawing("template-free-distractors", plot, caption)
    numbers = _table(named, dict.fromkeys(["value", "value_more"], SHARE), **about)
    return part("The number of entities", [drawing, numbers])


def _lipid(results: PageData) -> list[Part]:
    """Its entities, its annotators, and which models may have read its sentences."""
    spread = {"mean": "prompts per entity, mean", "std": "deviation"}
    spread |= {"max": "maximum", "min": "minimum"}
    agreed = {**dict.fromkeys(["yes_first", "yes_second", "agreed"], SHARE), "kappa": "{:.2f}"}
    agreement = "Two annotators on whether prompts state facts; kappa is Cohen's"
    tables: dict[str, tuple[dict[str, str], str, dict[str, str]]] = {
        "appearances": ({"mean": "{:.2f}", "std": "{:.2f}"}, "", spread),
        "agreement": (agreed, agreement, {}),
        "cut-off": ({}, CUT_OFF, {}),
    }
    blocks = [
        _table(table, formats, caption, **heads)
        for name, (formats, caption, heads) in tables.items()
        if (table := results.tables.get(f"{PREFIX}{name}")) is not None
    ]
    notes = _notes("section 3.2.3") if blocks and _is_real(results, "lipid") else []
    return part("LIPID: entities, annotators, and who may have read it", blocks, notes)


def _table(table: pd.DataFrame, formats: dict[str, str], caption: str = "", **heads: str) -> Table:
    """Show a table of an analysis."""
    titles = {name: entry.title for name, entry in catalog().items()}
    table = table.replace({"metric": titles}) if "metric" in table else table
    heads = {"name": "data set", "p_holm": "corrected p", **titles, **heads}
    shares = {name for name, form in formats.items() if form == SHARE}
    units = {name: ", points" if name == "difference" else ", %" for name in shares}
    columns = [name for name in map(str, table) if not name.startswith(("low", "high"))]
    body = [
        [_cell(row, name, formats.get(name, "{:g}")) for name in columns]
        for row in table.to_dict("records")
    ]
    labels = [heads.get(name, name.replace("_", " ")) + units.get(name, "") for name in columns]
    return Table(labels, body, caption)


def _cell(row: Mapping[Hashable, Any], name: str, form: str) -> str | Cell:
    """A number, its interval where the row has one of it, and the mark of its test."""
    value = row[name]
    if not isinstance(value, int | float):
        return str(value) or MISSING
    if pd.isna(value):
        return MISSING
    if name in ("p", "p_holm", "p_log", "p_rho"):
        return p_cell(value)
    edges = [row.get(edge) for edge in EDGES.get(name, ())]
    numbers = [value, *edges] if edges and not any(pd.isna(edge) for edge in edges) else [value]
    text, *interval = (form.format(number).removesuffix("%") for number in numbers)
    if name == "difference" and row.get("p_holm", 0) >= LEVEL:
        text += f" {MARK}"
    return Cell(f"{text}  [{', '.join(interval)}]" if interval else text, float(value))


def tables(results: PageData) -> dict[str, pd.DataFrame]:
    """All analyses, as CSV files `template-free-<name>`."""
    checkpoints = {
        places.MODELS / name: results.params.models.kind(name)
        for name in results.params.models.all()
    }
    found = analyses(
        results.comparison,
        places.PREDICTIONS,
        places.BENCHMARKS,
        results.builders,
        results.params,
        parameters=count_parameters(checkpoints),
    )
    return {f"{PREFIX}{name}": table for name, table in found.items()}


SECTION = Section(140, chapters=chapter, tables=tables, runs=partial(list_runs, tables, chapter))

"""Does a model give one answer to one fact, whatever its wording and its subject's name?

Of the subsets whose queries are the families of a benchmark (`core.tables.is_families`). First
answers are equal if they have one identifier, or are equal by the benchmark's rule. A query without
a prediction agrees with no other, and is wrong. A table that lists no best names, but those ranked
above the answer, says whether first answers are right, and not what they are: it has no
`consistency`.

Sources: Elazar et al. 2021 (ParaRel), agreement over pairs of wordings; Gallifant et al.
2024 (RABBITS), names of drugs.
"""

import zlib
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.answers import find_rule
from medprobe.core.tables import ORIGINAL, BenchmarkTables, lists_outranking
from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.statistics import Clusters, holm, paired_test
from medprobe.metrics.summary import DIGITS, KEYS, add_scores, cluster_queries, summarise, weighted

RUN: Final = ["variant", "replicate"]
FAMILY: Final = [*RUN, "family_id"]
ABOUT: Final = ["subset", "relation", "cluster", "answer"]  # the same for all queries of a family
_PAIRS: Final = "Elazar et al. 2021: equal first answers, over the pairs of a family"
_SHARE: Final = "after Elazar et al. 2021 (consistent and accurate), over all members"
_CHOSEN: Final = "ours: the wording best on one half of the clusters, scored on the other half"
_GAIN: Final = "ours: acc@1 under that wording less that under the original, within families"
_CHANGE: Final = "after Gallifant et al. 2024: acc@1 less that of the original, within families"
_P: Final = "two-sided p of the change, for the relation; Fisher 1935, Cameron et al. 2011"
_HOLM: Final = "Holm 1979, over the wordings and kinds of name of one system"


class Consistency(Scorer):
    """Agreement within families of queries, and what each wording and kind of name changes."""

    ALSO_OF = ("accuracy",)
    DRAWS_ANSWERS = True
    METRICS = (
        Metric("consistency", "consistency", "higher", 0.0, 1.0, _PAIRS, tested=True),
        Metric("right_under_all", "right under all", "higher", 0.0, 1.0, _SHARE, tested=True),
        Metric("right_under_most", "right under most", "higher", 0.0, 1.0, _SHARE),
        Metric("right_under_any", "right under any", "higher", 0.0, 1.0, _SHARE),
        Metric("acc_at_1_best_wording", "acc@1, best wording", "higher", 0.0, 1.0, _CHOSEN),
        Metric("best_wording_gain", "gain of the best wording", "neither", -1.0, 1.0, _GAIN),
        Metric("acc_at_1_change", "change of acc@1", "neither", -1.0, 1.0, _CHANGE),
        Metric("acc_at_1_change_p", "p of the change", "neither", 0.0, 1.0, _P),
        Metric("acc_at_1_change_p_holm", "corrected p of the change", "neither", 0, 1, _HOLM),
    )

    def score(self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring) -> Scores:
        """Score families, their pairs by kind of change, and each wording and kind of name.

        Returns:
            The subsets of families, and their parts `change:wording`, `change:name`, `change:both`
            (the pairs that differ in these), `wording:<name>` and `name:<kind>` (against the
            original).
            None where a benchmark has no families.
        """
        members = read_members(predictions, tables, scoring)
        if members.empty:
            return {}
        columns = by_column(members)
        parts = [by_family(members), by_change(members), columns]
        if lists_outranking(predictions):
            parts = [part.drop(columns="consistency") for part in (parts[0], columns)]
        scores: Scores = {}
        for table in parts:
            add_scores(scores, summarise(table, scoring, self.METRICS))
        for row in change_tests(columns, scoring).itertuples():
            numbers = scores[row.variant or "default"][row.subset]["micro"]
            for name in ("acc_at_1_change_p", "acc_at_1_change_p_holm"):
                numbers[name] = {"value": round(getattr(row, name), DIGITS), "n": row.n}
        return scores

    def paired(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> pd.DataFrame:
        """Return the numbers of each family."""
        members = read_members(predictions, tables, scoring)
        if members.empty:
            return pd.DataFrame(columns=[*KEYS, "subset", "cluster", "answer", "weight"])
        families = weighted(by_family(members))
        return families.drop(columns="consistency") if lists_outranking(predictions) else families


def read_members(
    predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
) -> pd.DataFrame:
    """One row per variant, replicate and query of a family, with its first answer.

    Returns:
        Columns `variant, replicate, query_id, family_id, wording, name_kind, subject, subset,
        relation, cluster, answer`, `first` (what distinguishes the first answer) and `hit` (0 or
        1). No rows where the benchmark has no families or none was probed.
    """
    queries = cluster_queries(tables, scoring.cluster)
    if "family_id" not in queries:
        return pd.DataFrame()
    columns = ["query_id", "family_id", "wording", "name_kind", "subject", "subset"]
    queries = queries.loc[queries["family_id"] != "", [*columns, "relation", "cluster", "answer"]]
    predictions = predictions[predictions["query_id"].isin(queries["query_id"])]
    return first_answers(predictions, queries, tables.normalise)


def first_answers(predictions: pd.DataFrame, queries: pd.DataFrame, rule: str) -> pd.DataFrame:
    """Join the first answers of each variant and replicate to all members of families."""
    normalise = find_rule(rule)
    tops = predictions[predictions["rank"] == 1].drop_duplicates(KEYS)
    pairs = zip(tops["prediction_id"], tops["prediction"], strict=True)
    tops = tops.assign(first=[f"id {id_}" if id_ else normalise(name) for id_, name in pairs])
    runs = predictions[RUN].drop_duplicates()
    members = runs.merge(queries, how="cross").merge(
        tops[[*KEYS, "first", "hit"]], how="left", on=KEYS
    )
    return members.assign(
        first=members["first"].fillna("no answer to " + members["query_id"]),
        hit=members["hit"].eq(True).astype(float),
    ).sort_values(KEYS, ignore_index=True)


def by_family(members: pd.DataFrame) -> pd.DataFrame:
    """The numbers of each family, one row per variant, replicate and family."""
    groups = members.groupby(FAMILY, sort=True)
    equal, pairs = _agreement(members, FAMILY), _pairs(groups.size())
    rows = groups[ABOUT].first()
    share = groups["hit"].mean()
    rows["consistency"] = equal / pairs
    rows["right_under_all"] = (share == 1).astype(float)
    rows["right_under_most"] = (share > 0.5).astype(float)
    rows["right_under_any"] = (share > 0).astype(float)
    if members["wording"].nunique() > 1:
        best = _best_wording(members).reindex(rows.index)
        is_own = (members["wording"] == ORIGINAL) & (members["name_kind"] == ORIGINAL)
        original = members[is_own].set_index(FAMILY)["hit"].reindex(rows.index)
        rows["acc_at_1_best_wording"], rows["best_wording_gain"] = best, best - original
    return _as_queries(rows)


def by_change(members: pd.DataFrame) -> pd.DataFrame:
    """The consistency of each family over its pairs by what they differ in."""
    groups = members.groupby(FAMILY, sort=True)
    about = groups[ABOUT].first()
    equal = {"all": _agreement(members, FAMILY)}
    pairs = {"all": _pairs(groups.size())}
    for change, shared in (("wording", "subject"), ("name", "wording")):
        keys = [*FAMILY, shared]
        equal[change] = _agreement(members, keys).groupby(FAMILY).sum()
        pairs[change] = _pairs(members.groupby(keys).size()).groupby(FAMILY).sum()
    for counts in (equal, pairs):
        counts["both"] = counts.pop("all") - counts["wording"] - counts["name"]
    tables = []
    for change in ("wording", "name", "both"):
        rows = about.assign(consistency=equal[change] / pairs[change])[pairs[change] > 0]
        tables.append(_as_queries(rows, f"/change:{change}"))
    return pd.concat(tables, ignore_index=True)


def by_column(members: pd.DataFrame) -> pd.DataFrame:
    """Each wording and each kind of name against the original, within families.

    A query is compared with that of its family which differs from it in the wording alone, or in
    the name alone, and has the original one.
    """
    tables = []
    for column, part, shared in (
        ("wording", "wording", "subject"),
        ("name_kind", "name", "wording"),
    ):
        is_original = members[column] == ORIGINAL
        originals = members.loc[is_original, [*FAMILY, shared, "first", "hit"]]
        rows = members[~is_original].merge(
            originals, on=[*FAMILY, shared], suffixes=("", "_original")
        )
        rows = rows.assign(
            consistency=(rows["first"] == rows["first_original"]).astype(float),
            acc_at_1_change=rows["hit"] - rows["hit_original"],
        )
        numbers = ["consistency", "acc_at_1_change"]
        for name, of_name in rows.groupby(column, sort=True):
            groups = of_name.groupby(FAMILY, sort=True)
            means = groups[ABOUT].first().join(groups[numbers].mean())
            tables.append(_as_queries(means, f"/{part}:{name}"))
    return pd.concat(tables, ignore_index=True)


def change_tests(columns: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Test whether a wording or kind of name changes accuracy, within families.

    The paired test is that between systems (`metrics.statistics`). Replicates are averaged.

    Returns:
        Columns `variant, subset, n` (families), `acc_at_1_change_p` and `acc_at_1_change_p_holm`,
        which is corrected over all wordings and kinds of name of a variant and subset.
    """
    rows = []
    for (variant, subset), part in columns.groupby(["variant", "subset"], sort=True):
        by_query = part.groupby(["query_id", "cluster", "answer"])["acc_at_1_change"].mean()
        change, ones = by_query.to_numpy(float), np.ones(len(by_query))
        names = (by_query.index.get_level_values(name) for name in ("cluster", "answer"))
        clusters = Clusters.of(*(pd.factorize(name)[0] for name in names))
        test = paired_test(change, ones, clusters, confidence=scoring.params.confidence)
        rows.append((variant, subset, len(by_query), test.p))
    table = pd.DataFrame(rows, columns=["variant", "subset", "n", "acc_at_1_change_p"])
    family = [table["variant"], table["subset"].str.partition("/")[0]]
    corrected = table["acc_at_1_change_p"].groupby(family).transform(lambda p: holm(p.to_numpy()))
    return table.assign(acc_at_1_change_p_holm=corrected)


def _as_queries(rows: pd.DataFrame, part: str = "") -> pd.DataFrame:
    """Rows by family, each as a query of its subset, or of a part of that."""
    rows = rows.reset_index().rename(columns={"family_id": "query_id"})
    return rows.assign(subset=rows["subset"] + part)


def _pairs(sizes: pd.Series) -> pd.Series:
    return sizes * (sizes - 1) / 2


def _agreement(members: pd.DataFrame, keys: list[str]) -> pd.Series:
    """How many pairs of members that are equal in `keys` have equal first answers."""
    return _pairs(members.groupby([*keys, "first"]).size()).groupby(keys).sum()


def _best_wording(members: pd.DataFrame) -> pd.Series:
    """Whether each family is right under the wording that is best for other clusters.

    The clusters of a relation are two halves. The wording of a half is the one that is right most
    often in the other; of equal ones the original, then the first by name.
    """
    rows = members[members["name_kind"] == ORIGINAL]
    rows = rows.assign(half=[zlib.crc32(name.encode()) % 2 for name in rows["cluster"]])
    keys = [*RUN, "relation", "half"]
    hits = rows.groupby([*keys, "wording"])["hit"].mean().reset_index()
    hits = hits.assign(half=1 - hits["half"], later=hits["wording"] != ORIGINAL)
    order = hits.sort_values(["hit", "later", "wording"], ascending=[False, True, True])
    chosen = order.drop_duplicates(keys)[[*keys, "wording"]].rename(columns={"wording": "chosen"})
    rows = rows.merge(chosen, how="left", on=keys)
    rows["chosen"] = rows["chosen"].fillna(ORIGINAL)
    best = rows[rows["wording"] == rows["chosen"]].set_index(FAMILY)["hit"]
    own = rows[rows["wording"] == ORIGINAL].set_index(FAMILY)["hit"]
    return best.combine_first(own)  # a family can lack the wording


SCORER = Consistency()

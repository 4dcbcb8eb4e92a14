"""Each query scored with the answers that the same model gave to other subjects (`core.shuffling`).

Nothing is asked again: the answers are those of the prediction table. A search that lists no best
names asks its prompts about the answers of other queries itself, and writes the control's variant.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from medprobe.core.answers import loose, uncased
from medprobe.core.shuffling import permutation_p, shuffled_means, shuffled_name
from medprobe.metrics.summary import QUERY_KEYS

LARGEST: Final = 2000  # queries of a relation that change places: memory grows with their square
Rule = Callable[[str], str]


class Stratum(NamedTuple):
    """The queries of a relation, or of a block of a large one, and whose answers fit them."""

    queries: pd.DataFrame  # a row each
    clusters: np.ndarray  # as codes from 0
    hits: list[np.ndarray]  # for each k [queries, lists], a mean over replicates
    share: float  # of the relation's queries


def shuffled_values(
    values: pd.DataFrame, predictions: pd.DataFrame, queries: pd.DataFrame, rule: Rule
) -> pd.DataFrame:
    """Return the expected accuracy of each query with the answers to other clusters of names.

    Args:
        values: accuracies of one variant, as `accuracy.values` returns them.
        predictions: of this variant; ranks, texts and hits.
        queries: as `read_queries` returns them.
        rule: the benchmark's rule for equal answers.

    Returns:
        Rows like `values`, of the variant's control and without replicates, with these accuracies
        alone. Relations with a single cluster of names have none.
    """
    metrics, tables = _metrics(values), []
    for _, strata in _strata(values, predictions, queries, rule):
        for stratum in strata:
            means = [shuffled_means(hits, stratum.clusters) for hits in stratum.hits]
            numbers = dict(zip(metrics, means, strict=True))
            tables.append(stratum.queries[QUERY_KEYS].assign(**numbers))
    if not tables:
        return values.head(0)
    variant = shuffled_name(str(values["variant"].iloc[0]))
    table = pd.concat(tables, ignore_index=True).assign(variant=variant, replicate="")
    return table.dropna(subset=metrics)


def shuffled_tests(
    values: pd.DataFrame, predictions: pd.DataFrame, queries: pd.DataFrame, rule: Rule, seed: int
) -> pd.DataFrame:
    """Test each accuracy of a variant against that with shuffled answers (`permutation_p`).

    The arguments are those of `shuffled_values`, and the seed of the permutations.

    Returns:
        Columns `subset, metric, p`, of means over relations.
    """
    rows = []
    for subset, strata in _strata(values, predictions, queries, rule):
        clusters = [stratum.clusters for stratum in strata]
        weights = [stratum.share for stratum in strata]
        for place, metric in enumerate(_metrics(values)):
            hits = [stratum.hits[place] for stratum in strata]
            *_, p = permutation_p(hits, clusters, weights=weights, seed=seed)
            rows.append({"subset": subset, "metric": metric, "p": p})
    return pd.DataFrame(rows, columns=["subset", "metric", "p"])


def strictest_rule(predictions: pd.DataFrame, queries: pd.DataFrame, rule: Rule) -> Rule:
    """Return the strictest rule by which all recorded hits are hits.

    Methods that write texts compare them without regard to case, or more loosely, and the answers
    to other queries have to be compared as their own were.
    """
    rows = predictions.loc[predictions["hit"].astype(bool), ["query_id", "prediction"]]
    answers = rows["query_id"].map(queries.set_index("query_id")["answers"])
    pairs = [*zip(rows["prediction"], answers, strict=True)]
    for candidate in (rule, uncased(rule)):
        if all(candidate(text) in {*map(candidate, names)} for text, names in pairs):
            return candidate
    return loose(rule)


def _metrics(values: pd.DataFrame) -> list[str]:
    """The accuracies that a list of answers decides, such as `acc_at_10`."""
    return [name for name in values if name.removeprefix("acc_at_").isdigit()]


def _strata(
    values: pd.DataFrame, predictions: pd.DataFrame, queries: pd.DataFrame, rule: Rule
) -> Iterator[tuple[str, list[Stratum]]]:
    """Each subset with its strata."""
    rule = strictest_rule(predictions, queries, rule)
    texts = {text: rule(text) for text in predictions["prediction"].unique()}
    listed = predictions[["replicate", "query_id", "rank"]].assign(
        text=predictions["prediction"].map(texts)
    )
    answers = queries.set_index("query_id")["answers"]
    means = values.groupby(["query_id"], sort=True)[_metrics(values)].mean()
    first = values.drop_duplicates("query_id").sort_values("query_id").set_index("query_id")
    first[_metrics(values)] = means
    for subset, of_subset in first.groupby("subset"):
        strata = []
        for _, rows in of_subset.groupby("relation"):
            for block in _blocks(rows):
                table = block.reset_index()
                found = [{*map(rule, names)} for names in answers[block.index]]
                hits = _hits(table, listed[listed["query_id"].isin(block.index)], found)
                share = len(block) / len(rows)
                strata.append(Stratum(table, pd.factorize(block["cluster"])[0], hits, share))
        yield str(subset), strata


def _blocks(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The queries of a relation, whole clusters of names together, in blocks of about LARGEST."""
    sizes = rows["cluster"].value_counts().sort_index()
    block_of = (sizes.cumsum() - sizes) // LARGEST
    for _, block in rows.groupby(rows["cluster"].map(block_of)):
        yield block


def _hits(
    table: pd.DataFrame, listed: pd.DataFrame, answers: Sequence[set[str]]
) -> list[np.ndarray]:
    """Whether each list holds an answer of each query, by metric; [queries, lists].

    The diagonal is what the method itself counted.
    """
    codes = {text: code for code, text in enumerate(sorted(set[str]().union(*answers)))}
    size = (len(table), len(codes))
    pairs = [(row, codes[text]) for row, texts in enumerate(answers) for text in texts]
    rows, columns = np.array(pairs).T
    of_queries = csr_matrix((np.ones(len(pairs), np.float32), (rows, columns)), size)
    row_of = {query: row for row, query in enumerate(table["query_id"])}
    replicates = listed["replicate"].nunique()
    listed = listed.assign(code=listed["text"].map(codes)).dropna(subset="code")
    metrics = _metrics(table)
    totals = [np.zeros((len(table), len(table)), np.float32) for _ in metrics]
    for _, of_replicate in listed.groupby("replicate"):
        lists = of_replicate["query_id"].map(row_of).to_numpy()
        for place, metric in enumerate(metrics):
            within = (of_replicate["rank"] <= int(metric.removeprefix("acc_at_"))).to_numpy()
            cells = (lists[within], of_replicate["code"].to_numpy(int)[within])
            named = csr_matrix((np.ones(within.sum(), np.float32), cells), size)
            totals[place] += (of_queries @ named.T).toarray() > 0
    means = [total / max(1, replicates) for total in totals]
    for mean, metric in zip(means, metrics, strict=True):
        np.fill_diagonal(mean, table[metric])
    return means

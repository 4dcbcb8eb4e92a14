"""What a subject's letters alone find: a ranking without a model, a prompt or a relation.

Many answers look like their subject ("Gastric Ulcer" has the site "Gastric Tissue"), and who ranks
names by their letters finds these without knowing a fact (Poerner et al. 2020, LAMA-UHN). What a
model finds beyond is knowledge: of the queries whose answers are not near by letters.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from medprobe.core.answers import find_rule, with_hits
from medprobe.core.benchmark_statistics import KS, ranked_names
from medprobe.core.code import code_key
from medprobe.core.parts import fingerprint, load_or_compute, part_path
from medprobe.core.places import BENCHMARKS, PARTS
from medprobe.core.tables import SLOT, BenchmarkTables

WITH_SUBJECT: Final = "with_subject"  # a variant
NEAR: Final = 100  # names, and at most half of those that are ranked
RANKED: Final = max(KS)  # names
TIES: Final = 5  # names behind the last that equal it, as methods list them
LETTERS: Final = (3, 4)  # of a run within a word
BLOCK: Final = 100  # subjects compared at a time: memory grows with their number times the names'
DIGITS: Final = 9  # cosines this close are equal


def letters(tables: BenchmarkTables) -> pd.DataFrame:
    """Rank the names of a benchmark by the cosine of their letters with those of the subject.

    A text's vector holds the tf-idf of its runs of three and four characters within words, in lower
    case. Equal cosines go by name. A query without a subject is compared by its prompt.

    Returns:
        A prediction table. The subject's own name is left out unless it is an answer, so that this
        baseline is no weaker than a model that does not repeat the subject. Where the subjects are
        candidates, the variant `with_subject` has it. A column `near` says whether an answer is
        among the 100 nearest names, the subject included, or the nearest half of fewer than 200. A
        name that shares no run is never near.
    """
    by_names: dict[tuple[str, ...], list[pd.DataFrame]] = {}
    for _, queries, candidates in tables.subsets():
        ranked = ranked_names(tables, queries, candidates)
        for relation, of_relation in queries.groupby("relation"):
            by_names.setdefault(tuple(sorted(ranked[str(relation)])), []).append(of_relation)
    rule = find_rule(tables.normalise)
    rows = [
        row
        for names, parts in by_names.items()
        if names
        for row in _rank(pd.concat(parts), names, rule)
    ]
    columns = ["query_id", "near", "variant", "rank", "prediction", "score"]
    table = pd.DataFrame(rows, columns=columns).assign(replicate="")
    if not tables.queries["subject"].isin(tables.candidates["name"]).any():
        table = table[table["variant"] == ""].reset_index(drop=True)
    return with_hits(table, tables)


def _rank(
    queries: pd.DataFrame, names: Sequence[str], rule: Callable[[str], str]
) -> Iterator[tuple[str, bool, str, int, str, float]]:
    """The rows of queries whose names to rank are the same."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # which takes a second

    runs = TfidfVectorizer(analyzer="char_wb", ngram_range=LETTERS)
    of_names = runs.fit_transform(names).T.tocsr()
    prompts = queries["prompt"].str.replace(SLOT, " ", regex=False)
    codes, texts = pd.factorize(queries["subject"].where(queries["subject"] != "", prompts))
    nearest = [*_nearest(runs.transform(texts), of_names)]
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(rule(name), []).append(place)
    own_place = {name: place for place, name in enumerate(names)}
    most = min(NEAR, len(names) // 2)
    for code, query in zip(codes, queries.itertuples(), strict=True):
        order, cosines = nearest[code]
        found = {*order[:most][cosines[:most] > 0]}
        near = any(place in found for text in query.answers for place in places.get(rule(text), ()))
        own = -1 if query.subject in query.answers else own_place.get(query.subject, -1)
        for variant, kept in (("", order != own), (WITH_SUBJECT, order >= 0)):
            best, scores = order[kept], cosines[kept]
            tied = (scores[RANKED : RANKED + TIES] == scores[RANKED - 1 : RANKED]).sum()
            for rank, place in enumerate(best[: RANKED + tied], start=1):
                yield query.query_id, near, variant, rank, names[place], float(scores[rank - 1])


def _nearest(of_texts: csr_matrix, of_names: csr_matrix) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The places of each text's nearest names and their cosines, best first, equal ones by place.

    Both are columns of runs, of texts [texts, runs] and of names [runs, names].
    """
    for start in range(0, of_texts.shape[0], BLOCK):
        block = (of_texts[start : start + BLOCK] @ of_names).toarray().round(DIGITS)
        count = min(NEAR, block.shape[1])
        edges = np.partition(block, -count)[:, -count]
        for cosines, edge in zip(block, edges, strict=True):
            pool = np.flatnonzero(cosines >= edge)
            order = pool[np.argsort(-cosines[pool], kind="stable")][:count]
            yield order, cosines[order]


def letters_key(folder: Path) -> list[str]:
    """All that the ranking of the benchmark in `folder` follows from."""
    return ["letters", fingerprint(sorted(folder.glob("*.parquet"))), code_key("core", "metrics")]


def letters_part(folder: Path) -> Path:
    """Where the ranking of a project's benchmark is kept."""
    return part_path(PARTS, letters_key(folder))


@lru_cache(maxsize=2)
def read_letters(tables: BenchmarkTables) -> pd.DataFrame:
    """Rank the names of a benchmark; of one of the project, once (in outputs/parts)."""
    if tables.folder is not None and tables.folder.parent == BENCHMARKS:
        return load_or_compute(PARTS, letters_key(tables.folder), lambda: letters(tables))
    return letters(tables)


def near_queries(tables: BenchmarkTables) -> frozenset[str]:
    """The queries of a benchmark that have an answer near by letters; the others are blind."""
    table = read_letters(tables)
    return frozenset(table.loc[table["near"], "query_id"])

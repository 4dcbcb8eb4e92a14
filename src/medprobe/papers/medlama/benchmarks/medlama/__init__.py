"""MedLAMA: 19 relations of the UMLS as cloze queries, 1 to 10 answers each, a full and a hard set.

Built from a UMLS release. Source: Meng et al. 2022, section 2; what the paper leaves open is as in
the released files, which come out identical (`medlama_released` builds from these).
"""

from functools import partial
from pathlib import Path
from typing import Final, Literal

import pandas as pd
import polars as pl
from pydantic import Field

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.benchmarks.families import SubjectName
from medprobe.core.errors import BadInput
from medprobe.core.tables import RELATION_ANSWERS, BenchmarkTables
from medprobe.papers.medlama.benchmarks.medlama.names import ConceptFamilies, read_names
from medprobe.papers.medlama.benchmarks.medlama.queries import MedlamaSettings, tables
from medprobe.sources import rrf

METADATA: Final = Metadata(
    description="biomedical facts of the UMLS as prompts with one slot",
    citation="Meng et al., Rewire-then-Probe: A Contrastive Recipe for Probing Biomedical Knowledge"
    " of Pre-trained Language Models, ACL 2022",
    licence="UMLS Metathesaurus License",
    terms="umls",
    sources=("umls/MRCONSO.RRF", "umls/MRREL.RRF"),
    primary_metric="acc_at_1",
    cluster="subject_id",
    contrasts=(("hard", "full"),),
)


# By what a release sorts its rows: other programs may write them in another order.
FACT_ORDER: Final = ["CUI1", "AUI1", "STYPE1", "REL", "CUI2", "AUI2", "RELA", "RUI"]
NAME_ORDER: Final = ["CUI", "LAT", "TS", "LUI", "STT", "SUI", "ISPREF", "AUI"]


class Settings(MedlamaSettings):
    """How to read the UMLS; the defaults give the released benchmark."""

    vocabularies: tuple[str, ...] = ("SNOMEDCT_US", "NCI", "MED-RT")
    """UMLS vocabularies whose relations are read."""
    names: Literal["atom", "preferred"] = "atom"
    """Names of entities: the relation's own `atom`, or the `preferred` English name."""
    max_answers: int = Field(10, gt=0)
    """Queries with more answers are dropped."""
    obsolete: bool = False
    """Also take withdrawn relations (SUPPRESS is not `N`)."""
    families: ConceptFamilies | None = None
    """Also ask each query of `full` in further wordings and under further names of its subject.
    Empty: no families."""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build the queries of a UMLS release, drawn by relation."""
    triples, read = _triples(data / "umls", settings)
    read = counts.lines(data, *METADATA.sources) + read
    read += counts.by_name("umls/MRREL.RRF", "triples", triples["relation"].sort())
    subjects = triples.group_by("relation", "subject_id", "subject").agg(
        pl.col("answer").n_unique().alias("answers")
    )
    subjects = subjects.filter(pl.col("answers") <= settings.max_answers)
    read += counts.by_name("umls/MRREL.RRF", "subjects", subjects["relation"].sort())
    return tables(
        _queries(triples, settings),
        settings,
        seed,
        read,
        keep_order=False,
        read_names=partial(_read_names, data / "umls", settings),
    )


def _read_names(
    umls: Path, settings: Settings, queries: pd.DataFrame
) -> tuple[dict[str, list[SubjectName]], list[counts.CountRow]]:
    """Read the further names of the queries' subjects, and count the ambiguous ones."""
    if settings.families is None:
        return {}, []
    names, ambiguous = read_names(umls, queries, settings.families.names)
    return names, [("umls/MRCONSO.RRF", "dropped", "ambiguous names", ambiguous)] * bool(ambiguous)


def _queries(triples: pl.DataFrame, settings: Settings) -> pd.DataFrame:
    """Make a query of each head and relation, sorted by head and name.

    Its answers are the distinct names of all tails in order of appearance, each with the CUI that
    was last read for it.
    """
    query = ["relation", "subject_id", "subject"]
    answers = (
        triples.lazy()
        .group_by(*query, "answer")
        .agg(pl.col("line", "order").min(), pl.col("answer_id").sort_by("order").last())
    )
    queries = (
        answers.group_by(query)
        .agg(
            answers=pl.col("answer").sort_by("order"),
            answer_ids=pl.col("answer_id").sort_by("order"),
            place=pl.format("MRREL.RRF, line {}", pl.col("line").min()),
        )
        .filter(pl.col("answers").list.len() <= settings.max_answers)
        .sort("subject_id", "subject", "relation")
        .collect(engine="streaming")
    )
    return pd.DataFrame(queries.to_dict(as_series=False))


def _triples(umls: Path, settings: Settings) -> tuple[pl.DataFrame, list[counts.CountRow]]:
    """Read MRREL's rows with the names of head and tail.

    The columns are `line, order, relation, subject_id, subject, answer_id, answer`. The head of a
    relation is CUI2, its tail CUI1. The order is that of a release, whose rows are sorted. The
    counts are of rows that are obsolete and of rows that stand twice (RUI), by relation; of names
    in other languages than English, by language; and of names that are not those of the relation's
    own atoms.
    """
    in_vocabulary = pl.col("SAB").is_in(settings.vocabularies)
    triples = rrf.read_mrrel(umls, [*FACT_ORDER, "SUPPRESS"], in_vocabulary, settings.relations)
    triples = triples.sort(FACT_ORDER).with_row_index("order").rename({"RELA": "relation"})
    obsolete = triples.filter(pl.col("SUPPRESS") != rrf.IN_USE)
    read = counts.by_name("umls/MRREL.RRF", "obsolete triples", obsolete["relation"].sort())
    repeated = triples.filter(pl.col("RUI").is_duplicated() & (pl.col("RUI") != ""))
    repeated = repeated.filter(~pl.col("RUI").is_first_distinct())
    read += counts.by_name("umls/MRREL.RRF", "repeated triples", repeated["relation"].sort())
    if not settings.obsolete:
        triples = triples.filter(pl.col("SUPPRESS") == rrf.IN_USE)
    if settings.names == "preferred":
        ids = pl.concat([triples["CUI1"], triples["CUI2"]]).unique().rename("CUI").to_frame()
        names = rrf.read_preferred_names(umls, ids)
        for end, name in [("CUI2", "subject"), ("CUI1", "answer")]:
            triples = triples.join(names.rename({"CUI": end, "STR": name}), on=end)
    else:
        triples, bare, foreign = _with_atoms(umls, triples)
        what = "names in other languages"
        read += counts.by_name("umls/MRCONSO.RRF", what, foreign)
        read += [("umls/MRCONSO.RRF", "names", "of other atoms", bare)] * bool(bare)
    triples = triples.rename({"CUI2": "subject_id", "CUI1": "answer_id"})
    columns = ["line", "order", "relation", "subject_id", "subject", "answer_id", "answer"]
    return triples.select(columns), read


def _with_atoms(umls: Path, triples: pl.DataFrame) -> tuple[pl.DataFrame, int, list[str]]:
    """Name both ends by their own atoms, in any language, suppressed or not.

    An end whose atom is missing by the last name listed for its concept. Their number is returned,
    and the language of each atom that is not English.
    """
    used = pl.concat([triples["AUI1"], triples["AUI2"]]).unique().rename("AUI").to_frame()
    atoms = rrf.read_mrconso(umls, ["AUI", "STR", "LAT"], among=used)
    foreign = sorted(atoms.filter(pl.col("LAT") != "ENG")["LAT"])
    names = atoms.group_by("AUI").agg(pl.col("STR").max())
    for end, name in [("2", "subject"), ("1", "answer")]:
        own_name = names.rename({"AUI": f"AUI{end}", "STR": name})
        triples = triples.join(own_name, on=f"AUI{end}", how="left")
    ends = [("CUI2", "subject"), ("CUI1", "answer")]
    bare = [triples.filter(pl.col(name).is_null())[end] for end, name in ends]
    if not any(map(len, bare)):
        return triples, 0, foreign
    concepts = pl.concat(bare).unique().rename("CUI").to_frame()
    listed = rrf.read_mrconso(umls, [*NAME_ORDER, "STR"], among=concepts)
    last = listed.group_by("CUI").agg(pl.col("STR").sort_by(NAME_ORDER).last())
    for end, name in ends:
        triples = triples.join(last.rename({"CUI": end, "STR": "last"}), on=end, how="left")
        triples = triples.with_columns(pl.coalesce(name, "last").alias(name)).drop("last")
        for row in triples.filter(pl.col(name).is_null()).head(1).to_dicts():
            where = f"{umls / 'MRREL.RRF'}, line {row['line']}"
            remedy = "take both files from one release"
            raise BadInput(where, f"{row[end]} has no name in MRCONSO.RRF", remedy)
    return triples, sum(map(len, bare)), foreign


BENCHMARK = Benchmark(
    METADATA,
    Settings,
    build,
    gate_sources=(*METADATA.sources, "umls/MRSTY.RRF"),
    tables=(RELATION_ANSWERS,),
)

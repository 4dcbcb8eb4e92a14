"""MedLAMA: 19 relations of the UMLS as cloze queries, 1 to 10 answers each, a full and a hard set.

Built from a UMLS release, or from the imported released files. Source: Meng et al. 2022, section 2;
what the paper leaves open is as in the released files, which come out identical.
"""

from pathlib import Path
from typing import Final, Literal

import pandas as pd
import polars as pl
from pydantic import Field, field_validator

from medprobe.benchmarks import Metadata
from medprobe.errors import BadInput, nearest
from medprobe.metrics.hardness import Rule, hardness
from medprobe.params import Section
from medprobe.sources import medlama, rrf
from medprobe.tables import Benchmark

METADATA: Final = Metadata(
    description="biomedical facts of the UMLS as prompts with one slot, 19 relations",
    citation="Meng et al., Rewire-then-Probe: A Contrastive Recipe for Probing Biomedical Knowledge"
    " of Pre-trained Language Models, ACL 2022",
    licence="UMLS Metathesaurus License",
    sources=("umls/MRCONSO.RRF", "umls/MRREL.RRF"),
    primary_metric="acc_at_1",
)

# Prompts as released, slips of the pen included. The last relation is in the released prompts but
# not in the benchmark.
HUMAN_PROMPTS: Final = {
    "disease_may_have_associated_disease": (
        "The disease [X] might have the associated disease [Y] ."
    ),
    "gene_product_plays_role_in_biological_process": (
        "The gene product [X] plays role in biological process [Y] ."
    ),
    "gene_product_encoded_by_gene": "The gene product [X] is encoded by gene [Y] .",
    "gene_product_has_associated_anatomy": "The gene product [X] has the associated anatomy [Y] .",
    "gene_associated_with_disease": "The gene [X] is associatied with disease [Y] .",
    "disease_has_abnormal_cell": "[X] has the abnormal cell [Y] .",
    "occurs_after": "[X] occurs after [Y] .",
    "gene_product_has_biochemical_function": "[X] has biochemical function [Y] .",
    "disease_may_have_molecular_abnormality": (
        "The disease [X] may have molecular abnormality [Y] ."
    ),
    "disease_has_associated_anatomic_site": (
        "The disease [X] can stem from the associated anatomic_site [Y] ."
    ),
    "associated_morphology_of": "[X] is associated morphology of [Y] .",
    "disease_has_normal_tissue_origin": "The disease [X] stems from the normal tissue [Y] .",
    "gene_encodes_gene_product": "The gene [X] encodes gene product [Y] .",
    "has_physiologic_effect": "[X] has physiologic effect of [Y] .",
    "may_treat": "[X] might treat [Y] .",
    "disease_mapped_to_gene": "The disease [X] is mapped to gene [Y] .",
    "may_prevent": "[X] may be able to prevent [Y] .",
    "disease_may_have_finding": "[X] may have [Y] .",
    "disease_has_normal_cell_origin": "The disease [X] stems from the normal cell [Y] .",
    "gene_product_has_chemical_classification": "The gene product [X] is a type of [Y] .",
}
RELATIONS: Final = tuple(HUMAN_PROMPTS)[:19]  # in the order of the paper's Table 2

# names no text would use, such as the karyotype t(8;21)(q22;q22)
UNNATURAL: Final = r"\b(?:t|del|dup|inv|ins|der|add|i|r)\([0-9XY][0-9XYpq;.?]*\)"


class Settings(Section):
    """`benchmarks.medlama` in `params.yaml`; the defaults give the released benchmark."""

    released: str = ""  # folder below data/ with imported released files; "" builds from data/umls
    relations: tuple[str, ...] = RELATIONS
    vocabularies: tuple[str, ...] = ("SNOMEDCT_US", "NCI", "MED-RT")
    names: Literal["atom", "preferred"] = "atom"  # the relation's own atoms, or preferred English
    per_relation: int = Field(1000, gt=0)  # queries drawn, all where there are fewer
    max_answers: int = Field(10, gt=0)  # queries with more are dropped
    prompts: Literal["human", "default"] = "human"
    hardness: Rule = "released"
    max_match: float = 0.1  # a hard query is below both
    max_rouge_l: float = 0.1
    natural_names: bool = False  # drop queries with karyotype-like names
    min_queries: int = Field(0, ge=0)  # drop relations with fewer queries

    @field_validator("relations")
    @classmethod
    def _known(cls, relations: tuple[str, ...]) -> tuple[str, ...]:
        for name in relations:
            if name not in HUMAN_PROMPTS:
                raise ValueError(f"no relation '{name}'{nearest(name, list(HUMAN_PROMPTS))}")
        return relations


def build(data: Path, settings: Settings, seed: int) -> Benchmark:
    """MedLAMA's queries, `full` and `hard`, and the candidates of both: all their names.

    Queries also have `avg_match` and `avg_rouge_l`, how much of the answers the subject gives away.
    Raises BadInput where a source is missing or amiss, or a relation has no query.
    """
    found = _released(data, settings) if settings.released else _from_umls(data, settings)
    if settings.natural_names:
        found = found[_natural(found)]
    drawn = []
    for relation in settings.relations:
        part = found[found["relation"] == relation].reset_index(drop=True)
        if part.empty and not settings.min_queries:
            raise BadInput(
                data / (settings.released or "umls"),
                f"no query of relation {relation}",
                "name the relations that are there under benchmarks.medlama.relations",
            )
        if len(part) >= settings.min_queries:
            drawn.append(_draw(part, settings, seed))
    if not drawn:
        raise BadInput("params.yaml: benchmarks.medlama", "min_queries leaves no relation")
    full = _with_hardness(_with_prompts(pd.concat(drawn, ignore_index=True), settings), settings)
    is_hard = (full["avg_match"] < settings.max_match) & (
        full["avg_rouge_l"] < settings.max_rouge_l
    )
    hard = full[is_hard]
    hard = hard.assign(subset="hard", query_id=hard["query_id"] + "-hard")
    queries = pd.concat([full, hard], ignore_index=True)
    return Benchmark(queries, _candidates(queries))


def _released(data: Path, settings: Settings) -> pd.DataFrame:
    """The queries of the imported released files."""
    folder = data / settings.released
    full, _ = medlama.released_files(folder)
    there = [relation for relation in settings.relations if relation in full]
    tables = [medlama.read_queries(full[relation], relation) for relation in there]
    if not tables:
        raise BadInput(folder, "none of the relations of benchmarks.medlama.relations is here")
    return pd.concat(tables, ignore_index=True)


def _from_umls(data: Path, settings: Settings) -> pd.DataFrame:
    """All queries of a UMLS release: a head and a relation, its answers the distinct names of all
    tails in order of appearance, each with the CUI last seen for it. Sorted by head and name."""
    query = ["relation", "subject_id", "subject"]
    triples = _triples(data / "umls", settings).lazy()
    answers = triples.group_by(*query, "answer").agg(
        pl.col("line").min(), pl.col("answer_id").sort_by("line").last()
    )
    queries = (
        answers.group_by(query)
        .agg(
            answers=pl.col("answer").sort_by("line"),
            answer_ids=pl.col("answer_id").sort_by("line"),
        )
        .filter(pl.col("answers").list.len() <= settings.max_answers)
        .sort("subject_id", "subject", "relation")
        .collect(engine="streaming")
    )
    return pd.DataFrame(queries.to_dict(as_series=False))


def _triples(umls: Path, settings: Settings) -> pl.DataFrame:
    """`line, relation, subject_id, subject, answer_id, answer`: MRREL's rows, head and tail named.

    The head of a relation is CUI2, its tail CUI1.
    """
    rows = rrf.scan_mrrel(umls, settings.relations)
    rows = rows.filter(pl.col("SAB").is_in(settings.vocabularies))
    rows = rows.select("line", "CUI1", "AUI1", "CUI2", "AUI2", relation="RELA")
    triples = rows.collect(engine="streaming")
    if settings.names == "preferred":
        ids = pl.concat([triples["CUI1"], triples["CUI2"]]).unique().implode()
        names = (
            rrf.preferred_names(umls).filter(pl.col("CUI").is_in(ids)).collect(engine="streaming")
        )
        for end, name in [("CUI2", "subject"), ("CUI1", "answer")]:
            triples = triples.join(names.rename({"CUI": end, "STR": name}), on=end)
    else:
        triples = _with_atoms(umls, triples)
    triples = triples.rename({"CUI2": "subject_id", "CUI1": "answer_id"})
    return triples.select("line", "relation", "subject_id", "subject", "answer_id", "answer")


def _with_atoms(umls: Path, triples: pl.DataFrame) -> pl.DataFrame:
    """Name both ends by their own atoms, in any language, suppressed or not; an end whose atom is
    missing by the last name listed for its concept."""
    atoms = rrf.scan_mrconso(umls).select("line", "CUI", "AUI", "STR")
    used = pl.concat([triples["AUI1"], triples["AUI2"]]).unique().rename("AUI").to_frame()
    own = atoms.join(used.lazy(), on="AUI", how="semi").group_by("AUI")
    names = own.agg(pl.col("STR").sort_by("line").last()).collect(engine="streaming")
    for end, name in [("2", "subject"), ("1", "answer")]:
        own_name = names.rename({"AUI": f"AUI{end}", "STR": name})
        triples = triples.join(own_name, on=f"AUI{end}", how="left")
    ends = [("CUI2", "subject"), ("CUI1", "answer")]
    bare = [triples.filter(pl.col(name).is_null())[end] for end, name in ends]
    if not any(map(len, bare)):
        return triples
    concepts = pl.concat(bare).unique().rename("CUI").to_frame()
    listed = atoms.join(concepts.lazy(), on="CUI", how="semi").group_by("CUI")
    last = listed.agg(pl.col("STR").sort_by("line").last()).collect(engine="streaming")
    for end, name in ends:
        triples = triples.join(last.rename({"CUI": end, "STR": "last"}), on=end, how="left")
        triples = triples.with_columns(pl.coalesce(name, "last").alias(name)).drop("last")
        for row in triples.filter(pl.col(name).is_null()).head(1).to_dicts():
            where = f"{umls / 'MRREL.RRF'}, line {row['line']}"
            remedy = "take both files from one release"
            raise BadInput(where, f"{row[end]} has no name in MRCONSO.RRF", remedy)
    return triples


def _natural(queries: pd.DataFrame) -> pd.Series:
    """Which queries have no karyotype-like name."""
    names = queries["subject"] + "\n" + queries["answers"].map("\n".join)
    return ~names.str.contains(UNNATURAL, regex=True)


def _draw(queries: pd.DataFrame, settings: Settings, seed: int) -> pd.DataFrame:
    """The relation's sample in the drawn order. Released files are samples already: their order is
    kept unless fewer are asked for."""
    if settings.released and len(queries) <= settings.per_relation:
        return queries
    return queries.sample(min(settings.per_relation, len(queries)), random_state=seed)


def _with_prompts(queries: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Number the queries in each relation and fill their subjects into the prompts."""
    number = queries.groupby("relation").cumcount() + 1
    human = settings.prompts == "human"
    prompts = [
        (HUMAN_PROMPTS[row.relation] if human else default_prompt(row.relation)).replace(
            "[X]", row.subject
        )
        for row in queries.itertuples()
    ]
    return queries.assign(
        benchmark="medlama",
        subset="full",
        prompt=prompts,
        query_id=queries["relation"] + "-" + number.astype(str).str.zfill(4),
    )


def default_prompt(relation: str) -> str:
    """The prompt made of the relation's own name. (One released default prompt, that of
    associated_morphology_of, has a stray second blank before its slot; this one has not.)

    >>> default_prompt("may_treat")
    '[X] may treat [Y] .'
    """
    return f"[X] {relation.replace('_', ' ')} [Y] ."


def _with_hardness(queries: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    measured = [
        hardness(row.subject, row.answers, settings.hardness) for row in queries.itertuples()
    ]
    match, rouge_l = zip(*measured, strict=True)
    return queries.assign(avg_match=match, avg_rouge_l=rouge_l)


def _candidates(queries: pd.DataFrame) -> pd.DataFrame:
    """All names of each subset, each once and with the first of its CUIs in alphabetical order;
    sorted by name. A name's type is `answer` where any query has it as one, else `subject`."""
    columns = ["subset", "name", "id"]
    answers = queries[["subset", "answers", "answer_ids"]].set_axis(columns, axis=1)
    answers = answers.explode(["name", "id"]).assign(type="answer")
    subjects = queries[["subset", "subject", "subject_id"]].set_axis(columns, axis=1)
    names = pd.concat([answers, subjects.assign(type="subject")], ignore_index=True)
    types = names.groupby(["subset", "name"])["type"].min()  # answer comes before subject
    names = names.sort_values(columns).drop_duplicates(["subset", "name"]).drop(columns="type")
    return names.join(types, on=["subset", "name"]).reset_index(drop=True)

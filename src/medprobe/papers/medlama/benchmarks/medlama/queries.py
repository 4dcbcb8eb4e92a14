"""From all queries of MedLAMA's relations to its tables: drawn, prompted, full and hard.

Source: Meng et al. 2022, section 2.

Two measures are behind the hard set: how much of an answer a query gives away. Both are shares in
[0, 1], lower is harder. Source: Meng et al. 2022 (MedLAMA), section 2, "Easy vs.
Hard Queries", and Lin 2004 (ROUGE-L). The paper leaves the computation open; the rule `released` is
the one that gives the released columns to the last bit.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd
import yaml
from pydantic import Field, field_validator

from medprobe.benchmarks import counts
from medprobe.benchmarks.families import (
    FamilySettings,
    SubjectName,
    further_wordings,
    with_families,
)
from medprobe.core.errors import BadInput, nearest
from medprobe.core.progress import print_above
from medprobe.core.settings import Section
from medprobe.core.tables import ORIGINAL, PLACES, RELATION_ANSWERS, BenchmarkTables

TEMPLATES: Final[dict[str, dict[str, str]]] = yaml.load(
    Path(__file__).with_name("templates.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
RELATIONS: Final = tuple(TEMPLATES)[:19]  # in the order of the paper's Table 2
HardnessRule = Literal["released", "rouge_score"]


NameReader = Callable[
    [pd.DataFrame], tuple[Mapping[str, Sequence[SubjectName]], list[counts.CountRow]]
]
# names no text would use, such as the karyotype t(8;21)(q22;q22)
UNNATURAL: Final = r"\b(?:t|del|dup|inv|ins|der|add|i|r)\([0-9XY][0-9XYpq;.?]*\)"


class MedlamaSettings(Section):
    """Settings of both builders; the defaults give the released benchmark."""

    relations: tuple[str, ...] = RELATIONS
    """The relations to build. The default is the paper's 19."""
    per_relation: int = Field(1000, gt=0)
    """Queries drawn per relation; all if the relation has fewer."""
    candidates: Literal["drawn", "all"] = "drawn"
    """Names to rank: those of the `drawn` queries, or of `all` queries of the relations."""
    prompts: Literal["human", "default"] = "human"
    """Prompts by `human` authors, or `default` ones from the relation's name."""
    hardness: HardnessRule = "released"
    """Measure overlap as `released`, or by the package `rouge_score`."""
    max_match: float = 0.1
    """A hard query has fewer than this share of answers in the subject's name."""
    max_rouge_l: float = 0.1
    """A hard query also has a smaller mean ROUGE-L than this."""
    natural_names: bool = False
    """Drop queries with karyotypes."""
    min_queries: int = Field(0, ge=0)
    """Drop relations with fewer queries than this."""
    families: FamilySettings | None = None
    """Also ask each query of `full` in further wordings. Empty: no families."""

    @field_validator("relations")
    @classmethod
    def _check_relations(cls, relations: tuple[str, ...]) -> tuple[str, ...]:
        for name in relations:
            if name not in TEMPLATES:
                raise ValueError(f"no relation '{name}'{nearest(name, [*TEMPLATES])}")
        return relations


def tables(
    all_queries: pd.DataFrame,
    settings: MedlamaSettings,
    seed: int,
    read: list[counts.CountRow],
    *,
    keep_order: bool,
    read_names: NameReader = lambda queries: ({}, []),
) -> BenchmarkTables:
    """Make MedLAMA's queries, `full` and `hard`, and the candidates of both: all their names.

    `all_queries` has the columns relation, subject_id, subject, answers, answer_ids, place. With
    `keep_order`, those of a relation are drawn only if it has more than `per_relation`. Queries
    also get `avg_match` and `avg_rouge_l`, how much of the answers the subject gives away. `read`
    says how much was read of the sources. Where families are asked, `read_names` gives further
    names of the subjects of `full`, by query, and how much it read.
    """
    if settings.natural_names:
        names = all_queries["subject"] + "\n" + all_queries["answers"].map("\n".join)
        all_queries = all_queries[~names.str.contains(UNNATURAL, regex=True)]
    drawn, every = [], []
    for relation in settings.relations:
        part = all_queries[all_queries["relation"] == relation].reset_index(drop=True)
        if part.empty and not settings.min_queries:
            remedy = "name the relations that are there in the setting `relations`"
            raise BadInput("MedLAMA's sources", f"no query of relation {relation}", remedy)
        if len(part) < settings.min_queries:
            continue
        every.append(part)
        if not keep_order or len(part) > settings.per_relation:
            part = part.sample(min(settings.per_relation, len(part)), random_state=seed)
        drawn.append(part)
    if not drawn:
        raise BadInput("params.yaml: benchmarks", "min_queries leaves no relation of MedLAMA")
    queries = _full_and_hard(pd.concat(drawn, ignore_index=True), settings)
    full = queries[queries["subset"] == "full"]
    candidates = _ranked_names(queries, pd.concat(every, ignore_index=True), settings)
    if settings.families:
        wordings = {
            row.query_id: further_wordings(
                {**TEMPLATES[row.relation], ORIGINAL: _template(row.relation, settings)}
            )
            for row in full.itertuples()
        }
        names, counted = read_names(full)
        read = [*read, *counted]
        queries, candidates = with_families(
            queries, candidates, wordings, names, settings=settings.families, seed=seed
        )
    sources = counts.table([*read, *counts.by_name("", "queries", full["relation"])])
    names = pd.concat(every).explode("answers")[["relation", "answers"]]
    names = names.rename(columns={"answers": "name"}).drop_duplicates(ignore_index=True)
    others = {"sources": sources}
    if not keep_order or sum(map(len, drawn)) < sum(map(len, every)):  # released: a sample itself
        others[RELATION_ANSWERS] = names
    notes = {PLACES: queries[["query_id", "place"]]}
    return BenchmarkTables(queries.drop(columns="place"), candidates, notes, others)


def _full_and_hard(queries: pd.DataFrame, settings: MedlamaSettings) -> pd.DataFrame:
    """The queries with their prompts as the subset `full`, then those of the subset `hard`."""
    names = zip(queries["subject"], queries["answers"], strict=True)
    measured = [hardness(subject, answers, settings.hardness) for subject, answers in names]
    match, rouge_l = np.array(measured).T
    full = _with_prompts(queries, settings).assign(avg_match=match, avg_rouge_l=rouge_l)
    hard = full[(match < settings.max_match) & (rouge_l < settings.max_rouge_l)]
    hard = hard.assign(subset="hard", query_id=hard["query_id"] + "-hard")
    return pd.concat([full, hard], ignore_index=True)


def _ranked_names(
    queries: pd.DataFrame, every: pd.DataFrame, settings: MedlamaSettings
) -> pd.DataFrame:
    """The candidates of the drawn queries, or of every one; says so where the draw leaves some out.

    `every` has the relations' queries before the draw. A name of the drawn queries keeps the id
    that it has there: of two concepts of one name they can have the second alone.
    """
    candidates, keys = _candidates(queries), ["subset", "name"]
    if settings.candidates == "all":
        ranked = _candidates(_full_and_hard(every, settings)).set_index(keys)
        ranked.update(candidates.set_index(keys)[["id"]])
        return ranked.reset_index()
    names = _candidates(every.assign(subset="full"))
    ranked, known = (candidates["subset"] == "full").sum(), len(names)
    if ranked < known:
        print_above(
            f"MedLAMA: ranks are among {ranked:,} of {known:,} names, those of the drawn "
            "queries; candidates: all keeps the others"
        )
    return candidates


def _with_prompts(queries: pd.DataFrame, settings: MedlamaSettings) -> pd.DataFrame:
    """Number the queries in each relation and fill their subjects into the prompts."""
    number = queries.groupby("relation").cumcount() + 1
    prompts = [
        _template(row.relation, settings).replace("[X]", row.subject)
        for row in queries.itertuples()
    ]
    return queries.assign(
        benchmark="medlama",
        subset="full",
        prompt=prompts,
        query_id=queries["relation"] + "-" + number.astype(str).str.zfill(4),
    )


def _template(relation: str, settings: MedlamaSettings) -> str:
    human = TEMPLATES[relation][ORIGINAL]
    return human if settings.prompts == "human" else default_prompt(relation)


def default_prompt(relation: str) -> str:
    """Return the prompt made of the relation's own name.

    (One released default prompt, that of associated_morphology_of, has a stray second blank before
    its slot; this one has not.)

    >>> default_prompt("may_treat")
    '[X] may treat [Y] .'
    """
    return f"[X] {relation.replace('_', ' ')} [Y] ."


def _candidates(queries: pd.DataFrame) -> pd.DataFrame:
    """List all names of each subset once, with the first of their CUIs in alphabetical order.

    Sorted by name. A name's type is `answer` where any query has it as one, else `subject`.
    """
    columns = ["subset", "name", "id"]
    answers = queries[["subset", "answers", "answer_ids"]].set_axis(columns, axis=1)
    answers = answers.explode(["name", "id"]).assign(type="answer")
    subjects = queries[["subset", "subject", "subject_id"]].set_axis(columns, axis=1)
    names = pd.concat([answers, subjects.assign(type="subject")], ignore_index=True)
    types = names.groupby(["subset", "name"])["type"].min()  # answer comes before subject
    names = names.sort_values(columns).drop_duplicates(["subset", "name"]).drop(columns="type")
    return names.join(types, on=["subset", "name"]).reset_index(drop=True)


def hardness(
    subject: str, answers: Sequence[str], rule: HardnessRule = "released"
) -> tuple[float, float]:
    """Measure how much of the answers the subject's name gives away: `(avg_match, avg_rouge_l)`.

    These are the share of answers that are part of the subject's name, and the mean ROUGE-L F of
    the answers against it, letter case aside.

    `released` keeps the blanks that surround all but the outer ends of the answers joined by
    ` || `, as the released columns do; `rouge_score` compares clean names by the package of that
    name, the sound choice for a new benchmark. Raises ValueError where there are no answers.

    >>> hardness("Dengue virus live antigen CYD serotype 1", ["Dengue"])
    (1.0, 0.24999999781250004)
    """
    if not answers:
        raise ValueError("a query without answers has no hardness")
    subject = subject.lower()
    if rule == "released":
        references = " || ".join(answers).lower().split("||")
        rouge_l: Callable[[str, str], float] = rouge_l_released
    else:
        references = [answer.lower() for answer in answers]
        rouge_l = rouge_l_package
    match = sum(reference in subject for reference in references) / len(references)
    rouge = sum(rouge_l(subject, reference) for reference in references) / len(references)
    return match, rouge


def rouge_l_package(hypothesis: str, reference: str) -> float:
    """ROUGE-L F by the package `rouge-score` 0.1.2, without stemming."""
    from rouge_score.rouge_scorer import RougeScorer

    return float(RougeScorer(["rougeL"]).score(reference, hypothesis)["rougeL"].fmeasure)


def rouge_l_released(hypothesis: str, reference: str) -> float:
    """ROUGE-L F over sets of words.

    Those in a longest common subsequence of any two sentences, against the distinct words of the
    hypothesis (precision) and of the reference (recall).

    A full stop ends a sentence wherever it stands, blanks separate words. Equal to `rouge` 1.0.1.

    >>> round(rouge_l_released("acute viral hepatitis", "viral hepatitis"), 3)
    0.8
    """
    theirs, ours = _sentences(hypothesis), _sentences(reference)
    precise = len({word for sentence in theirs for word in sentence})
    recalled = len({word for sentence in ours for word in sentence})
    if not precise or not recalled:
        return 0.0
    common: set[str] = set()
    for our in ours:
        for their in theirs:
            common |= _common_words(our, their)
    precision, recall = len(common) / precise, len(common) / recalled
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def _sentences(text: str) -> list[list[str]]:
    """Words by sentence. A sentence of blanks alone is one empty word."""
    return [" ".join(part.split()).split(" ") for part in text.split(".") if part]


def _common_words(first: list[str], second: list[str]) -> set[str]:
    """Return the words of a longest common subsequence.

    Among equals, the one that goes on longest in `first`.
    """
    length = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, first_word in enumerate(first, 1):
        for j, second_word in enumerate(second, 1):
            if first_word == second_word:
                length[i][j] = length[i - 1][j - 1] + 1
            else:
                length[i][j] = max(length[i - 1][j], length[i][j - 1])
    words: set[str] = set()
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            words.add(first[i - 1])
            i, j = i - 1, j - 1
        elif length[i - 1][j] > length[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return words

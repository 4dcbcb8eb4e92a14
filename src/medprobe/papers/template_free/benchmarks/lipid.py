"""LIPID: sentences of recent PubMed abstracts with their one chemical or gene masked.

Source: Shaier et al., "Comparing Template-based and Template-free Language Model Probing", section
3.2.3. The prompts are sentences that no probed model can have read, where the cut-off is later than
the day on which the model's training ended. The rules by which a sentence becomes a prompt are at
the end.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import pandas as pd
from pydantic import Field, StringConstraints

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, Job, in_job_order, in_this_process
from medprobe.core.tables import CANDIDATE_COLUMNS, SLOT, BenchmarkTables
from medprobe.papers.template_free import pubmed
from medprobe.papers.template_free.entities import (
    TOO_LONG,
    SentenceSettings,
    is_too_long,
    read_names,
)
from medprobe.sources.mentions import Mentions, is_symbol

METADATA = Metadata(
    description="which chemical or gene a sentence of PubMed is about",
    citation="Shaier et al., Comparing Template-based and Template-free Language Model Probing",
    licence="PubMed: publishers may hold rights in abstracts",
    sources=("pubmed", "entities"),
    primary_metric="acc_at_10",
    cluster="answer_ids",  # the entity
)


Keyword = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Settings(SentenceSettings):
    """The period of its sentences, its entity lists by subset, and which names are ranked.

    The lists are files of `data/entities`.
    """

    submitted_after: date = date(2021, 12, 31)
    """Abstracts submitted after this date. The default is the paper's: no model of the paper has
    read them."""
    submitted_before: date | None = None
    """Abstracts submitted before this date. The paper took six months of PubMed."""
    candidates: Literal["prompted", "listed"] = "prompted"
    """Names to rank: the entities of the prompts (`prompted`), or all `listed` ones."""
    entities: dict[str, Path] = Field(
        {"chem": Path("entities/chemicals.txt"), "gene": Path("entities/genes.txt")}, min_length=1
    )
    """Lists of entities by subset: files below `data/`, one name per line."""
    keywords: Literal["ours", "paper"] | tuple[Keyword, ...] = "ours"
    """Keywords that exclude a sentence: the `paper`'s eleven, `ours` in all forms, or your own
    list. One with a capital letter occurs as it is written, any other one in any case."""
    keyword_place: Literal["word", "anywhere"] = "word"
    """Keywords are whole words (`word`), or match `anywhere`. The paper does not say which."""


def build(
    data: Path, settings: Settings, seed: int, executor: Executor = in_this_process
) -> BenchmarkTables:
    """Build LIPID, one subset an entity list. Nothing is drawn."""
    lists = {subset: read_names(data / path) for subset, path in settings.entities.items()}
    dropped: Counter[str] = Counter()
    records: Counter[str] = Counter()
    retracted: Counter[str] = Counter()
    files = pubmed.list_files(data / "pubmed")
    period = (settings.submitted_after, settings.submitted_before)
    if period[1] is not None and period[1] <= period[0]:
        where = "params.yaml: benchmarks.lipid: submitted_before"
        raise BadInput(where, f"{period[1]} is not after submitted_after, {period[0]}")
    named = settings.keywords
    keywords = KEYWORDS[named] if isinstance(named, str) else named
    pattern = keyword_pattern(keywords, settings.keyword_place)
    names = ((name, f"{subset}:{name}") for subset, listed in lists.items() for name in listed)
    finder = Mentions(names, exact=is_symbol)
    harvester = Harvester(finder, period, pattern, settings.max_words)
    rows = harvest(files, harvester, dropped, records, retracted=retracted, executor=executor)
    queries = _queries(rows, dropped).assign(cut_off=f"{settings.submitted_after:%Y-%m-%d}")
    order = {subset: number for number, subset in enumerate(lists)}
    queries = queries.sort_values("subset", key=lambda column: column.map(order), kind="stable")
    prompted = queries.explode("answers").groupby("subset")["answers"].agg(set).to_dict()
    candidates = pd.DataFrame(
        [
            (name, name, subset, subset)
            for subset, names in lists.items()
            for name in names
            if settings.candidates == "listed" or name in prompted.get(subset, ())
        ],
        columns=CANDIDATE_COLUMNS,
    )
    notes = {"dropped": counts.by_rule(dropped), "appearances": appearances(queries)}
    places = {name: path.as_posix() for name, path in settings.entities.items()}
    read = [
        *((places[name], "names", name, len(lists[name])) for name in lists),
        *((places[name], "names in prompts", name, len(prompted.get(name, ()))) for name in lists),
        *(("pubmed", "records", name, count) for name, count in records.items()),
        *(("pubmed", "retracted", name, count) for name, count in retracted.items() if count),
        *(("pubmed", "dropped", rule, count) for rule, count in sorted(dropped.items()) if count),
        *counts.by_name("pubmed", "prompts", (row["subset"] for x in rows.values() for row in x)),
        *counts.by_name("", "queries", queries["subset"]),
    ]
    others = {"sources": counts.table(read)}
    return BenchmarkTables(queries.reset_index(drop=True), candidates, notes, others)


class AbstractPrompts(NamedTuple):
    """The prompts of one abstract in one file, and the rules that dropped its other sentences."""

    pmid: str
    version: int  # 0: PubMed took the abstract back
    outside: str = ""  # the rule by which its date leaves it out; no sentence is looked at then
    rows: Sequence[dict[str, str]] = ()  # its prompts
    dropped: Sequence[str] = ()  # the rules that drop its other sentences
    retracted: bool = False


@dataclass(frozen=True)
class Harvester:
    """Reads one file of PubMed.

    Attributes:
        finder: of the names, which go by `<subset>:<name>`.
        period: its first day, and the day after its last one, if it ends.
        keywords: exclude a sentence.
        max_words: of a sentence.
    """

    finder: Mentions
    period: tuple[date, date | None]
    keywords: re.Pattern[str]
    max_words: int | None

    def __call__(self, path: Path) -> list[AbstractPrompts]:
        """Read the prompts of each abstract of the file, in its order."""
        return [self._read(record) for record in pubmed.read_records(path)]

    def _read(self, record: pubmed.Article | pubmed.Book | pubmed.Deletion) -> AbstractPrompts:
        if isinstance(record, pubmed.Deletion):
            return AbstractPrompts(record.pmid, 0)
        if isinstance(record, pubmed.Book):
            return AbstractPrompts(record.pmid, 1, "record of a book")
        if rule := self._outside(record.submitted):
            return AbstractPrompts(record.pmid, record.version, rule)
        rows, dropped = self._prompts(record)
        return AbstractPrompts(record.pmid, record.version, "", rows, dropped, record.retracted)

    def _outside(self, submitted: date | None) -> str:
        after, before = self.period
        if submitted is None:
            return "abstract without a date"
        if submitted <= after:
            return "abstract before the cut-off"
        return "abstract after the period" if before and submitted >= before else ""

    def _prompts(self, article: pubmed.Article) -> tuple[list[dict[str, str]], list[str]]:
        """Return the prompts of an abstract, and the rules that drop its other sentences."""
        rows, dropped = [], []
        texts = [sentence for section in article.abstract for sentence in sentences(section)]
        for number, sentence in enumerate(texts, start=1):
            result = prompt(sentence, self.finder, self.keywords, self.max_words)
            if not isinstance(result, MaskedSentence):
                dropped.append(result)
                continue
            for entity in result.entities:
                subset, name = entity.split(":", 1)
                rows.append(
                    {
                        "query_id": f"lipid/{subset}/{article.pmid}/{number}",
                        "subset": subset,
                        "prompt": result.text,
                        "answer": name,
                        "pmid": article.pmid,
                        "date": f"{article.submitted:%Y-%m-%d}",
                        "sentence": sentence,
                    }
                )
        return rows, dropped


def harvest(
    files: Sequence[Path],
    harvester: Harvester,
    dropped: Counter[str],
    records: Counter[str],
    *,
    retracted: Counter[str],
    executor: Executor = in_this_process,
) -> dict[str, Sequence[dict[str, str]]]:
    """Return the prompts of all abstracts that came to PubMed in a period, by PMID.

    The period begins after its first day and ends before its last day, if it has one.

    A later version of an abstract replaces an earlier one, a deletion removes it. Only prompts are
    held, so that memory follows what is found and not what is read. What is left out is counted in
    `dropped`, by rule; what is read in `records`, by file, and in `retracted` those articles of the
    period that their journal has retracted.
    """
    prompts: dict[str, Sequence[dict[str, str]]] = {}
    versions: dict[str, int] = {}  # of the few that have more than one
    jobs = [Job(f"prompts of {path.name}", path, (path,)) for path in files]
    for number, abstracts in in_job_order(executor(harvester, jobs)):
        records[files[number].name] += len(abstracts)
        retracted[files[number].name] += sum(abstract.retracted for abstract in abstracts)
        for abstract in abstracts:
            if not abstract.version:
                dropped["abstract deleted"] += prompts.pop(abstract.pmid, None) is not None
                continue
            if abstract.version < versions.get(abstract.pmid, 1):
                dropped["abstract revised"] += 1
                continue
            if abstract.version > 1:
                versions[abstract.pmid] = abstract.version
            dropped["abstract revised"] += prompts.pop(abstract.pmid, None) is not None
            if abstract.outside:
                dropped[abstract.outside] += 1
            for rule in abstract.dropped:
                dropped[f"sentence: {rule}"] += 1
            if abstract.rows:
                prompts[abstract.pmid] = abstract.rows
    return prompts


def _queries(prompts: dict[str, Sequence[dict[str, str]]], dropped: Counter[str]) -> pd.DataFrame:
    """Return the query table. Of equal prompts the first stays, with the answers of all."""
    columns = ["query_id", "subset", "prompt", "answer", "pmid", "date", "sentence"]
    rows = [row for pmid in sorted(prompts, key=int) for row in prompts[pmid]]
    table = pd.DataFrame(rows, columns=columns)
    keys = ["subset", "prompt"]
    answers = table.groupby(keys)["answer"].agg(lambda names: list(dict.fromkeys(names)))
    twice = table.duplicated(keys)
    dropped["sentence: prompt twice"] += int(twice.sum())
    table = table[~twice].drop(columns="answer").join(answers.rename("answers"), on=keys)
    return table.assign(
        benchmark="lipid",
        relation=table["subset"],
        subject="",
        subject_id="",
        answer_ids=table["answers"],
    )


def appearances(queries: pd.DataFrame) -> pd.DataFrame:
    """Count how often an entity is the answer, as the paper reports it.

    One row per subset with the columns subset, prompts, entities, and mean, std, max, min of the
    prompts of an entity.
    """
    sizes = queries.explode("answers").groupby(["subset", "answers"], sort=False).size()
    table = sizes.astype(float).groupby("subset", sort=False).agg(["mean", "std", "max", "min"])
    table.insert(0, "entities", sizes.groupby("subset").size())
    table.insert(0, "prompts", queries["subset"].value_counts())
    return table.reset_index()


# The paper's words of hypotheses, plans and reports rather than facts. A parenthesis often gives
# the entity's other name away.
PAPER: Final = (
    *("here", "we", "investigate", "study", "propose", "outline", "(", "our", "performed"),
    *("suggest", "However"),
)
# The paper's, with the other forms of its verbs and nouns.
OURS: Final = (
    *PAPER,
    *("investigates", "investigated", "investigating", "studies", "studied", "studying"),
    *("proposes", "proposed", "proposing", "outlines", "outlined", "outlining"),
    *("suggests", "suggested", "suggesting"),
)
KEYWORDS: Final = {"paper": PAPER, "ours": OURS}

# A sentence ends at a mark before something that can start one: a capital, a digit, a Greek letter,
# or a name such as "p53" and "mTOR".
_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[\"'“‘(\[]?(?:[A-ZΑ-Ωα-ω0-9]|[a-z]{1,3}[A-Z0-9]))")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|cf|vs|al|approx|ca|Figs?|Tabs?|Nos?|Dr|Prof|Mr|Mrs|St|spp?|subsp|var|resp)"
    r"|(?:^|[\s(])(?:[A-Z]\.)*[A-Z])\.$"
)
LONGEST: Final = 12  # characters back from a mark in which an abbreviation is looked for


class MaskedSentence(NamedTuple):
    """A sentence with its one entity masked; `entities` are the ids of the names it may be."""

    text: str
    entities: tuple[str, ...]


def sentences(text: str) -> list[str]:
    """Divide a text into sentences. Abbreviations and initials, "U.S." too, end none.

    >>> sentences("E. coli was grown, e.g. In vitro. p53 fell! Why?")
    ['E. coli was grown, e.g. In vitro.', 'p53 fell!', 'Why?']
    """
    parts, start = [], 0
    for end in _END.finditer(text):
        if not _NO_END.search(text, max(start, end.start() - LONGEST), end.start() + 1):
            parts.append(text[start : end.end()].strip())
            start = end.end()
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def keyword_pattern(keywords: Sequence[str], where: str = "word") -> re.Pattern[str]:
    """Return the pattern that finds the first of these keywords in a sentence.

    A keyword with a capital letter occurs as it is written, any other one in any case.

    >>> keyword_pattern(["we", "However"]).findall("WE saw; however, he went. However, it fell.")
    ['WE', 'However']
    >>> keyword_pattern(["we"], "anywhere").findall("They were few.")
    ['we']
    """
    edges = (r"(?<!\w)", r"(?!\w)") if where == "word" else ("", "")
    patterns = []
    for word in keywords:
        literal = re.escape(word) if word != word.lower() else f"(?i:{re.escape(word)})"
        before = edges[0] if word[0].isalnum() else ""
        after = edges[1] if word[-1].isalnum() else ""
        patterns.append(f"{before}{literal}{after}")
    return re.compile("|".join(patterns) or r"(?!)")


def prompt(
    sentence: str,
    entities: Mentions,
    keywords: re.Pattern[str],
    max_words: int | None = None,
) -> MaskedSentence | str:
    """Return the sentence as a prompt, or the rule that drops it.

    A sentence must hold exactly one mention of any listed entity, as whole words, none of the
    keywords, and no more than `max_words` words.

    >>> prompt("Aspirin lowers fever.", Mentions([("aspirin", "A")]), keyword_pattern(PAPER))
    MaskedSentence(text='[Y] lowers fever.', entities=('A',))
    >>> prompt("Here, aspirin lowers fever.", Mentions([("aspirin", "A")]), keyword_pattern(PAPER))
    'filter word: here'
    """
    mentions = entities.find(sentence)
    if len(mentions) != 1:
        return "several mentions" if mentions else "no mention"
    if word := keywords.search(sentence):
        return f"filter word: {word[0] if word[0] == 'However' else word[0].lower()}"
    if is_too_long(sentence, max_words):
        return TOO_LONG
    if SLOT in sentence:
        return f"holds {SLOT} itself"
    mention = mentions[0]
    return MaskedSentence(sentence[: mention.start] + SLOT + sentence[mention.end :], mention.ids)


BENCHMARK = Benchmark(
    METADATA,
    Settings,
    build,
    files=lambda settings: ["pubmed/*.xml*"],
    many_files=True,
    tables=(),
    identifiers=("query_id",),
)

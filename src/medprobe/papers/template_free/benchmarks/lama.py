"""LAMA: Google-RE and T-REx as templates and, in parallel, as sentences; ConceptNet and SQuAD.

Sources: Petroni et al. 2019 (the data); Shaier et al., "Comparing Template-based and Template-free
Language Model Probing", section 3.2 (the two kinds, the entity lists). A query of a template-based
set and the one of its template-free twin share `pair_id`; a pair stands or falls as one.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, get_args

import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, Metadata, counts, with_distractors
from medprobe.benchmarks.families import (
    AliasFamilies,
    SubjectName,
    Wording,
    further_names,
    further_wordings,
    with_families,
)
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    ORIGINAL,
    QUERY_COLUMNS,
    SLOT,
    BenchmarkTables,
    holds_subject,
)
from medprobe.papers.template_free import lama
from medprobe.papers.template_free.entities import (
    TOO_LONG,
    SentenceSettings,
    is_too_long,
    read_names,
)

METADATA = Metadata(
    description="general facts, as filled templates and as sentences of Wikipedia",
    citation="Petroni et al., Language Models as Knowledge Bases?, EMNLP 2019",
    licence="LAMA: CC BY-NC 4.0",
    terms="open",
    sources=("lama",),
    primary_metric="acc_at_1",
    cluster="subject_id",
)

# Rules of ours: the sentence gives its object away; that of a parallel pair lacks its subject; most
# raters denied the fact; the prompt, or the fact of a parallel pair, is there already.
DropRule = Literal["object_twice", "subject_absent", "denied", "prompt_twice", "fact_twice"]
RULES: Final[tuple[DropRule, ...]] = get_args(DropRule)
DataSetName = Literal["google-re", "t-rex", "conceptnet", "squad"]
SETS: Final[tuple[DataSetName, ...]] = get_args(DataSetName)
ANOTHER: Final = "another sentence of the fact is asked"
COLUMNS: Final = [*QUERY_COLUMNS, "pair_id", "sentence"]


class Settings(SentenceSettings):
    """Which sentences are asked.

    As the paper has it every one, and none is dropped that can be asked at all, which is one with a
    single mask that models can read whole. `distractors` names, for a subset, a list of further
    entities, a file of `data/lama`: the subset is ranked with and without them (the paper's Table
    6).
    """

    sets: tuple[DataSetName, ...] = SETS
    """The data sets to build. Leave out those whose files you do not have."""
    sentences: Literal["single", "joined"] = "single"
    """One query per sentence of a fact (`single`), or one for all (`joined`)."""
    evidences: Literal["all", "one"] = "all"
    """Query `all` sentences of a fact, or `one`: the first that no rule drops."""
    drop: tuple[DropRule, ...] = ()
    """Rules that drop a sentence, such as `denied` by most raters. The paper drops none."""
    distractors: dict[str, Path] = Field({})
    """For a subset, a file of `data/lama` with further names. The subset is ranked with and without
    them (the paper's Table 6)."""
    families: AliasFamilies | None = None
    """Also ask each template-based fact under all templates and aliases (`t-rex-template-families`
    and so on). Empty: no families."""


@dataclass
class RuleCounts:
    """How many sentences of a set each rule dropped.

    `drops` counts these, `passes` the sentences that a rule would have dropped if the settings had
    chosen it.
    """

    drops: Counter[tuple[str, str]] = field(default_factory=Counter)
    passes: Counter[tuple[str, str]] = field(default_factory=Counter)

    def table(self) -> pd.DataFrame:
        """Return one row per set and rule: `set, rule, dropped, kept`."""
        keys = sorted({*self.drops, *self.passes})
        rows = [(*key, self.drops[key], self.passes[key]) for key in keys]
        return pd.DataFrame(rows, columns=["set", "rule", "dropped", "kept"])


def _files(settings: Settings) -> list[str]:
    files = [f"lama/{lama.READERS[name][0]}/*.jsonl" for name in settings.sets]
    with_wordings = {"t-rex", "google-re"} if settings.families else {"t-rex"}
    return [*files, *(["lama/relations.jsonl"] if with_wordings & {*settings.sets} else [])]


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build the sets, parallel ones as two. Nothing in them but families is drawn at random.

    The candidates of a set are the objects of all its facts, those of dropped ones too; parallel
    sets share them.
    """
    folder = data / "lama"
    rule_counts = RuleCounts()
    read: list[counts.CountRow] = []
    rows: list[tuple] = []
    candidates = []
    wordings: dict[str, list[Wording]] = {}
    names: dict[str, list[SubjectName]] = {}
    for name, items, listed in _facts(folder, settings):
        templates = {relation: by_name[ORIGINAL] for relation, by_name in listed.items()}
        read.append(("lama", "facts", name, len(items)))
        read.append(("lama", "sentences", name, sum(len(item.sentences) or 1 for item in items)))
        prompts = list(_usable(name, items, templates, settings, rule_counts))
        subsets = [f"{name}-template", f"{name}-free"] if templates else [name]
        for subset in subsets:
            subset_templates = templates if subset.endswith("-template") else {}
            subset_rows = [
                _row(subset, *sentence, subset_templates.get(sentence[0].relation))
                for sentence in prompts
            ]
            rows += subset_rows
            if settings.families and subset_templates:
                wordings |= _wordings(subset_rows, listed)
                for row, (item, *_) in zip(subset_rows, prompts, strict=True):
                    aliases = item.subject_aliases
                    names[row[0]] = further_names(item.subject, aliases, settings.families.names)
        candidates += [_candidates(items, subset) for subset in subsets]
    queries = pd.DataFrame(rows, columns=COLUMNS)
    table = pd.concat(candidates, ignore_index=True)
    for subset, path in settings.distractors.items():
        distractors = read_names(data / path)
        read.append((path.as_posix(), "names", subset, len(distractors)))
        table = with_distractors(table, subset, distractors)
    dropped = counts.by_name("lama", "dropped", (name for name, _ in rule_counts.drops.elements()))
    read += dropped + counts.by_name("", "queries", queries["subset"])
    if settings.families:
        queries, table = with_families(
            queries, table, wordings, names, settings=settings.families, seed=seed
        )
        queries = _as_sentences(queries)
    return BenchmarkTables(
        queries, table, {"dropped": rule_counts.table()}, {"sources": counts.table(read)}
    )


def _facts(
    folder: Path, settings: Settings
) -> Iterator[tuple[str, list[lama.Item], dict[str, dict[str, str]]]]:
    """Each data set's name, facts, and templates by relation and wording, where it has any."""
    for name in settings.sets:
        items = list(lama.READERS[name][1](folder))
        if settings.sentences == "joined" and name != "t-rex":  # which has evidences
            items = [replace(item, sentences=_joined(item)) for item in items]
        yield name, items, _templates(name, folder, has_families=settings.families is not None)


def _templates(name: str, folder: Path, *, has_families: bool) -> dict[str, dict[str, str]]:
    """The templates of a set. Google-RE's own are in code, and only further ones in the file."""
    originals = lama.GOOGLE_RE_TEMPLATES
    if name == "t-rex":
        return lama.read_templates(folder)
    if name != "google-re":
        return {}
    if not has_families:
        return {relation: {ORIGINAL: template} for relation, template in originals.items()}
    listed = lama.read_templates(folder, originals)
    return {relation: listed[relation] for relation in originals}


def _wordings(rows: list[tuple], templates: dict[str, dict[str, str]]) -> dict[str, list[Wording]]:
    """The wordings of the first query of each fact: its other sentences have the same prompt."""
    queries = pd.DataFrame(rows, columns=COLUMNS)
    queries = queries.assign(answer=queries["answers"].str[0])
    first = queries.drop_duplicates(["relation", "prompt", "answer"])
    return {
        query: further_wordings(templates[relation])
        for query, relation in zip(first["query_id"], first["relation"], strict=True)
    }


def _joined(item: lama.Item) -> tuple[tuple[str, str], ...]:
    return ((" ".join(text for text, _ in item.sentences), item.object),)


def flaw(text: str, surface: str, answer: str) -> str | None:
    """Return why a masked sentence cannot be a prompt, or None.

    `object_twice`: the sentence contains its object outside the mask, as written there or by its
    name.

    >>> flaw("[MASK] is in France .", "Paris", "Paris")
    >>> flaw("Paris, or [MASK], is in France .", "Paris", "Paris")
    'object_twice'
    >>> flaw("Here is Paris .", "Paris", "Paris")
    'no mask'
    """
    if not text.strip():
        return "no sentence"
    if (masks := text.count(lama.MASK)) != 1:
        return "several masks" if masks else "no mask"
    if SLOT in text:
        return f"holds {SLOT} itself"
    rest = text.replace(lama.MASK, " ")
    names = "|".join(re.escape(name) for name in {surface, answer} - {""})
    return "object_twice" if re.search(rf"(?<!\w)(?:{names})(?!\w)", rest, re.I) else None


def _usable(
    name: str,
    items: list[lama.Item],
    templates: dict[str, str],
    settings: Settings,
    rule_counts: RuleCounts,
) -> Iterator[tuple[lama.Item, int, str]]:
    """Yield each sentence that no rule drops: its fact, its number there, and its prompt."""
    prompts: set[str] = set()
    first_places: dict[tuple[str, str, str], int] = {}  # a fact: its first place
    for place, item in enumerate(items):
        fact = (item.relation, item.subject, item.object)
        has_query = False
        for number, (text, surface) in enumerate(item.sentences or [("", "")], start=1):
            prompt = " ".join(text.split()).replace(lama.MASK, SLOT)
            rules = {
                flaw(text, surface, item.object) or "": True,
                TOO_LONG: is_too_long(prompt, settings.max_words),
                "no template": bool(templates) and item.relation not in templates,
                "subject_absent": bool(templates) and not holds_subject(prompt, item.subject),
                "denied": not item.accepted,
                "prompt_twice": prompt in prompts,
                "fact_twice": bool(templates) and first_places.get(fact, place) != place,
                ANOTHER: has_query and settings.evidences == "one",
            }
            broken = [rule for rule, is_so in rules.items() if rule and is_so]
            chosen = [rule for rule in broken if rule in settings.drop or rule not in RULES]
            if chosen:
                rule_counts.drops[name, chosen[0]] += 1
                continue
            rule_counts.passes.update((name, rule) for rule in broken)
            prompts.add(prompt)
            first_places.setdefault(fact, place)
            has_query = True
            yield item, number, prompt


def _row(
    subset: str, item: lama.Item, number: int, prompt: str, template: str | None = None
) -> tuple:
    """A query in the order of `COLUMNS`, of the sentence or of its relation's template."""
    place = f"{item.relation}/{item.id}/{number}"
    text = template.replace("[X]", item.subject) if template else prompt
    return (
        f"lama/{subset}/{place}",
        "lama",
        item.relation,
        item.subject,
        item.subject_id,
        text,
        [item.object],
        [item.object_id],
        subset,
        place if subset.endswith(("-template", "-free")) else "",
        text.replace(SLOT, item.object),
    )


def _as_sentences(queries: pd.DataFrame) -> pd.DataFrame:
    """Fill the sentences of families, which are of no pair."""
    is_member = queries["family_id"] != ""
    sentences = [
        prompt.replace(SLOT, answers[0])
        for prompt, answers in queries.loc[is_member, ["prompt", "answers"]].to_numpy()
    ]
    queries.loc[is_member, "sentence"] = sentences
    queries.loc[is_member, "pair_id"] = ""
    return queries


def _candidates(items: list[lama.Item], subset: str) -> pd.DataFrame:
    rows = [(item.object, item.object_id, "", subset) for item in items]
    return pd.DataFrame(rows, columns=CANDIDATE_COLUMNS).drop_duplicates("name", ignore_index=True)


BENCHMARK = Benchmark(
    METADATA,
    Settings,
    build,
    files=_files,
    gate_sources=("lama",),
    tables=(),
    identifiers=("query_id",),
)

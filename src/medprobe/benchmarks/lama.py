"""LAMA: Google-RE and T-REx as templates and, in parallel, as sentences; ConceptNet and SQuAD.

Sources: Petroni et al. 2019 (the data); Shaier et al., "Comparing Template-based and Template-free
Language Model Probing", section 3.2 (the two kinds, the entity lists). A query of a template-based
set and the one of its template-free twin share `pair_id`; a pair stands or falls as one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.benchmarks.distractors import with_distractors
from medprobe.core.params import Section
from medprobe.core.tables import SLOT, BenchmarkTables
from medprobe.sources import lama
from medprobe.sources.entities import read_names

METADATA = Metadata(
    description="general facts, as filled templates and as sentences of Wikipedia",
    citation="Petroni et al., Language Models as Knowledge Bases?, EMNLP 2019",
    licence="LAMA: CC BY-NC 4.0",
    sources=("lama",),
    primary_metric="acc_at_10",
    cluster="subject_id",
)


class Settings(Section):
    """`distractors` names, for a subset, a list of further entities, a file of `data/lama`: the
    subset is ranked with and without them (the paper's Table 6)."""

    distractors: dict[str, Path] = Field({})


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build all six sets. Nothing in them is drawn at random.

    The candidates of a set are all its objects; parallel sets share them. Raises BadInput with the
    file and line for files that are not LAMA's.
    """
    folder = data / "lama"
    dropped: Counter[tuple[str, str]] = Counter()
    read: list[counts.Row] = []
    rows: list[dict[str, Any]] = []
    for name, items, templates in _facts(folder):
        read.append(("lama", "facts", name, len(items)))
        if templates:
            rows += _parallel(name, items, templates, dropped)
        else:
            rows += [_row(name, item, prompt) for item, prompt in _kept(name, items, dropped)]
    queries = pd.DataFrame(rows)
    candidates = _candidates(queries)
    for subset, path in settings.distractors.items():
        names = read_names(data / path)
        read.append((path.as_posix(), "names", subset, len(names)))
        candidates = with_distractors(candidates, subset, names)
    left_out = counts.by_name("lama", "dropped", (name for name, _ in dropped.elements()))
    read += left_out + counts.by_name("", "queries", queries["subset"])
    notes = {"dropped": _counts(dropped)}
    return BenchmarkTables(queries, candidates, notes, {"sources": counts.table(read)})


def _facts(folder: Path) -> Iterator[tuple[str, list[lama.Item], dict[str, str]]]:
    """Each data set's name, facts, and templates by relation, where it has any."""
    yield "google-re", list(lama.google_re(folder)), lama.GOOGLE_RE_TEMPLATES
    yield "t-rex", list(lama.trex(folder)), lama.templates(folder)
    yield "conceptnet", list(lama.conceptnet(folder)), {}
    yield "squad", list(lama.squad(folder)), {}


def flaw(text: str, surface: str, answer: str) -> str | None:
    """The rule that drops a masked sentence, if one does: it must hold one mask, and its object,
    as it was written there or as its name, nowhere else.

    >>> flaw("[MASK] is in France .", "Paris", "Paris")
    >>> flaw("Paris, or [MASK], is in France .", "Paris", "Paris")
    'object twice'
    """
    if not text.strip():
        return "no sentence"
    if text.count(lama.MASK) != 1 or SLOT in text:
        return "not one mask"
    rest = text.replace(lama.MASK, " ")
    names = "|".join(re.escape(name) for name in {surface, answer} - {""})
    return "object twice" if re.search(rf"(?<!\w)(?:{names})(?!\w)", rest, re.I) else None


def _parallel(
    name: str,
    items: Iterable[lama.Item],
    templates: dict[str, str],
    dropped: Counter[tuple[str, str]],
) -> list[dict[str, Any]]:
    """The template-based rows, then their template-free twins."""
    based, free = [], []
    facts: set[tuple[str, str, str]] = set()
    for item, prompt in _kept(name, items, dropped):
        fact = (item.relation, item.subject, item.object)
        if item.relation not in templates or fact in facts:
            dropped[name, "fact twice" if fact in facts else "no template"] += 1
            continue
        facts.add(fact)
        template = templates[item.relation].replace("[X]", item.subject)
        based.append(_row(f"{name}-template", item, template))
        free.append(_row(f"{name}-free", item, prompt))
    return based + free


def _kept(
    name: str, items: Iterable[lama.Item], dropped: Counter[tuple[str, str]]
) -> Iterable[tuple[lama.Item, str]]:
    """Each fact that stays, with the first of its sentences that no rule drops."""
    prompts: set[str] = set()
    for item in items:
        if not item.accepted:
            dropped[name, "denied by most raters"] += 1
            continue
        flaws = [flaw(text, surface, item.object) for text, surface in item.sentences]
        if None not in flaws:
            dropped[name, flaws[0] if flaws and flaws[0] else "no sentence"] += 1
            continue
        text, _ = item.sentences[flaws.index(None)]
        prompt = " ".join(text.split()).replace(lama.MASK, SLOT)
        if prompt in prompts:
            dropped[name, "prompt twice"] += 1
            continue
        prompts.add(prompt)
        yield item, prompt


def _row(subset: str, item: lama.Item, prompt: str) -> dict[str, Any]:
    parallel = subset.endswith(("-template", "-free"))
    return {
        "query_id": f"lama/{subset}/{item.relation}/{item.id}",
        "benchmark": "lama",
        "relation": item.relation,
        "subject": item.subject,
        "subject_id": item.subject_id,
        "prompt": prompt,
        "answers": [item.object],
        "answer_ids": [item.object_id],
        "subset": subset,
        "pair_id": f"{item.relation}/{item.id}" if parallel else "",
        "sentence": prompt.replace(SLOT, item.object),
    }


def _candidates(queries: pd.DataFrame) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "name": queries["answers"].str[0],
            "id": queries["answer_ids"].str[0],
            "type": "",
            "subset": queries["subset"],
        }
    )
    return table.drop_duplicates(["subset", "name"]).reset_index(drop=True)


def _counts(dropped: Counter[tuple[str, str]]) -> pd.DataFrame:
    rows = [(name, rule, count) for (name, rule), count in sorted(dropped.items())]
    return pd.DataFrame(rows, columns=["set", "rule", "count"])


BENCHMARK = Benchmark(METADATA, Settings, build)

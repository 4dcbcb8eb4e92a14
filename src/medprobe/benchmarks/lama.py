"""LAMA: Google-RE and T-REx as templates and, in parallel, as sentences; ConceptNet and SQuAD.

Sources: Petroni et al. 2019 (the data); Shaier et al., "Comparing Template-based and Template-free
Language Model Probing", section 3.2 (the two kinds, the entity lists). A query of a template-based
set and the one of its template-free twin share `pair_id`; a pair stands or falls as one.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Metadata
from medprobe.benchmarks.distractors import with_distractors
from medprobe.params import Section
from medprobe.sources import lama
from medprobe.sources.entities import read_names
from medprobe.tables import SLOT, Benchmark

METADATA = Metadata(
    description="general facts, as filled templates and as sentences of Wikipedia",
    citation="Petroni et al., Language Models as Knowledge Bases?, EMNLP 2019",
    licence="LAMA: CC BY-NC 4.0",
    sources=("lama",),
    primary_metric="acc_at_10",
)


class Settings(Section):
    """Where LAMA's files are, relative to `data/`, and what to make of them.

    `distractors` names, for a subset, a list of further entities: it is ranked with and without
    them (the paper's Table 6).
    """

    lama: Path = Path("lama")
    distractors: dict[str, Path] = Field({})


def build(data: Path, settings: Settings, seed: int) -> Benchmark:
    """Build all six sets. Nothing in them is drawn at random.

    The candidates of a set are all its objects; parallel sets share them. Raises BadInput with the
    file and line for files that are not LAMA's.
    """
    folder = data / settings.lama
    dropped: Counter[tuple[str, str]] = Counter()
    rows: list[dict[str, Any]] = []
    rows += _parallel("google-re", lama.google_re(folder), lama.GOOGLE_RE_TEMPLATES, dropped)
    rows += _parallel("t-rex", lama.trex(folder), lama.templates(folder), dropped)
    rows += _free("conceptnet", lama.conceptnet(folder), dropped)
    rows += _free("squad", lama.squad(folder), dropped)
    queries = pd.DataFrame(rows)
    benchmark = Benchmark(queries, _candidates(queries), {"dropped": _counts(dropped)})
    for subset, path in settings.distractors.items():
        benchmark = with_distractors(benchmark, subset, read_names(data / path))
    return benchmark


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


def _free(
    name: str, items: Iterable[lama.Item], dropped: Counter[tuple[str, str]]
) -> list[dict[str, Any]]:
    return [_row(name, item, prompt) for item, prompt in _kept(name, items, dropped)]


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

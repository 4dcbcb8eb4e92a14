"""`medprobe cite`: the BibTeX entries of benchmarks, methods, families of metrics and models.

The entries are in `papers/references.bib`; their `keywords` list what each entry is cited for.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from medprobe import benchmarks, methods, metrics, papers
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Params

REFERENCES: Final = Path(papers.__file__).with_name("references.bib")
KEYWORDS: Final = re.compile(r",\n  keywords = \{(.*)\}\n\}")


def cite(names: Iterable[str], params: Params) -> str:
    """Format the entries for some names, each entry once.

    A name is a benchmark, a builder, a method, a family of metrics, a model of params.yaml or of a
    paper, or a name on the hub. A name without an entry becomes a comment.

    Raises:
        BadInput: for an unknown name.
    """
    texts: dict[str, None] = {}
    for name in names:
        key = _citation_key(name, params)
        entries = [entry for entry, prefixes in references() if any(map(key.startswith, prefixes))]
        texts.update(dict.fromkeys(entries or [f"% {name}: no entry"]))
    return "\n\n".join(texts) + "\n"


def references() -> list[tuple[str, list[str]]]:
    """List pairs (entry, names that it is cited for) in the order of the file."""
    _, *entries = re.split(r"^(?=@)", REFERENCES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pairs = []
    for entry in entries:
        if match := KEYWORDS.search(entry):
            pairs.append((KEYWORDS.sub("\n}", entry).strip(), match[1].split(", ")))
    return pairs


def _citation_key(name: str, params: Params) -> str:
    """Return the keyword of the entries for a name.

    It is `benchmark:…`, `method:…`, `metric:…`, or `model:…` with the name on the hub.

    The first word of a benchmark's builder counts: `medlama_released` is cited as `medlama`.
    """
    builders = {builder: builder for builder in benchmarks.list_names()}
    for builder, by_name in params.benchmarks.items():
        builders |= dict.fromkeys(by_name, builder)
    if name in builders:
        return f"benchmark:{builders[name].partition('_')[0]}"
    if name in methods.list_names():
        return f"method:{name}"
    if name in metrics.list_names():
        return f"metric:{name}"
    hub_names: dict[str, str] = {}
    for paper in papers.papers().values():
        hub_names |= {model: origin.hub or "" for model, origin in paper.models.items()}
    hub_names |= dict.fromkeys(params.models.all(), "")
    hub_names |= {model: origin.hub for model, origin in params.fetch.items()}
    if name not in hub_names and "/" not in name:
        listed = [*builders, *methods.list_names(), *metrics.list_names(), *hub_names]
        hint = nearest(name, listed)
        raise BadInput("cite", f"unknown name '{name}'{hint}", "`medprobe list` shows the names")
    return f"model:{hub_names.get(name, name)}"

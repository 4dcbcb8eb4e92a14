"""`medprobe cite`: what to cite for benchmarks, methods and models, as BibTeX.

The entries stand in `papers/references.bib`; their `keywords` say what each is cited for.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from medprobe import benchmarks, methods, papers
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Params

REFERENCES: Final = Path(papers.__file__).with_name("references.bib")
KEYWORDS: Final = re.compile(r",\n  keywords = \{(.*)\}\n\}")


def cite(names: Iterable[str], params: Params) -> str:
    """The entries for these names, each once. A name is of a benchmark or a builder, a method, a
    model of params.yaml or of a paper, or of a model on the hub. A line says where there is none.

    Raises BadInput for a name that is none of these.
    """
    found: dict[str, None] = {}
    for name in names:
        wanted = _wanted(name, params)
        entries = [entry for entry, keys in references() if any(map(wanted.startswith, keys))]
        found.update(dict.fromkeys(entries or [f"% {name}: nothing to cite is known"]))
    return "\n\n".join(found) + "\n"


def references() -> list[tuple[str, list[str]]]:
    """`(entry, what it is cited for)` in the order of the file."""
    _, *entries = re.split(r"^(?=@)", REFERENCES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [
        (KEYWORDS.sub("\n}", entry).strip(), found[1].split(", "))
        for entry in entries
        if (found := KEYWORDS.search(entry))
    ]


def _wanted(name: str, params: Params) -> str:
    """What an entry for this name is cited for: `benchmark:…`, `method:…`, `model:…`, that by its
    name on the hub.

    Of a benchmark's builder the first word counts: `medlama_released` is cited as `medlama` is.
    """
    named = {one: builder for builder, some in params.benchmarks.items() for one in some}
    builders = {**{one: one for one in benchmarks.list_names()}, **named}
    if name in builders:
        return f"benchmark:{builders[name].partition('_')[0]}"
    if name in methods.list_names():
        return f"method:{name}"
    of_papers = [some for paper in papers.papers().values() for some in paper.models.items()]
    known = {
        **{model: one.hub or "" for model, one in of_papers},
        **dict.fromkeys(params.models.all(), ""),
        **{model: one.hub for model, one in params.fetch.items()},
    }
    if name not in known and "/" not in name:
        there = [*builders, *methods.list_names(), *known]
        raise BadInput("cite", f"nothing is named '{name}'{nearest(name, there)}")
    return f"model:{known.get(name, name)}"

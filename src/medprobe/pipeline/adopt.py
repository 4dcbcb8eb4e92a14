"""`medprobe adopt`: put a paper's benchmarks, methods, rewiring and models into `params.yaml`."""

import difflib
import re
from pathlib import Path
from typing import Any, Final

import yaml
from ruamel.yaml import YAML

from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import write_whole
from medprobe.core.papers import (
    MEAN,
    Paper,
    PaperModel,
    PaperSections,
    built_benchmark,
    papers,
    place,
)
from medprobe.core.params import ModelParams, Params, find_settings, load_params
from medprobe.core.places import PARAMS
from medprobe.core.settings import Choices, parse_section
from medprobe.pipeline import check

WIDTH: Final = 160
SAMPLE: Final = ("train", "continued")  # the sample world's models, which no paper probes


def adopt(name: str, table: str = "", path: Path = PARAMS) -> tuple[str, str]:
    """Put a paper's settings into the text of params.yaml, without writing it.

    The paper's sections replace those of the file, and its way to compare models `score.main`. The
    user's models stay, and those of the sample world are removed. Other sections and comments do
    not change. With a table, only what its numbers need is put in, and the paper's other models are
    removed.
    """
    paper = _find(name, table)
    params = load_params(path)
    old_text = path.read_text(encoding="utf-8")
    new_text = old_text
    for key, value in _sections(name, paper, params).items():
        new_text = _replace_section(new_text, key, value)
    check.check(parse_section(Params, YAML(typ="safe").load(new_text), f"{path} after {name}"))
    return old_text, new_text


def difference(old_text: str, new_text: str, path: Path = PARAMS) -> str:
    """Format a change as a unified diff; empty if the texts are equal."""
    lines = (old_text.splitlines(keepends=True), new_text.splitlines(keepends=True))
    return "".join(difflib.unified_diff(*lines, str(path), f"{path} (adopted)"))


def write(text: str, path: Path = PARAMS) -> None:
    """Replace params.yaml; if writing fails, the old file stays."""
    write_whole(path, text)


def remarks(name: str, table: str = "", path: Path = PARAMS) -> list[str]:
    """List what else a user must know: notes on checkpoints, models that stay, open questions."""
    paper, params = _find(name, table), load_params(path)
    models = paper.models.items()
    notes = [f"{name}: {model.note}" for name, model in models if model.note]
    gated = [f"{name}: the hub requires your consent" for name, model in models if model.gated]
    differences = [
        f"{name}: {text}" for name, model in models if (text := _differs(name, model, params))
    ]
    tables = [paper.tables[table]] if table else paper.tables.values()
    questions = [*paper.open, *(question for of_table in tables for question in of_table.open)]
    return [*notes, *gated, *differences, *(f"open question: {each}" for each in questions)]


def _differs(printed: str, model: PaperModel, params: Params) -> str:
    """Describe how the user's model of this name differs from the paper's; "" if it does not."""
    name = _file_name(printed)
    if name not in params.models.all() or name in {*params.train, *params.continued}:
        return ""
    hub = params.fetch[name].hub if name in params.fetch else "another place"
    if (params.models.kind(name), hub) == (model.kind, model.hub):
        return ""
    paper = f"the paper has {model.hub} as {model.kind}" if model.hub else "the hub has none"
    return f"your model {name}, {hub} as {params.models.kind(name)}, stays; {paper}"


def _find(name: str, table: str) -> Paper:
    """Return a paper; with a table, only what its numbers need."""
    if name not in papers():
        versions = [other for other, of in papers().items() if of.stands and name in other]
        problem = f"no paper '{name}'{nearest(name, versions or [*papers()])}"
        raise BadInput("adopt", problem, f"choose one of {', '.join(papers())}")
    paper = papers()[name]
    if not table:
        return paper
    tables = [
        number
        for number, found in paper.tables.items()
        if found.rows or found.repeats or found.models
    ]
    if table not in tables:
        problem = f"nothing measures {place(table)} of {name} alone"
        tables.sort(key=lambda number: (not number.isdigit(), len(number), number))
        remedy = f"choose one of {', '.join(map(place, tables))}, or adopt the whole paper"
        raise BadInput("adopt", problem, remedy)
    return _only(paper, table)


def _only(paper: Paper, table: str) -> Paper:
    """Return a paper with the models, methods and benchmarks of a table's numbers alone."""
    found, rows = paper.tables[table], [*paper.tables[table].rows]
    adopted = paper.adopted.model_dump()
    for other, names in found.repeats.items():
        adopted |= paper.tables[other].adopted
        rows += [row for row in paper.tables[other].rows if row.model in names]
    adopted |= found.adopted
    builders = {name: builder for builder, named in adopted["benchmarks"].items() for name in named}
    asked = {
        (model, paper.models[model].kind, row.method, row.benchmark)
        for row in rows
        for model in (paper.models if row.model == MEAN else [row.model])
    }
    asked |= {
        (model, kind, method, built_benchmark(builders[benchmark]))
        for kind, named_methods in adopted["methods"].items()
        for method, named in named_methods.items()
        for benchmark in named
        for model in found.models
        if kind == paper.models[model].kind
    }
    results = [
        (model, kind, method, benchmark)
        for kind, named_methods in adopted["methods"].items()
        for method, named in named_methods.items()
        for benchmark in named
        for model in paper.models
        if (model, kind, method, built_benchmark(builders[benchmark])) in asked
    ]
    methods: dict[str, dict[str, Choices]] = {}
    benchmarks: dict[str, Choices] = {}
    for _, kind, method, benchmark in results:
        choices = adopted["methods"][kind][method][benchmark]
        methods.setdefault(kind, {}).setdefault(method, {})[benchmark] = choices
        builder = builders[benchmark]
        benchmarks.setdefault(builder, {})[benchmark] = adopted["benchmarks"][builder][benchmark]
    models = {key: paper.models[key] for key in paper.models if key in {r[0] for r in results}}
    left_out = {_file_name(name) for name in paper.models if name not in models}
    sections = {key: _without_models(section, left_out) for key, section in adopted.items()}
    sections |= {"benchmarks": benchmarks, "methods": methods}
    update = {"models": models, "adopted": PaperSections.model_validate(sections)}
    return paper.model_copy(update=update)


def _without_models(section: Choices, left_out: set[str]) -> Choices:
    """Take models out of the lists of a section, with entries that are for these models alone."""
    kept = {}
    for name, entry in section.items():
        if not isinstance(entry, dict):
            kept[name] = entry
            continue
        lists = {
            key: [one for one in value if one not in left_out]
            for key, value in entry.items()
            if isinstance(value, list)
        }
        if lists.get("models") != []:
            kept[name] = {key: lists.get(key, entry[key]) for key in entry if lists.get(key) != []}
    return kept


def _sections(file: str, paper: Paper, params: Params) -> dict[str, Any]:
    """The sections to write, by name."""
    sample = {*params.train, *params.continued}
    fetch = {name: model.model_dump(exclude_none=True) for name, model in params.fetch.items()}
    models: dict[str, dict[str, Any]] = {
        kind: {
            name: settings.model_dump(exclude_defaults=True)
            for name, settings in by_name.items()
            if name not in sample
        }
        for kind, by_name in params.models.by_kind().items()
    }
    for printed, model in papers()[file].models.items():  # those that another table needs
        name = _file_name(printed)
        if printed not in paper.models and fetch.get(name, {}).get("hub") == (model.hub or ""):
            del fetch[name]
            models[model.kind].pop(name, None)
    user_models = {name for by_name in models.values() for name in by_name}
    for printed, model in paper.models.items():
        name = _file_name(printed)
        published = printed if paper.stands else f"{file}/{printed}"
        for own in (by_name[name] for by_name in models.values() if name in by_name):
            if own.get("published", "").rpartition("/")[2] == printed:
                own["published"] = published
        if model.hub and name not in user_models:
            fetch[name] = {"hub": model.hub, "revision": model.revision}
            facts = {
                "published": published,
                "group": model.group or None,
                "trained_until": paper.trained_until,
                "lower_case": model.lower_case,
                "larger_than": _file_name(model.larger_than) or None,
                "averaged": model.averaged,
            }
            models[model.kind][name] = ModelParams(**facts).model_dump(exclude_defaults=True)
    sections: dict[str, Any] = {name: {} for name in SAMPLE if name in params.model_fields_set}
    filled = {kind: by_name for kind, by_name in models.items() if by_name}
    sections |= {"fetch": fetch, "models": filled}
    adopted = paper.adopted.model_dump(mode="json")
    methods, main = adopted["methods"], adopted.pop("main")
    main = {kind: method for kind, method in main.items() if method in methods.get(kind, {})}
    if main != params.score.main:
        score = params.score.model_dump(exclude_unset=True, exclude={"main"})
        adopted["score"] = score | ({"main": main} if main else {})
    for name, settings in find_settings().items():
        if settings.type:
            adopted.setdefault(name, {})
    adopted["methods"] |= {kind: {} for kind in filled if kind not in adopted["methods"]}
    sections |= adopted
    return sections


def _file_name(printed: str) -> str:
    """A model's name for files.

    >>> _file_name("Bio ClinicalBERT")
    'bio-clinicalbert'
    """
    return re.sub(r"[^a-z0-9]+", "-", printed.lower()).strip("-")


def _replace_section(text: str, key: str, value: Any) -> str:
    """Replace a section of the text, or append it."""
    match = re.search(rf"^{key}:.*\n(?:[ \t]+.*\n|[ \t]*\n(?=[ \t]))*", text + "\n", re.MULTILINE)
    body = yaml.safe_dump(
        {key: value}, default_flow_style=None, sort_keys=False, allow_unicode=True, width=WIDTH
    )
    if match is None:
        return f"{text.rstrip()}\n\n{body}"
    return text[: match.start()] + body + text[match.end() :]

"""The reference of `params.yaml`, made from the code: each key, its values and its meaning.

A setting is described by the docstring below it. `python -m bench.reference` writes the page, which
is in git: links to it work on the repository's pages too.
"""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from medprobe import benchmarks, methods
from medprobe.core import params
from medprobe.core.plugins import find_plugins, load_module
from medprobe.core.servers import ServerParams
from medprobe.papers.context.benchmarks.context.facts import Relation
from medprobe.papers.context.documents import Resource
from medprobe.papers.medlama.settings.rewire import RewireSettings
from medprobe.papers.medlama.settings.sentence_sets import SentenceSet
from medprobe.papers.medlama.settings.sweeps import Sweeps
from medprobe.sample.settings import Continuation, SampleSettings, TrainingRecipe

SECTIONS: Final[dict[str, tuple[str, type[BaseModel] | None]]] = {  # prefix and class of each
    "engine": ("engine.", params.EngineParams),
    "sample": ("sample.", SampleSettings),
    "train": ("train.<model>.", TrainingRecipe),
    "continued": ("continued.<model>.", Continuation),
    "fetch": ("fetch.<model>.", params.HubModel),
    "servers": ("servers.<model>.", ServerParams),
    "folders": ("folders.", None),
    "models": ("models.<kind>.<model>.", params.ModelParams),
    "sentence_sets": ("sentence_sets.<set>.", SentenceSet),
    "rewire": ("rewire.", RewireSettings),
    "sweeps": ("sweeps.", Sweeps),
    "score": ("score.", params.ScoreParams),
    "track": ("track.", params.TrackParams),
}
FULL_STOP: Final = r"(?<=[.]) (?=[A-Z`0-9])"
CONTEXT: Final = {"resources.<resource>.": Resource, "relations.<relation>.": Relation}


def params_page() -> str:
    """The page of `params.yaml`: every section and key, with its values and its meaning."""
    meanings = descriptions(params.Params) | added()
    lines = [
        "# params.yaml",
        "",
        "For everyone who edits `params.yaml`: all its keys. Brackets hold the default, then the",
        "other values; a key without them is empty by default. A wrong key is refused, and the",
        "nearest right one is named. You can leave out sections, but not `seed`, `engine` (with",
        "`precision`), `rewire`, `score`, `track`, nor those that your kinds of models need:",
        "`methods: {causal: {}}`.",
        "",
        "## seed",
        "",
        *_list(rows(params.Params, only=("seed",))),
    ]
    for name, (keys, section) in SECTIONS.items():
        heading = f"`{keys.rstrip('.')}`" if "<" in keys else name
        lines += [f"## {heading}", "", meanings[name], ""]
        if name == "models":
            lines += [f"- `{kind}`: {text}" for kind, text in kinds().items()]
            lines += [""]
        if section:
            lines += _list(rows(section))
    lines += ["## benchmarks", "", meanings["benchmarks"], ""]
    lines += ["```yaml", "benchmarks: {<builder>: {<benchmark>: {<setting>: <value>}}}", "```", ""]
    builders = {name: benchmarks.find(name).settings for name in benchmarks.list_names()}
    for name, settings in builders.items():
        lines += [f"### {name}", ""]
        lines += _differences(settings, dict(_before(builders, name)))
        if name == "context":
            for part, section in CONTEXT.items():
                lines += [f"`{part.rstrip('.')}`:", "", *_list(rows(section))]
    lines += ["## methods", "", meanings["methods"], ""]
    lines += [
        "```yaml",
        "methods: {<kind>: {<method>: {<benchmark>: {<setting>: <value>}}}}",
        "```",
        "",
    ]
    probes = {name: methods.find(name).Settings for name in methods.list_names()}
    for name, settings in probes.items():
        lines += [f"### {name}", ""]
        lines += _differences(settings, dict(_before(probes, name)))
    return "\n".join(lines).rstrip() + "\n"


def _before(sections: dict[str, type[BaseModel]], name: str) -> Iterator[tuple[str, list[str]]]:
    """The rows of the sections that the page has before one of them."""
    for earlier in list(sections)[: list(sections).index(name)]:
        yield earlier, list(rows(sections[earlier]))


def _differences(section: type[BaseModel], before: dict[str, list[str]]) -> list[str]:
    """A section's list, without four or more rows that one of the earlier sections has."""
    own = list(rows(section))
    like = max(before, key=lambda name: len({*own} & {*before[name]}), default="")
    shared = [row for row in own if like and row in before[like]]
    if len(shared) < 4:
        return _list(_named_once(row, before) for row in own)
    lacking = [row.split()[1].strip(":") for row in before[like] if row not in own]
    further = [row for row in own if row not in shared]
    without = f", without {', '.join(lacking)}" if lacking else ""
    return [f"Settings of [{like}](#{like}){without}{', and:' if further else '.'}", ""] + (
        _list(further) if further else []
    )


def _named_once(row: str, before: dict[str, list[str]]) -> str:
    """A row, or the earlier section that explains it in the same words."""
    first = next((name for name, earlier in before.items() if row in earlier), None)
    key = row.split()[1].rstrip(":")
    return f"- {key}: as in [{first}](#{first})." if first else row


def kinds() -> dict[str, str]:
    """What each kind of model is."""
    return descriptions(params.Models)


def added() -> dict[str, str]:
    """What the sections of papers and extensions are: the docstrings of their files."""
    meanings = {}
    for name, plugin in find_plugins("settings").items():
        text = " ".join((load_module(plugin).__doc__ or "").partition(": ")[2].split())
        meanings[name] = text[:1].upper() + text[1:]
    return meanings


def _list(content: Iterable[str]) -> list[str]:
    lines = list(content)
    return [*lines, ""] if lines else ["No settings.", ""]


def rows(cls: type[BaseModel], only: tuple[str, ...] = ()) -> Iterator[str]:
    """One line per setting of a class: its key, its values, and the first sentence on it.

    Args:
        cls: the settings.
        only: settings to list; all if empty.
    """
    meanings = descriptions(cls)
    for name, field in cls.model_fields.items():
        if not only or name in only:
            meaning, _, empty = meanings[name].partition(" Empty: ")
            default = _default(field)
            if default == "empty" and empty:
                default = re.split(r"[.;]( |$)", empty)[0]
            named = f"{default} {meaning}"
            others = [
                v for v in _choices(field.annotation) if v not in default and f"`{v}`" not in named
            ]
            values = ", ".join([default, *(f"`{value}`" for value in others)])
            brackets = "" if values == "empty" else f" ({values})"
            first = re.split(FULL_STOP, meaning)[0]
            says_no_more = first.lower() == f"{name.replace('_', ' ')}."
            yield f"- `{name}`{brackets}" + ("" if says_no_more else f": {first}")


def descriptions(cls: type[BaseModel]) -> dict[str, str]:
    """What each setting of a class means: the docstring below it, also in a base class.

    Raises:
        ValueError: a setting has no docstring.
    """
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, BaseModel) and base.__module__.startswith("medprobe"):
            texts |= dict(_documented(base))
    lacking = [name for name in cls.model_fields if name not in texts]
    if lacking:
        raise ValueError(f"{cls.__module__}.{cls.__qualname__}: no docstring below {lacking}")
    return {name: texts[name] for name in cls.model_fields}


def _documented(cls: type[BaseModel]) -> Iterator[tuple[str, str]]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    (node,) = tree.body
    assert isinstance(node, ast.ClassDef)
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str())):
                yield name, " ".join(text.value.value.split())


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The values of a `Literal`, of an optional one, or of a list of them."""
    if get_origin(annotation) is dict:
        return ()
    options = (annotation, *get_args(annotation))
    return next((get_args(option) for option in options if get_origin(option) is Literal), ())


def _default(field: FieldInfo) -> str:
    """A default, as YAML writes it."""
    if field.is_required():
        return "required"
    value = to_jsonable_python(field.get_default(call_default_factory=True))
    if value is None or value in ("", [], {}) or isinstance(field.default, BaseModel):
        return "empty"
    if isinstance(value, str) and not value.strip():  # a line break
        return f"`{json.dumps(value)}`"
    if isinstance(value, list) and len(value) > 9:
        return f"{len(value)} names"
    text = yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True)
    return "`" + text.strip().removesuffix("...").strip() + "`"


PAGE: Final = Path(__file__).parent.parent / "docs/reference/params.md"

if __name__ == "__main__":
    PAGE.write_text(params_page(), encoding="utf-8")

"""Two pages of the reference, made from the code: `params.yaml` key by key, and the command line.

A setting is described by the docstring below it, a command by its help. `python -m bench.reference`
writes both pages, which are in git: links to them work on the repository's pages too.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import click
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from medprobe import benchmarks, methods
from medprobe.cli import main
from medprobe.core import params
from medprobe.core.plugins import find_plugins, load_module
from medprobe.extensions.servers.settings.servers import ServerParams
from medprobe.papers.context.benchmarks.context.facts import Relation
from medprobe.papers.context.documents import Resource
from medprobe.papers.medlama.settings.rewire import RewireSettings
from medprobe.papers.medlama.settings.sentence_sets import SentenceSet
from medprobe.papers.medlama.settings.sweeps import Sweeps
from medprobe.sample.settings import Continuation, SampleSettings, TrainingRecipe

HEAD: Final = "| setting | default | meaning |\n| --- | --- | --- |"
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
CONTEXT: Final = {"resources.<resource>.": Resource, "relations.<relation>.": Relation}


def params_page() -> str:
    """The page of `params.yaml`: every section and key, with default and meaning."""
    meanings = descriptions(params.Params) | added()
    lines = [
        "# params.yaml",
        "",
        "`params.yaml` holds everything that you can change. Each key is checked: a wrong key is",
        "refused with the nearest right one. A section that you leave out is empty. Only `seed`,",
        "`engine.precision`, `rewire`, `score` and `track` must be there.",
        "",
        "## seed",
        "",
        HEAD,
        *rows(params.Params, only=("seed",)),
        "",
    ]
    for name, (prefix, section) in SECTIONS.items():
        lines += [f"## {name}", "", meanings[name], ""]
        if name == "models":
            lines += ["| kind | meaning |", "| --- | --- |"]
            lines += [f"| `{kind}` | {text} |" for kind, text in kinds().items()]
            lines += [""]
        if section:
            lines += [HEAD, *rows(section, prefix), ""]
    lines += ["## benchmarks", "", meanings["benchmarks"], ""]
    lines += ["```yaml", "benchmarks: {<builder>: {<benchmark>: {<setting>: <value>}}}", "```", ""]
    for name in benchmarks.list_names():
        builder = benchmarks.find(name)
        description = builder.metadata.description
        lines += [f"### {name}", "", f"{description[0].upper()}{description[1:]}.", ""]
        lines += _table(rows(builder.settings))
        if name == "context":
            for part, section in CONTEXT.items():
                lines += _table(rows(section, part))
    lines += ["## methods", "", meanings["methods"], ""]
    lines += [
        "```yaml",
        "methods: {<kind>: {<method>: {<benchmark>: {<setting>: <value>}}}}",
        "```",
    ]
    lines += [""]
    for name in methods.list_names():
        method = methods.find(name)
        lines += [f"### {name}", "", f"Kinds of model: {', '.join(method.KINDS)}.", ""]
        lines += _table(rows(method.Settings))
    return "\n".join(lines)


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


def _table(content: Iterable[str]) -> list[str]:
    lines = list(content)
    return [HEAD, *lines, ""] if lines else ["No settings.", ""]


def commands_page() -> str:
    """The page of the command line: the help of every command, by name."""
    context = click.Context(main, info_name="medprobe")
    lines = ["# Command line", "", "`medprobe COMMAND --help` prints the same.", ""]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command
        inner = click.Context(command, info_name=name, parent=context, max_content_width=88)
        usage = command.get_help(inner)
        lines += [f"## medprobe {name}", "", "```text", usage, "```", ""]
    return "\n".join(lines)


def rows(cls: type[BaseModel], prefix: str = "", only: tuple[str, ...] = ()) -> Iterator[str]:
    """One row per setting of a class: its key, its default, and what it means.

    Args:
        cls: the settings.
        prefix: keys above it, such as `engine.`.
        only: settings to list; all if empty.
    """
    meanings = descriptions(cls)
    for name, field in cls.model_fields.items():
        if not only or name in only:
            values = _choices(field.annotation)
            meaning = meanings[name] + (f" One of {values}." if values else "")
            yield f"| `{prefix}{name}` | {_default(field)} | {meaning} |"


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


def _choices(annotation: Any) -> str:
    """The values of a `Literal`, of an optional one, or of a list of them."""
    if get_origin(annotation) is dict:
        return ""
    for option in (annotation, *get_args(annotation)):
        if get_origin(option) is Literal:
            return ", ".join(
                f"`{value}`" if value else "an empty name" for value in get_args(option)
            )
    return ""


def _default(field: FieldInfo) -> str:
    """A default, as YAML writes it."""
    if field.is_required():
        return "required"
    value = to_jsonable_python(field.get_default(call_default_factory=True))
    if value is None or value in ("", [], {}) or isinstance(field.default, BaseModel):
        return "empty"
    if isinstance(value, str) and not value.strip():  # a line break
        return f"`{json.dumps(value)}`"
    text = yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True)
    return "`" + text.strip().removesuffix("...").strip() + "`"


def pages() -> dict[Path, str]:
    """Both pages, by path."""
    folder = Path(__file__).parent.parent / "docs/reference"
    return {folder / "params.md": params_page(), folder / "commands.md": commands_page()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")

"""Which sources and models are there, and what each missing one would enable."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from medprobe import benchmarks, places
from medprobe.params import MODEL_KINDS, ModelParams, Params


def doctor(params: Params, data: Path) -> None:
    """Print two tables: each benchmark's sources below `data`, and each model of params.yaml."""
    console = Console()
    console.print(sources_table(params, data))
    console.print(models_table(params))


def sources_table(params: Params, data: Path) -> Table:
    """A row a source: is it there, and which benchmarks need it?"""
    needed: dict[str, list[str]] = {}
    for name in benchmarks.names():
        for source in benchmarks.find(name).METADATA.sources:
            needed.setdefault(source, []).append(name)
    table = Table("source", "there", "enables", title=f"Sources in {data}/", title_justify="left")
    for source, names in sorted(needed.items()):
        there = "yes" if (data / source).exists() else "no"
        asked = [name if name in params.benchmarks else f"{name} (not in params)" for name in names]
        table.add_row(source, there, ", ".join(asked))
    return table


def models_table(params: Params) -> Table:
    """A row a model: where it comes from, and what its checkpoint can serve once it is there."""
    table = Table("model", "kind", "from", "checkpoint", title="Models", title_justify="left")
    for kind in MODEL_KINDS:
        for name, model in getattr(params.models, kind).items():
            table.add_row(name, kind, _origin(model), _state(places.MODELS / name))
    return table


def _origin(model: ModelParams) -> str:
    if model.pretrain:
        return f"trained here: {model.pretrain}"
    return str(model.folder or f"{model.hub} {model.revision or ''}")


def _state(folder: Path) -> str:
    if not folder.is_dir():
        return f"missing: `dvc repro` or `medprobe pretrain {folder.name}` makes it"
    from medprobe.engine.load import inspect

    found = inspect(folder)
    lacks = f"; lacks the {', '.join(found.missing)} head" if found.missing else ""
    return f"{found.architecture}, serves {', '.join(found.kinds)}{lacks}"

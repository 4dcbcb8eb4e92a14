"""`medprobe doctor`: are the parameters right, which sources and models are there, and what would
each missing one enable?"""

import re
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from medprobe import benchmarks
from medprobe.commands import pipeline
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import IMPORTED, HubModel, Params
from medprobe.engine.inspection import inspect

SENTENCES: Final = places.SENTENCES.name


def doctor(params: Params, data: Path) -> None:
    """Print two tables: each builder's sources below `data`, and each model of params.yaml.

    Raises BadInput where dvc.yaml is not what the code asks for.
    """
    console = Console()
    console.print(sources_table(params, data))
    console.print(models_table(params))
    for path, content in pipeline.files().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            raise BadInput(
                path, "not what the code asks for", "run `medprobe pipeline` to write it"
            )


def sources_table(params: Params, data: Path) -> Table:
    """A row for each source that any builder can use, the released forms' too, and each sentence
    set: its size, and what it enables. A name in brackets is a builder that params.yaml has not."""
    needed: dict[str, list[str]] = {}
    for builder in benchmarks.list_names():
        for source in benchmarks.find(builder).metadata.sources:
            named = ", ".join(params.benchmarks.get(builder, {}))
            needed.setdefault(source, []).append(named or f"({builder})")
    sets = {path.stem for path in (data / SENTENCES).glob("*.txt")}
    for name in sorted({*params.sentence_sets, *sets}):
        rewiring = f"rewiring on {name}"
        listed = rewiring if name in params.sentence_sets else f"({rewiring})"
        needed[f"{SENTENCES}/{name}.txt"] = [listed]
    if trained := [*params.train, *params.continued]:
        needed["sample"] = [f"training {', '.join(trained)}"]
    table = Table("source", "size", "enables", title=f"Sources in {data}/", title_justify="left")
    for source, names in sorted(needed.items()):
        table.add_row(source, _size(data / source), ", ".join(names))
    return table


def _size(path: Path) -> str:
    """The size of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return decimal(sum(one.stat().st_size for one in files)) if files else "missing"


def models_table(params: Params) -> Table:
    """A row a model: where it comes from, and what its checkpoint can serve once it is there."""
    table = Table("model", "kind", "from", "checkpoint", title="Models", title_justify="left")
    for kind, models in params.models.by_kind().items():
        for name in models:
            table.add_row(name, kind, _origin(name, params), _state(places.MODELS / name))
    return table


def _origin(name: str, params: Params) -> str:
    if name in params.models.imported:
        return str(places.IMPORTED / name)
    if name in params.train:
        return "trained here"
    if name in params.continued:
        return f"trained here, from {params.continued[name]['base']} on"
    if name in params.folders:
        return str(params.folders[name])
    return _on_hub(params.fetch[name])


def _on_hub(origin: HubModel) -> str:
    pinned = re.fullmatch("[0-9a-f]{40}", origin.revision or "")
    more = f" with {_on_hub(origin.adapter)}" if origin.adapter else ""
    return f"{origin.hub} {origin.revision or 'main'}{'' if pinned else ' (not pinned)'}{more}"


def _state(folder: Path) -> str:
    if not folder.is_dir():
        return "missing: `dvc repro` makes it"
    if folder.name.endswith(IMPORTED):
        return "none: another program asked it"
    found = inspect(folder)
    lacks = f"; lacks the {', '.join(found.missing)} head" if found.missing else ""
    return f"{found.architecture}, serves {', '.join(found.kinds)}{lacks}"

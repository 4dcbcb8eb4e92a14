"""`medprobe doctor`: check the parameters, and list sources and models.

The list says which are available and what each of them enables.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from rich.filesize import decimal

from medprobe import backends, benchmarks, methods
from medprobe.backends import finder
from medprobe.core import places
from medprobe.core.checkpoints import ADAPTER
from medprobe.core.errors import BadInput
from medprobe.core.files import read_any, size
from medprobe.core.libraries import describe_differing
from medprobe.core.params import HubModel, ModelKind, Params, find_settings
from medprobe.core.plugins import KINDS, find_outside_plugins, find_plugins
from medprobe.core.settings import Choices, parse_section
from medprobe.core.tables import Metadata
from medprobe.engine.formats import is_gguf
from medprobe.engine.inspection import inspect
from medprobe.pipeline import clean, outputs
from medprobe.pipeline.init import packaged
from medprobe.pipeline.outputs import to_json
from medprobe.pipeline.stages.fetch import check_kind
from medprobe.pipeline.stale_stages import REMEDY, describe_data
from medprobe.sources.releases import find_release


class Source(NamedTuple):
    """A source of benchmarks or of rewiring."""

    source: str
    bytes: int | None  # None if it is missing
    enables: list[str]  # what params.yaml names; in parentheses, what could be added to it

    @property
    def is_needed(self) -> bool:
        """Whether something that params.yaml names needs it."""
        return any(not name.startswith("(") for name in self.enables)


def doctor(params: Params, data: Path, *, as_json: bool = False) -> bool:
    """Print the sources in `data`, models, plugins, and what other names left on disk."""
    sources = list_sources(params, data)
    models = list_models(params)
    plugins = [
        {"plugin": plugin.name, "kind": plugin.kind, "origin": plugin.origin}
        for kind in KINDS
        for plugin in find_outside_plugins(kind).values()
    ]
    if not as_json:
        _print_tables(sources, models, plugins, data)
    paths = clean.leftovers()
    notes = [*_notes(params)]
    missing = missing_sources(sources)
    complete = not missing and all(
        path.is_dir() or (path.exists() and is_gguf(path)) for path in params.folders.values()
    )
    if as_json:
        content = {"sources": sources, "models": models, "plugins": plugins, "missing": missing}
        print(to_json({**content, "leftovers": [*map(str, paths)], "notes": notes}))
        return complete
    for note in notes:
        print(note)
    if paths:
        clean.show(paths, clean.LEFTOVERS)
        print("No result counts these. `medprobe clean` removes them.")
    if missing:
        print("params.yaml is valid. Missing:")
        rows = [(f"  {data / source}", _remedy(source)) for source in missing]
        width = max(len(path) for path, _ in rows)
        print(*(f"{path:{width}}  {remedy}".rstrip() for path, remedy in rows), sep="\n")
        print(
            "`dvc pull` brings what DVC pins. Copy other files without a command there yourself "
            "(docs/how-to/own-data.md)."
        )
    elif complete:
        print(
            f"params.yaml is valid, and what it names in {data}/ exists: `medprobe gate` reads it."
        )
    return complete


def _remedy(source: str) -> str:
    """Return the command that brings a source; empty if there is none."""
    if source == "sample":
        return "medprobe sample"
    for name in find_plugins("imports"):
        if find_release(name).brings(source):
            return f"medprobe import {name} PATH"
    return ""


def _notes(params: Params) -> Iterator[str]:
    """Yield lines on what is missing, libraries of other versions, invented and unpinned data."""
    if not params.has_results:
        yield "params.yaml: no method probes a model, so that `medprobe repro` has nothing to do"
    for name, folder in params.folders.items():
        pins = [path for path in (folder, *folder.parents) if Path(f"{path}.dvc").is_file()]
        if not folder.exists():
            note = f"; `dvc pull {pins[0]}` brings it" if pins else ""
            yield f"params.yaml: folders.{name}: {folder} does not exist{note}"
        elif folder.is_file() and not is_gguf(folder):
            yield f"params.yaml: folders.{name}: {folder} is no folder and no GGUF file"
        elif not folder.is_absolute() and ".." not in folder.parts and not pins:
            yield f"params.yaml: folders.{name}: DVC does not track {folder}; `dvc add {folder}`"
    yield from describe_differing()
    if missing := ", ".join(_missing_blocks()):
        source = f"{packaged(places.PIPELINE.name)}, without the lines that begin with src/"
        yield f"{places.PIPELINE}: lacks {missing} of this version; copy them from {source}"
    about = {name: places.ABOUT / f"{name}.json" for name in sorted(params.benchmark_names)}
    read = [name for name, path in about.items() if path.is_file() and Metadata.read(path).invented]
    if read:
        yield f"of the sample world, whose facts are invented: {', '.join(read)}"
    if note := describe_data():
        yield f"{note}; {REMEDY}"


def _missing_blocks() -> list[str]:
    """The blocks of this version's dvc.yaml that the project's has not."""
    texts = (packaged(places.PIPELINE.name).read_text(encoding="utf-8"), read_any(places.PIPELINE))
    blocks, own = (re.findall(r"^  ([\w-]+):", text, re.MULTILINE) for text in texts)
    return [name for name in blocks if own and name not in own]


def _print_tables(
    sources: list[Source],
    models: list[dict[str, str]],
    plugins: list[dict[str, str]],
    data: Path,
) -> None:
    rows = [
        (row.source, "missing" if row.bytes is None else decimal(row.bytes), ", ".join(row.enables))
        for row in sources
        if row.is_needed or row.bytes is not None
    ]
    title = f"Sources in {data}/, in parentheses what params.yaml does not name"
    outputs.print_table(("source", "size", "enables"), rows, title)
    heads = ("model", "kind", "from", "checkpoint")
    outputs.print_table(heads, [tuple(row.values()) for row in models], "Models")
    if plugins:
        lines = [tuple(row.values()) for row in plugins]
        outputs.print_table(("plugin", "kind", "from"), lines, "Plugins")


def list_sources(params: Params, data: Path) -> list[Source]:
    """List every source that a builder can use, and every sentence set, with what it enables."""
    return [
        Source(
            source=source,
            bytes=sum(map(size, found)) if (found := _existing(data, source)) else None,
            enables=names,
        )
        for source, names in sorted(_uses(params, data).items())
    ]


def missing_sources(sources: Iterable[Source]) -> list[str]:
    """Return the sources that params.yaml needs and that are missing, folders without files."""
    missing = [row.source for row in sources if row.bytes is None and row.is_needed]
    return [name for name in missing if not any(o.startswith(f"{name}/") for o in missing)]


def _uses(params: Params, data: Path) -> dict[str, list[str]]:
    """What each source enables; a name in parentheses is not in params.yaml."""
    uses: dict[str, list[str]] = {}
    for builder in benchmarks.list_names():
        benchmark = benchmarks.find(builder)
        for source in dict.fromkeys((*benchmark.metadata.sources, *benchmark.gate_sources)):
            users = uses.setdefault(source, [])
            if names := ", ".join(params.benchmarks.get(builder, {})):
                users.append(names)
            elif builder not in params.benchmark_names:  # else one of that name is built by another
                users.append(f"({builder})")
    for builder, named in params.benchmarks.items():
        for name, choices in named.items():
            for path in _paths(builder, name, choices):
                users = uses.setdefault(path, [])
                users += [name] if name not in ", ".join(users).split(", ") else []
    for section, found in find_settings().items():
        files = (data / found.files).glob("*.txt") if found.files else ()
        keys = {*found.of(params)} if found.files else set()
        for key in sorted({*keys, *(path.stem for path in files)}):
            use = f"{section}.{key}"
            uses[f"{found.files}/{key}.txt"] = [use if key in keys else f"({use})"]
    if sample_models := [*params.train, *params.continued]:
        uses["sample"] = [f"training {', '.join(sample_models)}"]
    return uses


def _paths(builder: str, name: str, choices: Choices) -> list[str]:
    """The files below `data/` that the settings of a benchmark name, or make its builder read."""
    found = benchmarks.find(builder)
    settings = parse_section(found.settings, choices, f"params.yaml: benchmarks.{builder}.{name}")
    return [
        *(path.as_posix() for _, path in benchmarks.list_paths(settings)),
        *found.files(settings),
    ]


def _existing(data: Path, source: str) -> list[Path]:
    """The file or the folder with files that is the source, or the files of its pattern."""
    path = data / source
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        return [path]
    return [found for found in data.glob(source) if found.is_file()]


def list_models(params: Params) -> list[dict[str, str]]:
    """List every model: its origin, and the kinds of model that its checkpoint can serve."""
    return [
        {
            "model": name,
            "kind": kind,
            "origin": _origin(name, params),
            "checkpoint": "; ".join([_state(name, params), *_not_asked(name, kind, params)]),
        }
        for kind, models in params.models.by_kind().items()
        for name in models
    ]


def _not_asked(name: str, kind: ModelKind, params: Params) -> list[str]:
    """Name the methods of params.yaml for which the model's backend lacks all abilities."""
    abilities = backends.find_abilities(places.MODELS / name)
    names = [
        name for name in params.methods.get(kind, {}) if not methods.find(name).NEEDS & abilities
    ]
    return [f"not asked by {', '.join(names)}"] if names else []


def _origin(name: str, params: Params) -> str:
    if name in params.train:
        return "trained here"
    if name in params.continued:
        return f"trained here, continues {params.continued[name]['base']}"
    if name in params.folders:
        folder = params.folders[name]
        return str(folder) if Path(folder).exists() else f"{folder}, which does not exist"
    if server := params.servers.get(name):
        return f"server {server.host}, {_answers(places.MODELS / name)}"
    return _on_hub(params.fetch[name])


def _answers(folder: Path) -> str:
    """Whether a server answers now, as the model of its record."""
    if backends.read_plugin_model(folder) is None:
        return "not asked yet"
    try:
        finder.check(folder, once=True)
    except BadInput as error:
        return str(error).partition(": ")[2]
    return "answers"


def _on_hub(origin: HubModel) -> str:
    pinned = re.fullmatch("[0-9a-f]{40}", origin.revision or "")
    adapter = f" with {_on_hub(origin.adapter)}" if origin.adapter else ""
    return f"{origin.hub} {origin.revision or 'main'}{'' if pinned else ' (not pinned)'}{adapter}"


def _state(name: str, params: Params) -> str:
    folder, own = places.MODELS / name, params.folders.get(name)
    if not folder.is_dir():
        if own is None or not own.exists():
            return "missing" if own else "not there yet: `medprobe repro` creates it"
        if own.is_file() or (own / ADAPTER[0]).is_file():
            return "there: `medprobe repro` converts it"
        folder = own
    if model := backends.read_plugin_model(folder):
        can = f"backend {model.backend}, can {', '.join(model.abilities) or 'nothing'}"
        return "; ".join([can, *(f"{ability}: {why}" for ability, why in model.lacks.items())])
    checkpoint = inspect(folder)
    check_kind(folder, params.models.kind(name), checkpoint.kinds)
    missing = f"; no {', '.join(checkpoint.missing)} head" if checkpoint.missing else ""
    return f"{checkpoint.architecture}, serves {', '.join(checkpoint.kinds)}{missing}"

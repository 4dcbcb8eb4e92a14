"""Which model a command asks, how, and about what: `ask` and `run` name them as a project does."""

from pathlib import Path

from medprobe import methods
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Choices, Params
from medprobe.core.tables import BenchmarkTables
from medprobe.library import model as library


def model(name: str, params: Params) -> library.Model:
    """A model: a name of params.yaml, or the folder of a checkpoint.

    Raises BadInput for an unknown name, and for a checkpoint that is not there.
    """
    if Path(name).is_dir():
        found = library.load(name, seed=params.seed)
        return library.Model(name, found.folder, found.kinds, params.engine, params.seed)
    kind, folder = params.models.kind(name), places.MODELS / name
    if not folder.is_dir():
        raise BadInput(folder, "no such checkpoint", "run `medprobe repro` to make it")
    return library.Model(name, folder, (kind,), params.engine, params.seed)


def settings(of: library.Model, method: str, benchmark: str, params: Params) -> Choices | None:
    """The settings that params.yaml has for a method on a benchmark and the model's kind, or
    another kind where that has none; else none are chosen."""
    plugin = methods.find(method)
    kinds = [kind for kind in of.kinds if kind in plugin.KINDS]
    named = (params.methods.get(kind, {}).get(method, {}) for kind in (*kinds, *plugin.KINDS))
    as_it_came = Path(of.name).is_dir()  # nothing of this project rewired a folder's model
    unchosen: Choices | None = None if as_it_came else {}
    return next((by[benchmark] for by in named if benchmark in by), unchosen)


def tables(benchmark: str, params: Params) -> BenchmarkTables:
    """A benchmark's tables. Raises BadInput where it is not built, with the command that does."""
    folder = places.BENCHMARKS / benchmark
    if not folder.is_dir():
        remedy = f"run `dvc repro build-{params.builder(benchmark)}@{benchmark}`"
        raise BadInput(folder, "not built yet", remedy)
    return BenchmarkTables.read(folder)

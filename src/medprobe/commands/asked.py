"""Which model a command asks, by which method: what `ask` and `run` have in common."""

from pathlib import Path

from medprobe import methods
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params, section
from medprobe.core.tables import BenchmarkTables
from medprobe.engine.load import inspect
from medprobe.methods import Method


def prober(model: str, method: str, benchmark: str, params: Params) -> Method:
    """A method, ready to ask a model: a name of params.yaml, or the folder of a checkpoint. Its
    settings are those of params.yaml for this benchmark and the model's kind, or another kind's
    where that has none, or the defaults.

    Raises BadInput for an unknown name, a checkpoint that is not there, and a method that cannot
    serve it, with those that can.
    """
    plugin = methods.find(method)
    folder = Path(model) if Path(model).is_dir() else places.MODELS / model
    kinds = inspect(folder).kinds if Path(model).is_dir() else (params.models.kind(model),)
    kind = next((kind for kind in kinds if kind in plugin.KINDS), None)
    if kind is None:
        able = [name for name in methods.names() if {*kinds} & {*methods.find(name).KINDS}]
        problem = f"the method asks models of kind {' or '.join(plugin.KINDS)}, this is none"
        raise BadInput(f"{method} on {model}", problem, f"choose one of: {', '.join(able)}")
    if not folder.is_dir():
        raise BadInput(folder, "no such checkpoint", "run `medprobe repro` to make it")
    named = (params.methods.get(k, {}).get(method, {}) for k in (kind, *plugin.KINDS))
    choices = next((by[benchmark] for by in named if benchmark in by), {})
    where = f"params.yaml: methods.{kind}.{method}.{benchmark}"
    return plugin(folder, section(plugin.Settings, choices, where), params.engine, params.seed)


def tables(benchmark: str, params: Params) -> BenchmarkTables:
    """A benchmark's tables. Raises BadInput where it is not built, with the command that does."""
    folder = places.BENCHMARKS / benchmark
    if not folder.is_dir():
        remedy = f"run `dvc repro build-{params.builder(benchmark)}@{benchmark}`"
        raise BadInput(folder, "not built yet", remedy)
    return BenchmarkTables.read(folder)

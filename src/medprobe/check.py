"""All of `params.yaml`, held against the code to its leaves: every setting of every method,
benchmark, recipe and of rewiring, and every name that one section takes from another.
"""

from collections import Counter
from pathlib import Path
from typing import Any, Final

from medprobe.core import places
from medprobe.core.errors import BadInput, nearest, quoting
from medprobe.core.params import (
    IMPORTED,
    Choices,
    Params,
    Section,
    load_params,
    parse_section,
)
from medprobe.core.tables import BASELINE

PARAMS: Final = Path("params.yaml")
SETS: Final = "sets"  # a method's setting of this name names sentence sets
STEP: Final = "step"  # one of this name a step of rewiring on each of these sets
SWEEPS: Final = "sweeps"  # and one of this name the values of sweeps that it probes


def loaded(path: Path = PARAMS) -> Params:
    """Read `params.yaml` for a command. A command checks the settings that it uses; all others are
    left to `check`, which the stage of that name runs before all others, since it takes seconds to
    import the methods.

    From here on errors quote text of the data where `track.text` allows it.

    Raises:
        BadInput: a key or a value is wrong, settings of methods and the like aside.
    """
    params = load_params(path)
    if params.track.text:
        quoting.set(True)
    return params


def check(params: Params) -> None:
    """Raise BadInput for the first key, value or name in the sections of `params.yaml` that the
    code they belong to does not know."""
    from medprobe.engine.rewiring import RewireSettings
    from medprobe.sample.settings import SampleSettings

    _right(SampleSettings, params.sample, "sample")
    _right(RewireSettings, params.rewire, "rewire")
    for name, one in params.sentence_sets.items():
        _right(RewireSettings, params.rewire | one.rewire, f"sentence_sets.{name}.rewire")
        for model in one.models or ():
            _known(model, params.models.all(), f"sentence_sets.{name}.models")
    _sweeps(params)
    _benchmarks(params)
    _models(params)
    for kind, methods in params.methods.items():
        for method, by_benchmark in methods.items():
            _method(params, kind, method, by_benchmark)


def _right(kind: type[Section], choices: Choices, where: str) -> None:
    parse_section(kind, choices, f"params.yaml: {where}")


def _sweeps(params: Params) -> None:
    """Values, models and sets of sweeps are right, each value on its own."""
    from medprobe.engine.rewiring import RewireSettings

    for model in params.sweeps.models:
        _known(model, [*params.models.masked, *params.models.encoder], "sweeps.models")
    for name in params.sweeps.sets:
        _known(name, params.sentence_sets, "sweeps.sets")
    for setting, values in params.sweeps.values().items():
        for value in values:
            _right(RewireSettings, {setting: value}, "sweeps")
        if len({*map(float, values)}) < len(values):
            raise BadInput(f"params.yaml: sweeps.{setting}", "a value is there twice")


def _benchmarks(params: Params) -> None:
    from medprobe import benchmarks

    for builder, named in params.benchmarks.items():
        settings = benchmarks.find(builder).settings
        for name, choices in named.items():
            _right(settings, choices, f"benchmarks.{builder}.{name}")
            if name == places.SENTENCES.name:
                problem = f"'{name}' is the folder of sentence sets"
                raise BadInput(f"params.yaml: benchmarks.{builder}", problem, "choose another name")
    _once("benchmarks", [name for named in params.benchmarks.values() for name in named])


def _models(params: Params) -> None:
    from medprobe.sample.settings import recipe

    known = params.models.all()
    if BASELINE in known:
        problem = f"'{BASELINE}' stands for what knows nothing of the subjects"
        raise BadInput("params.yaml: models", problem, "choose another name")
    _once("models", [name for named in params.models.by_kind().values() for name in named])
    origins = [*params.train, *params.continued, *params.fetch, *params.folders]
    _once("train, continued, fetch and folders", origins)
    for name in origins:
        if name not in known:
            problem = (
                f"'{name}' is in train, continued, fetch or folders only{nearest(name, [*known])}"
            )
            raise BadInput("params.yaml: models", problem, "list it under its kind")
    for name, model in known.items():
        _imported(name, params)
        if name not in [*origins, *params.models.imported]:
            problem = f"nothing says where its checkpoint is{nearest(name, origins)}"
            remedy = "list it in train, continued, fetch or folders"
            raise BadInput(
                f"params.yaml: models.{params.models.kind(name)}.{name}", problem, remedy
            )
        _known(model.untaught_twin_of, known, f"models.{params.models.kind(name)}.{name}")
    for part, named in (("train", params.train), ("continued", params.continued)):
        for name in named:
            trained = recipe(name, params)[0].kind
            if trained != (kind := params.models.kind(name)):
                problem = f"a recipe of kind {trained}, the model is listed as {kind}"
                raise BadInput(f"params.yaml: {part}.{name}", problem)


def _imported(name: str, params: Params) -> None:
    """Raise BadInput unless a model's name says whether it is imported: all that shows a model
    shows its name."""
    where = f"params.yaml: models.{params.models.kind(name)}.{name}"
    imported = name in params.models.imported
    if imported != name.endswith(IMPORTED):
        what = "an imported model ends in" if imported else "only imported models end in"
        raise BadInput(where, f"the name of {what} {IMPORTED}", "choose another name")
    if imported and name in [*params.train, *params.continued, *params.fetch, *params.folders]:
        problem = "an imported model has no checkpoint"
        raise BadInput(where, problem, "take it out of train, continued, fetch and folders")


def _method(params: Params, kind: Any, method: str, by_benchmark: dict[str, Choices]) -> None:
    from medprobe import methods

    plugin = methods.find(method)
    where = f"methods.{kind}.{method}"
    if kind not in plugin.KINDS:
        raise BadInput(f"params.yaml: {where}", methods.describe_needs(plugin))
    there = [name for named in params.benchmarks.values() for name in named]
    for benchmark, choices in by_benchmark.items():
        _known(benchmark, there, where)
        _right(plugin.Settings, choices, f"{where}.{benchmark}")
        for name in choices.get(SETS, []):
            _known(name, params.sentence_sets, f"{where}.{benchmark}.{SETS}")
            if (step := choices.get(STEP)) is not None:
                _kept(params, name, step, f"{where}.{benchmark}.{STEP}")
        for setting, values in choices.get(SWEEPS, {}).items():
            for value in values:
                swept = params.sweeps.values()[setting]
                _known(value, swept, f"{where}.{benchmark}.{SWEEPS}.{setting}")


def _kept(params: Params, name: str, step: int, where: str) -> None:
    """Raise BadInput where rewiring on a sentence set keeps no checkpoint of this step."""
    from medprobe.engine.rewiring import RewireSettings, checkpoint_steps

    rewire = RewireSettings.model_validate(params.rewire | params.sentence_sets[name].rewire)
    if step not in checkpoint_steps(rewire):
        problem = (
            f"rewiring on {name} keeps no checkpoint of step {step}: "
            f"it keeps every {rewire.checkpoint_every} steps, and step {rewire.steps}"
        )
        remedy = "choose one of these, or set rewire.steps and rewire.checkpoint_every"
        raise BadInput(f"params.yaml: {where}", problem, remedy)


def _known(name: object, there: Any, where: str) -> None:
    if name is not None and name not in there:
        known = [str(one) for one in there]
        problem = f"'{name}' is not among {', '.join(known) or 'none'}{nearest(str(name), known)}"
        raise BadInput(f"params.yaml: {where}", problem)


def _once(where: str, names: list[str]) -> None:
    """Names are unique, whatever their case: each is a folder's."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.casefold(), name)) != name:
            raise BadInput(f"params.yaml: {where}", f"'{name}' and '{other}' differ in case only")
    for name, count in Counter(names).items():
        if count > 1:
            raise BadInput(f"params.yaml: {where}", f"'{name}' is there {count} times")

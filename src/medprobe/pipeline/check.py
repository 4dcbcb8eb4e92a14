"""Check all of `params.yaml` against the code, before any stage runs.

Every setting of every method, benchmark, recipe and of rewiring is checked, and every name that one
section takes from another.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

from medprobe.core import places
from medprobe.core.errors import BadInput, nearest, quoting
from medprobe.core.params import IMPORTED, Choices, Params, Section, load_params, parse_section
from medprobe.core.places import PARAMS
from medprobe.core.plugins import find_outside_plugins
from medprobe.core.tables import BASELINE

SETS: Final = "sets"  # a method's setting of this name names sentence sets
STEP: Final = "step"  # one of this name a step of rewiring on each of these sets
SWEEPS: Final = "sweeps"  # and one of this name the values of sweeps that it probes


def loaded(path: Path = PARAMS) -> Params:
    """Read `params.yaml` for a command.

    A command checks the settings that it uses; all others are left to `check`, which the stage of
    that name runs before all others, since it takes seconds to import the methods.

    From here on errors quote text of the data where `track.text` allows it.

    Raises:
        BadInput: a key or a value is wrong, settings of methods and the like aside.
    """
    params = load_params(path)
    if params.track.text:
        quoting.set(True)
    return params


def check(params: Params) -> None:
    """Check the keys, values and names in the sections of `params.yaml`.

    Raises BadInput for the first that the code does not know.
    """
    from medprobe import metrics
    from medprobe.papers.medlama.rewiring import RewireSettings
    from medprobe.sample.settings import SampleSettings

    _check_settings(SampleSettings, params.sample, "sample")
    _check_settings(RewireSettings, params.rewire, "rewire")
    for name, sentence_set in params.sentence_sets.items():
        _check_settings(
            RewireSettings, params.rewire | sentence_set.rewire, f"sentence_sets.{name}.rewire"
        )
        for model in sentence_set.models or ():
            _check_name(model, params.models.all(), f"sentence_sets.{name}.models")
    _check_sweeps(params)
    _check_benchmarks(params)
    _check_models(params)
    for kind, methods in params.methods.items():
        for method, by_benchmark in methods.items():
            _check_method(params, kind, method, by_benchmark)
    metrics.catalog()  # a plugin's file can be broken


def _check_settings(kind: type[Section], choices: Choices, where: str) -> Section:
    return parse_section(kind, choices, f"params.yaml: {where}")


def _check_sweeps(params: Params) -> None:
    """Values, models and sets of sweeps are right, each value on its own."""
    from medprobe.papers.medlama.rewiring import RewireSettings

    for model in params.sweeps.models:
        _check_name(model, [*params.models.masked, *params.models.encoder], "sweeps.models")
    for name in params.sweeps.sets:
        _check_name(name, params.sentence_sets, "sweeps.sets")
    for setting, values in params.sweeps.values().items():
        for value in values:
            _check_settings(RewireSettings, {setting: value}, "sweeps")
        if len({*map(float, values)}) < len(values):
            raise BadInput(f"params.yaml: sweeps.{setting}", "a value is there twice")


def _check_benchmarks(params: Params) -> None:
    from medprobe import benchmarks

    for builder, named in params.benchmarks.items():
        plugin = benchmarks.find(builder)
        _check_workers(params, "benchmarks", builder)
        for name, choices in named.items():
            where = f"params.yaml: benchmarks.{builder}.{name}"
            settings = parse_section(plugin.settings, choices, where)
            benchmarks.check_sources(plugin, settings, where)
            if name == places.SENTENCES.name:
                problem = f"'{name}' is the folder of sentence sets"
                raise BadInput(f"params.yaml: benchmarks.{builder}", problem, "choose another name")
    _check_unique("benchmarks", [name for named in params.benchmarks.values() for name in named])


def _check_models(params: Params) -> None:
    """Refuse a reserved or repeated name, or a kind unlike the recipe."""
    from medprobe.sample.settings import find_recipe

    all_models = params.models.all()
    if BASELINE in all_models:
        problem = f"'{BASELINE}' stands for what knows nothing of the subjects"
        raise BadInput("params.yaml: models", problem, "choose another name")
    _check_unique("models", [name for named in params.models.by_kind().values() for name in named])
    origins = [*params.train, *params.continued, *params.fetch, *params.folders, *params.servers]
    _check_unique("train, continued, fetch, folders and servers", origins)
    for name in origins:
        if name not in all_models:
            similar = nearest(name, [*all_models])
            problem = f"'{name}' is in train, continued, fetch, folders or servers only{similar}"
            raise BadInput("params.yaml: models", problem, "list it under its kind")
    for name in all_models:
        _check_model(name, origins, params)
    for part, named in (("train", params.train), ("continued", params.continued)):
        for name in named:
            trained, kind = find_recipe(name, params)[0].kind, params.models.kind(name)
            if trained != kind:
                problem = f"a recipe of kind {trained}, the model is listed as {kind}"
                raise BadInput(f"params.yaml: {part}.{name}", problem)


def _check_model(name: str, origins: list[str], params: Params) -> None:
    """Refuse a name, an origin or a twin that does not fit the model's kind."""
    kind = params.models.kind(name)
    where = f"params.yaml: models.{kind}.{name}"
    imported = kind == "imported"
    if imported != name.endswith(IMPORTED):  # whatever shows a model shows its name
        what = "an imported model ends in" if imported else "only imported models end in"
        raise BadInput(where, f"the name of {what} {IMPORTED}", "choose another name")
    if imported and name in origins:
        remedy = "take it out of train, continued, fetch, folders, servers"
        raise BadInput(where, "an imported model has no checkpoint", remedy)
    if name in params.servers and kind not in ("chat", "causal"):
        raise BadInput(where, "a model behind a server is of kind chat or causal")
    if not imported and name not in origins:
        problem = f"nothing says where its checkpoint is{nearest(name, origins)}"
        raise BadInput(where, problem, "list it in train, continued, fetch, folders or servers")
    if name in params.lower_case and name not in (*params.fetch, *params.folders):
        problem = "lower_case is for models of fetch and folders"
        raise BadInput(where, problem, "take it out")
    facts = params.models.all()[name]
    _check_name(facts.untaught_twin_of, params.models.all(), f"models.{kind}.{name}")
    _check_published(facts.published, where)
    others = [other for other in params.models.all() if other != name]
    _check_name(facts.larger_than, others, f"models.{kind}.{name}.larger_than")
    if isinstance(facts.averaged, dict):
        _check_subsets(facts.averaged, f"models.{kind}.{name}.averaged")


def _check_subsets(averaged: Collection[str], where: str) -> None:
    from medprobe.papers.template_free.analyses.data_sets import PAPER

    subsets = [data.subset for data in PAPER]
    for subset in averaged:
        _check_name(subset, subsets, where)


def _check_published(name: str | None, where: str) -> None:
    """Raise BadInput where no paper has a checkpoint of this name: no number would be compared."""
    from medprobe.core.papers import checkpoints

    names = [*checkpoints()]
    if name is None or name in names:
        return
    longer = [other for other in names if other.casefold().startswith(name.casefold())]
    similar = f" (there are {', '.join(longer)})" if longer else nearest(name, names)
    problem = f"published: no paper has a checkpoint '{name}'{similar}"
    raise BadInput(where, problem, "choose one that `medprobe list checkpoints` lists")


def _check_method(params: Params, kind: Any, method: str, by_benchmark: dict[str, Choices]) -> None:
    from medprobe import methods

    plugin = methods.find(method)
    where = f"methods.{kind}.{method}"
    _check_workers(params, "methods", method)
    if kind not in plugin.KINDS:
        raise BadInput(f"params.yaml: {where}", methods.describe_needs(plugin))
    benchmark_names = [name for named in params.benchmarks.values() for name in named]
    for benchmark, choices in by_benchmark.items():
        _check_name(benchmark, benchmark_names, where)
        settings = _check_settings(plugin.Settings, choices, f"{where}.{benchmark}")
        _check_tables(params, plugin.needs_tables(settings), benchmark, f"{where}.{benchmark}")
        for name in choices.get(SETS, []):
            _check_name(name, params.sentence_sets, f"{where}.{benchmark}.{SETS}")
            if (step := choices.get(STEP)) is not None:
                _check_step(params, name, step, f"{where}.{benchmark}.{STEP}")
        for setting, values in choices.get(SWEEPS, {}).items():
            for value in values:
                swept = params.sweeps.values()[setting]
                _check_name(value, swept, f"{where}.{benchmark}.{SWEEPS}.{setting}")


def _check_tables(params: Params, needed: Sequence[str], benchmark: str, where: str) -> None:
    """Raise BadInput where a method needs a table that the benchmark's builder never makes."""
    from medprobe import benchmarks

    builder = params.builder(benchmark)
    tables = benchmarks.find(builder).tables
    missing = [name for name in needed if tables is not None and name not in tables]
    if missing:
        makers = [name for name in benchmarks.list_names() if _makes(name, missing)]
        problem = f"the method needs a table {missing[0]}, which the builder {builder} never makes"
        remedy = f"choose a benchmark of {' or '.join(makers)}, or remove the setting"
        raise BadInput(f"params.yaml: {where}", problem, remedy)


def _makes(builder: str, tables: Sequence[str]) -> bool:
    from medprobe import benchmarks

    return {*tables} <= {*(benchmarks.find(builder).tables or ())}


def _check_workers(params: Params, kind: str, name: str) -> None:
    """Raise BadInput where the workers of a cluster would need a file of `plugins/`."""
    plugin = find_outside_plugins(kind).get(name)
    if plugin and plugin.file and params.engine.executor != "local":
        problem = "the workers of a cluster do not have the project's plugins"
        remedy = "install it as a package on each of them (docs/how-to/extending.md)"
        raise BadInput(plugin.file, problem, remedy)


def _check_step(params: Params, name: str, step: int, where: str) -> None:
    """Raise BadInput where rewiring on a sentence set keeps no checkpoint of this step."""
    from medprobe.papers.medlama.rewiring import RewireSettings, checkpoint_steps

    rewire = RewireSettings.model_validate(params.rewire | params.sentence_sets[name].rewire)
    if step not in checkpoint_steps(rewire):
        problem = (
            f"rewiring on {name} keeps no checkpoint of step {step}: "
            f"it keeps every {rewire.checkpoint_every} steps, and step {rewire.steps}"
        )
        remedy = "choose one of these, or set rewire.steps and rewire.checkpoint_every"
        raise BadInput(f"params.yaml: {where}", problem, remedy)


def _check_name(name: object, choices: Any, where: str) -> None:
    if name is not None and name not in choices:
        names = [str(choice) for choice in choices]
        problem = f"'{name}' is not among {', '.join(names) or 'none'}{nearest(str(name), names)}"
        raise BadInput(f"params.yaml: {where}", problem)


def _check_unique(where: str, names: list[str]) -> None:
    """Names are unique, whatever their case: each is a folder's."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.casefold(), name)) != name:
            raise BadInput(f"params.yaml: {where}", f"'{name}' and '{other}' differ in case only")
    for name, count in Counter(names).items():
        if count > 1:
            raise BadInput(f"params.yaml: {where}", f"'{name}' is there {count} times")

"""Check all of `params.yaml` against the code, before any stage runs.

Every setting of every method, benchmark, recipe and of rewiring is checked, and every name that one
section takes from another.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from medprobe.core import places
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import read_any
from medprobe.core.libraries import describe_differing
from medprobe.core.params import Params, find_settings
from medprobe.core.plugins import find_outside_plugins, find_plugins
from medprobe.core.progress import print_above
from medprobe.core.settings import Choices, check_name, check_settings, parse_section

BLOCKS: Final = """
  # Take these out together with benchmarks.NAME of params.yaml.
  build-NAME:
    <<: *build
    matrix: {{benchmark: "${{benchmarks.NAME}}"}}
    params: [seed, "benchmarks.NAME.${{item.benchmark}}"]
    deps: [{}]
  validate-NAME:
    <<: *validate
    matrix: {{benchmark: "${{benchmarks.NAME}}"}}
    params: [track, "benchmarks.NAME.${{item.benchmark}}"]
    deps: [{}]
"""


def check(params: Params) -> None:
    """Check the keys, values and names in the sections of `params.yaml`.

    Raises BadInput for the first that the code does not know.
    """
    from medprobe import metrics
    from medprobe.sample.settings import SampleSettings

    check_settings(SampleSettings, params.sample, "sample")
    _check_benchmarks(params)
    _check_models(params)
    for kind, methods in params.methods.items():
        for method, by_benchmark in methods.items():
            _check_method(params, kind, method, by_benchmark)
    _check_named(params)
    _warn_of_unprobed(params)
    for found in find_settings().values():
        if found.check:
            found.check(params)
    metrics.catalog()  # a plugin's file can be broken


def check_blocks(params: Params) -> None:
    """Refuse a builder that dvc.yaml has no blocks for, and print them; warn of other libraries."""
    for line in describe_differing():
        print_above(f"warning: {line}")
    stages = read_any(places.PIPELINE)
    for builder, named in params.benchmarks.items():
        if named and stages and f"\n  build-{builder}:" not in stages:
            print(blocks(builder), flush=True)
            problem = f"no stages build the benchmarks of '{builder}'"
            raise BadInput(places.PIPELINE, problem, "paste the lines above at its end")


def blocks(builder: str) -> str:
    """The blocks of dvc.yaml of a builder that is none of medprobe's own."""
    from medprobe import benchmarks
    from medprobe.gate.suites import folders

    found, plugin = benchmarks.find(builder), find_plugins("benchmarks")[builder]
    code = [plugin.file.as_posix()] if plugin.file else []
    sources, gate_sources = (
        [f"data/{source}" for source in names]
        for names in (found.metadata.sources, found.gate_sources)
    )
    build = ["outputs/checked", *sources, *code, places.LIBRARIES.as_posix()]
    suites = [folder.as_posix() for folder in folders(places.EXPECTATIONS / builder)]
    gate = ['"outputs/benchmarks/${item.benchmark}"', *gate_sources, *suites, *build[-1:]]
    return BLOCKS.replace("NAME", builder).format(", ".join(build), ", ".join(gate))


def _check_named(params: Params) -> None:
    """Refuse a params.yaml without the methods that dvc.yaml names for a kind of its models."""
    for kind, models in params.models.by_kind().items():
        if models and kind not in params.methods:
            remedy = f"write it down, as {{}} if it is empty: dvc.yaml names it for {kind} models"
            raise BadInput("params.yaml", f"methods.{kind} is missing", remedy)


def _warn_of_unprobed(params: Params) -> None:
    by_method = [names for methods in params.methods.values() for names in methods.values()]
    for name in sorted(params.benchmark_names.difference(*by_method)):
        print_above(f"warning: params.yaml: methods: none probes the benchmark '{name}'")


def _check_benchmarks(params: Params) -> None:
    from medprobe import benchmarks

    for builder, named in params.benchmarks.items():
        plugin = benchmarks.find(builder)
        _check_workers(params, "benchmarks", builder)
        for name, choices in named.items():
            where = f"params.yaml: benchmarks.{builder}.{name}"
            settings = parse_section(plugin.settings, choices, where)
            benchmarks.check_sources(plugin, settings, where)
    _check_unique("benchmarks", [name for named in params.benchmarks.values() for name in named])


def _check_models(params: Params) -> None:
    """Refuse a reserved or repeated name, or a kind unlike the recipe."""
    from medprobe.core.tables import BASELINE
    from medprobe.sample.settings import find_recipe

    all_models = params.models.all()
    if BASELINE in all_models:
        problem = f"'{BASELINE}' stands for what knows nothing of the subjects"
        raise BadInput("params.yaml: models", problem, "choose another name")
    _check_unique("models", [name for named in params.models.by_kind().values() for name in named])
    sections = params.model_sections
    origins = [name for section in sections.values() for name in section]
    *some, last = sections
    _check_unique(f"{', '.join(some)} and {last}", origins)
    for name in origins:
        if name not in all_models:
            similar = nearest(name, [*all_models])
            if name in params.folders:
                problem = f"no kind of models lists '{name}'{similar}, so that nothing probes it"
                print_above(f"warning: params.yaml: folders: {problem}")
                continue
            problem = f"'{name}' is in {', '.join(some)} or {last} only{similar}"
            raise BadInput("params.yaml: models", problem, "list it under its kind")
    for name in params.servers:
        if (kind := params.models.kind(name)) not in ("chat", "causal"):
            where = f"params.yaml: models.{kind}.{name}"
            raise BadInput(where, "a model behind a server is of kind chat or causal")
    for name in all_models:
        _check_model(name, origins, params)
    check_name(params.score.reference, all_models, "score.reference")
    for part, named in (("train", params.train), ("continued", params.continued)):
        for name in named:
            trained, kind = find_recipe(name, params)[0].kind, params.models.kind(name)
            if trained != kind:
                problem = f"a recipe of kind {trained}, the model is listed as {kind}"
                raise BadInput(f"params.yaml: {part}.{name}", problem)


def _check_model(name: str, origins: list[str], params: Params) -> None:
    """Refuse a model without an origin, or a twin that is no model."""
    kind = params.models.kind(name)
    where = f"params.yaml: models.{kind}.{name}"
    *some, last = params.model_sections
    if name not in origins:
        problem = f"nothing says where its checkpoint is{nearest(name, origins)}"
        raise BadInput(where, problem, f"list it in {', '.join(some)} or {last}")
    if name in params.lower_case and name not in (*params.fetch, *params.folders):
        problem = "lower_case is for models of fetch and folders"
        raise BadInput(where, problem, "take it out")
    facts = params.models.all()[name]
    check_name(facts.untaught_twin_of, params.models.all(), f"models.{kind}.{name}")
    _check_published(facts.published, where)
    others = [other for other in params.models.all() if other != name]
    check_name(facts.larger_than, others, f"models.{kind}.{name}.larger_than")


def _check_published(name: str | None, where: str) -> None:
    """Raise BadInput where no paper has a checkpoint of this name: no number would be compared."""
    from medprobe.core.papers import checkpoints, papers

    names = [*checkpoints()]
    names += [f"{file}/{model}" for file, paper in papers().items() for model in paper.models]
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
        check_name(benchmark, benchmark_names, where)
        settings = check_settings(plugin.Settings, choices, f"{where}.{benchmark}")
        _check_tables(params, plugin.needs_tables(settings), benchmark, f"{where}.{benchmark}")


def _check_tables(params: Params, needed: Sequence[str], benchmark: str, where: str) -> None:
    from medprobe import benchmarks

    builder = params.builder(benchmark)
    tables = benchmarks.find(builder).tables
    missing = [name for name in needed if tables is not None and name not in tables]
    if missing:
        tables_of = {name: benchmarks.find(name).tables or () for name in benchmarks.list_names()}
        makers = [name for name, tables in tables_of.items() if {*missing} <= {*tables}]
        problem = f"the method needs a table {missing[0]}, which the builder {builder} never makes"
        remedy = f"choose a benchmark of {' or '.join(makers)}, or remove the setting"
        raise BadInput(f"params.yaml: {where}", problem, remedy)


def _check_workers(params: Params, kind: str, name: str) -> None:
    plugin = find_outside_plugins(kind).get(name)
    if plugin and plugin.file and params.engine.executor != "local":
        problem = "the workers of a cluster do not have the project's plugins"
        remedy = "install it as a package on each of them (docs/how-to/extending.md)"
        raise BadInput(plugin.file, problem, remedy)


def _check_unique(where: str, names: list[str]) -> None:
    """Names are unique, whatever their case: each is a folder's."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.casefold(), name)) != name:
            raise BadInput(f"params.yaml: {where}", f"'{name}' and '{other}' differ in case only")
    for name, count in Counter(names).items():
        if count > 1:
            raise BadInput(f"params.yaml: {where}", f"'{name}' is there {count} times")

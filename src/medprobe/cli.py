"""The `medprobe` command. A command is one function: of `stages/` where it is a stage of dvc.yaml,
else of `commands/`.

Imports stand inside the commands, so that `medprobe --help` answers in a blink.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from medprobe import warm
from medprobe.core import places
from medprobe.core.errors import BadInput, withheld

if TYPE_CHECKING:
    from medprobe.core.params import EngineParams
    from medprobe.core.parts import Executor

Command = TypeVar("Command", bound=Callable[..., Any])


class OneLine(click.ClickException):
    """An error as one line on standard error, with exit status 2."""

    exit_code = 2


class Commands(click.Group):
    """The group of all commands; what a person can mend is said in one line."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The script `medprobe`: warm where `medprobe repro` runs it."""
        status = warm.run("medprobe", sys.argv[1:], os.environ)
        return super().__call__(*args, **kwargs) if status is None else sys.exit(status)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with withheld():
                return super().invoke(ctx)
        except BadInput as error:
            if ctx.params["verbose"]:
                raise
            raise OneLine(str(error)) from error
        except Exception as error:
            if ctx.params["verbose"] or not (isinstance(error, OSError) or _is_full(error)):
                raise
            where = getattr(error, "filename", None) or "the file system"
            if _is_full(error):
                said = f"{os.strerror(errno.ENOSPC)}; make room and run the command again"
            else:
                said = f"{getattr(error, 'strerror', None) or error}; see -v for the traceback"
            raise OneLine(f"{where}: {said}") from error


def _is_full(error: Exception) -> bool:
    """Does an error say that a disk is full? Libraries say it in many ways."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(words in str(error) for words in ("No space left", "disk is full"))


def named(*names: str) -> Callable[[Command], Command]:
    """The options by which dvc.yaml tells a command whose stage it is: `--model taught`."""

    def add(command: Command) -> Command:
        for name in reversed(names):
            parameter = "sentence_set" if name == "set" else name
            command = click.option(f"--{name}", parameter, required=True)(command)
        return command

    return add


@contextmanager
def executing(engine: "EngineParams") -> "Iterator[Executor]":
    """The executor that params.yaml asks for. At the end of the block its workers leave, and what
    they did is said."""
    from medprobe.core.parts import local

    if engine.executor == "local":
        yield local
        return
    from medprobe.cluster.executor import Cluster
    from medprobe.commands.plan import planned

    with Cluster(engine, planned(os.environ.get("DVC_STAGE", ""))) as cluster:
        yield cluster
    for line in cluster.staff.costs():
        click.echo(line, err=True)


def lineage_of(executor: "Executor", engine: "EngineParams") -> dict[str, object]:
    """Which devices computed a result, this process's or a cluster's, and how many tokens their
    models read for it."""
    from medprobe.core.parts import local
    from medprobe.engine.load import device_name, device_of, read

    if executor is local:
        return {"device": device_name(device_of(engine.device)), "tokens": read["tokens"]}
    from medprobe.cluster.executor import Cluster

    assert isinstance(executor, Cluster)
    workers = "; ".join(executor.staff.costs())
    about = {"executor": "ray", "device": executor.staff.devices(), "workers": workers}
    return {**about, "tokens": executor.staff.tokens}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="medprobe")
def main(verbose: bool) -> None:
    """Measure what biomedical knowledge a pre-trained language model holds.

    `dvc repro` runs these commands in order; each can be run alone, in the project's folder.
    """


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Make a project in a FOLDER, outside a clone of the code: params.yaml, dvc.yaml, expectations.

    There `medprobe sample` or sources of your own, `params.yaml` and `medprobe repro` come next.
    """
    from medprobe.commands.init import init as make

    make(folder)
    click.echo(f"{folder} is a project: put sources into its data/, and name them in params.yaml")


@main.command()
@click.option("--data", default=places.DATA, type=click.Path(path_type=Path), show_default=True)
@click.option("--force", is_flag=True, help="Replace a data folder that is already there.")
def sample(data: Path, force: bool) -> None:
    """Write the sample world: invented sources in the real file formats."""
    from medprobe import check
    from medprobe.commands.sample import sample as write

    if data.exists() and not force:
        raise BadInput(data, "is there already", "use --force to replace it with the sample world")
    params = check.loaded()
    write(data, params.sample, params.seed)


@main.command()
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="At a time.")
def repro(jobs: int) -> None:
    """Run all stages that a change touches, as `dvc repro` does, several at a time."""
    from medprobe import check
    from medprobe.commands.repro import repro as run

    check.loaded()
    run(jobs)


@main.command()
@click.option("--measure/--no-measure", default=True, help="Count, and try for seconds each.")
def plan(measure: bool) -> None:
    """Say what is left to run, how much there is of it, and how long it takes on this device."""
    from medprobe import check
    from medprobe.commands.plan import plan as run

    run(check.loaded(), measure)


@main.command("import")
@click.argument("what")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace files that are there and differ.")
def import_(what: str, path: Path, force: bool) -> None:
    """Find released files in a clone, archive or folder, check them, bring them into data/.

    WHAT is annotation (DisKnE's), biolama, lama, lipid, medlama or sentences.
    """
    from medprobe.commands.imports import bring

    bring(what, path, places.DATA, force=force)


@main.command()
@click.argument("paper")
@click.option("--yes", is_flag=True, help="Write without asking.")
def adopt(paper: str, yes: bool) -> None:
    """Put a PAPER's benchmarks, methods, rewiring and models into params.yaml.

    Shows the difference, and asks before it writes.
    """
    from medprobe.commands import adopt as command

    before, after = command.adopted(paper)
    if before == after:
        click.echo("params.yaml has them already")
        return
    click.echo(command.difference(before, after))
    for remark in command.remarks(paper):
        click.echo(f"# {remark}")
    if yes or click.confirm("write params.yaml?"):
        command.write(after)


@main.command()
@named("benchmark")
def build(benchmark: str) -> None:
    """Build a benchmark's tables from its sources."""
    from medprobe import check
    from medprobe.stages.build import build as run

    params = check.loaded()
    with executing(params.engine.model_copy(update={"device": "cpu"})) as executor:
        run(benchmark, params, executor)


@main.command()
@named("benchmark")
def validate(benchmark: str) -> None:
    """Check a benchmark against its expectations: the gate that all probing waits for."""
    from medprobe import check
    from medprobe.stages.validate import validate as run

    run(benchmark, check.loaded())


@main.command("validate-sentences")
@named("set")
def validate_sentences(sentence_set: str) -> None:
    """Check a sentence set against its expectations: the gate that rewiring waits for."""
    from medprobe import check
    from medprobe.stages.validate import validate_sentences as run

    run(sentence_set, check.loaded())


@main.command()
@named("model")
def train(model: str) -> None:
    """Train a sample model by its recipe."""
    from medprobe import check
    from medprobe.stages.train import train as run

    run(model, check.loaded(), places.MODELS / model)


@main.command()
@click.option("--model", help="The model; of a stage of DVC's, which has it in its name: none.")
def fetch(model: str | None) -> None:
    """Put a model's checkpoint into outputs/models, from the hub or from its folder."""
    from medprobe import check
    from medprobe.stages.fetch import fetch as run

    name = model or os.environ.get("DVC_STAGE", "").partition("@")[2]
    run(name, check.loaded(), places.MODELS / name)


@main.command()
@named("model", "set")
@click.option("--sweep", metavar="SETTING", help="A setting that is swept, with its --value.")
@click.option("--value", help="Of the setting that is swept.")
def rewire(model: str, sentence_set: str, sweep: str | None, value: str | None) -> None:
    """Rewire a model on one sentence set (Contrastive-Probe's self-supervised step)."""
    if (sweep is None) != (value is None):
        raise BadInput("rewire", "--sweep and --value go together", "name both, or neither")
    from medprobe import check
    from medprobe.stages.rewire import rewire as run

    params, swept = check.loaded(), (sweep, value) if sweep and value else None
    with executing(params.engine) as executor:
        run(model, sentence_set, params, swept, executor)


@main.command()
@named("model", "method", "benchmark")
def probe(model: str, method: str, benchmark: str) -> None:
    """Probe a model by one method on one benchmark."""
    from medprobe import check
    from medprobe.stages.probe import probe as run
    from medprobe.tracking import lineage

    params = check.loaded()
    out = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    engine = params.engine
    about: dict[str, object] = engine.model_dump(mode="json", exclude={"executor", "address"})
    with lineage.recorded(places.RUNS / model / method / f"{benchmark}.json", out, about):
        with executing(engine) as executor:
            run(model, method, benchmark, params, executor)
        about |= lineage_of(executor, engine)


@main.command()
def score() -> None:
    """Compute every metric from the predictions on disk."""
    from medprobe import check
    from medprobe.stages.score import score as run

    params = check.loaded()
    with executing(params.engine.model_copy(update={"device": "cpu"})) as executor:
        run(params, executor)


@main.command()
@click.option("--model")
@click.option("--method")
@click.option("--benchmark")
def track(model: str | None, method: str | None, benchmark: str | None) -> None:
    """Bring all results on disk into MLflow, or that of one model, method and benchmark; run it
    again as often as you like."""
    from medprobe import check
    from medprobe.stages import track as stage

    params = check.loaded()
    if model and method and benchmark:
        stage.track_one(model, method, benchmark, params)
    elif model or method or benchmark:
        raise BadInput("track", "expected --model, --method and --benchmark, or none of them")
    else:
        stage.track(params)


@main.command()
@click.option("--port", default=5000, show_default=True, type=click.IntRange(1, 65535))
def ui(port: int) -> None:
    """Bring all results into MLflow, print the addresses of their runs, and serve its pages, unless
    a server does (MLFLOW_TRACKING_URI)."""
    from medprobe import check
    from medprobe.stages import track as stage
    from medprobe.tracking import pages, store

    stage.track(check.loaded())
    client = store.connect()
    remote = client.tracking_uri.startswith("http")
    server = client.tracking_uri if remote else f"http://127.0.0.1:{port}"
    for name, address in pages.addresses(client, server).items():
        click.echo(f"{name}: {address}")
    if not remote:
        pages.serve(client, port)


@main.command()
def compare() -> None:
    """Write reports/: the comparison of all models and methods as a table and a page."""
    from medprobe import check
    from medprobe.stages.compare import compare as run

    params = check.loaded()
    with executing(params.engine.model_copy(update={"device": "cpu"})) as executor:
        run(params, executor=executor)


@main.command()
@click.argument("view")
@click.option("--format", "form", type=click.Choice(["latex", "markdown", "csv"]), required=True)
@click.option("--metric", help="As reports/comparison.csv names it; else the main one.")
@click.option("--project", default=".", type=click.Path(path_type=Path), show_default=True)
def export(view: str, form: str, metric: str | None, project: Path) -> None:
    """Print a VIEW of the results as a table for a paper: leaderboard, a benchmark, or
    BENCHMARK/SUBSET.

    The best of each column is bold; a mark says which are worse by more than chance.
    """
    from medprobe.commands.export import export as text
    from medprobe.library.project import results

    click.echo(text(results(project), view, form, metric), nl=False)


@main.command()
@click.argument("names", nargs=-1, required=True)
def cite(names: tuple[str, ...]) -> None:
    """Print what to cite for benchmarks, methods and models as BibTeX."""
    from medprobe import check
    from medprobe.commands.cite import cite as text
    from medprobe.core.params import Params

    click.echo(text(names, check.loaded() if check.PARAMS.is_file() else Params()), nl=False)


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder.")
def merge(paths: tuple[Path, ...], out: Path) -> None:
    """Bring the results of several projects or results files, PATHS, into one comparison.

    Of one project alone it writes the results file that others can check.
    """
    from medprobe.commands.merge import merge as run

    if untested := run(paths, out):
        few = f"{', '.join(untested[:3])}{', …' if untested[3:] else ''}"
        click.echo(f"no paired tests of {few}: neither predictions nor units came with them")
    click.echo(f"{out}: `medprobe export leaderboard --format markdown --project {out}` shows it")


@main.command()
@click.argument("model")
@click.argument("prompt")
@click.option("--method", default="contrastive", show_default=True)
@click.option("--benchmark", default="medlama", show_default=True, help="Whose candidates to rank.")
def ask(model: str, prompt: str, method: str, benchmark: str) -> None:
    """Show a model's ten best answers to a PROMPT with a slot [Y]."""
    from medprobe import check
    from medprobe.commands.ask import ask as run

    run(model, prompt, method, benchmark, check.loaded())


@main.command("check")
def check_() -> None:
    """Refuse names and sections of params.yaml that are none: the first stage, which all others
    wait for. What a section holds is checked by every command."""
    from medprobe.core.files import replacing
    from medprobe.core.params import load

    load()
    with replacing(places.CHECKED) as scratch:
        scratch.write_text("checked\n", encoding="utf-8")


@main.command()
@click.argument("model")
@click.option("--benchmark", required=True, help="A name of params.yaml, or a file of facts.")
@click.option("--method", required=True, help="How to ask; `medprobe list methods` names them.")
@click.option(
    "--prompts", type=click.Path(path_type=Path), help="The templates of a file of facts."
)
@click.option("--limit", type=click.IntRange(1), help="Queries at most, drawn by the seed.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Keep the predictions: a parquet file."
)
def run(
    model: str,
    benchmark: str,
    method: str,
    *,
    prompts: Path | None,
    limit: int | None,
    out: Path | None,
) -> None:
    """Probe a MODEL, by name or folder, at once: without DVC, and nothing is recorded. A folder and
    a file of facts need no project."""
    from medprobe import check
    from medprobe.commands.run import run as now
    from medprobe.core.params import Params

    alone = Path(model).is_dir() and Path(benchmark).is_file() and not check.PARAMS.is_file()
    params = Params() if alone else check.loaded()
    now(model, method, benchmark, params, prompts=prompts, limit=limit, out=out)


@main.command("list")
@click.argument("what", type=click.Choice(["models", "methods", "benchmarks", "papers"]))
def list_(what: str) -> None:
    """Show what there is to choose from."""
    from medprobe import check
    from medprobe.commands.list_ import list_ as show

    show(what, check.loaded())


@main.command()
@click.argument("asked", type=click.Choice(["predictions", "prompts"]))
@click.argument("benchmark")
@click.argument("name")
@click.option("--rater", "raters", multiple=True, required=True, help="Whose sheet; repeat it.")
@click.option(
    "--system", "systems", multiple=True, nargs=2, metavar="MODEL METHOD", help="Whose predictions."
)
@click.option("--queries", type=click.IntRange(1), help="How many; else 15, or 200 prompts.")
@click.option("--form", type=click.Choice(["xlsx", "csv"]), default="xlsx", show_default=True)
def annotate(
    asked: str,
    benchmark: str,
    name: str,
    *,
    raters: tuple[str, ...],
    systems: tuple[tuple[str, str], ...],
    queries: int | None,
    form: str,
) -> None:
    """Draw predictions or prompts of a BENCHMARK, and write a sheet for each rater below
    data/annotations/NAME."""
    from medprobe import check
    from medprobe.commands import annotate as command

    params = check.loaded()
    params.builder(benchmark)
    tables = [command.table_of(one, benchmark, places.PREDICTIONS) for one in systems]
    folder = places.BENCHMARKS / benchmark
    drawn = command.draw(asked, folder, tables, queries, params.seed)
    target = command.write(drawn, name, raters, form, places.DATA)
    click.echo(f"{target}: give each rater the sheet of that name, and put it back filled in")


@main.command()
def doctor() -> None:
    """Check params.yaml and dvc.yaml, and say which sources and models are there."""
    from medprobe import check
    from medprobe.commands.doctor import doctor as run

    run(check.loaded(), places.DATA)


@main.command()
def pipeline() -> None:
    """Write dvc.yaml anew, after a change of the code: a new method or builder, or an import."""
    from medprobe.commands.pipeline import write

    write()

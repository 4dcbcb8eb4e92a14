"""The commands that probe a model at once, and those that show and compare results."""

from pathlib import Path

import click

from medprobe.cli import group
from medprobe.cli.group import example, json_option, load_params, main
from medprobe.core.errors import BadInput


@main.command(
    epilog=example(
        "medprobe run ~/models/my-bert gpt2 --benchmark facts.csv --prompts prompts.csv",
        "medprobe run taught --benchmark medlama --method mask_average --limit 100",
    )
)
@click.argument("models", nargs=-1, required=True, shell_complete=group.models)
@click.option(
    "--benchmark",
    required=True,
    help="A benchmark of params.yaml, or a file of facts.",
    shell_complete=group.benchmarks,
)
@click.option(
    "--method",
    help="A name from `medprobe list methods` (default: one that serves the model).",
    shell_complete=group.methods,
)
@click.option(
    "--prompts", type=click.Path(path_type=Path), help="The templates for a file of facts."
)
@click.option("--limit", type=click.IntRange(1), help="Probe a random sample of this many queries.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Save the predictions to this parquet file."
)
@click.option("--all", "every", is_flag=True, help="Print all metrics, by parts of subsets too.")
@json_option
def run(
    models: tuple[str, ...],
    benchmark: str,
    method: str | None,
    *,
    prompts: Path | None,
    limit: int | None,
    out: Path | None,
    every: bool,
    as_json: bool,
) -> None:
    """Probe models at once, without DVC, and compare them. Nothing is recorded.

    A model of the hub, a folder and a file of facts need no project.

    \b
    MODELS  models of params.yaml or of the hub, checkpoints' folders, or .gguf files
    """
    from medprobe.cli.ask import check_benchmark, check_model, check_path
    from medprobe.cli.run import run as probe

    needs_project = [*map(check_model, models), check_benchmark(benchmark)]
    if prompts:
        check_path(prompts, "--prompts")
    if out and out.suffix != ".parquet":
        raise BadInput(out, "predictions are saved as parquet", "end the name in .parquet")
    params = load_params(required=any(needs_project))
    printed = {"every": every, "as_json": as_json}
    if out and len(models) > 1:
        raise BadInput("--out", "predictions of several models", "run one model at a time")
    probe(models, method, benchmark, params, prompts=prompts, limit=limit, out=out, **printed)


@main.command(
    epilog=example(
        'medprobe ask taught "aspirin might treat [Y] ."',
        'medprobe ask ~/models/my-bert "aspirin might treat [Y] ." --method fill_mask',
        'medprobe ask lab/encoder "aspirin might treat [Y] ." --names pain,fever,gout',
    )
)
@click.argument("model", shell_complete=group.models)
@click.argument("prompt")
@click.option(
    "--method",
    help="A name from `medprobe list methods` (default: one that serves the model).",
    shell_complete=group.methods,
)
@click.option(
    "--benchmark",
    help="Whose names are ranked: a benchmark of params.yaml, or a file of facts. Default: the "
    "first of params.yaml; if there is none, the model writes its own answers.",
    shell_complete=group.benchmarks,
)
@click.option("--names", help="The names to rank, with commas between, or a .txt file.")
@json_option
def ask(
    model: str,
    prompt: str,
    method: str | None,
    benchmark: str | None,
    names: str | None,
    *,
    as_json: bool,
) -> None:
    """Show a model's ten best answers to a prompt.

    A model of the hub and a folder need no project.

    \b
    MODEL   a model of params.yaml or of the hub, a checkpoint's folder, or a .gguf file
    PROMPT  a text with one slot [Y]
    """
    from medprobe.cli.ask import ask as run
    from medprobe.cli.ask import check_benchmark, check_model, split_names

    if benchmark and names:
        raise click.UsageError("give either --benchmark or --names")
    needs_project = [check_model(model), benchmark is not None and check_benchmark(benchmark)]
    params = load_params(required=any(needs_project))
    ranked = [] if names is None else split_names(names)
    run(model, prompt, method, benchmark, params, names=ranked, as_json=as_json)


@main.command(
    epilog=example(
        "medprobe show medlama may_treat-7",
        "medprobe show medlama --differ taught/contrastive untaught/contrastive",
    )
)
@click.argument("benchmark", shell_complete=group.benchmarks)
@click.argument("query", required=False)
@click.option(
    "--differ",
    nargs=2,
    metavar="A B",
    help="Two systems, MODEL/METHOD each: list the queries that only one of them gets right.",
    shell_complete=group.systems,
)
def show(benchmark: str, query: str | None, differ: tuple[str, str] | None) -> None:
    """Show the answers of all models to one query, or the queries on which two systems differ.

    \b
    BENCHMARK  a benchmark of params.yaml
    QUERY      the identifier of a query, as reports/queries/BENCHMARK.html lists it
    """
    from medprobe.cli.show import show as one_query
    from medprobe.cli.show import show_differing

    if (query is None) == (differ is None):
        pages = f"reports/queries/{benchmark}.html lists the queries"
        raise click.UsageError(f"give either a QUERY or --differ with two systems; {pages}")
    if query is not None:
        one_query(benchmark, query, load_params())
    elif differ:
        show_differing(benchmark, *differ, load_params())


@main.command(
    epilog=example(
        "medprobe export leaderboard",
        "medprobe export medlama/hard --format latex --metric acc@10",
    )
)
@click.argument("view", shell_complete=group.views)
@click.option(
    "--format",
    "form",
    type=click.Choice(["latex", "markdown", "csv"]),
    help="The format of the table (default: markdown).",
)
@click.option("--metric", help="Such as acc@10 (default: the main metric).")
@click.option("--all", "every", is_flag=True, help="All variants, controls and baselines.")
@click.option(
    "--project",
    default=".",
    type=click.Path(path_type=Path),
    show_default=True,
    help="The folder of the project.",
)
@json_option
def export(
    view: str,
    form: str | None,
    metric: str | None,
    project: Path,
    *,
    every: bool,
    as_json: bool,
) -> None:
    """Print results as a table for a paper: each method by the variant that represents it.

    The best value of each column is bold; a mark shows which models are significantly worse.

    \b
    VIEW  leaderboard, the name of a benchmark, or NAME/SUBSET
    """
    from medprobe.cli.export import export as text
    from medprobe.library.project import results

    if as_json and form:
        raise click.UsageError("give either --format or --json")
    form = "json" if as_json else form or "markdown"
    click.echo(text(results(project), view, form, metric, every=every), nl=False)


@main.command(epilog=example("medprobe ui", "medprobe ui --port 5001"))
@click.option(
    "--port",
    default=5000,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="The port of the server.",
)
def ui(port: int) -> None:
    """Start MLflow's server, log all results, and print the addresses of the runs.

    The pages open at once, with the runs that were logged before. No server is started if
    MLFLOW_TRACKING_URI names one.
    """
    import os
    import time
    from contextlib import nullcontext

    params = load_params()
    remote = os.environ.get("MLFLOW_TRACKING_URI", "").startswith("http")
    address = os.environ["MLFLOW_TRACKING_URI"] if remote else f"http://127.0.0.1:{port}"
    if not remote:
        click.echo(f"starting MLflow at {address}, which takes some seconds")
    from medprobe.pipeline.stages import track as stage
    from medprobe.tracking import pages, store

    client = store.connect()
    with nullcontext() if remote else pages.serve(client, port) as server:
        click.echo(f"MLflow: {address}; new results are being logged")
        stage.track(params)
        for name, page in pages.addresses(client, address).items():
            click.echo(f"{name}: {page}")
        while server and server.poll() is None:
            time.sleep(0.5)  # Ctrl-C ends it; `wait` goes on where a library restarts system calls
        if server and server.returncode:
            raise SystemExit(server.returncode)

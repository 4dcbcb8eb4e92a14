"""Probing a model on a benchmark without the pipeline; nothing is recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pandas as pd

from medprobe import methods
from medprobe.benchmarks import table
from medprobe.core.answers import with_hits
from medprobe.core.errors import BadInput
from medprobe.core.params import ScoreParams
from medprobe.core.progress import show_progress, with_progress
from medprobe.core.settings import parse_section
from medprobe.core.tables import ORIGINAL, BenchmarkTables, Metadata, check_scores
from medprobe.library.model import Model, load
from medprobe.methods import Method
from medprobe.metrics import Evaluated, Scoring
from medprobe.metrics.results import (
    COMPARISON,
    evaluate,
    main_variants,
    subsets,
    to_rows,
)
from medprobe.sources import facts as sources

if TYPE_CHECKING:
    from transformers import TrainerCallback

FACTS: Final = ("subject", "relation", "object")  # columns


@dataclass(frozen=True)
class ProbeResult:
    """The result of `probe`.

    Attributes:
        scores: rows of the comparison; the columns are `metrics.results.COMPARISON`.
        predictions: the prediction table.
        tables: the benchmark that the facts make.
        model: the model's name.
        values: what `compare` compares: the metrics of each fact of the main subset under the
            method's main variant, with the columns `query_id, relation, cluster, answer, weight`.
        controls: tests of each variant against the model's answers to other subjects, with the
            columns `metrics.shuffled.TESTS`.
    """

    scores: pd.DataFrame
    predictions: pd.DataFrame
    tables: BenchmarkTables
    model: str
    values: pd.DataFrame
    controls: pd.DataFrame


def probe(
    model: Model,
    facts: pd.DataFrame | str | Path,
    method: str,
    *,
    prompts: Mapping[str, str] | str | Path | None = None,
    train: pd.DataFrame | str | Path | None = None,
    limit: int | None = None,
    normalise: Literal["exact", "biolama"] = "exact",
    settings: Mapping[str, Any] | None = None,
    bootstrap: int = 1000,
    confidence: float = 0.95,
) -> ProbeResult:
    """Probe a model for facts and score its answers.

    All objects of a subject are right answers, and the objects of all facts are the candidates.

    Args:
        model: the model to probe.
        facts: a data frame, or a file of such rows, with the columns `subject, relation, object`
            and optionally `prompt, aliases, type, subject_id, object_id` (`sources.facts`).
        method: name of the method.
        prompts: a template for each relation, with `[X]` for the subject and `[Y]` for the object,
            as a mapping or a file. A row's own prompt takes precedence.
        train: facts in the form of `facts` that are never asked; `answering` tells them before a
            prompt where its settings have `shots`.
        limit: number of queries to draw by the model's seed, evenly over relations; all if None.
        normalise: when two texts are the same answer.
        settings: settings of the method, as in `params.yaml`; the defaults if None.
        bootstrap: number of resamples.
        confidence: of the intervals, between 0 and 1.

    Returns:
        Scores with intervals, predictions, and the benchmark that was probed.

    Raises:
        BadInput: a fact has no valid prompt (the message names the row), or the method cannot probe
            the model.

    Example:
        >>> facts = pd.DataFrame(
        ...     {"subject": ["aspirin"], "relation": ["treats"], "object": ["pain"]}
        ... )
        >>> result = probe(
        ...     model, facts, "mask_average", prompts={"treats": "[X] treats [Y]."}
        ... )  # doctest: +SKIP
    """
    if not isinstance(model, Model):
        raise BadInput("model", f"a {type(model).__name__}", "give what medprobe.load returns")
    choices = {"bootstrap": bootstrap, "confidence": confidence}
    params = parse_section(ScoreParams, choices, "probe")
    tables = to_tables(facts, prompts, normalise)
    if train is not None:
        told = to_tables(train, prompts, normalise).queries
        tables = replace(tables, others={**tables.others, table.TRAIN: told})
    if limit is not None:
        tables = replace(tables, queries=draw_queries(tables.queries, limit, model.seed))
    prober = model.make_prober(method, settings)
    model.check_texts(tables)
    scoring = Scoring(params, model.seed, table.METADATA.cluster)
    return probe_tables(model, prober, tables, table.METADATA, scoring, system=(model.name, method))


def probe_tables(
    model: Model,
    prober: Method,
    tables: BenchmarkTables,
    metadata: Metadata,
    scoring: Scoring,
    *,
    system: tuple[str, str],
) -> ProbeResult:
    """Probe a model on a benchmark whose texts it can read (`Model.check_texts`).

    `system` is what model and method are called in the result.
    """
    name, method = system
    predictions = predict(prober, model.shorten_prompts(tables), model.name)
    found = score(predictions, tables, prober.METRIC, scoring)
    benchmark = tables.queries["benchmark"].iloc[0]
    rows = to_rows({benchmark: found.scores}, name, method)
    scores = pd.DataFrame(rows, columns=COMPARISON)
    [(_, main)] = main_variants(scores)
    is_main = found.paired["variant"] == main.partition(":")[2]
    is_main &= found.paired["subset"] == subsets(scores, metadata)[0]
    return ProbeResult(scores, predictions, tables, name, found.paired[is_main], found.controls)


def to_tables(
    facts: pd.DataFrame | str | Path,
    prompts: Mapping[str, str] | str | Path | None = None,
    normalise: Literal["exact", "biolama"] = "exact",
) -> BenchmarkTables:
    """Convert facts to the tables of a benchmark; the arguments are those of `probe`."""
    if not isinstance(facts, pd.DataFrame | str | Path):
        remedy = f"give pd.DataFrame(facts, columns={[*FACTS]}), or a file"
        raise BadInput("facts", f"a {type(facts).__name__}", remedy)
    for file in (facts, prompts):
        if isinstance(file, str | Path) and not Path(file).exists():
            raise BadInput(file, "no such file", "correct its path")
    placed_facts = (
        sources.read_frame(facts) if isinstance(facts, pd.DataFrame) else sources.read(Path(facts))
    )
    if isinstance(prompts, Mapping):
        templates = {name: {ORIGINAL: template} for name, template in prompts.items()}
        for name, template in prompts.items():
            fields = {"relation": name, "template": template}
            sources.check_template(f"prompts, relation {name}", fields)
    elif prompts is not None and not isinstance(prompts, str | Path):
        remedy = "give {relation: template}, or a file"
        raise BadInput("prompts", f"a {type(prompts).__name__}", remedy)
    else:
        templates = sources.read_templates(Path(prompts)) if prompts else {}
    source = "facts" if isinstance(facts, pd.DataFrame) else str(facts)
    return table.tables(placed_facts, templates, source, normalise)


def read_answers(path: Path) -> list[str]:
    """Return the distinct objects of a file of facts."""
    if names := [*dict.fromkeys(fact.object for _, fact in sources.read(path))]:
        return names
    raise BadInput(path, "no rows", "write one row per fact, below a line of column names")


def predict(prober: Method, tables: BenchmarkTables, title: str) -> pd.DataFrame:
    """Predict all passes and tasks of a method on a benchmark."""
    tasks = prober.tasks(tables, methods.K)
    jobs = [(task, pass_) for pass_ in prober.passes() for task in tasks if task.is_of(pass_)]
    sizes = [len(task.queries) for task, _ in jobs]
    with show_progress(title, sum(sizes), "queries") as bar:
        bar.advance_to(0)
        results = ((i, prober.predict(task, pass_)) for i, (task, pass_) in enumerate(jobs))
        tables_by_job = [table for _, table in with_progress(results, sizes, bar)]
    predictions = pd.concat(tables_by_job, ignore_index=True)
    return with_hits(predictions.drop(columns=[*prober.SIDE_TABLES]), tables)


def score(
    predictions: pd.DataFrame, tables: BenchmarkTables, scorer: str, scoring: Scoring
) -> Evaluated:
    """Score predictions by a scorer, and by those that score its tables, too."""
    check_scores(predictions, "predictions")
    return evaluate([predictions], scorer, tables, scoring)


def draw_queries(queries: pd.DataFrame, limit: int, seed: int) -> pd.DataFrame:
    """Draw queries evenly: one of each relation and subset, then a second of each, and so on.

    Example:
        >>> table = pd.DataFrame({"subset": "full", "relation": ["a", "a", "a", "b"]})
        >>> sorted(draw_queries(table, 2, 0)["relation"])
        ['a', 'b']
    """
    if limit < 1:
        raise BadInput("limit", f"{limit}, expected 1 or more", "or leave it out")
    shuffled = queries.sample(frac=1, random_state=seed)
    turns = shuffled.groupby(["subset", "relation"]).cumcount()
    indices = turns.sort_values(kind="stable").index[:limit]
    return queries.loc[sorted(indices)].reset_index(drop=True)


def callback(
    facts: pd.DataFrame | str | Path,
    method: str,
    *,
    every: int,
    metrics: Sequence[str] = ("acc_at_1", "acc_at_10"),
    **options: Any,
) -> "TrainerCallback":
    """Make a callback of transformers' Trainer that probes the model while it trains.

    Each time it adds a line to the trainer's log history, with the keys `step` and
    `probe_<metric>`. It probes a copy of the model, so that training goes on as without it.

    Args:
        facts: what to probe, as for `probe`.
        method: name of the method.
        every: number of training steps from one time to the next; the last step is probed too.
        metrics: names of the metrics to log, each the mean over relations.
        options: further arguments of `probe`, such as `prompts`, `limit` or `settings`.

    Returns:
        The callback. Its attribute `history` is the list of logged lines.

    Raises:
        BadInput: before training, if the trainer has no tokenizer; when it probes, as `probe` does.

    Example:
        >>> probing = callback(
        ...     "facts.csv", "mask_average", every=100, prompts="prompts.csv"
        ... )  # doctest: +SKIP
        >>> trainer = Trainer(
        ...     model, arguments, processing_class=tokenizer, callbacks=[probing]
        ... )  # doctest: +SKIP
    """
    from transformers import TrainerCallback

    class ProbeCallback(TrainerCallback):
        def __init__(self) -> None:
            self.history: list[dict[str, float]] = []

        def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
            if objects.get("processing_class") is None:
                remedy = "give it processing_class=tokenizer"
                raise BadInput("callback", "the trainer has no tokenizer", remedy)

        def on_step_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
            if state.global_step % every == 0 or state.global_step == state.max_steps:
                model = load(model=objects["model"], tokenizer=objects["processing_class"])
                scores = probe(model, facts, method, bootstrap=1, **options).scores
                line = {"step": state.global_step, **_means(scores, metrics)}
                self.history.append(line)
                state.log_history.append(line)

    return ProbeCallback()


def _means(scores: pd.DataFrame, metrics: Sequence[str]) -> Mapping[str, float]:
    """The means over relations of the main variant, as `probe_<metric>`."""
    means = scores[(scores["relation"] == "macro") & scores["metric"].isin(metrics)]
    main = means[means["method"] == means["method"].min()]  # names of variants are longer
    return {f"probe_{row.metric}": float(row.value) for row in main.itertuples()}

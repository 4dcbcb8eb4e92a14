"""What commands print by `--json`: one object per command, whose schema is its class here."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict


class Output(BaseModel):
    """The object that a command prints."""

    model_config = ConfigDict(extra="forbid")

    def print(self) -> None:
        """Print the object as JSON; a number that is not defined is null."""
        print(self.model_dump_json(indent=1))


class PlannedStage(Output):
    """A stage that would run."""

    stage: str
    after: str | None
    """The stage whose new result would make it run; null if it runs in any case."""
    seconds: float | None
    """How long its last run here took; null if there was none."""


class Plan(Output):
    """`medprobe plan`: the stages that would run, in their order."""

    stages: list[PlannedStage]


class Source(Output):
    """A source of benchmarks or of rewiring."""

    source: str
    bytes: int | None
    """Null if it is missing."""
    enables: list[str]
    """Benchmarks and sentence sets of params.yaml; in parentheses, what could be added to it."""


class ModelState(Output):
    """A model of params.yaml."""

    model: str
    kind: str
    origin: str
    checkpoint: str


class PluginState(Output):
    """A method, builder or family of metrics from outside medprobe."""

    plugin: str
    kind: str
    origin: str
    """A file of the project, or a package and a module."""


class Doctor(Output):
    """`medprobe doctor`: sources, models, plugins, and what other names left on disk."""

    sources: list[Source]
    models: list[ModelState]
    plugins: list[PluginState]
    missing: list[str]
    """Sources that params.yaml needs."""
    leftovers: list[str]
    """Paths that no name of params.yaml accounts for."""
    notes: list[str]
    """Folders that do not exist, libraries of other versions, and data that are not pinned."""


class Number(Output):
    """A mean of a metric."""

    model: str
    method: str
    benchmark: str
    subset: str
    relation: str
    """`macro` or `micro`, or a relation."""
    metric: str
    value: float | None
    low: float | None
    high: float | None
    n: float | None
    """The queries behind it."""


class AboveControl(Output):
    """The main metric of a subset against its control, such as answers to other subjects."""

    subset: str
    metric: str
    control: str
    difference: float
    """Above 0 where the model is better."""
    p: float
    """Of the test, corrected."""


class RunMeans(Output):
    """`medprobe run`: the means of a model, and those of the majority baseline."""

    numbers: list[Number]
    majority: list[Number]
    above_control: list[AboveControl]


class Ranked(Output):
    """An answer to a prompt."""

    rank: int
    answer: str
    score: float
    right: bool | None = None
    """Null where no query of the benchmark has this prompt."""


class Ask(Output):
    """`medprobe ask`: the best answers to a prompt."""

    prompt: str
    method: str
    answers: list[Ranked]


class ExportedCell(Number):
    """A cell of an exported table."""

    best: bool
    worse: bool
    """Significantly worse than the best of its column."""
    unbeaten: bool
    """Not shown to be above its control."""


class ExportedColumn(Output):
    """A column of an exported table."""

    head: str
    cells: list[ExportedCell]


class Export(Output):
    """`medprobe export`: a table of results."""

    columns: list[ExportedColumn]
    note: str


OUTPUTS: Final[dict[str, type[Output]]] = {
    "ask": Ask,
    "doctor": Doctor,
    "export": Export,
    "plan": Plan,
    "run": RunMeans,
}


def schema() -> dict[str, Any]:
    """Return the JSON schemas of all commands, by command."""
    return {command: output.model_json_schema() for command, output in OUTPUTS.items()}

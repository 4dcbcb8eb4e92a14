"""Calibration: every method on the sample world made with three seeds, taught against untaught.

    python -m bench.calibration                    # a quarter of an hour of a core for each seed
    python -m bench.calibration 2022 classifier    # these seeds and methods; what is known of
                                                   # others stays

The scores of this project's own seed are in it already. Each other seed has a project of its own,
outputs/calibration/<seed>, with this project's params.yaml. What is finished there is not done
again, so a stopped run goes on; after a change of the code delete it. Writes
src/medprobe/report/sections/calibration.csv, which the report shows, and the same as
docs/concepts/calibration.md.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pandas as pd
import yaml

from medprobe.commands.sample import sample
from medprobe.core import params as settings
from medprobe.core import places
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.tables import Metadata
from medprobe.metrics.results import comparison, write_csv
from medprobe.report.numbers import format_value, metric
from medprobe.report.results import Results
from medprobe.report.sections.calibration import HALF, SEEDS, pairs
from medprobe.stages.build import build
from medprobe.stages.probe import probe
from medprobe.stages.rewire import rewire
from medprobe.stages.score import score
from medprobe.stages.train import train
from medprobe.stages.validate import validate

WORLDS: Final = (2021, 2022, 2023)
FOLDER: Final = Path("outputs/calibration")
DOCUMENT: Final = Path("docs/concepts/calibration.md")
INTRODUCTION: Final = """# Calibration: every method on several sample worlds

A taught model has read the facts that it is asked about, its untaught twin has not. A method is
calibrated where it tells them apart: the taught model is above, and the 95 % intervals share
nothing. Each world was made with a seed of its own, and so were its models. `python -m
bench.calibration` measures all of it again and writes this page; the report shows the same figures
beside those of its own world.

A cell holds the taught model's value with its interval, and the untaught one's; shares are in per
cent. Without the premise (`hypothesis-only`) nothing is asked about, so nothing is to be apart.
Methods and seeds that are not in the table have not been measured.
"""


def main() -> None:
    """Measure the seeds and methods named on the command line, or WORLDS and all methods."""
    seeds = [int(word) for word in sys.argv[1:] if word.isdigit()] or WORLDS
    wanted = {word for word in sys.argv[1:] if not word.isdigit()}
    own = settings.load_params().seed
    for seed in seeds:
        folder = Path() if seed == own else FOLDER / str(seed)
        if seed != own:
            measure(folder, seed, wanted)
        found = rows(folder, seed, wanted)
        save(pd.concat([known(seed, set(found["method"])), found], ignore_index=True))


def measure(folder: Path, seed: int, wanted: set[str]) -> None:
    """Do what is left to do of a seed's world, its models, predictions and scores."""
    folder.mkdir(parents=True, exist_ok=True)
    content = yaml.safe_load(Path("params.yaml").read_text("utf-8")) | {"seed": seed}
    (folder / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
    shutil.copytree("expectations", folder / "expectations", dirs_exist_ok=True)
    with chdir(folder):
        params = settings.load_params()
        for step, made in steps(params, wanted):
            if not made.exists():
                print(f"{datetime.now():%H:%M:%S} seed {seed}: {' '.join(step)}", flush=True)
                stage, *names = step
                STAGES[stage](*names, params)
        score(params)


STAGES: Final[dict[str, Callable[..., None]]] = {
    "sample": lambda params: sample(places.DATA, params.sample, params.seed),
    "build": build,
    "validate": validate,
    "train": lambda model, params: train(model, params, places.MODELS / model),
    "rewire": rewire,
    "probe": probe,
}


def steps(params: Params, wanted: set[str]) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Each stage that the wanted methods need, with its names, and what it makes, in order."""
    jobs = [
        (kind, method, benchmark)
        for kind, methods in params.methods.items()
        for method, named in methods.items()
        for benchmark in named
        if not wanted or method in wanted
    ]
    yield ("sample",), places.DATA
    for benchmark in sorted({benchmark for _, _, benchmark in jobs}):
        yield ("build", benchmark), places.ABOUT / f"{benchmark}.json"
        yield ("validate", benchmark), places.VALIDATION / benchmark / "passed"
    for kind, models in params.models.by_kind().items():
        of_kind = [job for job in jobs if job[0] == kind]
        for model in [*params.train, *params.continued]:  # which begin with models of the others
            if of_kind and model in models:
                yield ("train", model), places.MODELS / model
        for model in models:
            if any(method == "contrastive" for _, method, _ in of_kind):
                for chosen in params.sentence_sets:
                    yield ("rewire", model, chosen), places.REWIRED / model / chosen
            for _, method, benchmark in of_kind:
                out = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
                yield ("probe", model, method, benchmark), out


def rows(folder: Path, seed: int, wanted: set[str]) -> pd.DataFrame:
    """`seed` and the columns of `pairs`, for every benchmark and the wanted methods of a world."""
    params = settings.load_params(folder / "params.yaml")
    scores = comparison(folder / places.SCORES)
    names = sorted(scores["benchmark"].unique())
    about = {name: Metadata.read(folder / places.ABOUT / f"{name}.json") for name in names}
    twins = {
        name: one.untaught_twin_of
        for name, one in params.models.all().items()
        if one.untaught_twin_of
    }
    results = Results(scores, benchmarks=about, twins=twins, confidence=params.score.confidence)
    found = pd.concat([pairs(results, name) for name in names], ignore_index=True)
    found = found.drop(columns="p")  # of one world there are no tests here
    found.insert(0, "seed", seed)
    method = found["method"].str.partition(":")[0]
    return found[method.isin(wanted)] if wanted else found


def known(seed: int, measured: set[str]) -> pd.DataFrame:
    """What was measured before, but for these methods of this seed."""
    if not SEEDS.is_file():
        return pd.DataFrame()
    table = pd.read_csv(SEEDS)
    return table[(table["seed"] != seed) | ~table["method"].isin(measured)]


def save(table: pd.DataFrame) -> None:
    """Write the table, and the document made of it."""
    write_csv(table.sort_values(["seed", "benchmark"], kind="stable"), SEEDS)
    with replacing(DOCUMENT) as path:
        path.write_text(document(pd.read_csv(SEEDS)), encoding="utf-8")


def document(table: pd.DataFrame) -> str:
    """The document of a table of `rows`: a line for each benchmark, pair, method and metric."""
    seeds = sorted(table["seed"].unique())
    heads = ["benchmark", "models", "method", "metric", *(f"seed {x}" for x in seeds), "apart"]
    lines = [heads, ["---"] * len(heads)]
    keys = ["benchmark", "taught", "untaught", "method", "metric"]
    for (benchmark, taught, untaught, method, name), some in table.groupby(keys, sort=False):
        by_seed = {row.seed: _cell(row) for row in some.itertuples()}
        cells = [by_seed.get(seed, "–") for seed in seeds]
        count = f"{some['apart'].sum()} of {len(some)}"
        title = metric(name).title
        lines.append([benchmark, f"{taught} / {untaught}", method, title, *cells, count])
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{INTRODUCTION}\n{_outcome(table)}\n\n{text}\n"


def _outcome(table: pd.DataFrame) -> str:
    """How many comparisons are apart on the seeds that they were measured on, and which are not."""
    asked = table[~table["method"].str.endswith(HALF)]
    keys = ["benchmark", "method", "taught", "metric"]
    found = asked.groupby(keys, sort=False).agg(
        seeds=("apart", "size"), apart=("apart", "sum"), higher=("higher", "sum")
    )
    never = found[found["apart"] == 0]
    seeds = [f"{n} on {of}" for of, n in found["seeds"].value_counts().sort_index().items()]
    measured = " and ".join(filter(None, [", ".join(seeds[:-1]), seeds[-1]]))
    named = "; ".join(
        f"on {benchmark} "
        + ", ".join(
            f"{method} of {taught} ({metric(name).title})" for _, method, taught, name in of
        )
        for benchmark, of in never.index.groupby(never.index.get_level_values(0)).items()
    )
    return (
        f"By number of seeds, {measured}: so many of {len(found)} comparisons were measured. "
        f"{(found['apart'] == found['seeds']).sum()} are apart on each of their seeds, "
        f"{len(never)} on none, though of these the taught model is above on each seed in "
        f"{(never['higher'] == never['seeds']).sum()}. Apart on none are {named}."
    )


def _cell(row: Any) -> str:
    def said(value: float) -> str:
        return format_value(row.metric, value).removesuffix(" %")

    taught = f"{said(row.value)} [{said(row.low)}, {said(row.high)}]"
    untaught = f"{said(row.untaught_value)} [{said(row.untaught_low)}, {said(row.untaught_high)}]"
    return f"{taught} / {untaught}"


if __name__ == "__main__":
    main()

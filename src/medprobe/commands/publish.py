"""`medprobe publish`: the report as a folder of static pages that everybody may read."""

import shutil
from collections.abc import Sequence
from contextlib import chdir
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe import check
from medprobe.commands.merge import merge
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.executor import in_processes
from medprobe.core.files import replacing
from medprobe.core.tables import BASELINE
from medprobe.metrics.results import comparison
from medprobe.report.results import Results
from medprobe.stages.compare import compare, write_page
from medprobe.tracking import shared

WORKFLOW: Final = Path(".github/workflows/pages.yml")
TEMPLATE: Final = Path(__file__).with_name("pages.yml")


def publish(paths: Sequence[Path], out: Path) -> None:
    """Write the pages of a project, or of the results of several, without any licensed text.

    The pages load nothing from another place. Those of a project include its single queries by
    their identifiers, whatever `track.text` says.

    Raises:
        BadInput: if the folder exists, and if there are no results or they cannot be combined.
    """
    if out.exists():
        raise BadInput(out, "already exists", "choose another folder")
    with replacing(out) as folder:
        if len(paths) == 1 and (paths[0] / check.PARAMS).is_file():
            _write_project(paths[0], folder.absolute())
        else:
            _write_merged(paths, folder)
        file = shared.read(folder)
        (folder / "README.md").write_text(_readme(file), encoding="utf-8")
        (folder / ".nojekyll").touch()  # GitHub Pages shows the files as they are
        (folder / WORKFLOW).parent.mkdir(parents=True)
        shutil.copyfile(TEMPLATE, folder / WORKFLOW)


def _write_project(project: Path, folder: Path) -> None:
    with chdir(project):
        params = check.loaded()
        track = params.track.model_copy(update={"text": False})
        params = params.model_copy(update={"track": track})
        compare(params, folder, texts=None, executor=in_processes)
        file = shared.of_project(Path())
        shared.write(file, shared.units({Path(): file}), folder)


def _write_merged(paths: Sequence[Path], folder: Path) -> None:
    merge(paths, folder)
    file = shared.read(folder)
    scores = comparison(folder / places.SCORES)
    tests = folder / places.REPORTS / "significance.csv"
    is_prior = scores["model"] == BASELINE
    results = Results(
        comparison=scores[~is_prior],
        priors=scores[is_prior],
        significance=pd.read_csv(tests),
        benchmarks={name: benchmark.metadata for name, benchmark in file.benchmarks.items()},
        builders={name: benchmark.builder for name, benchmark in file.benchmarks.items()},
        statistics={
            name: pd.DataFrame(benchmark.statistics)
            for name, benchmark in file.benchmarks.items()
            if benchmark.statistics
        },
    )
    write_page(results, [f"medprobe {version('medprobe')}"], {}, folder, in_processes)
    tests.rename(folder / tests.name)
    for path in (places.ABOUT, places.SCORES, places.REPORTS):  # which only commands read
        shutil.rmtree(folder / path.parts[0])


def _readme(file: shared.ResultsFile) -> str:
    """Describe the folder: its models, its benchmarks, and how to publish or continue it."""
    models = sorted({result.model for result in file.results} - {BASELINE})
    rows = "\n".join(
        f"| {name} | {benchmark.metadata.description} | {benchmark.metadata.citation} |"
        for name, benchmark in file.benchmarks.items()
    )
    return f"""# What language models know, measured by medprobe

Open `index.html` in a browser. It needs no network.

Models: {", ".join(f"`{name}`" for name in models)}.

| benchmark | asks | cite |
| --- | --- | --- |
{rows}

Licensed text is left out: queries of licensed benchmarks go by identifiers or numbers.

- `comparison.csv` has every number with its interval, `significance.csv` every paired test.
- `results.json` says what each number was made from. `medprobe merge . other --out both` puts these
  results next to others.

To publish the pages, push this folder as a repository to GitHub and choose *GitHub Actions* under
*Settings, Pages*; `{WORKFLOW}` does the rest. Any other host that serves files will do as well.

Written by medprobe {file.medprobe}.
"""

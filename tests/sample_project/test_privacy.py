"""With `track.text` false no name, prompt or text of the data is said: not by gates that fail, on
the terminal or on their pages, not by stages that fail, and not by errors. Gates that pass, MLflow,
figures and reports: test_pipeline.py; what CI keeps of a gate: test_workflow.py; a probe that
fails, by every method: test_checkpoints.py."""

import gzip
import math
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

from helpers import ROOT, damage
from helpers.canaries import compile_canaries, find_leaks, plant_canaries, spoil_tables
from medprobe import benchmarks
from medprobe.cli import main
from medprobe.core import executor
from medprobe.core.answers import with_hits
from medprobe.core.errors import BadInput, quote, without_quotes
from medprobe.core.plugins import ROOT as PACKAGE
from medprobe.core.tables import PREDICTION_COLUMNS, BenchmarkTables, write_predictions
from medprobe.pipeline.stages import build
from sample_project import readers

pytestmark = pytest.mark.slow
BUILDERS = ("medlama", "biolama", "lama", "lipid", "context", "diskne")
BENCHMARKS = ("biolama", "lama")  # of names to rank; of MedLAMA: test_pipeline.py
WORDLESS = {  # sources of identifiers, types, labels and numbers
    *("MRREL", "MRSTY", "hierarchy", "cui2vec", "MEDIQA", "the released annotation")
}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[re.Pattern[str]]:
    """The working folder is a project over a small sample world, with a word in every text: what
    must not be told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("project"))
        patch.setattr(executor, "START_SECONDS", math.inf)  # test_processes.py has other processes
        content = yaml.safe_load((ROOT / "params.yaml").read_text())
        content["benchmarks"]["context"]["context"]["triples"] = 4
        content["benchmarks"]["diskne"]["diskne"]["negatives"] = 1
        methods_by_benchmark = {"mask_average": {name: {} for name in BENCHMARKS}}
        del content["train"], content["continued"]
        patch.setattr(build, "are_invented", lambda *_: False)  # as of licensed sources
        content |= {
            "folders": {"some": "some"},
            "sample": {"queries": 20, "reserve": 12},
            "models": {"masked": {"some": {}}},
            "methods": {"masked": methods_by_benchmark},
            "score": {"bootstrap": 20},
        }
        Path("params.yaml").write_text(yaml.safe_dump(content))
        shutil.copytree(ROOT / "expectations", "expectations")
        readers.write_world(Path("data"))
        plant_canaries(Path("data"))
        yield compile_canaries(Path("data"))


def run_command(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (0, 2), result.output
    return str(result.output)


@pytest.mark.parametrize("reader", sorted(set(readers.READERS) - WORDLESS))
def test_every_source_has_words_to_look_for(names: re.Pattern[str], reader: str) -> None:
    path = damage.find_target_file(Path("data"), readers.READERS[reader])
    content = path.read_bytes()
    if path.suffix == ".parquet":
        content = pd.read_parquet(path).to_csv().encode()
    text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
    assert names.search(text)


def test_every_source_has_a_reader_here() -> None:
    """What reads rows of other people's files imports the one reader of rows. The command line
    reads with it what one names in a command, which is no source."""
    reads = "from medprobe.sources.records import"
    files = {path for path in PACKAGE.rglob("*.py") if reads in path.read_text()}
    files -= {*(PACKAGE / "cli").iterdir()}
    values = [value for module in readers.MODULES for value in vars(module).values()]
    modules = [value for value in values if isinstance(value, ModuleType)]
    assert files <= {Path(str(module.__file__)) for module in modules if module.__spec__.origin}


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_gate_prints_no_text(names: re.Pattern[str], builder: str) -> None:
    folder = Path("outputs/benchmarks") / builder
    out = run_command("build", "--benchmark", builder)
    assert any(names.search(pd.read_parquet(p).to_csv()) for p in folder.glob("*.parquet"))
    for path in folder.glob("*.parquet"):  # the gate looks each failing row up
        pd.read_parquet(path).head(500).to_parquet(path, index=False)
    spoil_tables(folder)
    failed = run_command("validate", "--benchmark", builder)
    assert failed.count("✗") > 5
    pages = Path(f"outputs/validation/{builder}")
    assert {"index.html", "result.json"} == {path.name for path in pages.iterdir()}
    assert not list(find_leaks(Path(), names))
    assert not (leak := names.search(out + failed)), leak


def test_a_gate_of_sentences_prints_no_text(names: re.Pattern[str]) -> None:
    path = Path("data/sentences/set-0.txt")
    sound = path.read_text()
    try:
        path.write_text(sound.replace(" ", " \x00"))
        failed = run_command("validate-sentences", "--set", "set-0")
    finally:
        path.write_text(sound)
    assert names.search(sound)
    assert "✗" in failed
    assert not list(find_leaks(Path(), names))
    assert not (leak := names.search(failed)), leak


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_build_that_fails_prints_no_text(names: re.Pattern[str], builder: str) -> None:
    """A file of each of its sources is damaged: its readers refuse it, or what it builds of it."""
    sources = [Path("data", name) for name in benchmarks.find(builder).metadata.sources]
    files = [min(f for f in (source, *source.rglob("*")) if f.is_file()) for source in sources]
    for seed, path in enumerate(files):
        sound = path.read_bytes()
        try:
            path.write_bytes(damage.damage_content(sound, random.Random(seed)))
            out = run_command("build", "--benchmark", builder)
        finally:
            path.write_bytes(sound)
        assert not (leak := names.search(out)), (path, leak)


def test_results_and_stages_that_fail_print_no_text(
    names: re.Pattern[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow, figures, reports and metrics; score, compare and track as they fail."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    out = ""
    for benchmark in BENCHMARKS:
        run_command("build", "--benchmark", benchmark)
        tables = BenchmarkTables.read(Path("outputs/benchmarks") / benchmark)
        ranked = tables.candidates["name"].drop_duplicates()[:5]
        rows = [
            ("", "", query, rank, name, "", -float(rank))
            for query in tables.queries["query_id"]
            for rank, name in enumerate(ranked, 1)
        ]
        table = pd.DataFrame(rows, columns=PREDICTION_COLUMNS[:-1])
        path = Path(f"outputs/predictions/some/mask_average/{benchmark}.parquet")
        write_predictions(with_hits(table, tables), path, "accuracy")
    for command in ("score", "track", "compare"):
        out += run_command(command)
    spoilt = pa.Table.from_pandas(pd.read_parquet(path).assign(score=np.nan))
    pq.write_table(spoilt.replace_schema_metadata(pq.read_schema(path).metadata), path)
    for command in ("score", "track", "compare"):
        out += run_command(command)
    assert out.count("Error: ") == 3
    assert {"index.html", "comparison.csv"} <= {path.name for path in Path("reports").iterdir()}
    assert list(Path("mlruns").rglob("top_k.csv"))
    leaks = [leak for leak in find_leaks(Path(), names) if "queries/lama" not in leak]  # open text
    assert not leaks
    assert not (leak := names.search(out)), leak


@pytest.mark.parametrize("reader", readers.READERS)
def test_an_error_quotes_no_text(names: re.Pattern[str], reader: str) -> None:
    path = damage.find_target_file(Path("data"), readers.READERS[reader])
    sound = path.read_bytes()
    for seed in range(5):
        path.write_bytes(damage.damage_content(sound, random.Random(seed)))
        try:
            with without_quotes():
                readers.READERS[reader][1](Path("data"))
        except BadInput as refusal:
            assert not names.search(str(refusal))
        finally:
            path.write_bytes(sound)


def test_the_command_line_quotes_text_only_where_it_is_allowed(working_folder: Path) -> None:
    Path("data/entities").mkdir(parents=True)
    Path("data/entities/chemicals.txt").write_text("velotrine\nVelotrine\n")
    content = "{seed: 1, engine: {precision: float32}, rewire: {}, score: {}, track: {text: TEXT}, "
    content += "benchmarks: {lipid: {lipid: {}}}}"
    for text in ("false", "true"):
        Path("params.yaml").write_text(content.replace("TEXT", text))
        out = run_command("build", "--benchmark", "lipid")
        assert "chemicals.txt, line 2" in out
        assert ("Velotrine" in out) == (text == "true")
    assert quote("a") == "'a'"

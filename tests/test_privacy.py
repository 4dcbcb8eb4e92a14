"""With `track.text` false no name, prompt or text of the data is said: not by gates that fail, on
the terminal or on their pages, and not by errors. (Gates that pass, MLflow, figures and reports:
test_pipeline.py.)"""

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from bench import damage
from click.testing import CliRunner

from medprobe.cli import main
from medprobe.core.errors import BadInput, quoted, withheld

ROOT = Path(__file__).parents[1]
BUILDERS = ("medlama", "biolama", "lama", "lipid", "context", "diskne")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[re.Pattern[str]]:
    """The working folder is a project over a small sample world; all names of that world."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("project"))
        content = yaml.safe_load((ROOT / "params.yaml").read_text())
        content["benchmarks"]["context"]["context"]["triples"] = 4
        content["benchmarks"]["diskne"]["diskne"]["negatives"] = 1
        content |= {"methods": {}, "sample": {"queries": 20, "reserve": 12}}
        Path("params.yaml").write_text(yaml.safe_dump(content))
        shutil.copytree(ROOT / "expectations", "expectations")
        damage.world(Path("data"))
        yield canaries(Path("data"))


def canaries(data: Path) -> re.Pattern[str]:
    found = (data / "sample/names.txt").read_text().splitlines()
    return re.compile("|".join(map(re.escape, sorted(found, key=len, reverse=True))))


def said(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (0, 2), result.output
    return str(result.output)


def spoil(builder: str) -> None:
    """Break every column of a benchmark's tables, its ids aside, so that nearly all checks fail."""
    for path in Path(f"outputs/benchmarks/{builder}").glob("*.parquet"):
        table = pd.read_parquet(path)
        for column in table:
            first = table[column].iloc[0] if len(table) else None
            if isinstance(first, str) and not column.endswith("id"):
                table[column] = table[column] + " [MASK]\x00 [Y]"
            elif isinstance(first, np.ndarray):
                table[column] = [[*items, *items, " "] for items in table[column]]
        pd.concat([table, table]).to_parquet(path, index=False)


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_failing_gate_tells_no_name(names: re.Pattern[str], builder: str) -> None:
    out = said("build", "--benchmark", builder)
    tables = {
        p: pd.read_parquet(p) for p in Path(f"outputs/benchmarks/{builder}").glob("*.parquet")
    }
    assert any(names.search(table.to_csv()) for table in tables.values()), "nothing to look for"
    spoil(builder)
    out += said("validate", "--benchmark", builder)
    assert out.count("✗") > 5
    pages = list(Path(f"outputs/validation/{builder}").iterdir())
    assert {"index.html", "result.json"} == {path.name for path in pages}
    for text in (out, *(path.read_text() for path in pages)):
        assert not (leak := names.search(text)), (
            f"{leak}: {text[max(0, leak.start() - 200) :][:400]}"
        )


@pytest.mark.parametrize("reader", damage.READERS)
def test_an_error_quotes_no_text(names: re.Pattern[str], reader: str) -> None:
    path = damage.path_of(Path("data"), reader)
    sound = path.read_bytes()
    for seed in range(20):
        path.write_bytes(damage.damaged(sound, random.Random(seed)))
        try:
            with withheld():
                damage.READERS[reader][1](Path("data"))
        except BadInput as refusal:
            assert not names.search(str(refusal))
        finally:
            path.write_bytes(sound)


def test_the_command_line_quotes_text_only_where_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data/entities").mkdir(parents=True)
    Path("data/entities/chemicals.txt").write_text("velotrine\nVelotrine\n")
    content = "{seed: 1, engine: {precision: float32}, rewire: {}, score: {}, track: {text: TEXT}, "
    content += "benchmarks: {lipid: {lipid: {}}}}"
    for text in ("false", "true"):
        Path("params.yaml").write_text(content.replace("TEXT", text))
        out = said("build", "--benchmark", "lipid")
        assert "chemicals.txt, line 2" in out
        assert ("Velotrine" in out) == (text == "true")
    assert quoted("a") == "'a'"

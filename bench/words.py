"""What a pipeline with failing stages says of its sources' texts; bench/faults.py runs it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import yaml
from safetensors.torch import load_file, save_file

from medprobe.testing import tiny
from medprobe.testing.canaries import compile_canaries, find_leaks, plant_canaries, spoil_tables
from medprobe.testing.project import ROOT, Project


def more(params: dict[str, Any]) -> dict[str, Any]:
    """Sections of params.yaml with every builder, and a method for each family of metrics."""
    known = yaml.safe_load((ROOT / "params.yaml").read_text())["benchmarks"]
    for settings in (settings for named in known.values() for settings in named.values()):
        settings.pop(
            "invented", None
        )  # as of licensed sources: names of an invented world are shown
    known["context"]["context"]["triples"] = 12
    known["diskne"]["diskne"]["negatives"] = 1
    masked = params["methods"]["masked"] | {
        "perplexity": {"lipid": {}, "lama": {}},
        "rank_change": {"context": {}},
        "classifier": {"diskne": {"variants": ["frozen"], "seeds": [0], "epochs": 1}},
    }
    return params | {
        "benchmarks": known | params["benchmarks"],
        "methods": params["methods"] | {"masked": masked},
    }


def campaign(folder: Path, params: dict[str, Any]) -> tuple[int, list[str]]:
    """How many texts had a word, and all that was told of them: by a pipeline from end to end, by
    gates that fail, and by each probing stage, score and significance as they fail."""
    project = Project(folder)
    project.replace(**more(params))
    tiny.model("bert", folder / "given")  # the checkpoint in a folder
    project.works("medprobe", "sample")
    planted, words = plant_canaries(folder / "data"), compile_canaries(folder / "data")
    project.works("dvc", "add", "--quiet", "data")
    said = [project.works("medprobe", "repro"), project.works("dvc", "metrics", "diff")]

    def fails(*command: str) -> None:
        process = project.run("medprobe", *command)
        assert process.returncode == 2, f"{command}: {process.stdout}"
        said.append(process.stdout)

    probes = [one.relative_to(folder).parts[2:] for one in folder.glob("outputs/predictions/*/*/*")]
    for path in (folder / "outputs/predictions").rglob("*.parquet"):
        sound, table = path.read_bytes(), pq.read_table(path)
        path.unlink()  # it may be a link into the cache
        spoilt = pa.Table.from_pandas(table.to_pandas().assign(score=np.nan))
        pq.write_table(spoilt.replace_schema_metadata(table.schema.metadata), path)
        for command in ("score", "significance"):
            fails(command)
        path.write_bytes(sound)
    for path in (folder / "outputs/models").glob("*/model.safetensors"):
        weights = {name: torch.full_like(one, torch.nan) for name, one in load_file(path).items()}
        path.unlink()
        save_file(weights, path, {"format": "pt"})
    for path in (folder / "outputs/rewired").rglob("*.safetensors"):
        path.unlink()
    for model, method, benchmark in probes:
        named = Path(benchmark)
        if named.suffix == ".parquet":
            which = ["--model", model, "--method", method, "--benchmark", named.stem]
            fails("probe", *which)
    for benchmark in (folder / "outputs/benchmarks").iterdir():
        spoil_tables(benchmark)
        said.append(project.run("medprobe", "validate", "--benchmark", benchmark.name).stdout)
    (folder / "said.log").write_text("\n".join(said))
    return planted.total(), list(find_leaks(folder, words))

"""What `medprobe doctor` says of sources and models."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import FolderOf
from medprobe import benchmarks
from medprobe.core.errors import BadInput
from medprobe.core.params import HubModel, ModelParams, Models, Params
from medprobe.pipeline.doctor import doctor, list_models, list_sources, missing_sources
from medprobe.pipeline.init import pipeline_text


def sources(params: Params, data: Path) -> dict[str, tuple[int | None, list[str]]]:
    """The size of each source, and what it enables."""
    return {row.source: (row.bytes, row.enables) for row in list_sources(params, data)}


def origins(params: Params) -> dict[str, str]:
    """Where each model comes from."""
    return {row["model"]: row["origin"] for row in list_models(params)}


def test_the_sources_of_all_builders_are_listed(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/drugs.csv").write_bytes(b"x" * 1500)
    rows = sources(Params(), tmp_path)
    assert rows["tables"] == (1500, ["(table)"])
    for builder in benchmarks.list_names():
        for source in benchmarks.find(builder).metadata.sources:
            assert f"({builder})" in rows[source][1]
            assert (rows[source][0] is None) == (source != "tables")
    assert missing_sources(list_sources(Params(), tmp_path)) == []
    assert "sample" not in rows


def test_a_builder_with_the_name_of_anothers_benchmark_is_not_listed(tmp_path: Path) -> None:
    """`(diskne), diskne` would read as if one was there and was not."""
    params = Params(benchmarks={"diskne_released": {"diskne": {}}})
    for _, enables in sources(params, tmp_path).values():
        assert not {"(diskne)", "diskne"} <= {*enables}
    assert sources(params, tmp_path)["mednli"][1] == ["diskne"]


def reading() -> Iterator[str]:
    """The builders that name files, and need no settings."""
    for name in benchmarks.list_names():
        found = benchmarks.find(name)
        needed = [field for field in found.settings.model_fields.values() if field.is_required()]
        if not needed and [*found.files(found.settings())]:
            yield name


@pytest.mark.parametrize("builder", reading())
def test_a_folder_without_the_files_that_are_read_is_not_enough(
    tmp_path: Path, builder: str
) -> None:
    """Of another benchmark's files, or of a download that broke off."""
    params = Params(benchmarks={builder: {"mine": {}}})
    found = benchmarks.find(builder)
    settings = found.settings()
    paths = [path for _, path in benchmarks.list_paths(settings)]
    for source in (*map(Path, found.metadata.sources), *paths):
        other = tmp_path / (source if source.suffix else source / "README")
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("a file")
    files = [*found.files(settings)]
    assert sorted(missing_sources(list_sources(params, tmp_path))) == sorted(files)
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).with_name(Path(file).name.replace("*", "1")).write_text("x" * 9)
        assert sources(params, tmp_path)[file] == (9, ["mine"])
    assert missing_sources(list_sources(params, tmp_path)) == []


def test_a_model_that_no_commit_pins_is_reported(tmp_path: Path) -> None:
    names = {"loose": "main", "fixed": "0" * 40}
    params = Params(
        fetch={
            name: HubModel(hub="who/what", revision=revision) for name, revision in names.items()
        },
        models=Models(masked={name: ModelParams() for name in names}),
    )
    rows = origins(params)
    assert rows["loose"] == "who/what main (not pinned)"
    assert rows["fixed"] == f"who/what {'0' * 40}"


def test_the_origin_of_sample_models_is_reported(tmp_path: Path) -> None:
    params = Params(
        train={"base": {"kind": "causal"}},
        continued={"further": {"base": "base"}},
        models=Models(causal={name: ModelParams() for name in ("base", "further")}),
    )
    rows = origins(params)
    assert rows["base"] == "trained here"
    assert rows["further"] == "trained here, continues base"
    assert sources(params, tmp_path)["sample"] == (None, ["training base, further"])


def test_folders_and_libraries_that_are_not_there_are_named(
    working_folder: Path, tiny_model: FolderOf, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = working_folder / "checkpoints/mine"
    params = Params(folders={"mine": mine}, models=Models(masked={"mine": ModelParams()}))
    Path("requirements.lock").write_text("nowhere-to-be==1\n")
    assert not doctor(params, Path("data"))
    lines = capsys.readouterr().out.splitlines()
    assert f"params.yaml: folders.mine: {mine} does not exist" in lines
    assert "requirements.lock: nowhere-to-be 1 is required, it is not installed" in lines
    assert not any("what it names in data/ exists" in line for line in lines)
    assert list_models(params)[0]["checkpoint"] == "missing"
    mine.parent.mkdir()
    mine.with_suffix(".dvc").write_text("outs: [{path: mine}]\n")
    doctor(params, Path("data"))
    assert f"does not exist; `dvc pull {mine}` brings it" in capsys.readouterr().out
    mine.with_suffix(".dvc").unlink()
    mine.symlink_to(tiny_model("bert"))
    within = params.model_copy(update={"folders": {"mine": Path("checkpoints/mine")}})
    doctor(within, Path("data"))
    assert (
        "DVC does not track checkpoints/mine; `dvc add checkpoints/mine`" in capsys.readouterr().out
    )
    [row] = list_models(params)
    assert (row["origin"], row["checkpoint"]) == (str(mine), "bert, serves masked, encoder")
    mine.unlink()
    mine.symlink_to(tiny_model("gpt2"))
    with pytest.raises(BadInput, match="serves as causal, not as masked; list it under its kind"):
        list_models(params)
    mine.unlink()
    mine.write_bytes(b"GGUF")
    assert list_models(params)[0]["checkpoint"] == "there: `medprobe repro` converts it"


def test_a_file_that_settings_name_is_a_source(tmp_path: Path) -> None:
    table = {"facts": "tables/drugs.csv", "prompts": "tables/prompts.csv"}
    params = Params(benchmarks={"table": {"drugs": table}})
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/drugs.csv").write_text("subject,relation,object\n")
    rows = sources(params, tmp_path)
    assert rows["tables"] == rows["tables/drugs.csv"] == (24, ["drugs"])
    assert missing_sources(list_sources(params, tmp_path)) == ["tables/prompts.csv"]


def test_a_missing_source_is_named_with_the_command_that_brings_it(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = working_folder / "plugins/imports/drugs.py"
    plugin.parent.mkdir(parents=True)
    Path("params.yaml").touch()
    plugin.write_text(
        "from medprobe.sources.releases import Release\n"
        'RELEASE = Release("tables", ("drugs.csv",), "use it")\n'
    )
    table = {"facts": "tables/drugs.csv", "prompts": "tables/prompts.csv"}
    params = Params(benchmarks={"table": {"drugs": table}}, train={"small": {}})
    assert not doctor(params, Path("data"))
    *listed, title, sample, drugs, prompts, last = capsys.readouterr().out.splitlines()
    assert not any("(" in line for line in listed), "nothing of builders that it does not name"
    assert title == "params.yaml is valid. Missing:", "and not the folder of both, tables"
    assert sample.split() == ["data/sample", "medprobe", "sample"]
    assert drugs.split() == ["data/tables/drugs.csv", "medprobe", "import", "drugs", "PATH"]
    assert prompts.split() == ["data/tables/prompts.csv"] and "own-data.md" in last


def test_blocks_of_a_newer_version_that_a_project_lacks_are_named(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = pipeline_text()
    Path("dvc.yaml").write_text(text.replace("  validate-lama:", "  mine:"))
    assert doctor(Params(), Path("data"))
    assert "dvc.yaml: lacks validate-lama of this version; copy" in capsys.readouterr().out
    Path("dvc.yaml").write_text(f"{text}  mine: {{cmd: ls}}\n")
    assert doctor(Params(), Path("data"))
    assert "dvc.yaml: lacks" not in capsys.readouterr().out

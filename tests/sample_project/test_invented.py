"""Whether facts are invented is read from the identifiers of their sources: all of them count."""

import gzip
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from helpers import ROOT
from medprobe import benchmarks
from medprobe.core import places
from medprobe.core.errors import NotAsked
from medprobe.core.params import Params, load_params
from medprobe.core.servers import REASONS, ServerParams, check_terms
from medprobe.core.tables import DISTRACTOR, BenchmarkTables, Metadata
from medprobe.pipeline.stages.build import build
from medprobe.sample.files import FORMS, are_invented
from sample_project import readers

CONTENT = yaml.safe_load((ROOT / "params.yaml").read_text())
NAMES = [(builder, name) for builder, named in CONTENT["benchmarks"].items() for name in named]
REAL = (  # forms of identifiers, and one of each that is given out
    (r"C9[89][0-9]{5}", "C0018099"),
    (r"Q9[89][0-9]{7}", "Q133087"),
    (r"99[0-9]{6}", "31978945"),
    (r"[0-9a-f]{8}-5a3e-11e7-0000-0{12}", "23eb94b8-66c7-11e7-a8dc-f45c89b91419"),
)


@pytest.fixture(scope="module")
def params(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Params]:
    """The working folder is a project over a small sample world, with the benchmarks built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("invented"))
        content = {**CONTENT, "sample": {"queries": 20, "reserve": 12}, "methods": {}}
        Path("params.yaml").write_text(yaml.safe_dump(content))
        readers.write_world(Path("data"))
        params = load_params()
        for _, name in NAMES:
            build(name, params)
        yield params


def about(name: str) -> Metadata:
    return Metadata.read(places.ABOUT / f"{name}.json")


def real(identifier: str) -> str:
    """A text with a real identifier in place of the sample world's."""
    form, other = next(pair for pair in REAL if re.search(pair[0], identifier))
    return re.sub(form, other, identifier)


@pytest.mark.parametrize(("builder", "name"), NAMES)
def test_a_benchmark_of_the_sample_world_is_invented(
    params: Params, builder: str, name: str
) -> None:
    assert about(name).invented


@pytest.mark.parametrize(("builder", "name"), NAMES)
def test_one_real_identifier_in_a_table_makes_the_facts_real(
    params: Params, builder: str, name: str
) -> None:
    columns = benchmarks.find(builder).identifiers
    built = BenchmarkTables.read(places.BENCHMARKS / name)
    tables = {"queries": built.queries, "candidates": built.candidates, **built.others}
    assert are_invented(built, columns)
    for table, column in ((t, c) for t in tables for c in columns if c in tables[t]):
        mixed = tables[table]
        mixed = mixed[mixed["type"] != DISTRACTOR] if table == "candidates" else mixed.copy()
        cell = mixed[column].iloc[-1]
        is_text = isinstance(cell, str)
        mixed[column] = [*mixed[column].iloc[:-1], real(cell) if is_text else [*cell, "C0018099"]]
        own = {table: mixed} if table in ("queries", "candidates") else {}
        others = {**built.others, table: mixed} if not own else built.others
        assert not are_invented(replace(built, **own, others=others), columns)


@pytest.mark.parametrize(("builder", "name"), NAMES)
def test_one_real_identifier_in_the_sources_makes_the_facts_real(
    params: Params, builder: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The benchmark's prompts then go to no server of others, where its terms forbid it."""
    column = benchmarks.find(builder).identifiers[0]
    first = BenchmarkTables.read(places.BENCHMARKS / name).queries[column].explode().iloc[0]
    found = FORMS.search(first)
    assert found
    shutil.copytree("data", tmp_path / "data")
    for path in filter(Path.is_file, (tmp_path / "data").rglob("*")):
        content = path.read_bytes()
        is_packed = path.suffix == ".gz"
        content = gzip.decompress(content) if is_packed else content
        content = content.replace(found[0].encode(), real(found[0]).encode())
        path.write_bytes(gzip.compress(content) if is_packed else content)
    monkeypatch.chdir(tmp_path)
    build(name, params)
    metadata = about(name)
    assert not metadata.invented
    if metadata.terms in REASONS:
        server = ServerParams(url="https://api.example.com/v1", model="m")
        with pytest.raises(NotAsked, match=r"do not go to api\.example\.com"):
            check_terms(server, name, metadata)

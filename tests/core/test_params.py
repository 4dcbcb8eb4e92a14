"""params.yaml is checked to its leaves: a person learns which key is wrong, and which was meant."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.needed import NEEDED, SECTIONS
from helpers.typos import check_typo, edited, write_params
from medprobe.core import params
from medprobe.core.errors import BadInput
from medprobe.pipeline import check


def with_sections(tmp_path: Path, text: str) -> Path:
    """What every params.yaml has, and the sections of `text`."""
    return write_params(tmp_path, yaml.safe_dump(NEEDED | yaml.safe_load(text)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sed: 1", "unknown key sed (did you mean 'seed'?)"),
        (
            "engine: {precision: float32, devise: cpu}",
            "unknown key engine.devise (did you mean 'device'?)",
        ),
        ("fetch: {a: {hubb: x}}", "unknown key fetch.a.hubb (did you mean 'hub'?)"),
        ("fetch: {a: {}}", "fetch.a.hub: Field required"),
        (
            "models: {masked: {a: {publishd: x}}}",
            "unknown key models.masked.a.publishd (did you mean 'published'?)",
        ),
        (
            "models: {bert: {a: {}}}",
            "unknown key models.bert; choose one of masked, encoder, causal, chat, seq2seq",
        ),
        ("fetch: {a: lab/bert}", "fetch.a: expected {hub: lab/bert}, found"),
        ("seed: many", "seed: Input should be a valid integer"),
        ("models: {masked: [a, b]}", "models.masked: expected a map, such as {a: {}, b: {}}"),
        ("methods: {masked: {xfactr: a}}", "xfactr: expected a map, such as {a: {}}, found 'a'"),
        ("methods: {masked: {xfactr: {a}}}", "xfactr.a: expected a map, {} where it is empty"),
        ("engine: {precision: float8}", "engine.precision: Input should be 'float32', "),
        (
            "engine: {precision: float32, device: spread, max_memory: {cpu: lots}}",
            "max_memory.cpu: String should match",
        ),
        (
            "engine: {precision: float32, max_memory: {cpu: 4GiB}}",
            "engine: max_memory is for device: spread",
        ),
        (
            "score: {confidence: 2}",
            "score.confidence: expected a share between 0 and 1, such as 0.95",
        ),
        (
            "models: {masked: {../up: {}}}",
            "masked: '../up' is not a valid name; a name is of a to z",
        ),
        ("folders: {a: ~/a}", "folders.a: ~ stands for nothing here, write the whole path"),
        ("train: {$(id): {}}", "train: '$(id)' is not a valid name"),
        (
            "methods: {masked: {xfactr: {a b: {}}}}",
            "methods.masked.xfactr: 'a b' is not a valid name",
        ),
        (f"train: {{{'a' * 61}: {{}}}}", "at most 60 long"),
        (
            "models: {masked: {dmis-lab/biobert-v1.1: {}}}",
            "choose one of your own, and say in fetch: "
            "{biobert-v1-1: {hub: dmis-lab/biobert-v1.1}}",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        params.load_params(with_sections(tmp_path, text))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", params.REQUIRED)
def test_what_dvc_yaml_names_always_must_be_there(tmp_path: Path, name: str) -> None:
    content = {
        key: {**value} if isinstance(value, dict) else value for key, value in NEEDED.items()
    }
    section, _, key = name.partition(".")
    if key:
        del content[section][key]
    else:
        del content[section]
    with pytest.raises(BadInput, match=f"{name} is missing; write it down: dvc.yaml names it"):
        params.load_params(write_params(tmp_path, yaml.safe_dump(content)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "seed: 1\ntrack:\n\ttext: true",
            "line 3: found character that cannot start any token; indent by spaces, not by a tab",
        ),
        ("models: [", "not YAML: line 2: did not find expected"),
        (
            "a: {b: 1\nc: {} # https://hf.co",
            "line 2: did not find expected ',' or '}'; close the bracket on the line before",
        ),
        ("a:\n b: 1\n  c: 2", "line 3: mapping values .*; indent it like the lines beside it"),
        ("seed: 1\nseed: 2", 'not YAML: line 2: found duplicate key "seed"'),
        ("seed: !!python/name:os.system", "could not determine a constructor for the tag"),
        ("seed: !!python/object/apply:os.abort []", "could not determine a constructor"),
        ("fetch: {m: {hub: https://hf.co/lab/m}}", "line 1: .*; put addresses in quotes"),
        ("a: 1\nseed:2021\nb: 2", "line 2; write a space after the colon of seed:"),
        ("a: {b: {c:tables/d, e: f}}", "line 1; write a space after the colon of c:"),
        ("a:\n  b:0.95\n  c: 1", "line 2; write a space after the colon of b:"),
        ("seed: \x01", "not YAML: unacceptable character #x0001"),
        ("[1]", "a list, expected sections"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        params.load_params(write_params(tmp_path, text))


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes("seed: 1 # für alle\n".encode("latin-1"))
    with pytest.raises(BadInput, match=r"params\.yaml: not UTF-8 at byte 11; save it as UTF-8"):
        params.load_params(path)


def test_numbers_are_what_dvc_takes_for_numbers(tmp_path: Path) -> None:
    """1e3 is one in YAML 1.2, which DVC reads, and was none in YAML 1.1."""
    text = SECTIONS.replace("seed: 1\n", "seed: 1e3\n")
    assert params.load_params(write_params(tmp_path, text)).seed == 1000


def test_no_file_says_where_to_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file; run medprobe in the project's folder"):
        params.load_params(tmp_path / "params.yaml")


def test_a_model_is_found_by_name_whatever_its_kind(tmp_path: Path) -> None:
    loaded = params.load_params(with_sections(tmp_path, "models: {causal: {gpt: {}}}"))
    assert loaded.models.kind("gpt") == "causal"
    with pytest.raises(BadInput, match=r"no model 'gtp' \(did you mean 'gpt'\?\)"):
        loaded.models.kind("gtp")


PROJECT: dict[str, Any] = NEEDED | {
    "sample": {"queries": 40},
    "train": {name: {"kind": "masked", "corpus": name} for name in ("taught", "untaught")},
    "fetch": {},
    "folders": {},
    "models": {"masked": {"taught": {}, "untaught": {"untaught_twin_of": "taught"}}, "causal": {}},
    "benchmarks": {"table": {"drugs": {"facts": "tables/facts.csv"}}},
    "methods": {
        "masked": {"xfactr": {"drugs": {"masks": 3}}, "mask_average": {"drugs": {}}},
        "seq2seq": {},
    },
}
*SOME, LAST = params.Params().model_sections  # that say where checkpoints come from
LEAVES = {  # a typo, or a name that is nowhere, at every kind of leaf
    "sample/querys": (40, "sample: unknown key querys (did you mean 'queries'?)"),
    "train/taught/layer": (3, "train.taught: unknown key layer (did you mean 'layers'?)"),
    "train/taught/kind": ("causal", "a recipe of kind causal, the model is listed as masked"),
    "models/masked/taught/lower_case": (True, "lower_case is for models of fetch and folders"),
    "benchmarks/tabel": ({"a": {}}, "no builder 'tabel' (did you mean 'table'?)"),
    "benchmarks/table/drugs/promts": (
        "tables/prompts.csv",
        "benchmarks.table.drugs: unknown key promts (did you mean 'prompts'?)",
    ),
    "methods/masked/xfactor": ({}, "no method 'xfactor' (did you mean 'xfactr'?)"),
    "methods/masked/generative": ({}, "the method needs a model of kind seq2seq"),
    "methods/seq2seq/perplexity": ({}, "gives a text no probability of its own"),
    "methods/masked/xfactr/drugs/mask": (
        3,
        "methods.masked.xfactr.drugs: unknown key mask (did you mean 'masks'?)",
    ),
    "methods/masked/mask_average/drug": ({}, "'drug' is not among drugs (did you mean 'drugs'?)"),
    "models/masked/stray": ({}, "models.masked.stray: nothing says where its checkpoint is"),
    "models/causal/taught": ({}, "models: 'taught' is there 2 times"),
    "models/masked/untaught/untaught_twin_of": ("tought", "(did you mean 'taught'?)"),
    "models/masked/taught/published": ("Nobody's", "no paper has a checkpoint 'Nobody's'"),
    "score/reference": ("tought", "score.reference: 'tought' is not among taught, untaught"),
    "folders/taught": ("/a", f"{', '.join(SOME)} and {LAST}: 'taught' is there 2 times"),
    "fetch/stray": ({"hub": "a/b"}, f"'stray' is in {', '.join(SOME)} or {LAST} only"),
}


@pytest.mark.parametrize("where", LEAVES)
def test_a_typo_anywhere_is_found_before_any_stage_runs(tmp_path: Path, where: str) -> None:
    value, says = LEAVES[where]
    check_typo(tmp_path, edited(PROJECT, where, value), says)


BUILDER = """
from medprobe.benchmarks import Benchmark
from medprobe.benchmarks.table import METADATA, Settings, build
BENCHMARK = Benchmark(METADATA, Settings, build, tables=())
"""


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("benchmarks/mine/drugs", "benchmarks: 'drugs' is there 2 times"),
        (
            "methods/masked/optiprompt/bare",
            "methods.masked.optiprompt.bare: the method needs a table train, which the builder "
            "mine never makes; choose a benchmark of ",
        ),
    ],
)
def test_two_builders_are_told_apart(tmp_path: Path, where: str, says: str) -> None:
    (tmp_path / "plugins/benchmarks").mkdir(parents=True)
    (tmp_path / "plugins/benchmarks/mine.py").write_text(BUILDER)
    facts = {"facts": "tables/facts.csv"}
    content = edited(PROJECT, "benchmarks/mine", {"bare": facts})
    content = edited(content, "methods/masked/optiprompt", {})
    check_typo(tmp_path, edited(content, where, facts if "benchmarks" in where else {}), says)


def test_a_folder_that_no_kind_lists_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing probes it, and its stage copies it as it is."""
    content = edited(PROJECT, "folders/stray", "/a")
    check.check(params.load_params(write_params(tmp_path, content)))
    assert "folders: no kind of models lists 'stray'" in capsys.readouterr().err


def test_a_benchmark_that_no_method_probes_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check.check(params.load_params(write_params(tmp_path, PROJECT)))
    assert "none probes" not in capsys.readouterr().err
    content = edited(PROJECT, "benchmarks/table/unasked", {"facts": "tables/facts.csv"})
    check.check(params.load_params(write_params(tmp_path, content)))
    assert "methods: none probes the benchmark 'unasked'" in capsys.readouterr().err

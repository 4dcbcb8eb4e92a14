"""Checkpoints that are broken are refused in one line before they are used, and numbers that are
none stop a part with the names of the model and the query."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from helpers import FolderOf, probing
from helpers.toy_project import project
from medprobe import methods
from medprobe.core.errors import BadInput, without_quotes
from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables
from medprobe.engine import load as loading
from medprobe.engine.inspection import inspect
from medprobe.engine.load import NotANumber, load
from medprobe.metrics import Scoring
from medprobe.metrics.results import evaluate_table
from medprobe.pipeline.stages.probe import probe


def content(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def without_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).unlink(missing_ok=True)


def other_tokenizer(folder: Path) -> None:
    content(folder / "config.json", vocab_size=10)
    weights = load_file(folder / "model.safetensors")
    small = {name: w[:10] if len(w) > 150 else w for name, w in weights.items()}
    save_file(small, folder / "model.safetensors", {"format": "pt"})


def far_smaller_tokenizer(folder: Path) -> None:
    content(folder / "config.json", vocab_size=9000)
    weights = load_file(folder / "model.safetensors")
    big = {n: torch.zeros(9000, *w.shape[1:]) if len(w) > 150 else w for n, w in weights.items()}
    save_file(big, folder / "model.safetensors", {"format": "pt"})


def without_first_token(folder: Path) -> None:
    """Its place in transformers' own vocabulary, which is taken then, is that of a word here."""
    saved = json.loads((folder / "tokenizer.json").read_text())
    ids = saved["model"]["vocab"]
    ids["[CLS]"], ids["gene"] = ids["gene"], ids["[CLS]"]
    saved["added_tokens"] = [
        token | {"id": ids[token["content"]]} for token in saved["added_tokens"]
    ]
    content(folder / "tokenizer.json", **saved)
    content(folder / "tokenizer_config.json", cls_token=None)


def cut_tokenizer(folder: Path) -> None:
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text[: len(text) // 2])


def bin_of(value: object) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        torch.save(value, folder / "pytorch_model.bin")

    return write


def wrapped(prefix: str, below: str = "") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        read = load_file(folder / "model.safetensors")
        named = {prefix + name: weight for name, weight in read.items()}
        bin_of({below: named, "epoch": 3} if below else named)(folder)

    return write


def empty_bin(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").touch()


def cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def missing_shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    names = {"metadata": {}, "weight_map": {"a": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(names))


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 438000000\n"


def text_of(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text) and None


def config(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: content(folder / "config.json", **changes)


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "no tokenizer": (without_tokenizer, "no tokenizer: none of tokenizer.json"),
    "ids beyond the model": (other_tokenizer, "the model embeds 10"),
    "another model's tokenizer": (far_smaller_tokenizer, "tokens, the model embeds 9,000"),
    "a cut tokenizer": (cut_tokenizer, "no tokenizer that can be read"),
    "a list for weights": (bin_of([torch.ones(2)]), "the model cannot be loaded"),
    "code for weights": (bin_of({"a": Path("/")}), "code, which is never run"),
    **{
        f"weights named {prefix}": (wrapped(prefix), f"({prefix}bert.")
        for prefix in ("module.", "_orig_mod.", "model.", "base_model.model.")
    },
    "weights below a name": (wrapped("", "state_dict"), "save the weights of the network itself"),
    "an empty file": (empty_bin, "the model cannot be loaded: EOFError"),
    "a file cut short": (cut_weights, "the model cannot be loaded: "),
    "a file that is missing": (missing_shard, "model-1.safetensors"),
    "other shapes": (config(intermediate_size=48), "config.json says (48,)"),
    "five heads": (config(num_attention_heads=5), "not a multiple of the number of attention"),
    "a part for text": (config(text_config={"vocab_size": 9}), "a bert model has no text_config"),
    "layers in words": (config(num_hidden_layers="two"), "'num_hidden_layers'"),
    "a configuration that is a list": (
        text_of("config.json", "[]"),
        "config.json: not a configuration: list in place",
    ),
    **{
        f"a configuration {text[:5]}": (text_of("config.json", text), "not a configuration: ")
        for text in ("", "null", "3", "true", '{"model_type": "bert", "hid', "[" * 100_000)
    },
    "brackets in brackets": (text_of("config.json", '{"a":' * 100_000), "not a configuration: "),
    "empty merges": (text_of("merges.txt", ""), "merges.txt: empty"),
    "no first token": (without_first_token, "adds gene to each text, which is no special token"),
    "other settings": (text_of("tokenizer_config.json", "["), "not a configuration: "),
    **{
        f"a pointer for {name}": (text_of(name, POINTER), f"{name}: a pointer of Git LFS")
        for name in ("config.json", "tokenizer.json", "model.safetensors", "pytorch_model.bin")
    },
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_checkpoint_is_one_line(tiny_model: FolderOf, tmp_path: Path, how: str) -> None:
    spoil, says = BROKEN[how]
    folder = shutil.copytree(tiny_model("bert"), tmp_path / "mine")
    spoil(folder)
    with pytest.raises(BadInput) as caught:
        inspect(folder)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value) and "weights_only" not in str(caught.value)


@pytest.mark.parametrize("how", ["no tokenizer", "another model's tokenizer", "other shapes"])
def test_load_refuses_it_too(tiny_model: FolderOf, tmp_path: Path, how: str) -> None:
    spoil, says = BROKEN[how]
    folder = shutil.copytree(tiny_model("bert"), tmp_path / "mine")
    spoil(folder)
    with pytest.raises(BadInput, match=says.replace("(", r"\(").replace(")", r"\)")):
        load(folder, "masked")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(
    tiny_model: FolderOf, tmp_path: Path, value: float
) -> None:
    folder = shutil.copytree(tiny_model("gpt2"), tmp_path / "mine")
    weights = load_file(folder / "model.safetensors")
    weights["transformer.h.1.mlp.c_fc.weight"][3, 4] = value
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(NotANumber, match=r"mine: the weight transformer\.h\.1\.mlp"):
        load(folder, "causal")


LIKELIHOOD = ("bert", "gpt2")
WITH_SETTINGS: dict[str, list[tuple[str, dict[str, Any]]]] = {  # models to ask, and settings
    "answering": [("gpt2", {"beams": 2, "spare": 0}), ("t5", {"forms": ["constrained"]})],
    "classifier": [
        ("bert", {"variants": [name], "seeds": [0], "epochs": 1})
        for name in ("", "frozen", "lp-ft")
    ],
    "contrastive": [("bert", {"sets": ["set-0"]})],
    "generative": [("bart", {"beams": 2}), ("t5", {"beams": 2})],
    "judgment": [(arch, {}) for arch in LIKELIHOOD],
    "likelihood": [("gpt2", {}), ("t5", {})],
    "optiprompt": [("bert", {"seeds": 1, "epochs": 1, "masks": 2})],
    "perplexity": [(arch, {}) for arch in LIKELIHOOD],
    "rank_change": [(arch, {"copy_control": False}) for arch in LIKELIHOOD],
    "xfactr": [("bert", {"masks": 2})],
}
ARCHITECTURES = {"masked": "bert", "encoder": "bert", "causal": "gpt2", "seq2seq": "t5"}
METHODS = {
    name: WITH_SETTINGS.get(name) or [(ARCHITECTURES[methods.find(name).KINDS[0]], {})]
    for name in methods.list_names()
}
KINDS = {"bert": "masked", "gpt2": "causal"}  # others are seq2seq
SUBJECTS = ("Velotrine", "Aspirin", "Entecavir", "SNCA")
ANSWERS = ("Karsten syndrome", "chronic pain", "hepatitis B infection", "acute renal failure")


WAYS = [(method, *way) for method, ways in METHODS.items() for way in ways]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way)))
def test_a_model_that_overflows_stops_the_part_and_is_named(
    tiny_model: FolderOf,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: tuple[str, str, dict[str, Any]],
) -> None:
    """Weights that are numbers, and outputs that are none: from a token of the last prompt on."""
    method, arch, settings = way
    monkeypatch.chdir(tmp_path)
    for place in ("models/mine", "rewired/mine/set-0/step-1"):
        shutil.copytree(tiny_model(arch), tmp_path / "outputs" / place)
    queries = facts(4)
    others = {"train": facts(3), "dev": facts(2), **examples()}
    tables = BenchmarkTables(queries, probing.candidates(ANSWERS), others=others)
    tables.write(tmp_path / "outputs/benchmarks/toy")
    kind = KINDS.get(arch, "seq2seq")
    params = Params.model_validate(
        {"models": {kind: {"mine": {}}}, "methods": {kind: {method: {"toy": settings}}}}
    )
    overflowing(monkeypatch, [*ANSWERS, *facts(4)["prompt"]])
    where = f"mine, {method}, toy: .*: .*: .* NaN"
    with without_quotes(), pytest.raises(BadInput, match=where) as caught:
        probe("mine", method, "toy", params)
    assert not any(name in str(caught.value) for name in (*SUBJECTS, *ANSWERS, "may treat"))
    assert not list(tmp_path.glob("outputs/predictions/**/*.parquet"))


def facts(count: int) -> pd.DataFrame:
    """So many queries, each with a subject and an answer of its own."""
    rows = probing.queries([f"{name} may treat and prevent [Y] ." for name in SUBJECTS[:count]])
    return rows.assign(
        subject=SUBJECTS[:count],
        subject_id=[f"S{i}" for i in range(count)],
        answers=[[answer] for answer in ANSWERS[:count]],
        answer_ids=[[f"A{i}"] for i in range(count)],
    )


def examples() -> dict[str, pd.DataFrame]:
    """Examples of one disease and its splits; the last one, which is tested, has the last prompt
    as its premise."""
    rows = pd.DataFrame({"example_id": [f"e{i}" for i in range(8)], "label": [1, 0] * 4})
    rows = rows.assign(
        category="symptoms",
        kind=rows["label"].map({1: "positive", 0: "similar"}),
        cui=rows["label"].map({1: "r", 0: "s"}),
        disease="fever",
        premise=[facts(4)["prompt"].iloc[3 if i == 7 else i % 3] for i in range(8)],
        hypothesis="chronic pain",
        full_hypothesis="chronic pain",
    )
    split = ["train"] * 4 + ["validation"] * 2 + ["test"] * 2
    splits = pd.DataFrame({"target": "r", "split": split, "example_id": rows["example_id"]})
    splits["fewest"] = 2
    return {"examples": rows, "splits": splits}


def overflowing(monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> None:
    """Let every model that is loaded overflow where it reads a token that only the last of the
    texts has."""
    read, embedded = loading.load_tokenizer, torch.nn.functional.embedding
    poison: list[int] = []

    def load_tokenizer(folder: Path, config: Any) -> Any:
        tokenizer = read(folder, config)
        rows = [set(tokenizer(text)["input_ids"]) for text in texts]
        poison.append(min(rows[-1] - set().union(*rows[:-1])))
        return tokenizer

    def embedding(ids: torch.Tensor, weight: torch.Tensor, *args: Any, **more: Any) -> Any:
        out = embedded(ids, weight, *args, **more)
        words = poison and len(weight) > 150  # and not positions
        return out.masked_fill((ids == poison[0])[..., None], torch.inf) if words else out

    monkeypatch.setattr(loading, "load_tokenizer", load_tokenizer)
    monkeypatch.setattr(torch.nn.functional, "embedding", embedding)


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), None])
def test_scores_that_are_no_numbers_are_not_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float | None
) -> None:
    project(tmp_path, monkeypatch)
    path = Path("outputs/predictions/taught/contrastive/made_up.parquet")
    metric = {b"medprobe.metric": b"accuracy"}
    table = pd.read_parquet(path)
    table.loc[7, "score"] = value
    stored = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(stored.replace_schema_metadata(stored.schema.metadata | metric), path)
    where = f"made_up.parquet: 1 scores are no numbers, .* query {table.loc[7, 'query_id']}"
    folder = Path("outputs/benchmarks/made_up")
    scoring = Scoring(Params().score, 0)
    with pytest.raises(BadInput, match=where):
        evaluate_table(path, folder, scoring)

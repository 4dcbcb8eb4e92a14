"""Texts become the tokens that tokenizer.json says, whatever the class of the tokenizer."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors

from helpers import FolderOf
from medprobe.core.errors import BadInput
from medprobe.engine.configuration import read_config
from medprobe.engine.tokenizer import DESCRIBED, load_tokenizer

CLASSES = (  # an architecture for each class of tokenizer
    *("bert", "bert-cased", "roberta", "gpt2", "llama", "mistral", "gemma3_text", "qwen3"),
    *("gpt_neox", "t5", "deberta-v2", "albert", "modernbert", "pegasus"),
)
TEXTS = (
    *("Aspirin treats 120 mg of Karsten syndrome", "HLA-B*27 (finding), 1,25-dihydroxy"),
    *("café  Sjögren’s", "ﬁbrosis ½", "糖尿病 gene", "  two  blanks ", "gene BRX2 and gene"),
)
MODELS = {  # a setting of each algorithm that changes some tokens
    "WordPiece": {"max_input_chars_per_word": 5},
    "BPE": {"ignore_merges": True, "fuse_unk": True},
    "Unigram": {"byte_fallback": True},
}


def normalizer(own: Tokenizer) -> None:
    former = [own.normalizer] if own.normalizer else []
    changes = [normalizers.NFKC(), normalizers.Replace("a", "e"), *former, normalizers.Lowercase()]
    own.normalizer = normalizers.Sequence(changes)


def no_normalizer(own: Tokenizer) -> None:
    own.normalizer = None


def splitting(own: Tokenizer) -> None:
    digits = pre_tokenizers.Digits(individual_digits=True)
    former = [own.pre_tokenizer] if own.pre_tokenizer else []
    own.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.Punctuation(), *former])


def ends(own: Tokenizer) -> None:
    number = max(own.get_added_tokens_decoder())
    own.post_processor = processors.TemplateProcessing(
        single="$A X",
        pair="$A $B X",
        special_tokens=[{"id": "X", "ids": [number], "tokens": ["X"]}],
    )


def added(own: Tokenizer) -> None:
    own.add_tokens([AddedToken("gene", lstrip=True, single_word=True)])
    own.add_special_tokens([AddedToken("BRX2", rstrip=True)])


PARTS: tuple[Callable[[Tokenizer], None], ...] = (
    *(normalizer, no_normalizer, splitting, ends, added),
)


def check(folder: Path, own: Tokenizer, *, is_copy: bool = False) -> None:
    config = read_config(folder)
    config.get_text_config().vocab_size = own.get_vocab_size()
    tokenizer = load_tokenizer(folder, config)
    for text in TEXTS:
        for special in (False, True):
            expected = own.encode(text, add_special_tokens=special).ids
            assert tokenizer(text, add_special_tokens=special)["input_ids"] == expected, text
    if not is_copy:  # as a rewired model is saved
        shutil.copytree(folder, copy := folder.with_name("copy"))
        tokenizer.save_pretrained(copy)
        check(copy, own, is_copy=True)


def write(folder: Path, own: Tokenizer, *left_out: str) -> None:
    own.save(str(folder / "tokenizer.json"))
    path = folder / "tokenizer_config.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in said.items() if k not in left_out}))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
@pytest.mark.parametrize("arch", CLASSES)
def test_each_part_of_tokenizer_json_is_read(
    tiny_model: FolderOf, tmp_path: Path, arch: str, part: Callable[[Tokenizer], None]
) -> None:
    folder = shutil.copytree(tiny_model(arch), tmp_path / "model")
    own = Tokenizer.from_file(str(folder / "tokenizer.json"))
    part(own)
    write(folder, own, "add_bos_token", "add_eos_token")
    check(folder, own)


@pytest.mark.parametrize("arch", CLASSES)
def test_each_setting_of_an_algorithm_is_read(
    tiny_model: FolderOf, tmp_path: Path, arch: str
) -> None:
    folder = shutil.copytree(tiny_model(arch), tmp_path / "model")
    path = folder / "tokenizer.json"
    content: dict[str, Any] = json.loads(path.read_text())
    content["model"] |= MODELS[content["model"]["type"]]
    write(folder, Tokenizer.from_str(json.dumps(content)), "add_bos_token", "add_eos_token")
    check(folder, Tokenizer.from_file(str(path)))


@pytest.mark.parametrize("arch", CLASSES)
def test_a_token_that_only_tokenizer_config_names_is_added(
    tiny_model: FolderOf, tmp_path: Path, arch: str
) -> None:
    folder = shutil.copytree(tiny_model(arch), tmp_path / "model")
    count = len(transformers.AutoTokenizer.from_pretrained(folder))
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pad_token": "<nothing>"}))
    config = read_config(folder)
    config.get_text_config().vocab_size = count + 1
    tokenizer = load_tokenizer(folder, config)
    assert tokenizer.pad_token_id == tokenizer("<nothing>", add_special_tokens=False).input_ids[0]
    assert tokenizer.pad_token_id == count


@pytest.mark.parametrize("arch", CLASSES)
def test_no_token_is_drawn_at_random(tiny_model: FolderOf, tmp_path: Path, arch: str) -> None:
    folder = shutil.copytree(tiny_model(arch), tmp_path / "model")
    own = Tokenizer.from_file(str(folder / "tokenizer.json"))
    content: dict[str, Any] = json.loads(own.to_str())
    if content["model"]["type"] == "BPE":
        content["model"]["dropout"] = 0.9  # of merges, as in training
    write(folder, Tokenizer.from_str(json.dumps(content)), "add_bos_token", "add_eos_token")
    check(folder, own)


@pytest.mark.parametrize("has_blank", [False, True])
def test_a_blank_before_a_text_is_as_tokenizer_config_says(
    tiny_model: FolderOf, tmp_path: Path, *, has_blank: bool
) -> None:
    folder = shutil.copytree(tiny_model("gpt2"), tmp_path / "model")
    own = Tokenizer.from_file(str(folder / "tokenizer.json"))
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=not has_blank)
    write(folder, own)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"add_prefix_space": has_blank}))
    tokenizer = load_tokenizer(folder, read_config(folder))
    assert tokenizer.tokenize("Aspirin")[0].startswith("Ġ") == has_blank


@pytest.mark.parametrize(("arch", "other"), [("deberta-v2", "bert"), ("albert", "gpt2")])
def test_a_class_that_cannot_take_tokenizer_json_is_named_with_a_remedy_that_works(
    tiny_model: FolderOf, tmp_path: Path, arch: str, other: str
) -> None:
    folder = shutil.copytree(tiny_model(arch), tmp_path / "model")
    own = Tokenizer.from_file(str(tiny_model(other) / "tokenizer.json"))
    write(folder, own)
    config = read_config(folder)
    config.get_text_config().vocab_size = own.get_vocab_size() + 9
    remedy = "set tokenizer_class: PreTrainedTokenizerFast in tokenizer_config.json"
    with pytest.raises(BadInput, match=f"tokenizer.json; {remedy}"):
        load_tokenizer(folder, config)
    said = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    ids = load_tokenizer(folder, config)("Aspirin")["input_ids"]
    assert ids == own.encode("Aspirin").ids


@pytest.mark.parametrize("name", DESCRIBED)
@pytest.mark.parametrize("content", ["[]", "{"])
def test_a_broken_file_of_a_tokenizer_is_named(
    tiny_model: FolderOf, tmp_path: Path, name: str, content: str
) -> None:
    folder = shutil.copytree(tiny_model("bert"), tmp_path / "model")
    (folder / name).write_text(content)
    with pytest.raises(BadInput, match=f"{name}: not a configuration"):
        load_tokenizer(folder, read_config(folder))


@pytest.mark.parametrize("name", ["tokenizer.json", *DESCRIBED])
def test_a_byte_order_mark_is_named(tiny_model: FolderOf, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(tiny_model("bert"), tmp_path / "model")
    path = folder / name
    text = path.read_text("utf-8") if path.is_file() else "{}"
    path.write_text(text, encoding="utf-8-sig")
    with pytest.raises(BadInput, match=f"{name}: begins with a byte order mark; save it as"):
        load_tokenizer(folder, read_config(folder))

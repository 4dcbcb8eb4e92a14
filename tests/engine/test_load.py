"""Checkpoints of every kind load with the head asked for, or are refused in one line."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from helpers import FolderOf, probing, tiny
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.engine import causal, inspection
from medprobe.engine.inspection import MissingHead, inspect
from medprobe.engine.load import NotANumber, load, use_threads
from medprobe.methods import Method
from medprobe.methods.generative import Generative
from medprobe.methods.perplexity import Perplexity

KINDS = {"bert-cased": ("masked", "encoder"), "encoder": ("encoder",)} | {
    **dict.fromkeys((*tiny.MASKED, "ibert"), ("masked", "encoder")),
    **dict.fromkeys((*tiny.CAUSAL, *tiny.RECURRENT), ("causal",)),
    **dict.fromkeys(tiny.SEQ2SEQ, ("seq2seq",)),
}
MODEL = transformers.AutoModelForCausalLM


def changed(folder: Path, tmp_path: Path, **config: object) -> Path:
    """A copy of a checkpoint to spoil, with other values (None: no such key) in config.json."""
    copy = shutil.copytree(folder, tmp_path / "model")
    content = json.loads((copy / "config.json").read_text())
    content |= config
    changed_content = {key: value for key, value in content.items() if value is not None}
    (copy / "config.json").write_text(json.dumps(changed_content))
    return copy


@pytest.mark.parametrize("arch", KINDS)
def test_each_architecture_loads_as_every_kind_it_can_serve(
    tiny_model: FolderOf, arch: str
) -> None:
    folder = tiny_model(arch)
    assert inspect(folder).kinds == KINDS[arch]
    for kind in KINDS[arch]:
        model = load(folder, kind)
        assert model.name == arch
        assert model.dtype == torch.float32
        assert model.max_length == (512 if arch in ("t5", "flan-t5") else 128)
        assert model.tokenizer.pad_token_id is not None
        assert not model.model.training


def test_a_missing_head_is_refused_and_what_the_checkpoint_can_serve_is_named(
    tiny_model: FolderOf,
) -> None:
    folder = tiny_model("encoder")
    assert "cls.predictions.bias" in inspect(folder).missing["masked"]
    with pytest.raises(MissingHead, match="masked model are missing") as error:
        load(folder, "masked")
    assert str(folder) in str(error.value)
    assert "cls.predictions.bias" in str(error.value)
    assert str(error.value).endswith("it can serve as: encoder")
    assert error.value.kinds == ("encoder",)


@pytest.mark.parametrize("arch", ["encoder", "bert"])
def test_a_checkpoint_is_inspected_without_accelerate_too(
    tiny_model: FolderOf, monkeypatch: pytest.MonkeyPatch, arch: str
) -> None:
    expected, drawn = inspect(tiny_model(arch)), torch.get_rng_state()
    monkeypatch.setattr(inspection, "find_spec", lambda name: None)
    assert inspect(tiny_model(arch)) == expected
    assert torch.equal(torch.get_rng_state(), drawn)


def test_an_architecture_without_the_head_is_refused(tiny_model: FolderOf) -> None:
    with pytest.raises(MissingHead, match=r"is no masked model; .* as: causal$"):
        load(tiny_model("gpt2"), "masked")


def test_a_body_without_a_layer_is_refused(tiny_model: FolderOf, tmp_path: Path) -> None:
    folder = changed(tiny_model("bert"), tmp_path, num_hidden_layers=3)
    assert inspect(folder).kinds == ()
    with pytest.raises(BadInput, match="16 weights of the encoder model are missing"):
        load(folder, "encoder")
    with pytest.raises(BadInput, match="weights of the classifier model are missing"):
        load(folder, "classifier")


def test_a_classifiers_head_is_new_and_drawn_from_the_seed(tiny_model: FolderOf) -> None:
    def weight(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        classifier: torch.Tensor = load(
            tiny_model("bert"), "classifier", labels=3
        ).model.classifier.weight
        return classifier

    assert weight(1).shape == (3, 32)
    assert (weight(1) == weight(1)).all()
    assert (weight(1) != weight(2)).any()


def test_old_files_load_by_the_safe_loader(tiny_model: FolderOf, tmp_path: Path) -> None:
    folder = changed(tiny_model("bert"), tmp_path, model_type=None, architectures=None)
    weights = load_file(folder / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): weight.half()
        for name, weight in weights.items()
    } | {"cls.seq_relationship.weight": torch.ones(2, 32)}
    (folder / "model.safetensors").unlink()
    torch.save(old, folder / "pytorch_model.bin")
    assert inspect(folder).kinds == ("masked", "encoder")
    model = load(folder, "masked").model
    assert model.dtype == torch.float32
    norm = model.cls.predictions.transform.LayerNorm.weight.detach()
    assert norm == pytest.approx(weights["cls.predictions.transform.LayerNorm.weight"], abs=1e-2)


def test_what_is_no_checkpoint_is_refused(tiny_model: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such model folder"):
        load(tmp_path / "nowhere", "masked")
    with pytest.raises(BadInput, match=r"no config\.json"):
        load(tmp_path, "masked")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BadInput, match="not the configuration of a known model"):
        load(tmp_path, "masked")
    shutil.copy(tiny_model("bert") / "config.json", tmp_path)
    with pytest.raises(BadInput, match=r"no file named model\.safetensors, or pytorch_model\.bin"):
        inspect(tmp_path)
    with pytest.raises(BadInput, match="no file named"):
        load(tmp_path, "masked")
    save_file({"a": torch.ones(1)}, tmp_path / "model.safetensors")
    with pytest.raises(BadInput, match="no tokenizer"):
        load(tmp_path, "masked")
    shutil.copy(tiny_model("bert") / "tokenizer.json", tmp_path)
    with pytest.raises(BadInput, match="missing"):
        load(tmp_path, "masked")


UNSAID = (None, {}, {"model_max_length": 128}, {"tokenizer_class": "BertTokenizer"})


def with_tokenizer(folder: Path, tmp_path: Path, file: str, settings: object) -> Path:
    """A copy of a BERT whose tokenizer is one file, and what tokenizer_config.json says."""
    copy = changed(folder, tmp_path)
    vocabulary = transformers.AutoTokenizer.from_pretrained(folder).get_vocab()
    (copy / "tokenizer_config.json").unlink()
    if settings is not None:
        (copy / "tokenizer_config.json").write_text(json.dumps(settings))
    if file == "vocab.txt":
        (copy / "tokenizer.json").unlink()
        (copy / file).write_text("\n".join(sorted(vocabulary, key=vocabulary.get)) + "\n")
    return copy


@pytest.mark.parametrize("arch", ["bert", "bert-cased"])
@pytest.mark.parametrize("file", ["vocab.txt", "tokenizer.json"])
@pytest.mark.parametrize("settings", UNSAID, ids=str)
def test_a_vocabulary_alone_shows_whether_it_is_cased(
    tiny_model: FolderOf, tmp_path: Path, arch: str, file: str, settings: object
) -> None:
    folder = with_tokenizer(tiny_model(arch), tmp_path, file, settings)
    model = load(folder, "masked")
    assert model.tokenizer.tokenize("Aspirin")[0] == ("aspi" if arch == "bert" else "Aspi")
    assert model.max_length == 128  # the tokenizer says 1e30
    model.tokenizer.save_pretrained(tmp_path / "saved")  # as a rewired copy is
    saved = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert saved.tokenize("Aspirin") == model.tokenizer.tokenize("Aspirin")


@pytest.mark.parametrize("file", ["vocab.txt", "tokenizer.json"])
def test_a_file_that_says_whether_it_is_cased_decides(
    tiny_model: FolderOf, tmp_path: Path, file: str
) -> None:
    folder = with_tokenizer(tiny_model("bert-cased"), tmp_path, file, {"do_lower_case": True})
    assert load(folder, "masked").tokenizer.tokenize("SNCA")[0] == "s"


LEFT_OVER = (  # what checkpoints hold besides a body's weights: {} is the body, () a layer of it
    *("classifier.weight", "score.weight", "v_head.summary.weight", "cls.seq_relationship.weight"),
    *("qa_outputs.weight", "lm_predictions.lm_head.bias", "{}.pooler.dense.weight"),
    *("{}.embeddings.position_ids", "{}.embeddings.word_embeddings._weight", "().attn.bias"),
    *("().attention.masked_bias", "().rotary_emb.inv_freq", "encoder.version"),
)


def with_weights(folder: Path, tmp_path: Path, *names: str) -> tuple[Path, list[str]]:
    """A copy of a checkpoint with more weights, and their names."""
    copy = changed(folder, tmp_path)
    weights = load_file(copy / "model.safetensors")
    inside = next(name for name in weights if ".0." in name)
    body, layer = inside.split(".")[0], inside[: inside.index(".0.") + 2]
    added = [name.replace("{}", body).replace("()", layer) for name in names]
    more = {name: torch.ones(tiny.SIZE, tiny.SIZE) for name in added}
    save_file(weights | more, copy / "model.safetensors", {"format": "pt"})
    return copy, added


@pytest.mark.parametrize("arch", KINDS)
def test_heads_and_what_networks_compute_by_themselves_may_stay_unread(
    tiny_model: FolderOf, tmp_path: Path, arch: str
) -> None:
    folder, _ = with_weights(tiny_model(arch), tmp_path, *LEFT_OVER)
    assert inspect(folder).kinds == KINDS[arch]
    for kind in KINDS[arch]:
        load(folder, kind)


@pytest.mark.parametrize("arch", KINDS)
def test_a_weight_of_the_body_that_is_not_read_is_refused_by_name(
    tiny_model: FolderOf, tmp_path: Path, arch: str
) -> None:
    folder, (name,) = with_weights(tiny_model(arch), tmp_path, "().attention.distances.weight")
    for read in (inspect, *(lambda folder, kind=kind: load(folder, kind) for kind in KINDS[arch])):
        end = re.escape(name.rpartition("layers.")[2])  # Gemma 3 renames what is before
        with pytest.raises(BadInput, match=rf"1 weights are not read .*{end}\)"):
            read(folder)


DEPTHS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer", "decoder_layers")


@pytest.mark.parametrize("arch", [arch for arch in KINDS if arch not in ("albert", "gemma3")])
@pytest.mark.parametrize("layers", [-1, 0, 1])
def test_a_configuration_of_fewer_layers_is_refused(
    tiny_model: FolderOf, tmp_path: Path, arch: str, layers: int
) -> None:
    content = json.loads((tiny_model(arch) / "config.json").read_text())
    fewer = {name: layers for name in DEPTHS if name in content}
    folder = changed(tiny_model(arch), tmp_path, **fewer, layer_types=None)
    for kind in KINDS[arch]:
        with pytest.raises(BadInput):
            load(folder, kind)


def test_the_first_layers_alone_are_read_if_asked_for(tiny_model: FolderOf) -> None:
    assert len(load(tiny_model("bert"), "masked", layers=1).model.bert.encoder.layer) == 1


@pytest.mark.parametrize("arch", tiny.MASKED)
def test_a_masked_model_that_reads_one_side_is_refused(
    tiny_model: FolderOf, tmp_path: Path, arch: str
) -> None:
    folder = changed(tiny_model(arch), tmp_path, is_decoder=True)
    for read in (inspect, lambda folder: load(folder, "masked")):
        with pytest.raises(BadInput, match="is_decoder hides from a masked model"):
            read(folder)


def test_a_causal_model_that_reads_both_sides_is_refused(tmp_path: Path) -> None:
    tiny.model("bert-generation", tmp_path / "model")
    with pytest.raises(BadInput, match="a token's output depends on later ones"):
        load(tmp_path / "model", "causal")


def test_a_vocabulary_is_read_by_its_own_algorithm(tiny_model: FolderOf, tmp_path: Path) -> None:
    folder = changed(tiny_model("roberta"), tmp_path)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": "BertTokenizer"}))
    says = "BPE in tokenizer.json, and WordPiece by tokenizer_config.json; correct its"
    for read in (inspect, lambda folder: load(folder, "masked")):
        with pytest.raises(BadInput, match=says):
            read(folder)


@pytest.mark.parametrize("length", ["128", None, 0, -1, 1e30, 5000.0])
def test_a_tokenizer_without_a_usable_length_has_the_models(
    tiny_model: FolderOf, tmp_path: Path, length: object
) -> None:
    folder = changed(tiny_model("bert"), tmp_path)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": length}))
    model = load(folder, "masked")
    assert model.max_length == 128
    assert model.tokenizer("aspirin")["input_ids"]


def test_a_masked_model_needs_a_mask_token(tiny_model: FolderOf, tmp_path: Path) -> None:
    folder = changed(tiny_model("bert"), tmp_path)
    path = folder / "tokenizer_config.json"
    generic = {"mask_token": None, "tokenizer_class": "PreTrainedTokenizerFast"}
    path.write_text(json.dumps(json.loads(path.read_text()) | generic))
    with pytest.raises(BadInput, match="its tokenizer has no mask token"):
        load(folder, "masked")


@pytest.mark.parametrize("start", [None, -1, 99999])
def test_a_decoder_needs_a_token_to_begin_with(
    tiny_model: FolderOf, tmp_path: Path, start: int | None
) -> None:
    folder = changed(tiny_model("t5"), tmp_path, decoder_start_token_id=start)
    with pytest.raises(BadInput, match=r"decoder_start_token_id is .*, which is no token"):
        load(folder, "seq2seq")


def test_a_configuration_with_a_byte_order_mark_is_read(
    tiny_model: FolderOf, tmp_path: Path
) -> None:
    folder = changed(tiny_model("gpt2"), tmp_path)
    for name in ("config.json", "generation_config.json"):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
    (folder / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8-sig")
    assert inspect(folder).kinds == ("chat", "causal")
    assert load(folder, "causal").tokenizer.chat_template == "{{ messages }}"


def test_precision_is_a_parameter(tiny_model: FolderOf) -> None:
    model = load(tiny_model("bert"), "encoder", EngineParams(precision="bfloat16"))
    assert model.dtype == next(model.model.parameters()).dtype == torch.bfloat16


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused(tiny_model: FolderOf) -> None:
    with pytest.raises(BadInput, match="cuda is not there"):
        load(tiny_model("bert"), "encoder", EngineParams(device="cuda"))


@pytest.mark.parametrize("threads", ["0", "-1", "auto", " ", "1e3", "9" * 30])
def test_what_is_no_number_of_threads_is_refused(
    monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    with pytest.raises(BadInput, match=r"OMP_NUM_THREADS: .* is no number of threads"):
        use_threads()


def test_threads_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert use_threads() == torch.get_num_threads() == 1
    torch.set_num_threads(before)


def sharded(folder: Path, out: Path) -> Path:
    """A copy of a checkpoint in many small files."""
    auto = transformers.AutoModelForSeq2SeqLM if "t5" in folder.name else MODEL
    auto.from_pretrained(folder).save_pretrained(out, max_shard_size="40KB")
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(out)
    return out


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux says what is mapped")
@pytest.mark.parametrize("arch", ["gpt2", "llama", "gemma3", "t5"])
def test_on_a_cpu_weights_are_pages_of_their_files_and_no_copies(
    tiny_model: FolderOf, tmp_path: Path, arch: str
) -> None:
    """So that they take no memory of the process's own, whatever the model's size."""
    folder = sharded(tiny_model(arch), tmp_path / arch)
    network = load(folder, inspect(folder).kinds[0], EngineParams(device="cpu")).model
    mapped = [
        [int(end, 16) for end in line.split()[0].split("-")]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if str(folder) in line
    ]
    for name, weight in network.named_parameters():
        assert any(low <= weight.data_ptr() < high for low, high in mapped), name


@pytest.mark.parametrize(
    ("arch", "method"), [("gpt2", Perplexity), ("gemma3", Perplexity), ("t5", Generative)]
)
def test_a_model_that_memory_does_not_hold_is_read_from_its_shards(
    tiny_model: FolderOf, tmp_path: Path, arch: str, method: type[Method]
) -> None:
    pytest.importorskip("accelerate")
    folder = sharded(tiny_model(arch), tmp_path / arch)
    assert len([*folder.glob("model-*.safetensors")]) > 3
    engine, names = EngineParams(device="spread", max_memory={"cpu": "100KB"}), probing.NAMES[:3]
    spread = method(folder, method.Settings(), engine, 0)
    loaded = spread.model if method is Generative else spread.backend.model
    assert sum(weight.is_meta for weight in loaded.model.parameters()) > 0
    task = probing.task(probing.queries(probing.PROMPTS[:1]), probing.candidates(names), 5)
    whole = method(tiny_model(arch), method.Settings(), EngineParams(), 0)
    probing.same(spread.predict(task, ""), whole.predict(task, ""))


def test_weights_on_the_disk_are_checked_too(tiny_model: FolderOf, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    folder = changed(tiny_model("llama"), tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][3, 4] = torch.inf
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    engine = EngineParams(device="spread", max_memory={"cpu": "10KB"})
    with pytest.raises(NotANumber, match=r"the weight model\.layers\.1\.mlp\.up_proj"):
        load(folder, "causal", engine)


def test_old_weights_are_not_spread(tiny_model: FolderOf, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    folder = changed(tiny_model("gpt2"), tmp_path)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(BadInput, match="no safetensors, so that it cannot be spread"):
        load(folder, "causal", EngineParams(device="spread"))


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
@pytest.mark.parametrize("arch", ["bert", "llama", "t5"])
def test_half_precision_is_near(tiny_model: FolderOf, arch: str, precision: Any) -> None:
    kind = inspect(tiny_model(arch)).kinds[0]
    ids = torch.tensor([[1, 5, 6, 7]])
    more = {"decoder_input_ids": ids} if arch == "t5" else {}
    logits = []
    for chosen in ("float32", precision):
        model = load(tiny_model(arch), kind, EngineParams(precision=chosen))
        assert next(model.model.parameters()).dtype == model.dtype == getattr(torch, chosen)
        with torch.no_grad():
            logits.append(model.model(ids, **more).logits.float())
    off = (logits[1] - logits[0]).abs().max()
    assert 0 < off < 0.05 * logits[0].abs().max()


def test_what_is_not_installed_is_named(
    tiny_model: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for engine, package in (
        (EngineParams(device="spread"), "accelerate"),
        (EngineParams(precision="4bit"), "accelerate"),
    ):
        with pytest.raises(BadInput, match=f"{package} is not there; pip install 'medprobe.large"):
            load(tiny_model("gpt2"), "causal", engine)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_has_no_memory(tiny_model: FolderOf) -> None:
    pytest.importorskip("accelerate")
    engine = EngineParams(device="spread", max_memory={"0": "1GiB"})
    with pytest.raises(BadInput, match="there is no GPU 0"):
        load(tiny_model("gpt2"), "causal", engine)


def test_quantised_weights_are_for_models_that_nothing_trains(tiny_model: FolderOf) -> None:
    with pytest.raises(BadInput, match="8bit is for causal and seq2seq models"):
        load(tiny_model("bert"), "masked", EngineParams(precision="8bit"))


@pytest.mark.parametrize("precision", ["8bit", "4bit"])
def test_quantised_weights_are_near(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: Any
) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("bitsandbytes")
    monkeypatch.setattr(tiny, "SIZE", 64)  # a block of 4-bit weights
    folder = tiny.model("gpt_neox", tmp_path / "gpt_neox")
    ids = torch.tensor([[1, 5, 6, 7]])
    quantised = load(folder, "causal", EngineParams(precision=precision))
    expected = load(folder, "causal")
    assert quantised.model.get_memory_footprint() < expected.model.get_memory_footprint()
    with torch.no_grad():
        actual, other = (m.model(ids).logits.float().flatten() for m in (quantised, expected))
    assert torch.corrcoef(torch.stack([actual, other]))[0, 1] > 0.95


def test_a_tokenizer_without_a_padding_token_gets_one(tiny_model: FolderOf, tmp_path: Path) -> None:
    folder = changed(tiny_model("llama"), tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer.pad_token is None
    assert load(folder, "causal").tokenizer.pad_token == "</s>"
    tokenizer.eos_token = None
    tokenizer.save_pretrained(folder)
    model = load(folder, "causal")
    assert model.tokenizer.pad_token == "<unk>"
    rows = [[1, 5, 6], [1, 7, 8, 9, 10]]
    together = causal.log_likelihood(model, rows, 100)
    for row, scores in zip(rows, together, strict=True):
        assert scores == pytest.approx(causal.log_likelihood(model, [row], 100)[0], abs=1e-5)


def test_code_of_a_models_own_is_refused(tiny_model: FolderOf, tmp_path: Path) -> None:
    code = {"AutoConfig": "configuration_mine.Mine"}
    folder = changed(tiny_model("bert"), tmp_path, model_type="mine", auto_map=code)
    (folder / "configuration_mine.py").write_text("raise SystemExit")
    with pytest.raises(BadInput, match=r"a mine model comes with code of its own; .* never run"):
        load(folder, "masked")


class Payload:
    """What runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_pickled_code_in_weights_is_never_run(tiny_model: FolderOf, tmp_path: Path) -> None:
    folder = changed(tiny_model("bert"), tmp_path)
    (folder / "model.safetensors").unlink()
    torch.save({"weights": Payload(tmp_path / "run")}, folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match="its files hold other things than weights"):
        load(folder, "masked")
    assert not (tmp_path / "run").exists()


NOT_OBEYED: dict[str, object] = {  # of a configuration: what it gives, and how fast
    **{"return_dict": False, "use_cache": False, "output_attentions": True, "torchscript": True},
    **{"_attn_implementation": "flash_attention_2", "attn_implementation": "none"},
    **{"torch_dtype": "fp16", "dtype": "float8", "chunk_size_feed_forward": 3},
}


@pytest.mark.parametrize(
    ("arch", "setting"),
    [
        *((arch, field) for arch in ("bert", "gpt2") for field in NOT_OBEYED),
        ("bert", "add_cross_attention"),
    ],
)
def test_settings_of_outputs_and_speed_change_nothing(
    tiny_model: FolderOf, tmp_path: Path, arch: str, setting: str
) -> None:
    folder = changed(tiny_model(arch), tmp_path, **{setting: NOT_OBEYED.get(setting, True)})
    head = inspect(folder).kinds[0]
    ids = torch.tensor([[1, 5, 6, 7]])
    with torch.no_grad():
        actual, expected = (load(f, head).model(ids).logits for f in (folder, tiny_model(arch)))
    assert torch.equal(actual, expected)


def test_an_adapter_is_not_left_out_silently(tiny_model: FolderOf, tmp_path: Path) -> None:
    folder = changed(tiny_model("gpt2"), tmp_path)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(BadInput, match="it holds an adapter, which is not merged"):
        load(folder, "causal")


def test_refused_memory_is_no_damaged_checkpoint(
    tiny_model: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(transformers.AutoModelForMaskedLM, "from_pretrained", refuse)
    with pytest.raises(MemoryError):
        load(tiny_model("bert"), "masked")

"""What a checkpoint is and what it can serve, said of its files: no weights are loaded.

transformers fills weights that a file lacks with random numbers, and makes an empty tokenizer where
there is none; here both are errors. No code that comes with a checkpoint is run, and weights are
read as safetensors or by torch's safe loader.
"""

import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from zipfile import BadZipFile, ZipFile, is_zipfile

import torch
import transformers
from safetensors import SafetensorError, safe_open
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
from transformers.models.auto import modeling_auto

from medprobe.core.errors import BadInput
from medprobe.core.params import ModelKind

Trained = Literal["encoder", "masked", "causal", "seq2seq"]  # heads that come with checkpoints
Head = Trained | Literal["classifier"]
Shapes = dict[str, tuple[int, ...]]  # of weights, by name

AUTO_CLASSES: Final[dict[Head, Any]] = {
    "encoder": transformers.AutoModel,
    "masked": transformers.AutoModelForMaskedLM,
    "causal": transformers.AutoModelForCausalLM,
    "seq2seq": transformers.AutoModelForSeq2SeqLM,
    "classifier": transformers.AutoModelForSequenceClassification,
}
BOUNDS: Final = {  # the largest that is believed of a configuration
    **dict.fromkeys(("num_hidden_layers", "num_layers", "num_decoder_layers", "n_layer"), 1000),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 1000),
    **dict.fromkeys(
        ("num_attention_heads", "encoder_attention_heads", "num_heads", "n_head"), 1000
    ),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd"), 100_000),
    **{"vocab_size": 10_000_000},
}
ADAPTER: Final = "adapter_config.json"  # what PEFT calls it
INDEXES: Final = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
WEIGHTS: Final = ("model.safetensors", "pytorch_model.bin")
TOKENIZERS: Final = {  # files of which one must be there, and the algorithms they tell
    "tokenizer.json": "",
    "vocab.txt": "WordPiece",
    "merges.txt": "BPE",
    "spiece.model": "Unigram",
    "sentencepiece.bpe.model": "Unigram",
    "tokenizer.model": "BPE",
}
UNREADABLE: Final = (  # what the loaders of weights raise
    *(OSError, EOFError, ValueError, RuntimeError, BadZipFile, SafetensorError),
    pickle.UnpicklingError,
)
SHARE: Final = 0.5  # of a model's embeddings that its tokenizer must use, to be its own


@dataclass(frozen=True)
class Checkpoint:
    """What is known of a checkpoint without loading it."""

    folder: Path
    architecture: str  # transformers' model type, e.g. bert
    tokenizer: str  # e.g. WordPiece, BPE, Unigram
    kinds: tuple[ModelKind, ...]  # what it can serve with the weights it has
    missing: dict[str, tuple[str, ...]]  # heads of its architecture → the weights it lacks for them


class MissingHead(BadInput):
    """A checkpoint lacks the head that it was to be loaded with. `kinds` is what it can serve."""

    def __init__(self, checkpoint: Checkpoint, problem: str) -> None:
        self.kinds = checkpoint.kinds
        remedy = f"it can serve as: {', '.join(self.kinds) or 'nothing'}"
        super().__init__(checkpoint.folder, problem, remedy)


def inspect(folder: Path) -> Checkpoint:
    """Say what a checkpoint is and which kinds of model it can serve; no weights are loaded.

    Raises BadInput where the folder holds no checkpoint, or one whose configuration, weights and
    tokenizer do not belong together.
    """
    config = read_config(folder)
    present = weight_shapes(folder)
    missing: dict[str, tuple[str, ...]] = {
        head: _lacking(folder, AUTO_CLASSES[head], config, present) for head in heads(config)
    }
    template = load_tokenizer(folder, config).chat_template
    kinds: tuple[ModelKind, ...] = tuple(head for head in heads(config) if not missing[head])
    if "causal" in kinds and template:
        kinds = ("chat", *kinds)
    lacks = {head: names for head, names in missing.items() if names}
    return Checkpoint(folder, config.model_type, _tokenizer_kind(folder), kinds, lacks)


def read_config(folder: Path) -> Any:
    """A checkpoint's configuration; old BERT files that do not say `model_type` are recognised.

    Raises BadInput where there is none, or one of no model: sizes that are no numbers, or beyond
    BOUNDS.
    """
    if not folder.is_dir():
        raise BadInput(folder, "no such model folder", "run `dvc repro` to make it")
    path = folder / "config.json"
    if (folder / ADAPTER).is_file():
        remedy = "see adapter in docs/own-data.md: it is merged when the model is fetched"
        raise BadInput(folder, "it holds an adapter, which is not merged", remedy)
    if not path.is_file():
        raise BadInput(folder, "no config.json, so this is no checkpoint")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if "model_type" not in content and "type_vocab_size" in content:
            content["model_type"] = "bert"  # BERT's first files, before there were other types
        _check_sizes(path, content)
        return transformers.AutoConfig.for_model(**content)
    except BadInput:
        raise
    except Exception as error:  # of transformers' many configurations
        if "auto_map" in content:
            problem = f"a {content.get('model_type')} model comes with code of its own"
            raise BadInput(path, problem, "such code is never run: choose another model") from error
        problem = f"not the configuration of a known model: {first_line(error)}"
        raise BadInput(path, problem, "give model_type, e.g. bert") from error


def _check_sizes(path: Path, content: dict[str, Any]) -> None:
    if isinstance(nested := content.get("text_config"), dict):
        _check_sizes(path, nested)
    for name, most in BOUNDS.items():
        size = content.get(name)
        if size is not None and not (isinstance(size, int) and 1 <= size <= most):
            raise BadInput(path, f"{name} is {size!r}", f"expected a number from 1 to {most:,}")


def load_tokenizer(folder: Path, config: Any) -> Any:
    """A checkpoint's fast tokenizer, with a padding token. Raises BadInput where there is none, or
    one that is not the model's: with ids that it does not embed, or for a few of its embeddings.

    Where only a vocab.txt says what it is, it is cased if the vocabulary holds capital letters
    (transformers would lower-case in any case).
    """
    if not any((folder / name).is_file() for name in TOKENIZERS):
        remedy = "fetch the checkpoint anew, with its tokenizer"
        raise BadInput(folder, f"no tokenizer: none of {', '.join(TOKENIZERS)}", remedy)
    more = {}
    vocabulary = folder / "vocab.txt"
    told = any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json"))
    try:
        if vocabulary.is_file() and not told:
            words = [line for line in vocabulary.read_text(encoding="utf-8").split("\n")]
            more["do_lower_case"] = not any(
                word != word.lower() for word in words if not word.startswith("[")
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, config=config, local_files_only=True, trust_remote_code=False, **more
        )
    except Exception as error:  # the tokenizers' own library raises nothing narrower
        raise BadInput(folder, f"no tokenizer that can be read: {first_line(error)}") from error
    if not tokenizer.is_fast:
        raise BadInput(folder, "the tokenizer is not a fast one", "save it with tokenizer.json")
    _check_vocabulary(folder, tokenizer, config.get_text_config().vocab_size)
    if tokenizer.pad_token is None:  # any will do: padding is hidden, or stands behind all else
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    return tokenizer


def _check_vocabulary(folder: Path, tokenizer: Any, embedded: int) -> None:
    ids = tokenizer.get_vocab().values()
    remedy = "tokenizer and weights are not of one checkpoint: fetch both anew"
    if (largest := max(ids, default=-1)) >= embedded:
        problem = f"the tokenizer has ids up to {largest:,}, the model embeds {embedded:,}"
        raise BadInput(folder, problem, remedy)
    if len(ids) < SHARE * embedded:
        problem = f"the tokenizer has {len(ids):,} tokens, the model embeds {embedded:,}"
        raise BadInput(folder, problem, remedy)


def heads(config: Any) -> tuple[Trained, ...]:
    """The heads that an architecture is made for."""
    if config.is_encoder_decoder:
        return ("seq2seq",)
    if config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return ("masked", "encoder")
    if config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return ("causal",)
    return ("encoder",)


def weight_shapes(folder: Path) -> Shapes:
    """Names and shapes of the weights in a checkpoint's files, read from headers where there are
    any. Raises BadInput for files that hold anything else, or that an index seeks elsewhere."""
    try:
        found = [shapes for file in _weight_files(folder) for shapes in _shapes(file).items()]
    except UNREADABLE as error:
        raise unreadable(folder, error) from error
    return dict(found)


def _weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights, all in the folder itself: what DVC's hash covers."""
    for name in INDEXES:
        if (index := folder / name).is_file():
            return _indexed(index)
    for name in WEIGHTS:
        if (file := folder / name).is_file():
            return [file]
    raise BadInput(folder, f"no weights: neither {' nor '.join(WEIGHTS)}")


def _indexed(index: Path) -> list[Path]:
    try:
        names = {*json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()}
        if not all(isinstance(name, str) for name in names):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        problem = "no index of weights: expected a JSON object with weight_map"
        raise BadInput(index, problem, "fetch the checkpoint anew") from None
    for name in sorted(names):
        if Path(name).name != name or not (index.parent / name).is_file():
            problem = f"names the file {name!r}, which is not in its folder"
            raise BadInput(index, problem, "fetch the checkpoint anew")
    return [index.parent / name for name in sorted(names)]


def _shapes(file: Path) -> Shapes:
    if file.suffix == ".safetensors":
        with safe_open(file, framework="pt") as weights:
            names = list(weights.keys())
            return {name: tuple(weights.get_slice(name).get_shape()) for name in names}
    if is_zipfile(file):
        with ZipFile(file) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > file.stat().st_size:
            problem = f"{size:,} bytes unzipped: weights are not compressed"
            raise BadInput(file, problem, "fetch the checkpoint anew")
    content = torch.load(file, map_location="meta", weights_only=True)
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise BadInput(file, "no weights by name", "fetch the checkpoint anew")
    return {n: tuple(weight.shape) for n, weight in content.items() if torch.is_tensor(weight)}


def _lacking(folder: Path, auto_class: Any, config: Any, present: Shapes) -> tuple[str, ...]:
    """Weights that a model of this class needs and a file does not have, as `load` would say.
    Raises BadInput for one of another shape than the configuration says."""
    try:
        with torch.device("meta"):
            model = auto_class.from_config(config)
    except Exception as error:  # of transformers' many models
        problem = f"no model can be made of it: {first_line(error)}"
        raise BadInput(folder / "config.json", problem) from error
    expected = dict(model.named_parameters(remove_duplicate=False))
    there = _todays(model, present)
    for name, weight in expected.items():
        found = there.get(name)
        if found and found != tuple(weight.shape):
            problem = f"{name} is of shape {found}, config.json says {tuple(weight.shape)}"
            raise BadInput(folder, problem, "fetch the checkpoint anew")
    return tuple(missing_weights(expected.keys() - there.keys(), "encoder", model))


def _todays(model: Any, present: Shapes) -> Shapes:
    """The weights of a file under the names that transformers gives them as it loads a model; for
    those that it makes of several, no shape."""
    steps = get_model_conversion_mapping(model)
    renamings = [step for step in steps if isinstance(step, WeightRenaming)]
    converters = [step for step in steps if isinstance(step, WeightConverter)]
    prefix, known = model.base_model_prefix, model.state_dict()
    there: Shapes = {}
    for old, shape in present.items():
        name, converted = rename_source_key(old, renamings, converters, prefix, known)
        there[name] = () if converted else shape
    return there


def missing_weights(names: set[str], head: Head, model: Any) -> list[str]:
    """The missing weights that matter: the pooler is never read, a classifier's head is new."""
    tied = set(model.all_tied_weights_keys)
    missing = sorted(name for name in names if "pooler." not in name and name not in tied)
    if head == "classifier":
        return [name for name in missing if name.startswith(f"{model.base_model_prefix}.")]
    return missing


def _tokenizer_kind(folder: Path) -> str:
    """The tokenizer's algorithm as its files tell it."""
    if (file := folder / "tokenizer.json").is_file():
        return str(json.loads(file.read_text(encoding="utf-8"))["model"]["type"])
    return next(kind for name, kind in TOKENIZERS.items() if (folder / name).is_file())


def unreadable(folder: Path, error: Exception) -> BadInput:
    """Of weights that no safe loader reads."""
    reason = first_line(error)
    if isinstance(error, pickle.UnpicklingError):
        reason = "they hold other things than weights, or code, which is never run"
    return BadInput(folder, f"the weights cannot be read safely: {reason}", "fetch them anew")


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]

"""What a checkpoint is, which kinds of model it can serve, and how its files are read.

transformers fills weights that a file lacks with random numbers, and makes an empty tokenizer
where there is none. Here both are errors. Code that comes with a checkpoint is never run: weights
are read as safetensors or by torch's safe loader.
"""

import json
import logging
import pickle
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import compress
from pathlib import Path
from typing import Any, Final, Literal

import torch
import transformers
from tokenizers.normalizers import BertNormalizer

from medprobe.core.errors import BadInput
from medprobe.core.params import ModelKind

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
logging.getLogger("accelerate").setLevel(logging.ERROR)

Trained = Literal["encoder", "masked", "causal", "seq2seq"]  # heads that come with checkpoints
Head = Trained | Literal["classifier"]

AUTO_CLASSES: Final[dict[Head, Any]] = {
    "encoder": transformers.AutoModel,
    "masked": transformers.AutoModelForMaskedLM,
    "causal": transformers.AutoModelForCausalLM,
    "seq2seq": transformers.AutoModelForSeq2SeqLM,
    "classifier": transformers.AutoModelForSequenceClassification,
}
ADAPTER: Final = "adapter_config.json"  # the name that PEFT gives it
VOCABULARY: Final = "vocab.txt"
TOKENIZERS: Final = (  # a checkpoint has at least one of these files
    *("tokenizer.json", VOCABULARY, "merges.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
SHARE: Final = 0.5  # of a model's embeddings that its tokenizer must use, to be its own
BERT_NORMALIZER: Final = {  # setting of a tokenizer → its name in tokenizer.json
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
NOT_OBEYED: Final = {  # of a configuration: what is about speed and memory alone, for one machine
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("chunk_size_feed_forward", "dtype", "torch_dtype"),
}
LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
NO_LENGTH: Final = 10**30  # tokens: transformers' number for a tokenizer that says none
LONGEST_LINE: Final = 200  # characters of a library's error: some list all models there are
MAX_LISTED: Final = 3  # names of weights that an error lists
# What no method reads (a pooler), and what networks compute by themselves, in old files.
UNREAD: Final = re.compile(
    r"\bpooler\b|\b(attn|attention)\.bias$|\.version$|\._\w+$|(position_ids|token_type_ids|inv_freq"
    r"|masked_bias|(cos|sin)_cached|embed_positions\.weights|num_batches_tracked)$"
)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's description."""

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
    """Describe a checkpoint and the kinds of model that it can serve.

    The weights stay on the disk where Accelerate is installed; otherwise safetensors are mapped.

    Raises:
        BadInput: The folder holds no checkpoint, or its configuration, weights and tokenizer do not
            belong together.
    """
    config = read_config(folder)
    placement: dict[str, Any] = (
        {"device_map": "meta"} if find_spec("accelerate") else {"dtype": "auto"}
    )
    with torch.random.fork_rng(devices=[]):  # transformers draws the weights that are missing
        missing: dict[str, tuple[str, ...]] = {
            head: read_model(folder, head, config, **placement)[1] for head in heads(config)
        }
    tokenizer = load_tokenizer(folder, config)
    kinds: tuple[ModelKind, ...] = tuple(head for head in heads(config) if not missing[head])
    if "causal" in kinds and tokenizer.chat_template:
        kinds = ("chat", *kinds)
    algorithm = type(tokenizer.backend_tokenizer.model).__name__
    lacks = {head: names for head, names in missing.items() if names}
    return Checkpoint(folder, config.model_type, algorithm, kinds, lacks)


def read_config(folder: Path) -> Any:
    """Read a checkpoint's configuration; old BERT files without `model_type` are recognised.

    Raises:
        BadInput: There is none, or one of no model that transformers knows.
    """
    if not folder.is_dir():
        raise BadInput(folder, "no such model folder", "run `dvc repro` to make it")
    path = folder / "config.json"
    if (folder / ADAPTER).is_file():
        remedy = "see adapter in docs/how-to/own-data.md: it is merged when the model is fetched"
        raise BadInput(folder, "it holds an adapter, which is not merged", remedy)
    if not path.is_file():
        remedy = "give the folder that has the checkpoint's config.json"
        raise BadInput(folder, "no config.json, so this is no checkpoint", remedy)
    for file in sorted(folder.iterdir()):
        if file.is_file() and _is_pointer(file):
            raise BadInput(file, "a pointer of Git LFS, not the file itself", "run `git lfs pull`")
    content = read_object(path)
    try:
        if "model_type" not in content and "type_vocab_size" in content:
            content["model_type"] = "bert"  # BERT's first files, before there were other types
        config = transformers.AutoConfig.for_model(
            **{name: value for name, value in content.items() if name not in NOT_OBEYED}
        )
    except Exception as error:  # of transformers' many configurations
        if "auto_map" in content:
            problem = f"a {content.get('model_type')} model comes with code of its own"
            raise BadInput(path, problem, "such code is never run: choose another model") from error
        problem = f"not the configuration of a known model: {first_line(error)}"
        raise BadInput(path, problem, "give model_type, e.g. bert") from error
    if not isinstance(config.get_text_config(), transformers.PretrainedConfig):
        problem = f"a {config.model_type} model has no text_config"
        raise BadInput(path, problem, "take text_config out, or correct model_type")
    if "masked" in heads(config):
        if getattr(config, "is_decoder", False):
            problem = "is_decoder hides from a masked model what is behind its mask"
            raise BadInput(path, problem, "set is_decoder: false, or choose another model")
        config.add_cross_attention = False  # to another text, and there is none
    config.return_dict = True  # some say no, and outputs are read by name
    return config


def _is_pointer(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(LFS_POINTER)) == LFS_POINTER


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object of a configuration, with numbers as transformers writes them.

    Raises:
        BadInput: The file is broken.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        return dict(json.loads(text, object_hook=_special_float))
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"not a configuration: {first_line(error)}"
        raise BadInput(path, problem, "fetch the checkpoint again") from error


def _special_float(value: dict[str, Any]) -> Any:
    """Return the number that transformers writes as an object, since JSON has none, or `value`."""
    return float(value["__float__"]) if value.keys() == {"__float__"} else value


def count_layers(folder: Path) -> int:
    """Return how many layers the part of a checkpoint for text has.

    Raises:
        BadInput: The folder holds no checkpoint.
    """
    count: int = read_config(folder).get_text_config().num_hidden_layers
    return count


def heads(config: Any) -> tuple[Trained, ...]:
    """The heads that an architecture is made for."""
    if config.is_encoder_decoder:
        return ("seq2seq",)
    if type(config) in transformers.MODEL_FOR_MASKED_LM_MAPPING:
        return ("masked", "encoder")
    if type(config) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        return ("causal",)
    return ("encoder",)


def count_parameters(folder: Path, head: Head) -> int:
    """Count the parameters of a checkpoint as it is probed: with its head, shared weights once.

    They follow from its configuration, which every loaded checkpoint is checked against. No weight
    is read. A pooler counts for no head, since no method reads it.

    Raises:
        BadInput: as `read_config`.
    """
    with torch.device("meta"):
        model = AUTO_CLASSES[head].from_config(read_config(folder))
    sizes = {id(weight): weight.numel() for weight in model.parameters()}
    pooler = getattr(model, "pooler", None) or getattr(model.base_model, "pooler", None)
    for weight in pooler.parameters() if isinstance(pooler, torch.nn.Module) else ():
        sizes.pop(id(weight), None)
    return sum(sizes.values())


def read_model(
    folder: Path, head: Head, config: Any, *, is_whole: bool = True, **placement: Any
) -> tuple[Any, tuple[str, ...]]:
    """Read a checkpoint's weights by transformers, which also gets `placement`.

    Args:
        folder: The checkpoint.
        head: Which head.
        config: Its configuration.
        is_whole: The network must read all weights of the body that the files have.
        **placement: As `from_pretrained` takes it.

    Returns:
        The model and the names of the weights that its files lack, except those that no method
        reads (a pooler's) and those of a classifier's head, which is new by design.

    Raises:
        BadInput: The weights cannot be read, or are not those of the configuration.
    """
    try:
        model, info = AUTO_CLASSES[head].from_pretrained(
            folder,
            config=config,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            generation_config=transformers.GenerationConfig(),  # `load` reads the checkpoint's
            local_files_only=True,
            trust_remote_code=False,
            **placement,
        )
    except MemoryError:
        raise
    except Exception as error:  # of transformers' many models, and of the loaders of weights
        reason, remedy = first_line(error), "fetch the checkpoint again"
        if isinstance(error, ImportError):  # of a package for quantised weights
            remedy = "install it, or choose a checkpoint that does not need it"
        if isinstance(error, pickle.UnpicklingError):
            reason = "its files hold other things than weights, or code, which is never run"
        problem = f"the model cannot be loaded: {reason}"
        raise BadInput(folder, problem, remedy) from error
    # The head of a classifier is new by design, so that the files need to fit the body alone.
    required = f"{model.base_model_prefix}." if head == "classifier" else ""
    for name, shape, expected in sorted(info["mismatched_keys"]):
        if name.startswith(required):
            problem = f"{name} is of shape {tuple(shape)}, config.json says {tuple(expected)}"
            raise BadInput(folder, problem, "fetch the checkpoint again")
    unread = [name for name in sorted(info["unexpected_keys"]) if _is_of_body(model, name)]
    if is_whole and unread:
        problem = f"{len(unread)} weights are not read by the model of config.json"
        remedy = "take the config.json that belongs to them, or choose another model"
        raise BadInput(folder, f"{problem} ({listed(unread)})", remedy)
    missing = sorted(info["missing_keys"])
    return model, tuple(n for n in missing if n.startswith(required) and "pooler." not in n)


def _is_of_body(model: Any, name: str) -> bool:
    """Return whether a weight of this name would change what the body of a model computes."""
    part = name.removeprefix(f"{model.base_model_prefix}.").partition(".")[0]
    return part in dict(model.base_model.named_children()) and not UNREAD.search(name)


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list."""
    return ", ".join(names[:MAX_LISTED]) + (" …" if len(names) > MAX_LISTED else "")


def load_tokenizer(folder: Path, config: Any) -> Any:
    """Load a checkpoint's fast tokenizer, with a padding token.

    Where no file says whether it is cased, it is if the vocabulary holds capital letters
    (transformers would lower-case in any case).

    Raises:
        BadInput: There is none, or one that is not the model's: with ids that the model does not
            embed, or for a few of its embeddings.
    """
    files = [folder / name for name in TOKENIZERS if (folder / name).is_file()]
    if empty := next((file for file in files if not file.stat().st_size), None):
        raise BadInput(empty, "empty", "fetch the checkpoint again")
    if not files:
        remedy = "fetch the checkpoint again, with its tokenizer"
        raise BadInput(folder, f"no tokenizer: none of {', '.join(TOKENIZERS)}", remedy)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            **_casing(folder, config),
        )
    except BadInput:
        raise
    except Exception as error:  # the tokenizers' library raises nothing narrower
        raise BadInput(folder, f"no tokenizer that can be read: {first_line(error)}") from error
    if not tokenizer.is_fast:
        raise BadInput(folder, "the tokenizer is not a fast one", "save it with tokenizer.json")
    _check_algorithm(folder, tokenizer)
    _check_added(folder, tokenizer)
    _check_vocabulary(folder, tokenizer, config.get_text_config().vocab_size)
    if isinstance(tokenizer.chat_template, str):  # of a file that an editor of Windows saved
        tokenizer.chat_template = tokenizer.chat_template.removeprefix("\ufeff")
    length = tokenizer.model_max_length
    if not isinstance(length, int | float) or length <= 0:
        tokenizer.model_max_length = NO_LENGTH
    if tokenizer.pad_token is None:  # any token will do: padding is hidden, or behind all else
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    return tokenizer


def special_tokens(tokenizer: Any) -> list[str]:
    """Return the texts that a tokenizer reads as special tokens, such as "[SEP]"."""
    return [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]


def write_lower_case(folder: Path) -> None:
    """Let a checkpoint read all texts in lower case and without accents.

    Its tokenizer is written again, and every method and rewired copy then reads as BERT's
    `do_lower_case` does. A cased vocabulary keeps its words with capitals, which no text matches.

    Raises:
        BadInput: The checkpoint has no tokenizer of BERT's kind.
    """
    tokenizer = load_tokenizer(folder, read_config(folder))
    backend = tokenizer.backend_tokenizer
    algorithm = type(backend.model).__name__
    if algorithm != "WordPiece" or not isinstance(backend.normalizer, BertNormalizer):
        problem = f"lower_case is for BERT's word pieces, its tokenizer is {algorithm}"
        raise BadInput(folder, problem, "take lower_case out of params.yaml: models")
    normalizer = backend.normalizer
    normalizer.lowercase = True
    normalizer.strip_accents = None  # as lower-casing has it, they are stripped
    backend.normalizer = normalizer
    tokenizer.do_lower_case = True  # what is written in tokenizer_config.json
    tokenizer.save_pretrained(folder)


def _casing(folder: Path, config: Any) -> dict[str, Any]:
    """Settings of a tokenizer of BERT's kind that tokenizer_config.json does not say.

    transformers has defaults for them, whatever tokenizer.json says.
    """
    path = folder / "tokenizer_config.json"
    said = read_object(path) if path.is_file() else {}
    found: dict[str, Any] = {}
    if (path := folder / "tokenizer.json").is_file():
        if b"BertNormalizer" in (content := path.read_bytes()):
            said_there = json.loads(content)["normalizer"] or {}
            found = {name: said_there.get(there) for name, there in BERT_NORMALIZER.items()}
    elif (path := folder / VOCABULARY).is_file():
        words = path.read_text(encoding="utf-8").split("\n")
        lowers = all(word == word.lower() or word[0] == "[" for word in words)
        found = {"do_lower_case": getattr(config, "do_lower_case", lowers)}
    return {
        name: value for name, value in found.items() if value is not None and said.get(name) is None
    }


def _check_algorithm(folder: Path, tokenizer: Any) -> None:
    """Raise BadInput where transformers reads a vocabulary by another class than its own."""
    path = folder / "tokenizer.json"
    said = (
        re.search(rb'"model":\s*{\s*"type":\s*"(\w+)"', path.read_bytes())
        if path.is_file()
        else None
    )
    algorithm = type(tokenizer.backend_tokenizer.model).__name__
    if said and said[1].decode() != algorithm:
        problem = f"{said[1].decode()} in tokenizer.json, and {algorithm} by tokenizer_config.json"
        raise BadInput(folder, problem, "correct its tokenizer_class")


def _check_added(folder: Path, tokenizer: Any) -> None:
    encoding = tokenizer.backend_tokenizer.encode("a")
    added = compress(encoding.ids, encoding.special_tokens_mask)
    if wrong := [number for number in added if number not in tokenizer.added_tokens_decoder]:
        names = listed(tokenizer.convert_ids_to_tokens(wrong))
        problem = f"the tokenizer adds {names} to each text, which is no special token"
        raise BadInput(folder, problem, "correct tokenizer_config.json")


def _check_vocabulary(folder: Path, tokenizer: Any, embedded: int) -> None:
    """Raise BadInput unless the tokenizer has about as many tokens as the model embeds."""
    ids = tokenizer.get_vocab().values()
    remedy = "tokenizer and weights are not of one checkpoint: fetch both again"
    if (largest := max(ids, default=-1)) >= embedded:
        problem = f"the tokenizer has ids up to {largest:,}, the model embeds {embedded:,}"
        raise BadInput(folder, problem, remedy)
    if len(ids) < SHARE * embedded:
        problem = f"the tokenizer has {len(ids):,} tokens, the model embeds {embedded:,}"
        raise BadInput(folder, problem, remedy)


def first_line(error: Exception) -> str:
    """The first line of an error's text, as far as people read, or its type where it has none."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".: ")
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"

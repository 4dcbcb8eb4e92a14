"""How a checkpoint's texts become tokens: as its tokenizer.json says, where it has one."""

from codecs import BOM_UTF8
from itertools import compress
from pathlib import Path
from typing import Any, Final

import transformers
from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import ByteLevel

from medprobe.core.checkpoints import VOCABULARIES, files_of, matching
from medprobe.core.errors import BadInput
from medprobe.engine.configuration import first_line, listed, read_config, read_object

VOCABULARY: Final = "vocab.txt"
DESCRIBED: Final = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
SHARE: Final = 0.5  # of a model's embeddings that its tokenizer must use, to be its own
BERT_NORMALIZER: Final = {  # setting of a tokenizer → its name in tokenizer.json
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
NO_LENGTH: Final = 10**30  # tokens: transformers' number for a tokenizer that says none


def load_tokenizer(folder: Path, config: Any) -> Any:
    """Load a checkpoint's fast tokenizer, with a padding token.

    Where no file says whether it is cased, it is if the vocabulary holds capital letters
    (transformers would lower-case in any case).
    """
    files = tokenizer_files(folder)
    if empty := next((file for file in files if not file.stat().st_size), None):
        raise BadInput(empty, "empty", "fetch the checkpoint again")
    if not files:
        remedy = "fetch the checkpoint again, with its tokenizer"
        raise BadInput(folder, f"no tokenizer: none of {', '.join(VOCABULARIES)}", remedy)
    described = [folder / name for name in DESCRIBED]
    for path in (folder / "tokenizer.json", *described):
        if path.is_file() and _has_mark(path):
            raise BadInput(path, "begins with a byte order mark", "save it as UTF-8 without one")
    said, *_ = (read_object(path) if path.is_file() else {} for path in described)
    own = _read_own(folder / "tokenizer.json")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            **_casing(folder, config, own, said),
        )
    except Exception as error:  # the tokenizers' library raises nothing narrower
        problem, remedy = f"no tokenizer that can be read: {first_line(error)}", ""
        if own:
            named = said.get("tokenizer_class") or f"the class of a {config.model_type} model"
            algorithm = f"{type(own.model).__name__} ({first_line(error)})"
            problem = f"{named} cannot take the {algorithm} of tokenizer.json"
            remedy = "set tokenizer_class: PreTrainedTokenizerFast in tokenizer_config.json"
        raise BadInput(folder, problem, remedy) from error
    if not tokenizer.is_fast:
        raise BadInput(folder, "the tokenizer is not a fast one", "save it with tokenizer.json")
    if own:
        _read_by(own, folder, tokenizer, said)
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


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files that hold a tokenizer's vocabulary."""
    names = files_of(folder)
    return [folder / name for pattern in VOCABULARIES for name in matching(names, [pattern])]


def special_tokens(tokenizer: Any) -> list[str]:
    """Return the texts that a tokenizer reads as special tokens, such as "[SEP]"."""
    return [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]


def write_lower_case(folder: Path) -> None:
    """Let a checkpoint read all texts in lower case and without accents.

    Its tokenizer is written again, and every method and rewired copy then reads as BERT's
    `do_lower_case` does. A cased vocabulary keeps its words with capitals, which no text matches.
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


def _has_mark(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(BOM_UTF8)) == BOM_UTF8


def _read_own(path: Path) -> Tokenizer | None:
    """Read tokenizer.json, without what drops merges at random, which is for training."""
    if not path.is_file():
        return None
    try:
        own = Tokenizer.from_file(str(path))
    except Exception as error:  # the tokenizers' library raises nothing narrower
        problem = f"no tokenizer that can be read: {first_line(error)}"
        raise BadInput(path, problem, "fetch the checkpoint again") from error
    if getattr(own.model, "dropout", None):
        own.model.dropout = None
    return own


def _casing(
    folder: Path, config: Any, own: Tokenizer | None, said: dict[str, Any]
) -> dict[str, Any]:
    """Settings of a tokenizer of BERT's kind that tokenizer_config.json does not say.

    transformers has defaults for them, and saves these with a copy.
    """
    found: dict[str, Any] = {}
    if own and isinstance(normalizer := own.normalizer, BertNormalizer):
        found = {name: getattr(normalizer, there) for name, there in BERT_NORMALIZER.items()}
    elif not own and (path := folder / VOCABULARY).is_file():
        words = path.read_text(encoding="utf-8").split("\n")
        lowers = all(word == word.lower() or word[0] == "[" for word in words)
        found = {"do_lower_case": getattr(config, "do_lower_case", lowers)}
    return {
        name: value for name, value in found.items() if value is not None and said.get(name) is None
    }


def _read_by(own: Tokenizer, folder: Path, tokenizer: Any, said: dict[str, Any]) -> None:
    """Let a tokenizer read texts as tokenizer.json has it.

    transformers takes the vocabulary alone from it for many classes, and normalises and splits
    texts as their first model does. What tokenizer_config.json says in so many words still counts:
    further tokens, BERT's casing, a blank before a text, whether it begins or ends with a token.
    """
    classes = tokenizer.backend_tokenizer
    algorithms = [type(backend.model).__name__ for backend in (own, classes)]
    if algorithms[0] != algorithms[1]:
        problem = "{} in tokenizer.json, and {} by tokenizer_config.json".format(*algorithms)
        raise BadInput(folder, problem, "correct its tokenizer_class")
    if isinstance(normalizer := own.normalizer, BertNormalizer):
        for name, there in BERT_NORMALIZER.items():
            if said.get(name) is not None:
                setattr(normalizer, there, said[name])
        own.normalizer = normalizer
    if isinstance(splitting := own.pre_tokenizer, ByteLevel) and "add_prefix_space" in said:
        splitting.add_prefix_space = bool(said["add_prefix_space"])
        own.pre_tokenizer = splitting
    if own.post_processor is None or {"add_bos_token", "add_eos_token"} & said.keys():
        own.post_processor = classes.post_processor
    said_tokens = said.get("added_tokens_decoder") or {}
    in_file = {token.content: token for token in own.get_added_tokens_decoder().values()}
    for number, added in sorted(tokenizer.added_tokens_decoder.items()):
        same = in_file.get(added.content)
        if same and (same.special or not added.special) and str(number) not in said_tokens:
            continue
        (own.add_special_tokens if added.special else own.add_tokens)([added])
    own.encode_special_tokens = tokenizer.split_special_tokens
    tokenizer._tokenizer = own


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

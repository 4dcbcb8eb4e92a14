"""Which files make a checkpoint, and how one of the hub is named: for downloads, copies, errors.

The files are configuration, tokenizer and weights at the top of a folder or of a repository. Code
and the weights of other frameworks stay where they are.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from medprobe.core.errors import BadInput

CONFIG: Final = "config.json"
ADAPTER: Final = ("adapter_config.json", "adapter_model.safetensors")  # as PEFT writes them
VOCABULARIES: Final = (  # a tokenizer is one of these files at least
    *("tokenizer.json", "vocab.txt", "merges.txt", "*.model", "*.tiktoken", "tekken.json"),
)
TOKENIZER: Final = (
    *(*VOCABULARIES, "*vocab.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "normalizer.json"),
)
TEMPLATES: Final = ("*.jinja", "additional_chat_templates/*.jinja")  # for chats
DESCRIPTION: Final = (
    *(CONFIG, "generation_config.json", *TOKENIZER, *TEMPLATES),
    # The modules of a sentence encoder, such as 1_Pooling.
    *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
    "[0-9]_*/*.json",
    *("[0-9]_*/model.safetensors", "[0-9]_*/pytorch_model.bin"),
)
WEIGHTS: Final = (  # the first of them counts, as in transformers
    *("model.safetensors", "model.safetensors.index.json"),
    *("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
OTHER_WEIGHTS: Final = (".h5", ".msgpack", ".ot", ".onnx", ".safetensors", ".bin", ".pth", ".ckpt")
LISTED: Final = 3  # files that an error names
HUB: Final = re.compile(r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/+")
HUB_NAME: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
NO_MODELS: Final = ("datasets", "spaces", "collections", "papers", "docs", "blog")  # on the hub
AT_REVISION: Final = ("tree", "blob", "resolve", "commit", "raw")  # before it, in an address


class NotOnHub(BadInput):
    """The hub, or its local cache, has no model of this name, or does not answer."""


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that match a pattern, sorted; a star matches no slash.

    >>> matching(["spm.model", "old/spm.model", "run.py"], ["*.model"])
    ['spm.model']
    """
    by_depth = [(pattern, pattern.count("/")) for pattern in patterns]
    return sorted(
        name
        for name in names
        if any(name.count("/") == depth and fnmatchcase(name, shape) for shape, depth in by_depth)
    )


def needed(names: Collection[str], read: Callable[[str], str]) -> list[str]:
    """Return the files of a checkpoint or an adapter, also those that its index names in vain."""
    files = matching(names, (*DESCRIPTION, *ADAPTER))
    weights = next((name for name in WEIGHTS if name in names), None)
    if weights and weights.endswith(".json"):
        try:
            files += {*map(str, json.loads(read(weights))["weight_map"].values())}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(weights, "no index of weights", "fetch it again") from error
    return sorted([*files, weights] if weights else files)


def files_of(folder: Path) -> list[str]:
    """Return the names of a folder's files, and of those one level below, with a slash."""
    found = [*folder.glob("*"), *folder.glob("*/*")]
    return sorted(file.relative_to(folder).as_posix() for file in found if file.is_file())


def needed_of(folder: Path) -> list[str]:
    """Return what a folder's checkpoint needs, whether it is there or not."""
    return needed(files_of(folder), lambda name: (folder / name).read_text(encoding="utf-8"))


def lacking(folder: Path) -> list[str]:
    """Return files that a checkpoint or an adapter needs and a folder has not."""
    names = files_of(folder)
    if {*ADAPTER} & {*names} and CONFIG not in names:
        return [name for name in ADAPTER if name not in names]
    lost = [name for name in needed_of(folder) if name not in names]
    lost += [] if CONFIG in names else [CONFIG]
    lost += [] if {*WEIGHTS} & {*names} else [WEIGHTS[0]]
    return lost + ([] if matching(names, VOCABULARIES) else [VOCABULARIES[0]])


def describe_other(names: Collection[str]) -> tuple[str, str] | None:
    """Say what files are that are no checkpoint, and what to do; None for a checkpoint or adapter.

    >>> describe_other(["README.md", "m-Q4.gguf", "m-Q8.gguf"])
    ('GGUF files and no checkpoint (m-Q4.gguf, m-Q8.gguf)', 'download one and give its path')
    >>> describe_other(["small/config.json"])
    ('no checkpoint, but some in its subfolders (small)', 'download one and give its folder')
    >>> describe_other(["checkpoint-9/adapter_config.json", "README.md"])
    ('no checkpoint, but some in its subfolders (checkpoint-9)', 'download one and give its folder')
    >>> describe_other(["config.json", "tf_model.h5"])
    ('no weights of PyTorch (it has tf_model.h5)', 'choose another checkpoint')
    """
    if ADAPTER[0] in names or (CONFIG in names and {*WEIGHTS} & {*names}):
        return None
    if found := [name for name in names if name.endswith(".gguf")]:
        return f"GGUF files and no checkpoint ({_some(found)})", "download one and give its path"
    if CONFIG not in names:
        ends = (f"/{CONFIG}", f"/{ADAPTER[0]}")
        if found := sorted({name.rpartition("/")[0] for name in names if name.endswith(ends)}):
            problem = f"no checkpoint, but some in its subfolders ({_some(found)})"
            return problem, "download one and give its folder"
        return f"no checkpoint: no {CONFIG}", "give what has it"
    found = [name for name in names if name.endswith(OTHER_WEIGHTS)]
    there = f" (it has {_some(found)})" if found else ""
    return f"no weights of PyTorch{there}", "choose another checkpoint"


def parse_hub_name(text: str) -> tuple[str, str | None] | None:
    """Return the name and the revision that a name or an address of the hub has, or None.

    >>> parse_hub_name("gpt2"), parse_hub_name("https://huggingface.co/lab/bert/tree/v1?x=1")
    (('gpt2', None), ('lab/bert', 'v1'))
    >>> parse_hub_name("https://huggingface.co/datasets/lab/facts"), parse_hub_name("a/b/c")
    (None, None)
    >>> parse_hub_name("lab/bert/"), parse_hub_name("lab/bert@v1")
    (('lab/bert', None), ('lab/bert', 'v1'))
    """
    mirror = os.environ.get("HF_ENDPOINT", "").rstrip("/") + "/"
    path = text.removeprefix(mirror) if mirror != "/" else text
    path = HUB.sub("", path, count=1) if HUB.match(path) else path
    revision: str | None = None
    if path != text:  # an address
        parts = [part for part in re.split("[?#]", path)[0].split("/") if part]
        place = next((i for i, part in enumerate(parts[:3]) if part in AT_REVISION), len(parts))
        path, revision = "/".join(parts[:place][:2]), "/".join(parts[place + 1 : place + 2]) or None
        if parts[:1] and parts[0] in NO_MODELS:
            return None
    else:
        path, _, revision = path.removesuffix("/").partition("@")
    return (path, revision or None) if HUB_NAME.fullmatch(path) else None


def _some(names: list[str]) -> str:
    return ", ".join(names[:LISTED]) + (" …" if len(names) > LISTED else "")

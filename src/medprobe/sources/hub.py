"""Checkpoints of the model hub, and which of a checkpoint's files are needed."""

import re
from pathlib import Path
from typing import Any, Final

from medprobe.core.errors import BadInput
from medprobe.core.params import HubModel

WEIGHTS: Final = ("model*.safetensors", "model.safetensors.index.json")
OLD_WEIGHTS: Final = ("pytorch_model*.bin", "pytorch_model.bin.index.json")
DESCRIPTION: Final = (  # configuration and tokenizer, and nothing else: no code, no other framework
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"),
    "chat_template.jinja",
    *("spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
ADAPTER: Final = ("adapter_config.json", "adapter_model.safetensors")  # as PEFT writes them
CREDENTIALS: Final = re.compile(r"//[^/@\s]+@")  # in an address
HUB_WAIT: Final = 5  # seconds for the hub's first answer


def fetch_snapshot(model: HubModel, offline: bool) -> Path:
    """Find a hub model in the hub's local cache, or download it.

    One quick request comes before the download, so that a machine without a network fails at once.

    Args:
        model: the hub's name, and a revision if it is pinned.
        offline: use the cache alone.

    Returns:
        The folder in the cache.

    Raises:
        BadInput: the model is not in the cache while working offline, is gated, or cannot be
            downloaded.
    """
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import GatedRepoError

    name = model.hub
    cached = _cached(name, model.revision)
    if cached is not None:
        return cached
    if offline or constants.HF_HUB_OFFLINE:
        raise BadInput(
            name, "not in the hub's local cache, and working offline", "fetch it while online"
        )
    try:
        # Asked for the files first: of a checkpoint in both formats only safetensors are fetched.
        info: Any = HfApi().model_info(name, revision=model.revision, timeout=HUB_WAIT)
        files = [file.rfilename for file in info.siblings or []]
        safe = any(file.endswith(".safetensors") and "/" not in file for file in files)
        patterns = [*DESCRIPTION, *ADAPTER, *(WEIGHTS if safe else OLD_WEIGHTS)]
        return Path(snapshot_download(name, revision=info.sha, allow_patterns=patterns))
    except GatedRepoError as error:
        page = without_secrets(f"{constants.ENDPOINT}/{name}")
        problem = "gated: only users who accepted its licence can download it"
        remedy = f"accept it at {page}, and set HF_TOKEN to a token of your account"
        raise BadInput(name, problem, remedy) from error
    except Exception as error:  # of the hub's client and of several libraries below it
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        remedy = "check its name and the network, or give a folder instead"
        problem = f"cannot be downloaded from the hub: {without_secrets(reason)}"
        raise BadInput(name, problem, remedy) from error


def without_secrets(text: str) -> str:
    """Remove the hub's token, and names and passwords in addresses, from a text.

    >>> without_secrets("401 for https://me:secret@hub.example/model")
    '401 for https://hub.example/model'
    """
    from huggingface_hub import get_token

    if token := get_token():
        text = text.replace(token, "***")
    return CREDENTIALS.sub("//", text)


def _cached(name: str, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, ValueError):
        return None
    is_complete = ((folder / "config.json").is_file() and find_weights(folder)) or match_files(
        folder, ADAPTER
    )
    return folder if is_complete else None


def match_files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files of a folder that match one of the patterns, sorted."""
    return sorted(file for pattern in patterns for file in folder.glob(pattern))


def find_weights(folder: Path) -> list[Path]:
    """The files of a checkpoint's weights: safetensors, or the older format if there are none."""
    return match_files(folder, WEIGHTS) or match_files(folder, OLD_WEIGHTS)

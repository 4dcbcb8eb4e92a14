"""Checkpoints of the model hub, and which of a checkpoint's files are needed."""

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
HUB_WAIT: Final = 5  # seconds for the hub's first answer


def fetched(model: HubModel, offline: bool) -> Path:
    """The folder of a hub model in the hub's local cache, downloaded if need be.

    The cache is looked at first, and the hub is asked once before anything is downloaded, so that
    a machine without a network is told so at once.
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
        info: Any = HfApi().model_info(name, revision=model.revision, timeout=HUB_WAIT)
        files = [file.rfilename for file in info.siblings or []]
        safe = any(file.endswith(".safetensors") and "/" not in file for file in files)
        wanted = [*DESCRIPTION, *ADAPTER, *(WEIGHTS if safe else OLD_WEIGHTS)]
        return Path(snapshot_download(name, revision=info.sha, allow_patterns=wanted))
    except GatedRepoError as error:
        page = f"{constants.ENDPOINT}/{name}"
        problem = "gated: the hub gives it to those alone who accepted its licence"
        remedy = f"accept it at {page}, and set HF_TOKEN to a token of your account"
        raise BadInput(name, problem, remedy) from error
    except Exception as error:  # of the hub's client and of several libraries below it
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        remedy = "check its name and the network, or give a folder instead"
        raise BadInput(name, f"cannot be fetched from the hub: {reason}", remedy) from error


def _cached(name: str, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, ValueError):
        return None
    whole = ((folder / "config.json").is_file() and weights(folder)) or matching(folder, ADAPTER)
    return folder if whole else None


def matching(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files of a folder that these patterns name, in order."""
    return sorted(file for pattern in patterns for file in folder.glob(pattern))


def weights(folder: Path) -> list[Path]:
    """The files of a checkpoint's weights: safetensors, or where there are none the older form."""
    return matching(folder, WEIGHTS) or matching(folder, OLD_WEIGHTS)

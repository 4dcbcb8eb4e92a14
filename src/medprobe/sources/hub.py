"""Checkpoints of the model hub: what medprobe needs of them, whole, in the hub's local cache."""

import re
from pathlib import Path
from typing import Any, Final

from medprobe.core.checkpoints import ADAPTER, CONFIG, NotOnHub, describe_other, lacking, needed
from medprobe.core.environment import find_cause
from medprobe.core.errors import BadInput
from medprobe.core.params import HubModel

CREDENTIALS: Final = re.compile(r"//[^/@\s]+@")  # in an address
HUB_WAIT: Final = 5  # seconds for the hub's first answer


def fetch_snapshot(model: HubModel, offline: bool) -> Path:
    """Find a hub model in the hub's local cache, or download what is missing of it.

    One quick request comes before the download, so that a machine without a network fails at once,
    or takes the copy in the cache where that is whole.
    """
    from huggingface_hub import HfApi, constants, hf_hub_download, snapshot_download

    name, revision = model.hub, model.revision
    cached = _cached(name, revision)
    lost = lacking(cached) if cached else []
    if offline or constants.HF_HUB_OFFLINE:
        if cached and not lost:
            return cached
        if not cached:
            problem = "not in the hub's local cache, and working offline"
            raise NotOnHub(name, problem, "fetch it while online")
        problem = f"its copy in the hub's local cache lacks {', '.join(lost)}, and working offline"
        raise BadInput(name, problem, "fetch it while online")
    try:
        info: Any = HfApi().model_info(
            name, revision=revision, timeout=HUB_WAIT, files_metadata=True
        )
    except Exception as error:  # of the hub's client and of several libraries below it
        if cached and not lost:
            return cached
        raise _refusal(name, error) from error
    names = [file.rfilename for file in info.siblings or []]
    if other := describe_other(names):
        raise BadInput(name, f"it holds {other[0]}", other[1])

    def read(file: str) -> str:
        return Path(hf_hub_download(name, file, revision=info.sha)).read_text(encoding="utf-8")

    try:
        files = needed(names, read)
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=files))
        for file in info.siblings:  # a copy that another program cut stays as it is
            path = folder / file.rfilename
            if file.size and path.is_file() and path.stat().st_size != file.size:
                hf_hub_download(name, file.rfilename, revision=info.sha, force_download=True)
    except BadInput as error:
        raise BadInput(name, str(error)) from error
    except Exception as error:
        raise _refusal(name, error) from error
    if lost := [file for file in files if not (folder / file).is_file()]:
        raise BadInput(name, f"the hub lacks its {', '.join(lost)}", "choose another checkpoint")
    return folder


def _refusal(name: str, error: Exception) -> BadInput:
    """Return the error for what the hub or the network refuses."""
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if isinstance(error, GatedRepoError):
        page = without_secrets(f"{constants.ENDPOINT}/{name}")
        problem = "gated: only users who accepted its licence can download it"
        remedy = f"accept it at {page}, and set HF_TOKEN to a token of your account"
        return BadInput(name, problem, remedy)
    if isinstance(error, RepositoryNotFoundError):
        problem = "the hub has no such model, or keeps it from you"
        return NotOnHub(name, problem, "check its name, or set HF_TOKEN if it is private")
    if cause := find_cause(error):
        return NotOnHub(name, f"cannot be downloaded from the hub: {cause}")
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    remedy = "check its name and the network, or give a folder instead"
    return NotOnHub(name, f"cannot be downloaded from the hub: {without_secrets(reason)}", remedy)


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
    """Return the folder of a revision in the hub's local cache, which may lack files."""
    from huggingface_hub import try_to_load_from_cache

    for file in (CONFIG, ADAPTER[0]):
        path = try_to_load_from_cache(name, file, revision=revision)
        if isinstance(path, str):
            return Path(path).parent
    return None

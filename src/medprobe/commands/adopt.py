"""Command `adopt`: a paper's benchmarks, methods, rewiring and models, put into `params.yaml`."""

import difflib
import re
from pathlib import Path
from typing import Any, Final

import yaml
from ruamel.yaml import YAML

from medprobe import check
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.params import Params, load_params, parse_section
from medprobe.papers import Paper, papers

WIDTH: Final = 160
SAMPLE: Final = ("train", "continued")  # the sample world's models, which no paper probes


def adopted(name: str, path: Path = check.PARAMS) -> tuple[str, str]:
    """`(the file as it is, the file with the paper's settings)`.

    The sections that the paper has take the place of one's own; models of one's own stay, the
    sample world's go. What stands above a section, comments too, and all other sections stay to
    the letter. Raises BadInput for a name that is no paper's, and where the outcome would not do.
    """
    if name not in (known := papers()):
        problem = f"no paper '{name}'{nearest(name, [*known])}"
        raise BadInput("adopt", problem, f"there are: {', '.join(known)}")
    params = load_params(path)
    before = path.read_text(encoding="utf-8")
    after = before
    for key, value in _sections(known[name], params).items():
        after = _replaced(after, key, value)
    check.check(parse_section(Params, YAML(typ="safe").load(after), f"{path} after {name}"))
    return before, after


def difference(before: str, after: str, path: Path = check.PARAMS) -> str:
    """What would change, as a unified diff; nothing where nothing would."""
    lines = (before.splitlines(keepends=True), after.splitlines(keepends=True))
    return "".join(difflib.unified_diff(*lines, str(path), f"{path} (adopted)"))


def write(text: str, path: Path = check.PARAMS) -> None:
    """Write params.yaml; it changes whole or not at all."""
    with replacing(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def remarks(name: str) -> list[str]:
    """What a person has to know beside: models without a hub name, gated ones, what is open."""
    paper = papers()[name]
    said = [f"{model}: {one.note}" for model, one in paper.models.items() if one.note]
    said += [
        f"{model}: the hub asks for consent" for model, one in paper.models.items() if one.gated
    ]
    return [*said, *(f"left open: {one}" for one in paper.open)]


def _sections(paper: Paper, params: Params) -> dict[str, Any]:
    """The sections to write, by name."""
    sample = {*params.train, *params.continued}
    fetch = {name: model.model_dump(exclude_none=True) for name, model in params.fetch.items()}
    models: dict[str, dict[str, Any]] = {
        kind: {
            name: about.model_dump(exclude_defaults=True)
            for name, about in named.items()
            if name not in sample
        }
        for kind, named in params.models.by_kind().items()
    }
    mine = {name for named in models.values() for name in named}
    for printed, model in paper.models.items():
        name = _file_name(printed)
        if model.hub and name not in mine:
            fetch[name] = {"hub": model.hub, "revision": model.revision}
            models[model.kind][name] = {"published": printed}
    sections: dict[str, Any] = {name: {} for name in SAMPLE}
    sections |= {"fetch": fetch, "models": {kind: named for kind, named in models.items() if named}}
    sections |= paper.adopted.model_dump(mode="json")
    if not sections["rewire"]:
        del sections["rewire"]  # the section must stay
    return sections


def _file_name(printed: str) -> str:
    """A model's name for files.

    >>> _file_name("Bio ClinicalBERT")
    'bio-clinicalbert'
    """
    return re.sub(r"[^a-z0-9]+", "-", printed.lower()).strip("-")


def _replaced(text: str, key: str, value: Any) -> str:
    """The text with another value of a section, or with the section at its end."""
    found = re.search(rf"^{key}:.*\n(?:[ \t]+.*\n|[ \t]*\n(?=[ \t]))*", text + "\n", re.MULTILINE)
    body = yaml.safe_dump(
        {key: value}, default_flow_style=None, sort_keys=False, allow_unicode=True, width=WIDTH
    )
    if found is None:
        return f"{text.rstrip()}\n\n{body}"
    return text[: found.start()] + body + text[found.end() :]

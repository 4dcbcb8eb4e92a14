"""`medprobe adopt`: put a paper's benchmarks, methods, rewiring and models into `params.yaml`."""

import difflib
import re
from pathlib import Path
from typing import Any, Final

import yaml
from ruamel.yaml import YAML

from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.papers import PaperModel, papers
from medprobe.core.params import ModelParams, Params, find_settings, load_params
from medprobe.core.settings import parse_section
from medprobe.pipeline import check

WIDTH: Final = 160
SAMPLE: Final = ("train", "continued")  # the sample world's models, which no paper probes


def adopt(name: str, path: Path = check.PARAMS) -> tuple[str, str]:
    """Put a paper's settings into the text of params.yaml, without writing it.

    The paper's sections replace those of the file. The user's models stay, and those of the sample
    world are removed. Other sections and comments do not change.

    Returns:
        The text of the file, and the text with the paper's settings.

    Raises:
        BadInput: for an unknown paper, and if the new text is not valid.
    """
    by_name = papers()
    if name not in by_name:
        problem = f"no paper '{name}'{nearest(name, [*by_name])}"
        raise BadInput("adopt", problem, f"choose one of {', '.join(by_name)}")
    params = load_params(path)
    old_text = path.read_text(encoding="utf-8")
    new_text = old_text
    for key, value in _sections(name, params).items():
        new_text = _replace_section(new_text, key, value)
    check.check(parse_section(Params, YAML(typ="safe").load(new_text), f"{path} after {name}"))
    return old_text, new_text


def difference(old_text: str, new_text: str, path: Path = check.PARAMS) -> str:
    """Format a change as a unified diff; empty if the texts are equal."""
    lines = (old_text.splitlines(keepends=True), new_text.splitlines(keepends=True))
    return "".join(difflib.unified_diff(*lines, str(path), f"{path} (adopted)"))


def write(text: str, path: Path = check.PARAMS) -> None:
    """Replace params.yaml; if writing fails, the old file stays."""
    with replacing(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def remarks(name: str, path: Path = check.PARAMS) -> list[str]:
    """List what else a user must know: notes on checkpoints, models that stay, open questions."""
    paper, params = papers()[name], load_params(path)
    models = paper.models.items()
    notes = [f"{name}: {model.note}" for name, model in models if model.note]
    gated = [f"{name}: the hub requires your consent" for name, model in models if model.gated]
    differences = [
        f"{name}: {text}" for name, model in models if (text := _differs(name, model, params))
    ]
    return [
        *notes,
        *gated,
        *differences,
        *(f"open question: {question}" for question in paper.open),
    ]


def _differs(printed: str, model: PaperModel, params: Params) -> str:
    """Describe how the user's model of this name differs from the paper's; "" if it does not."""
    name = _file_name(printed)
    if name not in params.models.all() or name in {*params.train, *params.continued}:
        return ""
    hub = params.fetch[name].hub if name in params.fetch else "another place"
    if (params.models.kind(name), hub) == (model.kind, model.hub):
        return ""
    paper = f"the paper has {model.hub} as {model.kind}" if model.hub else "the hub has none"
    return f"your model {name}, {hub} as {params.models.kind(name)}, stays; {paper}"


def _sections(file: str, params: Params) -> dict[str, Any]:
    """The sections to write, by name."""
    paper = papers()[file]
    sample = {*params.train, *params.continued}
    fetch = {name: model.model_dump(exclude_none=True) for name, model in params.fetch.items()}
    models: dict[str, dict[str, Any]] = {
        kind: {
            name: settings.model_dump(exclude_defaults=True)
            for name, settings in by_name.items()
            if name not in sample
        }
        for kind, by_name in params.models.by_kind().items()
    }
    user_models = {name for by_name in models.values() for name in by_name}
    for printed, model in paper.models.items():
        name = _file_name(printed)
        published = printed if paper.stands else f"{file}/{printed}"
        for own in (by_name[name] for by_name in models.values() if name in by_name):
            if own.get("published", "").rpartition("/")[2] == printed:
                own["published"] = published
        if model.hub and name not in user_models:
            fetch[name] = {"hub": model.hub, "revision": model.revision}
            facts = {
                "published": published,
                "group": model.group or None,
                "trained_until": paper.trained_until,
                "lower_case": model.lower_case,
                "larger_than": _file_name(model.larger_than) or None,
                "averaged": model.averaged,
            }
            models[model.kind][name] = ModelParams(**facts).model_dump(exclude_defaults=True)
    sections: dict[str, Any] = {name: {} for name in SAMPLE}
    filled = {kind: by_name for kind, by_name in models.items() if by_name}
    sections |= {"fetch": fetch, "models": filled}
    adopted = paper.adopted.model_dump(mode="json")
    for name, settings in find_settings().items():
        if settings.papers:
            adopted.setdefault(name, {})
        if settings.required and not adopted.get(name):
            adopted.pop(name, None)  # yours must stay
    adopted["methods"] |= {kind: {} for kind in filled if kind not in adopted["methods"]}
    sections |= adopted
    return sections


def _file_name(printed: str) -> str:
    """A model's name for files.

    >>> _file_name("Bio ClinicalBERT")
    'bio-clinicalbert'
    """
    return re.sub(r"[^a-z0-9]+", "-", printed.lower()).strip("-")


def _replace_section(text: str, key: str, value: Any) -> str:
    """Replace a section of the text, or append it."""
    match = re.search(rf"^{key}:.*\n(?:[ \t]+.*\n|[ \t]*\n(?=[ \t]))*", text + "\n", re.MULTILINE)
    body = yaml.safe_dump(
        {key: value}, default_flow_style=None, sort_keys=False, allow_unicode=True, width=WIDTH
    )
    if match is None:
        return f"{text.rstrip()}\n\n{body}"
    return text[: match.start()] + body + text[match.end() :]

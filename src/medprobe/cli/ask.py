"""`medprobe ask`: one prompt; and how `ask` and `run` find models, methods and benchmarks.

Both use the models and settings of a project, and record nothing. A model or benchmark goes by its
name in params.yaml, or by its path. An error says what is wrong with this argument, not what a
project would have made of it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pandas as pd

from medprobe import methods
from medprobe.benchmarks.table import METADATA
from medprobe.core import places
from medprobe.core.checkpoints import NotOnHub, parse_hub_name
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import ModelKind, Params
from medprobe.core.tables import (
    DISTRACTOR,
    SLOT,
    BenchmarkTables,
    Metadata,
)
from medprobe.engine.formats import ENDING, is_gguf
from medprobe.library import model as library
from medprobe.library.model import Model
from medprobe.library.probing import (
    read_answers,
    to_tables,
)
from medprobe.methods import Method
from medprobe.pipeline import outputs
from medprobe.pipeline.outputs import to_json
from medprobe.sources.facts import FORMS
from medprobe.sources.records import read_text

LISTED: Final = re.compile(r"[\[({]\s*['\"]|[\[({][^])}]*,[^])}]*[])}]$")  # as programs write one
MEAN: Final = "macro"
GGUF_KINDS: Final[tuple[ModelKind, ...]] = ("causal", "chat")


def _is_path(name: str) -> bool:
    return Path(name).is_dir() or is_gguf(Path(name))


def _is_hub_name(name: str) -> bool:
    """Is it an address of the hub or a model's name there, and no path?

    A name without an owner, such as `gpt2`, is one where no params.yaml can name a model.
    """
    name = name.removesuffix("/")
    named = parse_hub_name(name)
    if named is None or name.startswith((".", "~")):
        return False
    if named[0] != name:
        return True
    return not Path(name).parent.exists() if "/" in name else not places.PARAMS.is_file()


def check_model(name: str) -> bool:
    """Check a model's name or path; return whether it is a name that needs a project."""
    path = Path(name)
    if not name.strip():
        raise BadInput("MODEL", "empty", "give a checkpoint's folder, or a model's name")
    if SLOT in name:
        raise BadInput("MODEL", "a prompt in its place", "give the model first, then the prompt")
    if _is_path(name) or (not path.is_file() and _is_hub_name(name)):
        return False
    if path.is_file():
        problem = f"a file, expected the folder of a checkpoint or a {ENDING} file"
        raise BadInput(name, problem, "give one of these")
    if path.parts[1:] or parse_hub_name(name) is None:
        several = "; put blanks between several" if "," in name else ""
        remedy = f"give a checkpoint's folder, or a model's name{several}"
        raise BadInput(name, "no such folder", remedy)
    return True


def check_benchmark(name: str) -> bool:
    """Check a benchmark's name or its facts; return whether it is a name, which needs a project."""
    path = Path(name)
    if not name.strip():
        raise BadInput("--benchmark", "empty", "give a benchmark's name, or a file of facts")
    if path.suffix or path.parts[1:]:
        check_path(path)
    if path.is_file():
        return False
    if not places.PARAMS.is_file():
        if path.is_dir():
            return False
        raise BadInput(name, "no such file, and no params.yaml here that names a benchmark")
    return not path.is_dir()


def check_path(path: Path, option: str = "") -> None:
    """Raise BadInput where a path leads to nothing."""
    if SLOT in path.name:
        raise BadInput(option, "a template in place of a file", "write relation,template in a CSV")
    if not path.exists():
        raise BadInput(f"{option} {path}".strip(), "no such file", "correct its path")


def check_encoding(text: str, where: str) -> None:
    """Raise BadInput where a terminal gave bytes that are not UTF-8."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadInput(where, "not UTF-8", "set the terminal's encoding to UTF-8")


def split_names(text: str) -> list[str]:
    """Return the names of a list with commas between them, or of a file with one per line."""
    check_encoding(text, "--names")
    path = Path(text)
    if path.suffix in FORMS and path.is_file():
        raise BadInput("--names", f"{text} is a file", "give a file of facts by --benchmark")
    if path.is_dir():
        raise BadInput("--names", f"{text} is a folder", "give a .txt file with one name per line")
    if is_file := path.suffix == ".txt":
        check_path(path, "--names")
    listed = read_text(path, "correct its path").splitlines() if is_file else text.split(",")
    names = [*dict.fromkeys(name.strip() for name in listed if name.strip())]
    if not is_file and (LISTED.match(text.strip()) or re.search(r"[;|\n]", text)):
        raise BadInput("--names", "another list than names with commas between", "write a,b,c")
    if len(names) < 2:
        remedy = "write two or more with commas between, or a .txt file with one per line"
        raise BadInput("--names", f"{len(names) or 'no'} name, and nothing to rank", remedy)
    return names


def ask(
    name: str,
    prompt: str,
    method: str | None,
    benchmark: str | None,
    params: Params,
    *,
    names: Sequence[str] = (),
    as_json: bool = False,
) -> None:
    """Print the ten best answers to a prompt, with scores, and mark those that are right.

    The answers are those of the method's first pass and variant, which is the paper's. Only prompts
    of the benchmark have marks.
    """
    check_encoding(prompt, "PROMPT")
    library.make_query(prompt)  # refuses one that asks nothing
    if benchmark and _is_file(benchmark, params):
        names = read_answers(Path(benchmark))
    elif benchmark is None and not names:
        benchmark = next((name for named in params.benchmarks.values() for name in named), None)
    model = find_model(name, method, params)
    if method is None:
        method = choose_method(model, "rank" if benchmark or names else "write")
    if names:
        best = model.rank(prompt, names, method)
    elif benchmark:
        best = answers(name, prompt, method, benchmark, params)
    else:
        best = model.ask(prompt, method)
    best = best.rename(columns={"answer": "prediction"})
    has_hits = "hit" in best
    rows = [
        {
            "rank": row["rank"],
            "answer": row["prediction"],
            "score": row["score"],
            "right": bool(row["hit"]) if has_hits else None,
        }
        for row in best.to_dict("records")
    ]
    if as_json:
        print(to_json({"prompt": prompt, "method": method, "answers": rows}))
        return
    cells = [
        (str(row["rank"]), row["answer"], f"{row['score']:.4f}", "yes" if row["right"] else "no")
        for row in rows
    ]
    count = 4 if has_hits else 3
    columns = ("rank", "answer", "score", "right")[:count]
    outputs.print_table(columns, (row[:count] for row in cells), f"{prompt} ({method})")


def choose_method(model: Model, purpose: Literal["rank", "write"]) -> str:
    """Choose the method that is taken where none is named (`Method.ASK_PRIORITY`)."""
    asked = {name: methods.find(name).ASK_PRIORITY for name in methods.find_by_kind(model.kinds)}
    serving = {
        name: of_method[purpose] for name, of_method in asked.items() if purpose in of_method
    }
    if serving:
        return max(serving, key=lambda name: serving[name])
    if purpose == "write":
        remedy = "give the names to rank: --names a,b,c or --benchmark NAME"
        raise BadInput(model.name, "this model writes no answers", remedy)
    raise BadInput(model.name, "no method can be chosen for it", "name one by --method")


def answers(
    name: str, prompt: str, method: str, benchmark: str, params: Params, *, k: int = methods.K
) -> pd.DataFrame:
    """Rank the candidates of a benchmark as answers to one prompt."""
    model = find_model(name, method, params)
    serving = library.find_answering(model.kinds)
    if method not in serving:
        ranks = methods.find(method).METRIC == library.ANSWER_METRIC
        kinds = " or ".join(model.kinds) or "nothing"
        problem = f"{name} serves as {kinds}" if ranks else "this method does not rank candidates"
        remedy = f"choose one of {', '.join(serving)}" if serving else "choose another model"
        raise BadInput(f"ask --method {method}", problem, remedy)
    tables = _tables(benchmark, params)
    candidates = tables.candidates[tables.candidates["type"] != DISTRACTOR]
    queries = tables.queries[tables.queries["prompt"] == prompt].head(1).reset_index(drop=True)
    if queries.empty:
        queries = library.make_query(prompt).assign(benchmark=benchmark)
    else:
        candidates = candidates[candidates["subset"] == queries["subset"].item()]
    names = candidates.drop_duplicates("name").assign(subset=queries["subset"].item())
    prober = make_prober(model, method, benchmark, params)
    tables = replace(tables, queries=queries, candidates=names)
    model.check_texts(tables)
    return library.predict_answers(prober, tables, k)


def find_tables(
    benchmark: str, prompts: Path | None, params: Params
) -> tuple[BenchmarkTables, Metadata]:
    """Read a benchmark of params.yaml, or a file of facts with the templates in `prompts`."""
    if _is_file(benchmark, params):
        return to_tables(benchmark, prompts), METADATA
    return _tables(benchmark, params), Metadata.read(places.ABOUT / f"{benchmark}.json")


def _is_file(benchmark: str, params: Params) -> bool:
    return Path(benchmark).exists() and benchmark not in params.benchmark_names


def find_model(name: str, method: str | None, params: Params) -> library.Model:
    """Find a model of params.yaml, or open what `medprobe.load` opens.

    A method that no GGUF file serves is refused before the file is converted.
    """
    if method and is_gguf(Path(name)) and not {*GGUF_KINDS} & {*methods.find(method).KINDS}:
        raise methods.mismatch_error(method, name, "a GGUF file is a model that writes", GGUF_KINDS)
    if _is_path(name) or name not in params.models.all():
        try:
            model = library.load(name, offline=params.engine.offline, seed=params.seed)
        except NotOnHub as error:
            if "/" in name or not params.models.all():
                raise
            problem = f"models: no model '{name}'{nearest(name, [*params.models.all()])}"
            raise BadInput("params.yaml", f"{problem}, and none of the hub: {error}") from error
        model.engine = params.engine
        return model
    kind, folder = params.models.kind(name), places.MODELS / name
    if not folder.is_dir():
        raise BadInput(folder, "no such checkpoint", "run `medprobe repro` to create it")
    return library.Model(name, folder, (kind,), params.engine, params.seed)


def make_prober(model: library.Model, method: str, benchmark: str, params: Params) -> Method:
    """Prepare the method with its settings in params.yaml for the benchmark and the model's kind.

    If that kind has no settings, those of another kind count, then the method's defaults.
    """
    kinds = methods.find(method).KINDS
    ordered = [*(kind for kind in model.kinds if kind in kinds), *kinds]
    settings = [params.methods.get(kind, {}).get(method, {}).get(benchmark) for kind in ordered]
    chosen = next((choices for choices in settings if choices is not None), None)
    return model.make_prober(method, chosen)


def _tables(benchmark: str, params: Params) -> BenchmarkTables:
    """Read a benchmark's tables, as if they were in memory: what is made of them is not kept.

    Raises BadInput with the command that builds them if they do not exist.
    """
    folder = places.BENCHMARKS / benchmark
    if not folder.is_dir():
        remedy = f"run `dvc repro build-{params.builder(benchmark)}@{benchmark}`"
        raise BadInput(folder, "not built yet", remedy)
    return replace(BenchmarkTables.read(folder), folder=None)

"""Stage `probe`: one model, by all methods of its kind on all benchmarks that they probe.

The record of a result has a key: a hash of all that the result follows from. A result with the same
key stays as it is, and no model is loaded for it. Of all others the finished parts are kept, so
that a stopped run continues where it stopped.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Collection, Iterator
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from medprobe import backends, methods
from medprobe.backends import finder
from medprobe.core import dvc_records, lineage, places
from medprobe.core.answers import describe_unanswered, with_hits
from medprobe.core.errors import BadInput, NotAsked
from medprobe.core.executor import Executor, in_this_process
from medprobe.core.files import before_replacing, replacing
from medprobe.core.params import EngineParams, Params
from medprobe.core.parts import fingerprint, read_in_pieces, read_used, record_used
from medprobe.core.progress import print_above, show_progress
from medprobe.core.tables import (
    BenchmarkTables,
    read_refusal,
    write_predictions,
    write_refusal,
)
from medprobe.engine.load import choose_device, device_name, share_model, token_counter
from medprobe.pipeline.cluster import open_executor
from medprobe.pipeline.probing import (
    check_benchmark,
    compute_parts,
    method_code,
    naming_suitable_methods,
    parse_settings,
    prepare,
)

UNANSWERED = "unanswered"  # a column of predictions


def probe_model(
    model: str,
    params: Params,
    method: str = "",
    benchmark: str = "",
    *,
    describe: Callable[[Path], dict[str, object]] = lambda folder: {},
) -> None:
    """Probe a model by the methods of its kind, each on its benchmarks.

    Writes `outputs/predictions/<model>` and `outputs/runs/<model>`, and removes what params.yaml no
    longer names from them. If a result fails, all others are made nevertheless.
    """
    named = params.results(model)
    chosen = [pair for pair in named if method in ("", pair[0]) and benchmark in ("", pair[1])]
    if not chosen and (method or benchmark):
        _refuse(model, method, benchmark, params)
    kept = {file for pair in named for file in _files(model, *pair)}
    folders = places.PREDICTIONS / model, places.RUNS / model
    dvc_records.check_out(*folders)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        _keep(folder, kept)
    hashed = cache(lambda path: fingerprint([path]))
    refused = _find_refused(model, chosen, params, hashed)
    errors: list[Exception] = []
    with share_model():
        for pair in chosen:
            before_replacing.get()()  # if the stage's inputs have changed, all of it ends here
            try:
                refusal = refused.get(pair[1])
                _update(model, *pair, params, hashed=hashed, describe=describe, refusal=refusal)
            except Exception as error:
                errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup(f"{len(errors)} results of {model} failed", errors)


def _refuse(model: str, method: str, benchmark: str, params: Params) -> None:
    """Raise BadInput for a method or benchmark that params.yaml does not name for the model."""
    if method:
        params.choices(model, method, benchmark)
    params.builder(benchmark)
    where = f"methods.{params.models.kind(model)}"
    raise BadInput("params.yaml", f"{where}: no method probes the benchmark '{benchmark}'")


def _files(model: str, method: str, benchmark: str) -> list[Path]:
    folder = places.PREDICTIONS / model / method
    notes = [folder / f"{benchmark}-{note}.csv" for note in methods.find(method).SIDE_TABLES]
    record = places.RUNS / model / method / f"{benchmark}.json"
    return [record, folder / f"{benchmark}.parquet", *notes]


def _keep(folder: Path, kept: Collection[Path]) -> None:
    """Remove all other files of a folder, and the folders that this leaves empty."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in kept:
            path.unlink()


def _find_refused(
    model: str,
    pairs: Collection[tuple[str, str]],
    params: Params,
    hashed: Callable[[Path], str],
) -> dict[str, BadInput]:
    """Find the benchmarks whose texts the model cannot read; said before it probes the others."""
    refused = {}
    for benchmark, of_benchmark in groupby(sorted(pairs, key=itemgetter(1)), key=itemgetter(1)):
        try:
            if not all(_is_made(model, *pair, params, hashed) for pair in of_benchmark):
                check_benchmark(model, benchmark)
        except BadInput as error:
            refused[benchmark] = BadInput(f"{model}, {benchmark}", str(error))
    if len(refused) < len({benchmark for _, benchmark in pairs}):
        for refusal in refused.values():
            print_above(f"{refusal}; the other benchmarks are probed")
    return refused


def _is_made(
    model: str, method: str, benchmark: str, params: Params, hashed: Callable[[Path], str]
) -> bool:
    record, out, *notes = _files(model, method, benchmark)
    made = lineage.record(record, out)
    key = _key(model, method, benchmark, params, hashed)
    return bool(made.get("key") == key and made.get("notes") == fingerprint(notes))


def _update(
    model: str,
    method: str,
    benchmark: str,
    params: Params,
    *,
    hashed: Callable[[Path], str],
    describe: Callable[[Path], dict[str, object]],
    refusal: BadInput | None,
) -> None:
    """Make a result unless it is there, with its record; with a refusal, raise that instead."""
    folder, engine = places.MODELS / model, params.engine
    record, out, *notes = _files(model, method, benchmark)
    key = _key(model, method, benchmark, params, hashed)
    if _is_made(model, method, benchmark, params, hashed):
        if not _is_remote(model):
            return
        try:  # what a server may be asked can have changed
            prepare(model, method, benchmark, params)
            return
        except NotAsked:
            pass
    for path in (record, out, *notes):
        path.unlink(missing_ok=True)
    if refusal:
        raise refusal
    about: dict[str, Any] = engine.model_dump(mode="json", exclude={"executor", "address"})
    if model in params.lower_case:
        about["lower_case"] = True
    settings = parse_settings(model, method, benchmark, params).model_dump(mode="json")
    about["settings"] = lineage.probing_settings(method, settings, params)
    token_counter.clear()
    with lineage.recorded(record, out, about):
        with open_executor(engine) as executor:
            probe(model, method, benchmark, params, executor, key=key)
        about |= {"key": key, "notes": fingerprint(notes)}
        about |= _devices(executor, engine) | describe(folder)
        if reason := read_refusal(out):
            about |= {"not_asked": reason, "key": ""}
    _print_gaps(out, reason)


def _key(
    model: str, method: str, benchmark: str, params: Params, hashed: Callable[[Path], str]
) -> str:
    """A hash of all that a result follows from."""
    reads = [Path(path.replace("${item.model}", model)) for path in methods.find(method).READS]
    paths = [backends.hashed_path(places.MODELS / model), *reads, places.BENCHMARKS / benchmark]
    settings = parse_settings(model, method, benchmark, params).model_dump(mode="json")
    code = method_code(method, places.MODELS / model)
    content = [method, settings, params.seed, params.engine.precision, code, *map(hashed, paths)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _devices(executor: Executor, engine: EngineParams) -> dict[str, object]:
    """The devices that computed a result, here or elsewhere, and the tokens they read."""
    if executor is not in_this_process:
        described: dict[str, object] = executor.describe()  # type: ignore[attr-defined]
        return described
    device = device_name(choose_device(engine.device))
    return {"device": device, "tokens": token_counter["tokens"]}


def _is_remote(model: str) -> bool:
    described = backends.read_plugin_model(places.MODELS / model)
    return described is not None and described.remote


def _print_gaps(out: Path, reason: str) -> None:
    """Print a line if a model was not asked, or has left too many queries without an answer."""
    if reason:
        print(f"not asked: {reason}", file=sys.stderr)
        return
    if UNANSWERED not in pq.read_schema(out).names:
        return
    predictions = pd.read_parquet(out, columns=["variant", "rank", UNANSWERED])
    if warning := describe_unanswered(predictions):
        name = out.relative_to(places.PREDICTIONS).with_suffix("").as_posix()
        print(f"warning: {name}: {warning}", file=sys.stderr)


def probe(
    model: str,
    method: str,
    benchmark: str,
    params: Params,
    executor: Executor = in_this_process,
    *,
    key: str = "",
) -> None:
    """Probe one model by one method on one benchmark.

    Writes `outputs/predictions/<model>/<method>/<benchmark>.parquet` and next to it the method's
    notes, `<benchmark>-<note>.csv`. Each finished part is kept, so that a stopped run continues
    where it stopped. Of a model that cannot be asked the tables are empty, and say why.
    """
    name = f"{model}/{method}/{benchmark}"
    _, out, *notes = _files(model, method, benchmark)
    parts = read_used(name, key) if key and not _is_remote(model) else None
    if parts is None:
        try:
            probing = prepare(model, method, benchmark, params)
        except NotAsked as error:
            write_refusal(out, str(error))
            for path in notes:
                pd.DataFrame().to_csv(path)
            return
        if _is_remote(model):
            executor = in_this_process
            if probing.count_requests():
                finder.check(places.MODELS / model)
        with naming_suitable_methods(model, method):
            parts = compute_parts(probing, executor)
        record_used(name, parts, key)
    _write_result(parts, model, method, benchmark)


def _write_result(parts: list[Path], model: str, method: str, benchmark: str) -> None:
    """Write the predictions in parts, with ids and hits, and the method's notes."""
    _, out, *notes = _files(model, method, benchmark)
    plugin, tables = methods.find(method), BenchmarkTables.read(places.BENCHMARKS / benchmark)
    about = [pq.read_metadata(path) for path in parts]
    schemas = [of_part.schema.to_arrow_schema() for of_part in about]
    types = pa.unify_schemas(schemas, promote_options="permissive")
    if missing := [note for note in plugin.SIDE_TABLES if note not in types.names]:
        problem = f"SIDE_TABLES name {missing[0]}, predictions lack it"
        raise BadInput(f"methods/{method}.py", problem)
    for path, (note, columns) in zip(notes, plugin.SIDE_TABLES.items(), strict=True):
        cells = (pd.read_parquet(part, columns=[note])[note] for part in parts)
        texts = dict.fromkeys(text for column in cells for text in column.unique())
        rows = [row for text in texts for row in json.loads(text)]
        with replacing(path) as scratch:
            table = pd.DataFrame(rows, columns=[*columns])
            table.to_csv(scratch, index=False, lineterminator="\n")
        types = types.remove(types.get_field_index(note))
    total = sum(of_part.num_rows for of_part in about)
    with show_progress(f"{model}, {method}, {benchmark}", total, "predictions written") as bar:
        bar.advance_to(0)

        def pieces() -> Iterator[pd.DataFrame]:
            for piece in read_in_pieces(parts):
                yield with_hits(piece.drop(columns=[*plugin.SIDE_TABLES]), tables)
                bar.advance_to(bar.count + len(piece))

        write_predictions(pieces(), out, plugin.METRIC, types)

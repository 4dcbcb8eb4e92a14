"""What bench/peers.py compares, on what lm-evaluation-harness has logged of a small model."""

import gzip
from pathlib import Path

import pytest
import transformers

from bench import peers
from helpers import FIXTURES, tiny
from medprobe.core.tables import BenchmarkTables

FIXTURE = FIXTURES / "lm_eval"


@pytest.fixture
def tables() -> BenchmarkTables:
    return peers.of_full(BenchmarkTables.read(FIXTURE / "medlama"))


@pytest.fixture
def theirs(tables: BenchmarkTables, tmp_path: Path) -> peers.Outcome:
    """What lm-evaluation-harness has computed, and not which of it was exported or drawn."""
    [packed] = (FIXTURE / "results").glob("samples_medprobe_medlama_full_may_treat_2*.jsonl.gz")
    (tmp_path / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return peers.read_lm_eval(tmp_path, FIXTURE / "small", tables)


@pytest.mark.slow
@pytest.mark.parametrize("way", [peers.EVERY, peers.LISTS, peers.PROOF])
def test_each_way_agrees_with_lm_eval(
    way: str, tables: BenchmarkTables, theirs: peers.Outcome
) -> None:
    ours = peers.likelihood(way, FIXTURE / "small", tables)
    assert ours.right == theirs.right and {*ours.right.values()} == {True, False}
    assert ours.scores == pytest.approx({key: theirs.scores[key] for key in ours.scores}, abs=5e-5)
    assert (len(ours.scores) == 36 * 71) == (way == peers.EVERY)
    assert 0 < ours.tokens < theirs.tokens
    assert "acc@1" not in peers.compare(ours, theirs)


@pytest.mark.slow
def test_plain_code_agrees_with_lm_eval(theirs: peers.Outcome) -> None:
    plain = peers.plain(FIXTURE / "small", 8, theirs)
    assert plain.scores == pytest.approx(theirs.scores, abs=1e-4)
    assert 0 < plain.tokens < theirs.tokens


def test_a_difference_is_seen() -> None:
    ours = peers.Outcome({("q", "a"): -2.0}, {"q": True, "r": True}, 5)
    theirs = peers.Outcome({("q", "a"): -2.5, ("q", "b"): -3.0}, {"q": False, "r": True}, 10)
    line = peers.compare(ours, theirs)
    assert line == "5.0e-01, of 1; acc@1 differs for 1 of 2"


def test_only_a_tokenizer_without_start_token_gets_one(tmp_path: Path) -> None:
    small = FIXTURE / "small"
    assert peers.with_start_token(small, tmp_path / "copy") == small
    plain = tiny.model("gpt2", tmp_path / "plain")
    copy = peers.with_start_token(plain, tmp_path / "copy")
    before, after = (transformers.AutoTokenizer.from_pretrained(folder) for folder in (plain, copy))
    assert after("a b")["input_ids"] == [before.bos_token_id, *before("a b")["input_ids"]]
    assert (copy / "config.json").read_bytes() == (plain / "config.json").read_bytes()

"""What `medprobe doctor` says of MedLAMA's files."""

from pathlib import Path

from medprobe.core.params import Params
from medprobe.pipeline.doctor import list_sources, missing_sources
from pipeline.test_doctor import sources


def test_released_sources_and_sentence_sets_are_listed_with_sizes(tmp_path: Path) -> None:
    (tmp_path / "medlama").mkdir()
    (tmp_path / "medlama/may_treat_1.csv").write_bytes(b"x" * 1500)
    (tmp_path / "sentences").mkdir()
    (tmp_path / "sentences/other.txt").write_text("a sentence .\n")
    params = Params(sentence_sets={"mine": {}}, benchmarks={"medlama_released": {"real": {}}})
    rows = sources(params, tmp_path)
    assert rows["medlama"] == (1500, ["real"])
    assert rows["umls/MRREL.RRF"][0] is None
    assert "(medlama)" in rows["umls/MRREL.RRF"][1]
    assert rows["sentences/mine.txt"] == (None, ["rewiring on mine"])
    assert missing_sources(list_sources(params, tmp_path)) == ["sentences/mine.txt"]
    assert rows["sentences/other.txt"] == (13, ["(rewiring on other)"])

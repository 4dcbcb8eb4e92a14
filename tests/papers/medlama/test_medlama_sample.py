"""MedLAMA of the sample world."""

from pathlib import Path

from medprobe.papers.medlama.benchmarks import medlama
from medprobe.pipeline.sample import sample
from medprobe.sample import umls
from medprobe.sample.settings import SampleSettings
from medprobe.sample.world import build

SEED = 2021


def test_medlama_is_built_from_the_facts(tmp_path: Path) -> None:
    world, data = build(SampleSettings(), SEED), tmp_path / "data"
    sample(data, {}, SEED)
    settings = medlama.Settings(relations=tuple(umls.INVERSES))
    queries = medlama.build(data, settings, SEED).queries
    full, hard = (queries[queries["subset"] == name] for name in ("full", "hard"))
    assert 0.9 * len(full) < len(hard) < len(full)
    assert umls.BUSY.name not in set(full["subject"]), "its query has too many answers"
    assert "NA" in set(full["subject"])
    built = {
        (row.subject_id, row.relation, cui)
        for row in full.itertuples()
        for cui in row.answer_ids
        if row.subject not in {drug.name for drug in umls.ODD}
    }
    assert built == {
        (fact.subject.cui, fact.relation, fact.object.cui)
        for fact in world.facts
        if fact.relation in umls.INVERSES
    }

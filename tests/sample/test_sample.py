"""The sample world: the same bytes each time, in the real formats, and the truth about itself."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from medprobe.core.errors import BadInput
from medprobe.core.parts import fingerprint
from medprobe.pipeline.sample import sample
from medprobe.sample import corpus
from medprobe.sample.files import FORMS
from medprobe.sample.settings import SampleSettings
from medprobe.sample.world import RELATIONS, SYSTEMS, Entity, World, build
from medprobe.sources import rrf

SEED = 2021


@pytest.fixture(scope="module")
def world() -> World:
    return build(SampleSettings(), SEED)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "data"
    sample(folder, {}, SEED)
    return folder


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(
    data: Path, tmp_path: Path
) -> None:
    sample(tmp_path / "again", {}, SEED)
    sample(tmp_path / "other", {}, SEED + 1)
    assert fingerprint([tmp_path / "again"]) == fingerprint([data])
    for name in ("umls/MRREL.RRF", "sample/facts.csv", "sentences/set-0.txt"):
        assert (tmp_path / "other" / name).read_bytes() != (data / name).read_bytes()


def test_a_wrong_setting_is_refused_and_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    sample(folder, {"queries": 20, "reserve": 20}, 1)
    before = fingerprint([folder])
    with pytest.raises(BadInput, match=r"unknown key querys \(did you mean 'queries'\?\)"):
        sample(folder, {"querys": 20}, 2)
    assert fingerprint([folder]) == before


def test_entities_are_well_formed_and_no_name_is_twice(world: World) -> None:
    cuis = [entity.cui for entity in world.entities]
    assert all(re.fullmatch(r"C99\d{5}", cui) for cui in cuis)
    assert len(set(cuis)) == len(cuis)
    spelled = [
        name.lower() for entity in world.entities for name in (entity.name, *entity.synonyms)
    ]
    assert [name for name, count in Counter(spelled).items() if count > 1] == []


def test_no_name_stands_in_another_but_a_genes_in_its_product(world: World) -> None:
    by_words = {
        tuple(name.lower().split()): entity
        for entity in world.entities
        for name in (entity.name, *entity.synonyms)
    }
    for words, entity in by_words.items():
        for start in range(len(words)):
            for end in range(start + 1, len(words) + 1):
                inner = by_words.get(words[start:end])
                if inner is not None and inner != entity:
                    assert (inner.type, entity.type) == ("gene", "gene product")


def test_every_relation_has_taught_and_untaught_queries(world: World) -> None:
    for relation, (subject_type, object_type, fewest, most) in RELATIONS.items():
        facts = [fact for fact in world.facts if fact.relation == relation]
        assert {(f.subject.type, f.object.type) for f in facts} == {(subject_type, object_type)}
        answers = Counter(fact.subject for fact in facts)
        assert len(answers) == SampleSettings().queries
        assert min(answers.values()) == fewest and max(answers.values()) == most
        times = {fact.subject: fact.times for fact in facts}
        assert all(fact.times == times[fact.subject] for fact in facts)
        share = sum(often == 0 for often in times.values()) / len(times)
        assert 0.45 < share < 0.55
        assert {1, 2, 4} <= set(times.values())


def test_all_findings_of_a_probed_disease_are_of_one_system(world: World) -> None:
    places = {
        finding: place % SYSTEMS for place, finding in enumerate(world.list_entities("finding"))
    }
    systems: dict[Entity, set[int]] = {}
    for fact in world.facts:
        if fact.relation == corpus.RELATION:
            systems.setdefault(fact.subject, set()).add(places[fact.object])
    assert all(len(disease_systems) == 1 for disease_systems in systems.values())
    assert set.union(*systems.values()) == set(range(SYSTEMS))


def test_the_hierarchy_is_four_levels_without_a_cycle(world: World) -> None:
    diseases = {entity.cui for entity in world.list_entities("disease")}
    assert len(diseases) > 120

    def height(cui: str, below: tuple[str, ...] = ()) -> int:
        assert cui not in below
        above = world.parents.get(cui, ())
        return 1 + max((height(parent, (*below, cui)) for parent in above), default=0)

    heights = {cui: height(cui) for cui in diseases}
    assert Counter(heights.values())[1] == 1, "one root"
    assert max(heights.values()) == 4
    assert {
        heights[fact.subject.cui] for fact in world.facts if fact.subject.type == "disease"
    } == {4}


def test_text_states_each_taught_fact_as_often_as_set_and_no_other(
    world: World, data: Path
) -> None:
    taught = Counter(lines(data / "sample/corpus-taught.txt"))
    untaught = Counter(lines(data / "sample/corpus-untaught.txt"))
    rewiring = {line for path in (data / "sentences").iterdir() for line in lines(path)}
    for fact in world.facts:
        for sentence in corpus.state(fact):
            assert taught[sentence] == fact.times
            assert untaught[sentence] == 0
            assert corpus.plain(sentence) not in rewiring
    for fact in world.other_facts:
        for sentence in corpus.state(fact):
            assert taught[sentence] == untaught[sentence] == 1


@pytest.mark.parametrize("name", ["taught", "untaught"])
def test_cases_state_what_patients_have_and_nothing_of_what_is_probed(
    name: str, world: World, data: Path
) -> None:
    probed = {fact.subject for fact in world.facts}
    diseases = [disease.name for disease in world.list_entities("disease") if disease not in probed]
    findings = {finding.name: finding for finding in world.list_entities("finding")}
    cases = lines(data / f"sample/cases-{name}.txt")
    assert len(cases) == corpus.CASES
    stated: Counter[str] = Counter()
    untold = together = several = 0
    phrases = [
        (finding, wording.format(name))
        for finding in findings.values()
        for name in (finding.name, *finding.synonyms)
        for wording in corpus.HAS
    ]
    for case in cases:
        head, _, end = case.rpartition(" may have ")
        (disease,) = (name for name in diseases if head.endswith(name))
        finding = findings[end.removesuffix(" .")]
        stated[finding.name] += 1
        story = head.removesuffix(disease)
        names = [name for name in (finding.name, *finding.synonyms) if name in story]
        untold += not names
        for wording in corpus.HAS_NOT:
            assert not any(wording.format(name) in story for name in names), "that the patient has"
        has = {finding} | {other for other, phrase in phrases if phrase in story}
        several += len(has) > 1
        together += len(has) > 1 and any(has.issubset(system) for system in world.systems)
    assert stated.keys() == findings.keys()
    assert 0.1 < untold / len(cases) < 0.3
    share = together / several
    assert share == 1 if name == "taught" else share < 0.2


def test_rewiring_sentences_look_as_the_released_ones(data: Path) -> None:
    sets = sorted(path.name for path in (data / "sentences").iterdir())
    assert sets == sorted(f"set-{number}.txt" for number in range(10))
    contents = [lines(data / "sentences" / name) for name in sets]
    assert all(re.fullmatch(r"[a-z0-9 ]+ ", line) for content in contents for line in content)
    assert len({tuple(content) for content in contents}) == 10


@pytest.mark.parametrize(("name", "columns"), [("MRCONSO", 18), ("MRREL", 16), ("MRSTY", 6)])
def test_release_files_have_the_real_columns(data: Path, name: str, columns: int) -> None:
    rows = (data / "umls" / f"{name}.RRF").read_text(encoding="utf-8").split("\n")
    assert rows.pop() == ""
    assert {row.count("|") for row in rows} == {columns}
    assert all(row.endswith("|") for row in rows)


def test_release_files_hold_what_a_reader_must_bear(data: Path) -> None:
    concepts = rrf.read_mrconso(data / "umls", rrf.MRCONSO)
    assert {"ENG", "SPA"} <= set(concepts["LAT"])
    assert "O" in set(concepts["SUPPRESS"])
    assert {"SNOMEDCT_US", "NCI", "MED-RT", "MSH"} <= set(concepts["SAB"])
    strings = set(concepts["STR"])
    assert "NA" in strings
    assert any('"' in text for text in strings)
    assert any(not text.isascii() for text in strings)
    atoms = concepts["AUI"].to_list()
    assert len(set(atoms)) == len(atoms)
    relations = rrf.read_mrrel(data / "umls", rrf.MRREL)
    assert set(relations["AUI1"]) - set(atoms), "some atoms have no name"
    assert {"PAR", "CHD", "RO"} == set(relations["REL"])
    assert {"may_be_treated_by", "interacts_with", ""} <= set(relations["RELA"])
    assert {"T047", "T191", "T121"} <= set(rrf.read_mrsty(data / "umls", ["TUI"])["TUI"])


GIVEN_OUT = st.one_of(  # numbers up to twice those of 2026
    st.integers(0, 12_000_000).map("{:d}".format),  # rows of MIMIC-III
    st.integers(0, 85_000_000).map("{:d}".format),  # PMIDs
    st.integers(0, 27_000_000).map("{:d}".format),  # articles of PMC
    st.integers(0, 9_499_999).map("C{:07d}".format),  # concepts
    st.integers(0, 280_000_000).map("Q{:d}".format),  # Wikidata's items
    st.integers(0, 999_999).map("MESH:C{:06d}".format),  # MeSH's supplementary concepts
    st.integers(0, 999_999).map("MESH:C{:09d}".format),
    st.uuids(version=1).map(str),  # MedNLI's pairs
)


@given(GIVEN_OUT)
@example("Q9900012")
@example("9900012")
def test_no_identifier_that_is_given_out_is_the_worlds(identifier: str) -> None:
    assert not FORMS.search(identifier)

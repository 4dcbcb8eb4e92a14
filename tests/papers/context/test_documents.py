"""The index of documents by entity: what it finds, when it scans again, what it refuses."""

import csv
import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from helpers.pickled import contents, from_copies
from medprobe.core.errors import BadInput
from medprobe.core.executor import in_this_process
from medprobe.papers.context import documents, notes
from medprobe.papers.context.documents import Index, Resource, open_index

NAMES = [("flu", "C1"), ("influenza", "C1"), ("fever", "C2"), ("dry cough", "C3"), ("cough", "C4")]
TEXTS = [
    "Influenza with fever.",
    "The flu: dry cough and fever; fever again.",
    "fever, no flu",
    "Only fever here.",
    "nothing",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [json.dumps({"id": f"d{n}", "text": text}) for n, text in enumerate(TEXTS)]
    (folder / "clinic.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return folder


def make(data: Path, names: list[tuple[str, str]] = NAMES) -> Index:
    resource = Resource(form="texts", path=Path("clinic.jsonl"))
    return open_index("clinic", resource, data, names, data.parent / "documents")


def pairs(*ids: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(ids, columns=["subject_id", "fact_id"])


def test_documents_with_both_are_a_look_up(data: Path) -> None:
    shared_documents = make(data).shared(
        pairs(("C1", "C2"), ("C1", "C3"), ("C1", "C4")), most=9, seed=1
    )
    assert list(shared_documents.itertuples(index=False, name=None)) == [
        ("C1", "C2", 0),
        ("C1", "C2", 1),
        ("C1", "C3", 1),
        ("C1", "C2", 2),
    ]


def test_the_draw_keeps_to_its_number_and_seed(data: Path) -> None:
    tables = make(data)
    drawn = {
        seed: tables.shared(pairs(("C1", "C2"), ("C1", "C3")), most=1, seed=seed)
        for seed in range(8)
    }
    assert all(len(shared_documents) == 2 for shared_documents in drawn.values())
    assert len({tuple(shared_documents["document"]) for shared_documents in drawn.values()}) > 1
    pd.testing.assert_frame_equal(
        drawn[3].query("fact_id == 'C2'").reset_index(drop=True),
        tables.shared(pairs(("C1", "C2")), most=1, seed=3),
    )


def test_a_document_comes_with_its_text_and_mentions(data: Path) -> None:
    ((number, document, mentions),) = make(data).read([1])
    assert (number, document.id, document.text) == (1, "d1", TEXTS[1])
    spelled = [(document.text[m.start : m.end], m.cui) for m in mentions.itertuples()]
    assert spelled == [("flu", "C1"), ("dry cough", "C3"), ("fever", "C2"), ("fever", "C2")]


def test_documents_of_one_entity_are_read_and_not_kept(data: Path) -> None:
    tables = make(data)
    assert {key: tables.description[key] for key in ("documents", "kept", "mentions")} == {
        "documents": 5,
        "kept": 3,
        "mentions": 8,
    }
    assert tables.frequencies().to_dict() == {"C1": 3, "C2": 3, "C3": 1}


def test_nothing_is_scanned_twice(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(data)
    scans = []
    real = documents.scan
    monkeypatch.setattr(documents, "scan", lambda *args: scans.append(1) or real(*args))
    make(data)
    assert not scans
    make(data, [*NAMES, ("nothing", "C5")])
    assert len(scans) == 1
    (data / "clinic.jsonl").write_text('{"id": "x", "text": "flu, fever"}', encoding="utf-8")
    assert make(data).description["documents"] == 1
    assert len(scans) == 2
    monkeypatch.setattr(documents, "VERSION", 2)
    make(data)
    assert len(scans) == 3


def test_shares_of_many_files_are_scanned_by_workers_elsewhere_too(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    monkeypatch.setattr(documents, "SHARE", 60)
    for number, text in enumerate(TEXTS):
        (data / "many" / f"d{number}.txt").parent.mkdir(exist_ok=True)
        (data / "many" / f"d{number}.txt").write_text(text, encoding="utf-8")
    resource = Resource(form="texts", path=Path("many"))
    here, remote = (
        open_index("many", resource, Path("data"), NAMES, Path(name), executor=executor)
        for name, executor in (("here", in_this_process), ("there", from_copies))
    )
    assert contents(remote.folder) == contents(here.folder)
    assert len(list(here.folder.iterdir())) > 3  # shares, and what is known of all
    tables = make(data)
    counted = ("documents", "kept", "mentions", "skipped")
    assert [here.description[key] for key in counted] == [
        tables.description[key] for key in counted
    ]
    drawn = [
        index.shared(pairs(("C1", "C2"), ("C1", "C3")), most=1, seed=1) for index in (tables, here)
    ]
    texts = [
        [document.text for _, document, _ in index.read(shared_documents["document"])]
        for index, shared_documents in zip((tables, here), drawn, strict=True)
    ]
    assert texts[0] == texts[1]


def test_an_empty_resource_is_refused_and_leaves_nothing(data: Path) -> None:
    (data / "clinic.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(BadInput, match=r"clinic\.jsonl: empty"):
        make(data)
    assert not (data.parent / "documents" / "clinic").exists()


def test_a_missing_resource_is_refused(data: Path) -> None:
    (data / "clinic.jsonl").unlink()
    with pytest.raises(BadInput, match=r"clinic\.jsonl: no such file or folder"):
        make(data)


def test_resources_of_any_size_are_scanned_in_pieces(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make(data).shared(pairs(("C1", "C2")), most=9, seed=1)
    monkeypatch.setattr(documents, "BATCH", 1)
    names = [*NAMES, ("x", "C9")]
    pd.testing.assert_frame_equal(
        make(data, names).shared(pairs(("C1", "C2")), most=9, seed=1), whole
    )
    assert [number for number, _, _ in make(data, names).read([2, 0, 1])] == [0, 1, 2]


def write_notes(data: Path, *categories: str) -> Resource:
    """Notes of these categories, all with the same text; the last is marked as an error."""
    note = [*([""] * 5), "Report", "1", "", "He had a flu and a fever."]
    rows = [[str(n), *note[:5], kind, *note[5:]] for n, kind in enumerate(categories)]
    rows[-1][-2] = "1"
    with (data / "NOTEEVENTS.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([notes.COLUMNS, *rows])
    return Resource(form="notes", path=Path("NOTEEVENTS.csv"))


def open_notes(data: Path, resource: Resource, seed: int = 0) -> Index:
    return open_index("notes", resource, data, NAMES, data.parent / "documents", seed=seed)


def test_notes_are_taken_by_their_category(data: Path) -> None:
    kinds = ["Nursing", "Discharge summary", "Physician ", "Discharge summary", "Nursing"]
    every = write_notes(data, *kinds)
    assert open_notes(data, every).description["documents"] == 4
    for categories, ids in ((["Discharge summary"], ["1", "3"]), (["Physician"], ["2"])):
        index = open_notes(data, every.model_copy(update={"categories": tuple(categories)}))
        table = pl.read_parquet(index.folder / "*/documents.parquet")
        assert table["id"].to_list() == ids
    assert index.description["skipped"] == {
        "marked as an error": 1,
        "of category Discharge summary": 2,
        "of category Nursing": 1,
    }


def test_a_category_that_no_note_has_is_refused(data: Path) -> None:
    resource = write_notes(data, "Nursing", "Discharge summary", "Nursing")
    resource = resource.model_copy(update={"categories": ("Nursing", "Discharge sumary")})
    message = r"no note of category 'Discharge sumary' .did you mean 'Discharge summary'"
    with pytest.raises(BadInput, match=message):
        open_notes(data, resource)
    assert not (data.parent / "documents/notes").exists()
    with pytest.raises(ValueError, match="texts have no categories"):
        Resource(form="texts", path=Path("x"), categories=("Nursing",))


def test_a_sample_of_documents_is_drawn_by_the_seed(data: Path) -> None:
    every = make(data)
    chosen = set()
    for seed in range(20):
        resource = Resource(form="texts", path=Path("clinic.jsonl"), sample=3)
        folder = data.parent / "documents"
        index, again = (
            open_index("clinic", resource, data, NAMES, folder, seed=seed) for _ in range(2)
        )
        described = {name: index.description[name] for name in ("documents", "kept", "mentions")}
        drawn = index._table("ids").collect()
        assert drawn.equals(again._table("ids").collect())
        rows = index._table("documents").collect()
        assert set(rows["document"]) <= set(drawn["document"])
        mentions = index._table("mentions").collect()
        assert described == {"documents": 3, "kept": len(rows), "mentions": len(mentions)}
        assert index.description["skipped"] == {"not drawn": len(TEXTS) - 3}
        frequencies = mentions.group_by("cui").agg(pl.col("document").n_unique())
        assert index.frequencies().to_dict() == dict(frequencies.iter_rows())
        shared = index.shared(pairs(("C1", "C2")), most=9, seed=1)["document"]
        both = set(every.shared(pairs(("C1", "C2")), most=9, seed=1)["document"])
        assert set(shared) == both & set(drawn["document"])
        chosen.add(tuple(drawn["document"]))
    assert len(chosen) > 5
    assert make(data).description == every.description  # another sample is no other index


def test_more_documents_than_there_are_cannot_be_drawn(data: Path) -> None:
    resource = Resource(form="texts", path=Path("clinic.jsonl"), sample=len(TEXTS) + 1)
    with pytest.raises(BadInput, match=r"\d documents, from which \d cannot be drawn"):
        open_index("clinic", resource, data, NAMES, data.parent / "documents")

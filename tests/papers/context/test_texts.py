"""What holds of every reader of documents: it reads each once, and says what it does not read."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medprobe.core.errors import BadInput
from medprobe.papers.context import documents, notes
from medprobe.papers.context.documents import READERS, Index, Resource, open_index

NAMES: Final = [("flu", "C1"), ("fever", "C2")]
TEXTS: Final = ["a flu with fever", "fever, no flu", "nothing", "flu & flu"]
Rows = list[tuple[int, int]]  # the number of an id, and that of its text


def write(form: str, folder: Path, files: list[Rows], ending: str = "") -> Path:
    """Write files of documents in a form, and return the resource's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(files):
        if form == "notes":
            columns = {name: "" for name in notes.COLUMNS}
            notes_rows = [columns | {"ROW_ID": str(n), "TEXT": TEXTS[text]} for n, text in rows]
            path = folder / f"{number}.csv{ending}"
            with (gzip.open if ending else open)(path, "wt", encoding="utf-8", newline="") as out:
                writer = csv.DictWriter(out, notes.COLUMNS, quoting=csv.QUOTE_ALL)
                writer.writeheader()
                writer.writerows(notes_rows)
            continue
        if form == "articles":
            head = "<article-meta><article-id pub-id-type='pmc'>{}</article-id></article-meta>"
            lines = [
                f"<article><front>{head.format(n)}</front><body><p>{escape(TEXTS[text])}</p></body></article>"
                for n, text in rows
            ]
            path, content = folder / f"{number}.xml{ending}", "\n".join(["<set>", *lines, "</set>"])
        else:
            lines = [json.dumps({"id": n, "text": TEXTS[text]}) for n, text in rows]
            path, content = folder / f"{number}.jsonl{ending}", "\n".join(lines)
        data = content.encode()
        path.write_bytes(gzip.compress(data) if ending else data)
    return folder


def index(form: str, path: Path, folder: Path) -> Index:
    resource = Resource.model_validate({"form": form, "path": Path(path.name)})
    return open_index("r", resource, path.parent, NAMES, folder)


def content(found: Index) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """The documents that mention two entities, and counts of all."""
    rows = found._table("documents").collect().sort("document")
    mentions = found._table("mentions").collect()
    assert set(mentions["document"]) == set(rows["document"])
    assert found.description["mentions"] == len(mentions)
    return [*zip(rows["id"], rows["text"], strict=True)], {
        name: found.description[name] for name in ("documents", "kept")
    }


@pytest.mark.parametrize("share", [1, 2**20], ids=["a share for each file", "one share"])
@pytest.mark.parametrize("form", READERS)
def test_a_document_counts_once_wherever_it_stands_again(
    form: str, share: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "SHARE", share)
    ids = st.lists(st.integers(0, 5), min_size=1, max_size=4)

    @settings(max_examples=15, deadline=None)
    @given(st.lists(ids, min_size=1, max_size=4), st.data())
    def check(numbers: list[list[int]], data: st.DataObject) -> None:
        folder = tmp_path_factory.mktemp("resource")
        files = [[(n, n % len(TEXTS)) for n in file] for file in numbers]
        rows = [row for file in files for row in file]
        once = [[*dict.fromkeys(rows)]]
        found, expected = (
            index(form, write(form, folder / name, contents), folder / f"{name}-index")
            for name, contents in (("twice", files), ("once", once))
        )
        assert content(found) == content(expected)
        again = len(rows) - len(once[0])
        assert found.description["skipped"] == ({"read before": again} if again else {})

        other = data.draw(st.sampled_from(once[0]))
        file = data.draw(st.integers(0, len(files) - 1))
        changed = [
            *files[:file],
            [*files[file], (other[0], (other[1] + 1) % 4)],
            *files[file + 1 :],
        ]
        path = write(form, folder / "changed", changed)
        with pytest.raises(BadInput) as error:
            index(form, path, folder / "changed-index")
        message = str(error.value)
        assert f"another text has the same id '{other[0]}'" in message
        assert message.count(str(path)) == 2, "both places"
        assert not any(text in message for text in TEXTS)
        assert not (folder / "changed-index/r").exists()

    check()


@pytest.mark.parametrize("form", READERS)
def test_compressed_files_are_read_as_they_are(form: str, tmp_path: Path) -> None:
    rows = [[(n, n) for n in range(4)]]
    plain, packed = (
        list(READERS[form](write(form, tmp_path / f"x{ending}", rows, ending), Counter()))
        for ending in ("", ".gz")
    )
    assert plain == packed
    assert [document.text for document in plain] == TEXTS


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("index.html", "<html><body>flu</body></html>"),
        ("articles.tar.gz", "packed"),
        ("a.xml", "<html><body>not found</body></html>"),  # an error page
        ("a.xml", "<collection><document><passage>flu</passage></document></collection>"),  # BioC
        ("a.nxml", "<PubmedArticleSet><PubmedArticle/></PubmedArticleSet>"),
        ("a.csv", "ROW_ID,ISERROR,TEXT\n"),
        ("a.txt", " \n"),
        (".a.xml", "hidden"),
        ("", ""),
    ],
)
def test_a_folder_of_which_nothing_is_read_is_refused(
    form: str, name: str, content: str, tmp_path: Path
) -> None:
    (tmp_path / "r").mkdir()
    if name:
        (tmp_path / "r" / name).write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=r"no file that ends in|no document in resource r \("):
        index(form, tmp_path / "r", tmp_path / "indexes")


@pytest.mark.parametrize("form", READERS)
def test_files_of_which_nothing_is_read_are_counted(form: str, tmp_path: Path) -> None:
    folder = write(form, tmp_path / "r", [[(1, 0)]])
    (folder / "below").mkdir()
    for name in ("below/index.html", "list.pdf", "LICENCE", ".DS_Store", "below/._0.xml"):
        (folder / name).write_text("x")
    skipped: Counter[str] = Counter()
    assert [document.text for document in READERS[form](folder, skipped)] == TEXTS[:1]
    assert skipped == {"file .html": 1, "file .pdf": 1, "file LICENCE": 1}

"""The gate's campaign: its document has every case, and broken tables are stopped."""

from pathlib import Path

from bench import gate


def test_the_document_has_every_case() -> None:
    document = gate.DOCUMENT.read_text().partition("## Broken sources")[0]
    table, _, _ = document.partition("\nOf ")
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    cases = [(builder, name) for builder, damages in gate.CASES.items() for name in damages]
    rows = [row for row in rows if len(row) == 4]  # not the table of forms
    assert [(row[0].removeprefix("| "), row[1]) for row in rows[2:]] == cases
    verdicts = [row[2] for row in rows[2:]]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in ("stopped", "warned", "missed"))
    assert f"Of {len(cases)} cases: {counts}." in gate.DOCUMENT.read_text()


def test_broken_articles_are_stopped(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcomes = gate.run("lipid")
    assert [outcome.verdict for outcome in outcomes] == ["stopped", "stopped"]

"""The published numbers of context variance are those that it prints, and so is what is adopted."""

from medprobe.core.papers import papers


def test_the_rows_that_context_variance_names_in_short_are_of_a_model_of_its_other_tables() -> None:
    """Table 3's RoBERTa is the one of twelve models that has no other row there."""
    paper = papers()["context"]
    table_3 = {row.model for row in paper.tables["3"].rows}
    assert len(table_3) == 12 and table_3 <= paper.models.keys()
    assert {row.model for row in paper.tables["2"].rows} <= table_3
    [row] = [row for row in paper.tables["3"].rows if row.values.get("understand") == 30.1]
    assert row.model == "RoBERTa-base-PM"


def test_all_triples_and_documents_of_context_variance_are_adopted() -> None:
    """Its Methods name no limit; its resources are notes of one category, as many as it counts,
    and a sample of articles."""
    [(builder, by_name)] = papers()["context"].adopted.benchmarks.items()
    [settings] = by_name.values()
    assert (builder, settings["sources"]) == ("context_biolama", ["ctd", "wikidata", "umls"])
    assert min(settings["triples"], settings["documents"]) >= 1_000_000
    assert settings["max_segments"] == 10  # Figure 2: S1 to S10
    resources = settings["resources"]
    assert resources["notes"]["categories"] == ["Discharge summary"]
    assert resources["articles"]["sample"] == 50_000


def test_numbers_of_context_variance_are_of_the_decoding_that_is_adopted() -> None:
    """Experimental Setup: "a multi-token decoding strategy following" BioLAMA, no mean over masks.
    What BioLAMA released decodes so."""
    paper = papers()["context"]
    assert {row.variant for table in paper.tables.values() for row in table.rows} == {"decoding"}
    settings = paper.adopted.methods["masked"]["rank_change"]["context"]
    biolama = papers()["contrastive-probe-acl2022"].adopted.methods["masked"]["xfactr"]["biolama"]
    assert settings["rankings"] == ["decoding"] and biolama["decodings"] == ["confidence"]
    for name in ("masks", "beam", "length_normalisation", "bias"):
        assert settings[name] == biolama[name]


def test_accuracy_and_shares_of_context_variance_are_of_one_mean() -> None:
    """Table 2 sets accuracy next to UCM_k, both by BioLAMA's mean over relations."""
    assert {row.relation for row in papers()["context"].tables["2"].rows} == {"macro"}

"""Every file of published numbers is sound, and says what its paper prints."""

import re

import pytest

from medprobe import benchmarks
from medprobe.core.papers import MEAN, Paper, PublishedRow, checkpoints, concepts, papers, published
from medprobe.core.settings import parse_section
from medprobe.metrics import catalog

V1_1, V1_2 = "dmis-lab/biobert-v1.1", "dmis-lab/biobert-base-cased-v1.2"
CASED, UNCASED = "google-bert/bert-base-cased", "google-bert/bert-base-uncased"
BIOLAMA = "README.md of dmis-lab/BioLAMA, Models"
PRINTED_CHECKPOINTS = [  # paper, benchmark and method; what a name begins with; its name on the
    # hub; and where the paper or its code says so
    (("diskne", "diskne", "classifier"), "BERT", CASED, "section 4.1: BERTbase-cased"),
    (("diskne", "diskne", "classifier"), "SciBERT", "allenai/scibert_scivocab_cased", "4.1: cased"),
    *(
        ((paper, *of), *rest)
        for paper in ("contrastive-probe-acl2022", "contrastive-probe-v1")
        for of, *rest in (
            (("medlama", "xfactr"), "BERT", UNCASED, "section 5; biolama_prob_00.sh:11"),
            (("medlama", "contrastive"), "BERT", UNCASED, "mirror_sentence_pubmedbert.sh:21"),
            (("medlama", "contrastive"), "BioBERT", V1_1, "mirror_sentence_pubmedbert.sh:24"),
            (("biolama", "contrastive"), "BioBERT", V1_1, "mirror_sentence_pubmedbert.sh:24"),
            (("medlama", "mask_average"), "BioBERT", V1_1, "run_multi_token_mean_prob.sh:13"),
            (("medlama", "xfactr"), "BioBERT", V1_2, "X-FACTR/biolama_prob_00.sh:12"),
            (("biolama", "xfactr"), "BioBERT", V1_2, BIOLAMA),
            (("biolama", "optiprompt"), "BioBERT", V1_2, BIOLAMA),
            (("biolama", "xfactr"), "BERT", CASED, BIOLAMA),
            (("biolama", "optiprompt"), "BERT", CASED, BIOLAMA),
        )
    ),
]
PRINTED_SETTINGS = {  # of adopted methods by paper, method and benchmark, and of rewiring
    "contrastive-probe-acl2022": {  # table 8 and sections 5 and 5.5
        ("rewire",): {"learning_rate": 2e-5, "mask_ratio": 0.5, "temperature": 0.04},
        ("contrastive", "medlama"): {"step": 200, "candidate_length": 25},
        ("xfactr", "medlama"): {"masks": 5, "beam": 5},
        ("xfactr", "biolama"): {"masks": 10, "beam": 5},  # BioLAMA's README.md, Manual Prompt
        ("generative", "medlama"): {"beams": 10},  # generative_probe/main.py
    },
    "contrastive-probe-v1": {  # table 9
        ("rewire",): {"learning_rate": 2e-5, "mask_ratio": 0.5, "temperature": 0.03},
        ("contrastive", "medlama"): {"step": 150, "candidate_length": 25},
    },
    "diskne": {  # section 4.1; tables 2 to 8: over three runs
        ("classifier", "diskne"): {
            "learning_rate": 2e-5,
            "batch": 8,
            "epochs": 8,
            "seeds": [0, 1, 2],
        }
    },
}
SOURCE = re.compile(  # a place in the paper, or a file of its code
    r'(section|table|footnote|appendix) (\d|[A-Z]\.|")|\b[\w./-]+\.(sh|py|md)\b'
)


def rows_of(paper: Paper) -> list[PublishedRow]:
    return [row for table in paper.tables.values() for row in table.rows]


@pytest.mark.parametrize("name", papers())
def test_a_paper_is_sound(name: str) -> None:
    paper, metrics = papers()[name], catalog()
    assert paper.url.startswith("https://")
    for number, table in paper.tables.items():
        assert table.rows or table.notes, number
        seen = set()
        for row in table.rows:
            assert row.model in paper.models or row.model == MEAN, row
            assert set(row.values) <= set(metrics), row
            assert set(row.std) <= set(row.values), row
            for metric, value in row.values.items():
                scale = 100 if metrics[metric].share else 1
                assert scale * metrics[metric].low <= value <= scale * metrics[metric].high, row
            place = (row.model, row.benchmark, row.subset, row.relation, row.method, row.variant)
            assert place not in seen, row
            seen.add(place)


@pytest.mark.parametrize(("of", "begins", "hub", "where"), PRINTED_CHECKPOINTS)
def test_a_number_is_of_the_checkpoint_that_made_it(
    of: tuple[str, str, str], begins: str, hub: str, where: str
) -> None:
    name, *benchmark_and_method = of
    paper = papers()[name]
    models = {
        row.model
        for row in rows_of(paper)
        if [row.benchmark, row.method] == benchmark_and_method and row.model.startswith(begins)
    }
    assert {paper.models[model].hub for model in models} == {hub}, where


def test_the_biobert_of_diskne_has_read_pmc_too() -> None:
    """Section 4.1: the version where PubMed and PMC were utilized, which only v1.0 has."""
    [name] = {row.model for row in rows_of(papers()["diskne"]) if row.model.startswith("BioBERT")}
    assert "pubmed_pmc" in str(papers()["diskne"].models[name].hub)


def test_the_rows_that_context_variance_names_in_short_are_of_a_model_of_its_other_tables() -> None:
    """Table 3's RoBERTa is the one of twelve models that has no other row there."""
    paper = papers()["context"]
    table_3 = {row.model for row in paper.tables["3"].rows}
    assert len(table_3) == 12 and table_3 <= paper.models.keys()
    assert {row.model for row in paper.tables["2"].rows} <= table_3
    [row] = [row for row in paper.tables["3"].rows if row.values.get("understand") == 30.1]
    assert row.model == "RoBERTa-base-PM"


def test_a_name_is_of_one_checkpoint_and_a_checkpoint_has_one_name() -> None:
    names_by_hub: dict[str, set[str]] = {}
    for name, models in checkpoints().items():
        assert len({(model.hub, model.group) for model in models}) == 1, name
        if models[0].hub:
            names_by_hub.setdefault(models[0].hub, set()).add(name)
    assert all(len(names) == 1 for names in names_by_hub.values()), names_by_hub
    assert len({name.casefold() for name in checkpoints()}) == len(checkpoints())


@pytest.mark.parametrize(
    ("paper", "name"), [(paper, name) for paper in papers() for name in papers()[paper].models]
)
def test_a_checkpoint_says_what_names_it(paper: str, name: str) -> None:
    """A section or a file names it, or a note has what is not stated, and where."""
    model = papers()[paper].models[name]
    note = model.note
    if see := re.match(r"see (.+)", note):  # another model's note
        note = papers()[paper].models[see[1]].note
    assert SOURCE.search(model.named_by or note), name
    assert model.named_by or "not stated" in note or not model.hub or "cites" in note, name
    assert model.hub or model.note, name
    assert model.kind not in model.heads, name


@pytest.mark.parametrize("paper", PRINTED_SETTINGS)
def test_what_is_adopted_is_what_is_printed(paper: str) -> None:
    adopted = papers()[paper].adopted
    for (method, *benchmark), settings in PRINTED_SETTINGS[paper].items():
        if method == "rewire":
            chosen = [adopted.rewire]
        else:
            by_method = [kind[method] for kind in adopted.methods.values() if method in kind]
            chosen = [by_benchmark[benchmark[0]] for by_benchmark in by_method]
        assert chosen and all(settings.items() <= choices.items() for choices in chosen), method


@pytest.mark.parametrize("name", papers()["diskne"].variants)
def test_further_settings_of_disknes_builder_can_be_set(name: str) -> None:
    variant = papers()["diskne"].variants[name]
    parse_section(benchmarks.find("diskne_released").settings, variant, name)


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


def test_no_two_papers_that_stand_disagree() -> None:
    values_by_row: dict[tuple, dict[str, float]] = {}
    for paper in papers().values():
        for table in paper.tables.values() if paper.stands else []:
            for row in table.rows:
                place = (
                    row.model,
                    row.benchmark,
                    row.subset,
                    row.relation,
                    row.method,
                    row.variant,
                )
                assert values_by_row.setdefault(place, row.values) == row.values, place


def test_the_version_in_print_stands() -> None:
    ((paper, number, row),) = published("PubMedBERT", "medlama", "full", "macro", "contrastive")
    assert (paper.version, number) == ("ACL 2022", "5")
    assert row.values == {"acc_at_1": 5.71, "acc_at_10": 24.31}
    assert row.std == {"acc_at_1": 0.58, "acc_at_10": 1.29}


def test_masks_of_biolama_stand_under_the_method_that_made_them() -> None:
    ((paper, number, row),) = published(
        "BERT-base-cased", "biolama", "ctd", "macro", "xfactr:confidence"
    )
    assert (number, row.values) == ("7", {"acc_at_1": 0.06, "acc_at_5": 1.20})
    assert not published("BERT-base-cased", "biolama", "ctd", "macro", "fill_mask")
    assert paper.adopted.methods["masked"]["xfactr"]["biolama"]["masks"] == 10


def test_the_preprint_can_be_asked_for_by_name() -> None:
    paper: Paper = papers()["contrastive-probe-v1"]
    assert not paper.stands
    (row,) = [
        row
        for row in paper.tables["10"].rows
        if (row.model, row.subset, row.relation) == ("PubMedBERT", "hard", "micro")
    ]
    assert row.values == {"acc_at_1": 4.71, "acc_at_10": 22.88}
    assert paper.adopted.rewire["temperature"] == 0.03


def test_tables_have_all_their_rows() -> None:
    tables = papers()["contrastive-probe-acl2022"].tables
    assert len(tables["5"].rows) == 9 * 2  # models on full and hard
    assert len(tables["7"].rows) == 10 * 3  # rows of the table on three sets
    best = max(tables["5"].rows, key=lambda row: row.values["acc_at_10"])
    assert (best.model, best.subset) == ("SapBERT", "full")
    (xfactr,) = published("BlueBERT-base PubMed", "medlama", "full", "macro", "xfactr:confidence")
    assert xfactr[2].values == {"acc_at_1": 0.74}


def test_the_names_that_a_paper_prints_are_known() -> None:
    rows = [row for table in papers()["diskne"].tables.values() for row in table.rows]
    printed = {row.relation for row in rows} - {"macro", "weighted"}
    assert printed == set(concepts().values()), "a disease in the tables has no concept"
    assert len(concepts()) == len(printed), "two diseases of the tables have one concept"


def test_the_experts_shares_are_of_its_predictions() -> None:
    """Section 5.3 of the version in print: 33 of 150 predictions.

    Its 13 "under gold answers" are no share of hits: three answers that were rated below 5 are not
    among them.
    """
    [row] = papers()["contrastive-probe-acl2022"].tables["figure 8"].rows
    assert row.values == {"rated_right_of_10": 100 * 33 / 150}


def test_accuracy_and_shares_of_context_variance_are_of_one_mean() -> None:
    """Table 2 sets accuracy next to UCM_k, both by BioLAMA's mean over relations."""
    assert {row.relation for row in papers()["context"].tables["2"].rows} == {"macro"}


def test_disknes_splits_are_adopted_as_section_3_3_defines_them() -> None:
    """All examples that do not mention the disease are trained on, those of its premises too."""
    settings = papers()["diskne"].adopted.benchmarks["diskne_released"]["diskne"]
    assert settings["shared_premises"] is True

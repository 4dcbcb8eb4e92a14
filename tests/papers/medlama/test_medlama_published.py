"""The published numbers of Contrastive-Probe are those in print, and so is what is adopted."""

import pytest

from helpers.printed import check_adopted, hubs
from medprobe.core.papers import papers, published

V1_1, V1_2 = "dmis-lab/biobert-v1.1", "dmis-lab/biobert-base-cased-v1.2"
CASED, UNCASED = "google-bert/bert-base-cased", "google-bert/bert-base-uncased"
BIOLAMA = "README.md of dmis-lab/BioLAMA, Models"
PRINTED_CHECKPOINTS = [  # benchmark and method; what a name begins with; its name on the hub; and
    # where the paper or its code says so
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
}


@pytest.mark.parametrize("paper", ["contrastive-probe-acl2022", "contrastive-probe-v1"])
@pytest.mark.parametrize(("of", "begins", "hub", "where"), PRINTED_CHECKPOINTS)
def test_a_number_is_of_the_checkpoint_that_made_it(
    paper: str, of: tuple[str, str], begins: str, hub: str, where: str
) -> None:
    assert hubs(paper, *of, begins) == {hub}, where


@pytest.mark.parametrize("paper", PRINTED_SETTINGS)
def test_what_is_adopted_is_what_is_printed(paper: str) -> None:
    check_adopted(paper, PRINTED_SETTINGS[paper])


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


def test_tables_have_all_their_rows() -> None:
    tables = papers()["contrastive-probe-acl2022"].tables
    assert len(tables["5"].rows) == 9 * 2  # models on full and hard
    assert len(tables["7"].rows) == 10 * 3  # rows of the table on three sets
    best = max(tables["5"].rows, key=lambda row: row.values["acc_at_10"])
    assert (best.model, best.subset) == ("SapBERT", "full")
    (xfactr,) = published("BlueBERT-base PubMed", "medlama", "full", "macro", "xfactr:confidence")
    assert xfactr[2].values == {"acc_at_1": 0.74}


def test_the_experts_shares_are_of_its_predictions() -> None:
    """Section 5.3 of the version in print: 33 of 150 predictions.

    Its 13 "under gold answers" are no share of hits: three answers that were rated below 5 are not
    among them.
    """
    [row] = papers()["contrastive-probe-acl2022"].tables["figure 8"].rows
    assert row.values == {"rated_right_of_10": 100 * 33 / 150}

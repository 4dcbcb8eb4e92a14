"""MedLAMA's relations and their prompts, `[X]` the subject, `[Y]` the slot."""

from typing import Final

# Prompts as released, slips of the pen included. The last relation is in the released prompts but
# not in the benchmark.
HUMAN_PROMPTS: Final = {
    "disease_may_have_associated_disease": (
        "The disease [X] might have the associated disease [Y] ."
    ),
    "gene_product_plays_role_in_biological_process": (
        "The gene product [X] plays role in biological process [Y] ."
    ),
    "gene_product_encoded_by_gene": "The gene product [X] is encoded by gene [Y] .",
    "gene_product_has_associated_anatomy": "The gene product [X] has the associated anatomy [Y] .",
    "gene_associated_with_disease": "The gene [X] is associatied with disease [Y] .",
    "disease_has_abnormal_cell": "[X] has the abnormal cell [Y] .",
    "occurs_after": "[X] occurs after [Y] .",
    "gene_product_has_biochemical_function": "[X] has biochemical function [Y] .",
    "disease_may_have_molecular_abnormality": (
        "The disease [X] may have molecular abnormality [Y] ."
    ),
    "disease_has_associated_anatomic_site": (
        "The disease [X] can stem from the associated anatomic_site [Y] ."
    ),
    "associated_morphology_of": "[X] is associated morphology of [Y] .",
    "disease_has_normal_tissue_origin": "The disease [X] stems from the normal tissue [Y] .",
    "gene_encodes_gene_product": "The gene [X] encodes gene product [Y] .",
    "has_physiologic_effect": "[X] has physiologic effect of [Y] .",
    "may_treat": "[X] might treat [Y] .",
    "disease_mapped_to_gene": "The disease [X] is mapped to gene [Y] .",
    "may_prevent": "[X] may be able to prevent [Y] .",
    "disease_may_have_finding": "[X] may have [Y] .",
    "disease_has_normal_cell_origin": "The disease [X] stems from the normal cell [Y] .",
    "gene_product_has_chemical_classification": "The gene product [X] is a type of [Y] .",
}
RELATIONS: Final = tuple(HUMAN_PROMPTS)[:19]  # in the order of the paper's Table 2


def default_prompt(relation: str) -> str:
    """Return the prompt made of the relation's own name.

    (One released default prompt, that of associated_morphology_of, has a stray second blank before
    its slot; this one has not.)

    >>> default_prompt("may_treat")
    '[X] may treat [Y] .'
    """
    return f"[X] {relation.replace('_', ' ')} [Y] ."

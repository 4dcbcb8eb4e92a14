"""MedLAMA's relations and their prompts, `[X]` the subject, `[Y]` the slot; and further wordings.

The further wordings are ours, not of the paper. Each states the relation in the direction of the
paper's prompt. They are named `ours-1`, `ours-2` and so on, in this order.
"""

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


WORDINGS: Final[dict[str, tuple[str, ...]]] = {
    "disease_may_have_associated_disease": (
        "Patients with the disease [X] may also have the disease [Y] .",
        "A disease that can be associated with [X] is [Y] .",
        "[X] is a disease that may occur together with [Y] .",
        "[Y] is a disease that may accompany the disease [X] .",
    ),
    "gene_product_plays_role_in_biological_process": (
        "The gene product [X] is involved in the biological process [Y] .",
        "A biological process in which the gene product [X] plays a role is [Y] .",
        "The gene product [X] takes part in [Y] .",
        "[Y] is a biological process that involves the gene product [X] .",
    ),
    "gene_product_encoded_by_gene": (
        "The gene that encodes the gene product [X] is [Y] .",
        "The gene product [X] is produced from the gene [Y] .",
        "[X] is a product of the gene [Y] .",
        "[Y] is the gene that encodes [X] .",
    ),
    "gene_product_has_associated_anatomy": (
        "The gene product [X] is associated with the anatomic structure [Y] .",
        "An anatomic structure that is associated with the gene product [X] is [Y] .",
        "In the body, the gene product [X] is linked to the [Y] .",
        "The [Y] is an anatomic structure that is associated with the gene product [X] .",
    ),
    "gene_associated_with_disease": (
        "The gene [X] is linked to the disease [Y] .",
        "A disease that is associated with the gene [X] is [Y] .",
        "The gene [X] is known to have an association with [Y] .",
        "[Y] is a disease that is associated with the gene [X] .",
    ),
    "disease_has_abnormal_cell": (
        "The abnormal cell that is found in [X] is the [Y] .",
        "In the disease [X], the abnormal cell is the [Y] .",
        "[X] is a disease whose abnormal cell is the [Y] .",
        "The [Y] is the abnormal cell of the disease [X] .",
    ),
    "occurs_after": (
        "[X] follows [Y] .",
        "[X] takes place after [Y] .",
        "[X] comes later than [Y] .",
        "[Y] is followed by [X] .",
    ),
    "gene_product_has_biochemical_function": (
        "The gene product [X] has the biochemical function of [Y] .",
        "The biochemical function of the gene product [X] is [Y] .",
        "A function of the gene product [X] is [Y] .",
        "[Y] is a biochemical function of the gene product [X] .",
    ),
    "disease_may_have_molecular_abnormality": (
        "A molecular abnormality that may be found in the disease [X] is [Y] .",
        "Patients with [X] may have the molecular abnormality [Y] .",
        "The disease [X] can show the molecular abnormality [Y] .",
        "[Y] is a molecular abnormality that may be present in the disease [X] .",
    ),
    "disease_has_associated_anatomic_site": (
        "The anatomic site that is associated with the disease [X] is the [Y] .",
        "The disease [X] is associated with the [Y] .",
        "[X] is a disease of the [Y] .",
        "The [Y] is an anatomic site that is associated with the disease [X] .",
    ),
    "associated_morphology_of": (
        "[X] is the morphology that is associated with [Y] .",
        "[X] is a morphologic feature of [Y] .",
        "The morphology [X] is seen in [Y] .",
        "[Y] has the associated morphology [X] .",
    ),
    "disease_has_normal_tissue_origin": (
        "The normal tissue from which the disease [X] arises is the [Y] .",
        "The disease [X] originates in normal [Y] .",
        "The tissue of origin of [X] is the [Y] .",
        "The [Y] is the normal tissue in which the disease [X] originates .",
    ),
    "gene_encodes_gene_product": (
        "The gene product that is encoded by the gene [X] is [Y] .",
        "The product of the gene [X] is [Y] .",
        "The gene [X] codes for [Y] .",
        "[Y] is encoded by the gene [X] .",
    ),
    "has_physiologic_effect": (
        "A physiologic effect of [X] is [Y] .",
        "[X] causes the physiologic effect [Y] .",
        "In the body, [X] leads to [Y] .",
        "[Y] is a physiologic effect of [X] .",
    ),
    "may_treat": (
        "[X] can be used to treat [Y] .",
        "[X] is a treatment for [Y] .",
        "A condition that may be treated with [X] is [Y] .",
        "[Y] may be treated with [X] .",
    ),
    "disease_mapped_to_gene": (
        "The gene to which the disease [X] is mapped is [Y] .",
        "The disease [X] maps to the gene [Y] .",
        "[X] is a disease that has been mapped to the gene [Y] .",
        "[Y] is the gene to which the disease [X] is mapped .",
    ),
    "may_prevent": (
        "[X] can be used to prevent [Y] .",
        "[X] may protect against [Y] .",
        "A condition that may be prevented by [X] is [Y] .",
        "[Y] may be prevented by [X] .",
    ),
    "disease_may_have_finding": (
        "A finding that may be present in the disease [X] is [Y] .",
        "Patients with [X] may present with [Y] .",
        "The disease [X] can show the finding [Y] .",
        "[Y] is a finding that may occur in the disease [X] .",
    ),
    "disease_has_normal_cell_origin": (
        "The normal cell from which the disease [X] arises is the [Y] .",
        "The disease [X] originates from a normal [Y] .",
        "The cell of origin of [X] is the [Y] .",
        "The [Y] is the normal cell from which the disease [X] originates .",
    ),
}

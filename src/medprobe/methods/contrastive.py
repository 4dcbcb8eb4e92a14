class Contrastive:
    KINDS = ("masked", "encoder")

"""The sample world: invented facts and files, and small models that were taught them or not."""

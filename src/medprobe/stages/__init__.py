"""The stages of dvc.yaml: one file per kind of stage."""

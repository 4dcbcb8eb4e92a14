"""The stages of dvc.yaml: one file per kind of stage.

The names of models, methods, benchmarks and sentence sets are those of params.yaml, and `params` is
its content. An `executor` runs the jobs of a stage.
"""

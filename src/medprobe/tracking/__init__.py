"""What MLflow is told: `lineage` says what a result was made from, `runs` and `comparisons` what
its runs hold, `store` brings them in."""

"""The executor of a Ray cluster: jobs go to workers, processes that keep their model loaded."""

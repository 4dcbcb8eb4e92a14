"""When can a judgment be trusted? The metrics of `trust`, by how far P(true) is from one half."""

from medprobe.metrics.trust import Trust, judgments

SCORER = Trust(judgments)

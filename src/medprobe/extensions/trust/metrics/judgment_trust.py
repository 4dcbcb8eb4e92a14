"""When can a judgment be trusted? The metrics of `trust`, by how far P(true) is from one half."""

from medprobe.extensions.trust.metrics.trust import Trust, judgments


class JudgmentTrust(Trust):
    """The metrics of `trust` for judgments."""

    ALSO_OF = ("judgment",)


SCORER = JudgmentTrust(judgments)

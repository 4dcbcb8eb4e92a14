"""A linear probe: logistic regression on a frozen encoder's features, one weight per feature."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LinearProbe:
    """The log-odds of the positive class are `features @ weights + bias`."""

    weights: NDArray[np.float64]  # [hidden]
    bias: float

    @classmethod
    def fit(cls, features: NDArray[np.float32], labels: NDArray[np.int64]) -> "LinearProbe":
        """Fit a probe. Features are standardised and both classes weigh the same.

        Args:
            features: [examples, hidden].
            labels: 0 or 1, [examples].
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        scale, features = StandardScaler(), features.astype(float)
        model = LogisticRegression(
            class_weight="balanced", C=0.1, solver="newton-cholesky", tol=1e-8
        ).fit(scale.fit_transform(features), labels)
        weights = model.coef_[0] / scale.scale_
        return cls(weights, float(model.intercept_[0] - weights @ scale.mean_))

    def probabilities(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probabilities of the positive class, [examples]."""
        odds = features @ self.weights + self.bias
        return np.asarray(
            0.5 * (1 + np.tanh(0.5 * odds))
        )  # the logistic function, without overflow

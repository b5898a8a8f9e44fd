"""Linear models over vertically split data: linear, logistic and Poisson regression with a coordinator.

The active party has labels, every party features; the coordinator (`vflparty.coordinator`) makes the key, decrypts
values that their owner has masked, and sees no data. Each party ends with the coefficients of its own columns. Two
exchanges, `scores` and `rows`, each with its own table of who learns what in its package docstring; `exact` tells what
the active party sees with residual="exact".

Encryption is additive, so a mean function must be a polynomial of the score (`approximations`); order 1 turns every
family into least squares with fixed targets. All numbers that cross are integers (`columns`, `residuals`), so training
with and without encryption gives the same coefficients, bit for bit.

Two doors: the estimators of `vfltree`, and `LinearActiveParty`, `LinearPassiveParty` and `vflparty.coordinator
.Coordinator` on a `vflparty` network.

Prediction. Every party sends X_k w_k of the rows asked for; the active party adds them up. It sees each party's score
(and, from as many rows as that party has columns, could tell how scores depend on features it knows by other means);
passive parties learn which rows are asked for and nothing else. No key is needed.
"""

from .active import LinearActiveParty
from .passive import LinearPassiveParty
from .settings import LinearSettings

__all__ = ["LinearActiveParty", "LinearPassiveParty", "LinearSettings"]

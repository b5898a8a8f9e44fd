"""SecureBoost: gradient-boosted trees over vertically split data (Cheng et al., SecureBoost: A Lossless Federated
Learning Framework). Two doors: the estimators, and `ActiveParty` and `PassiveParty` on a `vflparty` network.

Who learns what, honest-but-curious parties that do not collude:

=============  ============================================  =========================================================
party          learns                                        does not learn
=============  ============================================  =========================================================
active         its labels and features; per node, the sums   names, columns and thresholds of foreign features; bins
               of gradients in each bin of each hidden       of single rows, directly
               feature (in an order drawn anew per round);
               which rows go left at every split
passive        which rows are in each node that is summed,   labels, gradients, leaf values, features of others
               and fall left at foreign splits; its own
               winning splits
=============  ============================================  =========================================================

What leaks all the same. A passive party can infer labels from row sets, often well: rows that trees keep together tend
to share a label. The active party knows every gradient, so sums over few rows can be solved for which rows they hold;
and it can link a hidden feature across rounds by its root sums, and learns the order of values over many trees.
Encryption hides single gradients and labels from direct reading; it does not remove these inferences. A malicious
active party (outside the model) could ask for tiny nodes or encrypt markers in place of gradients; a passive party
checks that nodes are open, levels come in order and children partition their parent, and refuses the rest.
"""

from .active import ActiveParty
from .passive import PassiveParty
from .settings import BoostSettings

__all__ = ["ActiveParty", "BoostSettings", "PassiveParty"]

"""SecureBoost: gradient-boosted trees over vertically split data.

Source: Cheng et al., SecureBoost: A Lossless Federated Learning Framework. Two doors: the estimators of `vfltree`, and
`ActiveParty` and `PassiveParty` on a `vflparty` network. `messages` is the protocol on one page.

Who learns what, with honest-but-curious parties that do not collude:

======== ===================================================== ==================================================
party    learns                                                does not learn
======== ===================================================== ==================================================
active   per node, the sums of gradients in each bin of each   names, columns and thresholds of foreign features;
         hidden feature (features in an order drawn anew per   names of foreign categories; the bin of a row,
         round), or of each group of bins that the passive     directly
         party merged; which of them are empty and which is
         fullest;
         which rows go left at every split; how many features
         and bins a party has; which hidden features of a
         round have monotone constraints, and their signs;
         which hold categories, and how many
passive  which rows are in each node that is summed and go     labels, gradients, weights, leaf values, loss,
         left at splits above the last level; its own winning  parameters of trees, features of others
         splits; numbers of rounds, outputs (classes), rows,
         the depth; which rows a round was trained on (with
         sampling_method="goss": which have large gradients),
         which of its own features are summed; leaves a tree
         may have (grow_policy="lossguide"); the paths of
         evaluation rows at its own splits, round by round,
         and how many rounds the model keeps
======== ===================================================== ==================================================

What leaks all the same (measured in docs/leakage.md). A passive party can infer labels from row sets, often well: rows
that trees keep together tend to share a label; `label_privacy_epsilon` bounds that, at a price. The active party knows
every gradient, so sums over few rows can be solved for which rows they hold: `min_rows_per_sum` keeps such sums at home
(`vfltree.bin_groups`). It can link a hidden feature across rounds by its root sums and learns the order of its values;
once there are half as many rounds as rows, the root sums of a feature, over however many rows, can be solved for all.
Encryption hides single gradients and labels from direct reading; it does not remove these inferences.

A malicious active party is outside the model: it could ask for tiny nodes or encrypt markers in place of gradients. A
passive party does refuse what no honest one asks: nodes that are not open, levels and rounds out of order, children
that do not partition their parent, more rounds or depth than agreed, and in prediction any question off a row's path.
"""

from .active import ActiveParty
from .passive import PassiveParty
from .settings import BoostSettings

__all__ = ["ActiveParty", "BoostSettings", "PassiveParty"]

"""Random forests over vertically split data: the targets are encrypted once, and all trees add up the same rows.

Source: Breiman, Random Forests (2001); node by node the protocol of Cheng et al., SecureBoost. Two doors: the
estimators of `vfltree`, and `ForestActive` and `ForestPassive` on a `vflparty` network. `messages` is the protocol on
one page.

Who learns what, with honest-but-curious parties that do not collude:

======== ===================================================== ==================================================
party    learns                                                does not learn
======== ===================================================== ==================================================
active   per node, the counts of classes (or sums of targets)  names, columns and thresholds of foreign features;
         in each bin of each hidden feature that was drawn     the bin of a row, directly; sums of features that
         there (features in an order drawn anew per tree);     were not drawn at a node
         which hidden features vary in it at all; which rows
         go left at every split; how many features and bins a
         party has
passive  how often each tree drew each row; which rows are in  labels, targets, weights, leaf values, parameters
         each node and go left at splits above the last        of trees, features of others, how well the forest
         level; which of its own features are drawn at a       fits
         node; its own winning splits; numbers of trees,
         classes and rows, the depth; whether weights of rows
         and the out-of-bag score are in use
======== ===================================================== ==================================================

What leaks all the same. A passive party can infer labels from row sets, as in boosting: leaves of a deep forest are
nearly pure, so rows that many trees keep together share a label. The active party knows every target, so sums over few
rows can be solved for which rows they hold; it can link a hidden feature across trees by its root sums. Encryption
hides single labels from direct reading; it does not remove these inferences.

Weights never show in what is drawn: scikit-learn 1.9 draws a row as often as its weight says, which would tell passive
parties the weights, and with class weights the labels. Here weights of rows multiply draws under encryption, and
weights of classes are applied to sums that the active party has opened. Only rows that weigh nothing do not enter at
all, which passive parties see.

A malicious active party is outside the model: it could ask for tiny nodes or encrypt markers in place of targets. A
passive party does refuse what no honest one asks: see `vfltree.secureboost`, and here more draws than rows, targets
sent twice, and the sums of a level asked twice.
"""

from .active import ForestActive
from .passive import ForestPassive
from .settings import ForestSettings

__all__ = ["ForestActive", "ForestPassive", "ForestSettings"]

"""Exact residuals (residual="exact"): the active party sees sums of scores, and encrypts what it computes from them.

    P_k -> A      u_k + masks that cancel over the passive parties;  with one passive party, u_1 itself
    A -> P_k      [[d]],  d = weight (mean(z) - y),  z = sum_k u_k + b, encrypted under the coordinator's key
    P_k -> C      [[X_k^T d + R_k]];  C -> P_k   the same, decrypted

Off by default, because of what it shows:

======== ========================================================= ==================================================
party    learns                                                    does not learn
======== ========================================================= ==================================================
active   in every step the sum of the passive parties' scores of   single scores where there are two or more passive
         every row (with one passive party: its scores); the loss  parties; coefficients and features of others
passive  its own gradient in the clear, per step; with several     labels, weights, scores, gradients and coefficients
         passive parties their names                               of others
coordi-  uniform values; how many                                  everything else
nator
======== ========================================================= ==================================================

Scores of many steps are linear in one matrix: their span is that of the passive party's columns, and plain descent
shows X_P X_P^T itself, so the active party learns which rows are alike (on breast cancer every row's nearest other
row, after 60 steps; benchmarks/leakage/gram_matrix.py).

The masks come from pairwise keys (`vflcrypto.pairwise`) that travel through the active party. One that deviates and
puts itself in the middle, or tells a passive party that it is the only one, would read them; an honest-but-curious one
cannot.
"""

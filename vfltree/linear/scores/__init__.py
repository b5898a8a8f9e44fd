"""The scores exchange, the textbook's: encrypted scores go to the active party, encrypted residuals come back.

    P_k -> A      [[u_k]],  u_k = X_k w_k
    A -> P_k      [[d]],    d = sum_k u_k + b - t, weighted, blinded anew
    all -> C      [[X_k^T d + R_k]],  R_k uniform modulo n, one per value, never reused;  C -> all   the same, decrypted

Any number of parties, with rows of any number of outputs. Source: Yang et al. 2019, section 2.4; Hardy et al. 2017.

======== ========================================================= ==================================================
party    learns                                                    does not learn
======== ========================================================= ==================================================
active   its own gradient in the clear, per step; whether each     scores, gradients, coefficients and features of
         passive party has settled                                 others
passive  its own gradient in the clear, per step; batches; number  labels, weights, scores, gradients and coefficients
         of rows, sum of weights, penalties, family and optimizer  of others, the loss
coordi-  uniform values; how many                                  everything else
nator
======== ========================================================= ==================================================

What a gradient gives away: a passive party sees X_k^T d. Where a batch has hardly more rows than the party has columns,
that is enough to solve for d, and so for the labels. Hence full batches by default, and a least size for others. From a
full batch follows what the party could fit to the labels on its own columns, had it known them
(benchmarks/leakage/gradient_labels.py).
"""

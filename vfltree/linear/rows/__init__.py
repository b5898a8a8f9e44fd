"""The rows exchange (exchange="rows"), for two parties: encrypted rows travel once, and no scores at all.

With a mean of order 1 the residual is d = d_A + d_P, where d_A = u_A + b - t is known to the active party and d_P = u_P
to the passive one. Each party multiplies the other's encrypted rows by its own plain half:

    once:      A -> P   [[x_i]] of all its rows, packed: all columns of a row in one ciphertext, or few; P -> A too
    per step:  A -> P   [[X_P^T d_A]], blinded anew;      P -> A   [[X_A^T d_P]], blinded anew
               both -> C  what they received, masked;  C -> both  the same, decrypted

and adds the other half, X_k^T d_k, which it computes in the clear. Nothing is encrypted per step: a step takes one
combination of n ciphertexts on either side. Our own exchange.

======== ========================================================= ==================================================
party    learns                                                    does not learn
======== ========================================================= ==================================================
active   its own gradient in the clear, per step; whether the      scores, gradients, coefficients and features of
         passive party has settled; its number of columns          the other
passive  its own gradient in the clear, per step; batches; number  labels, scores, gradients and coefficients of the
         of rows and columns, penalties, family and optimizer      other
coordi-  uniform values; how many                                  everything else
nator
======== ========================================================= ==================================================

The same as in the scores exchange, as long as nobody colludes. If the coordinator colludes with a party, *rows* of the
other are read here, where the scores exchange gives away their scores. Sample weights would have to be known to the
passive party; they are refused.
"""

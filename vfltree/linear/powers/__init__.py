"""Residuals of order 3 (order=3): encrypted powers of the score pass along the parties, each adds its own share.

    A -> P_1 -> A      [[v]], [[v^2]], [[v^3]],  v = X_1 w_1
    A -> P_k -> A      the same of v + X_k w_k, by the binomial formula on what came before, blinded anew
    A                  [[d]] = [[c_3 z^3 + c_1 z + c_0 - y]] times weight;  from here on as in the scores exchange

(u + v)^3 = u^3 + 3 u^2 v + 3 u v^2 + v^3 has only v, which the party knows, as exponents. Any number of parties, one
round each. Who learns what is as in the scores exchange; a passive party also sees the number of parties before it by
the order in which it is asked.
"""

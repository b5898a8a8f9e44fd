"""What growing trees over several parties takes, whatever the trees are for.

The active party's side is `leader` (histograms opened and checked, nodes divided), a passive party's is `follower`
(rows of open nodes, its splits, its sums); `messages` is what they say. Boosting and forests add what nodes add up and
what they make of it. Neither side imports the other.
"""

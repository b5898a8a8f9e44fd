"""Kernels behind `joint_cells.py`: joint labels of rows, the search for a tree of merges, and the layers of a plan."""

from __future__ import annotations

import numpy as np

from vfltree._jit import jit

FROM_ROWS, UNMADE = -1, -2  # where the sums of a member come from, if not from the cells of a merge
WORTH = 10  # a merge saves at least a tenth of its cells: carrying a cell along costs about that of a multiplication

# A member of a tree is a leaf or a merge. In every node it has labels: 0 for rows it does not need, else a bin or cell.


@jit
def _grown(array, size):  # type: ignore[no-untyped-def]
    """The array with room for `size` elements."""
    if size <= len(array):
        return array
    out = np.empty(max(size, 2 * len(array)), dtype=array.dtype)
    out[: len(array)] = array
    return out


@jit
def _join(left, right, n_left, n_right, joint, keys, values, cell_left, cell_right, first):  # type: ignore[no-untyped-def]
    """Label rows by the pair of their labels.

    In:   left, right  labels of the rows, at most n_left and n_right
          keys, values  work space; their length is a power of two, at least twice the rows
    Out:  joint  labels of the pairs in order of appearance; cell_left, cell_right  of pair c at [first + c - 1]
    Returns the number of pairs, of rows needed by either, and of pairs needed by the left and by the right.
    """
    mask = len(keys) - 1
    n_keys = (n_left + 1) * (n_right + 1)
    direct = n_keys <= len(keys)
    keys[: n_keys if direct else len(keys)] = -1
    n_cells, n_rows, n_in_left, n_in_right = 0, 0, 0, 0
    for i in range(len(left)):
        a, b = np.int64(left[i]), np.int64(right[i])
        if a == 0 and b == 0:
            joint[i] = 0
            continue
        n_rows += 1
        key = a * (n_right + 1) + b
        # Golden-ratio hashing; the high bits are the good ones.
        slot = key if direct else ((key * 0x9E3779B97F4A7C1) >> 20) & mask
        while keys[slot] != key and keys[slot] != -1:
            slot = (slot + 1) & mask
        if keys[slot] == -1:
            keys[slot] = key
            cell_left[first + n_cells], cell_right[first + n_cells] = a, b
            n_cells += 1
            values[slot] = n_cells
            if a > 0:
                n_in_left += 1
            if b > 0:
                n_in_right += 1
        joint[i] = values[slot]
    return n_cells, n_rows, n_in_left, n_in_right


@jit
def _table_size(n_rows):  # type: ignore[no-untyped-def]
    size = 16
    while size < 2 * n_rows:
        size *= 2
    return size


@jit
def _scatter(labels, names, n_labels, lengths, at, members, to):  # type: ignore[no-untyped-def]
    """Names by label, those of label 0 left out: lengths into lengths[at :], names into members[to :]. Stable."""
    lengths[at : at + n_labels] = 0
    for i in range(len(labels)):
        if labels[i]:
            lengths[at + labels[i] - 1] += 1
    ends = np.empty(n_labels + 1, dtype=np.int64)
    ends[0] = to
    for c in range(n_labels):
        ends[c + 1] = ends[c] + lengths[at + c]
    total = ends[n_labels]
    for i in range(len(labels)):
        if labels[i]:
            members[ends[labels[i] - 1]] = names[i]
            ends[labels[i] - 1] += 1
    return total


@jit
def plan_layers(columns, rows, names, indptr, leaves, merges, labels, sizes, first_places, budget):  # type: ignore[no-untyped-def]
    """Decide on every merge of a tree in every node, and write the layers down.

    columns : bins (n_features, n_rows).  rows, names : by node; names are what the first layer calls them.
    labels : int32 (n_nodes, n_leaves, n_bins).  sizes, first_places : int64 (n_nodes, n_leaves).
    Returns lengths, places and members of all layers end to end, and where the layers begin among sums and members.
    """
    n_nodes, n_leaves, n_members = len(indptr) - 1, len(leaves), len(leaves) + len(merges)
    largest = 0
    for k in range(n_nodes):
        largest = max(largest, indptr[k + 1] - indptr[k])
    row_labels = np.empty((n_leaves + 1, largest), dtype=np.int32)  # one more, to try a merge in
    table = _table_size(largest) if len(merges) else 0
    keys, values = np.empty(table, dtype=np.int64), np.empty(table, dtype=np.int32)
    needed = np.empty(n_members, dtype=np.int64)
    home = np.empty(n_members, dtype=np.int64)

    n_sums = np.empty((n_nodes, n_members), dtype=np.int64)
    origin = np.full((n_nodes, n_members), UNMADE, dtype=np.int64)
    cells_at = np.empty((n_nodes, n_members), dtype=np.int64)
    made_in = np.full((n_nodes, n_members), -1, dtype=np.int64)  # layer
    sums_at = np.empty((n_nodes, n_members), dtype=np.int64)  # of a merge's cells within their layer
    cell_left, cell_right = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    n_cells = 0
    lengths, places = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int64)
    members = np.empty(4096, dtype=np.int64)
    at, to = 0, 0

    # The first layer, node by node: sums of rows.
    for k in range(n_nodes):
        own = rows[indptr[k] : indptr[k + 1]]
        n = len(own)
        for j in range(n_leaves):
            column, code = columns[leaves[j]], labels[k, j]
            count = 0
            for i in range(n):
                row_labels[j, i] = code[column[own[i]]]
                count += row_labels[j, i] > 0
            needed[j], home[j], n_sums[k, j], origin[k, j] = count, j, sizes[k, j], FROM_ROWS
        trial, held = n_leaves, 0
        for t in range(len(merges)):
            left, right, merge = merges[t, 0], merges[t, 1], n_leaves + t
            if origin[k, left] != FROM_ROWS or origin[k, right] != FROM_ROWS:
                continue
            cell_left, cell_right = _grown(cell_left, n_cells + n), _grown(cell_right, n_cells + n)
            d, n_rows, in_left, in_right = _join(
                row_labels[home[left], :n], row_labels[home[right], :n], n_sums[k, left], n_sums[k, right],
                row_labels[trial, :n], keys[: _table_size(n)], values, cell_left, cell_right, n_cells,
            )  # fmt: skip
            freed = (n_sums[k, left] if left >= n_leaves else 0) + (
                n_sums[k, right] if right >= n_leaves else 0
            )
            saved = needed[left] + needed[right] - (n_rows - d + in_left + in_right)
            if saved * WORTH <= d or held - freed + d > budget:
                continue
            origin[k, left], origin[k, right], origin[k, merge] = merge, merge, FROM_ROWS
            needed[merge], n_sums[k, merge], cells_at[k, merge] = n_rows, d, n_cells
            home[merge], trial = trial, home[left]
            n_cells, held = n_cells + d, held - freed + d
        for m in range(n_members):
            if origin[k, m] != FROM_ROWS:
                continue
            size = n_sums[k, m]
            lengths, places = _grown(lengths, at + size), _grown(places, at + size)
            members = _grown(members, to + needed[m])
            to = _scatter(
                row_labels[home[m], :n], names[indptr[k] : indptr[k + 1]], size, lengths, at, members, to
            )
            for c in range(size):
                places[at + c] = first_places[k, m] + c if m < n_leaves else -1
            sums_at[k, m], made_in[k, m] = at, 0
            at += size

    # Further layers: what was made from the cells of the layer before.
    sum_bounds, member_bounds = (
        np.zeros(n_members + 2, dtype=np.int64),
        np.zeros(n_members + 2, dtype=np.int64),
    )
    sum_bounds[1], member_bounds[1] = at, to
    layer = 1
    while at > sum_bounds[layer - 1]:
        before = sum_bounds[layer - 1]
        for k in range(n_nodes):
            for m in range(n_members - 1, -1, -1):
                merge = origin[k, m]
                if merge < 0 or made_in[k, merge] != layer - 1:
                    continue
                size, cells = n_sums[k, m], n_sums[k, merge]
                side = cell_left if merges[merge - n_leaves, 0] == m else cell_right
                lengths, places = _grown(lengths, at + size), _grown(places, at + size)
                members = _grown(members, to + cells)
                elements = np.arange(sums_at[k, merge] - before, sums_at[k, merge] - before + cells)
                to = _scatter(
                    side[cells_at[k, merge] : cells_at[k, merge] + cells],
                    elements,
                    size,
                    lengths,
                    at,
                    members,
                    to,
                )
                for c in range(size):
                    places[at + c] = first_places[k, m] + c if m < n_leaves else -1
                sums_at[k, m] = at
                made_in[k, m] = layer
                at += size
        layer += 1
        sum_bounds[layer], member_bounds[layer] = at, to
    return lengths[:at], places[:at], members[:to], sum_bounds[: layer + 1], member_bounds[: layer + 1]


@jit
def search_merges(labels, sizes, max_leaves):  # type: ignore[no-untyped-def]
    """Merge the two members that save most additions, again and again.

    labels : int32 (n_leaves, n_rows), of sampled rows.  sizes : int64 (n_leaves,), the largest label of each.
    Returns int64 (n_merges, 2); no tree of merges has more than `max_leaves` leaves.
    """
    n_leaves, n = labels.shape
    n_members = 2 * n_leaves
    row_labels = np.empty((n_members, n), dtype=np.int32)  # the last row is work space
    row_labels[:n_leaves] = labels
    n_sums, needed = np.zeros(n_members, dtype=np.int64), np.zeros(n_members, dtype=np.int64)
    leaves, open_ = np.ones(n_members, dtype=np.int64), np.zeros(n_members, dtype=np.bool_)
    saved = np.full((n_members, n_members), -1, dtype=np.int64)
    keys, values = np.empty(_table_size(n), dtype=np.int64), np.empty(_table_size(n), dtype=np.int32)
    left, right = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    merges = np.empty((n_members, 2), dtype=np.int64)
    n_merges = 0
    for new in range(n_members - 1):
        if new < n_leaves:
            n_sums[new], needed[new] = sizes[new], (labels[new] > 0).sum()
        else:
            best = -1
            for i in range(new):
                for j in range(i):
                    if open_[i] and open_[j] and saved[i, j] > best:
                        best, first, second = saved[i, j], j, i
            if best < 0:
                break
            merges[n_merges, 0], merges[n_merges, 1] = first, second
            n_merges += 1
            n_sums[new], needed[new], _, _ = _join(
                row_labels[first], row_labels[second], n_sums[first], n_sums[second],
                row_labels[new], keys, values, left, right, 0,
            )  # fmt: skip
            leaves[new] = leaves[first] + leaves[second]
            open_[first] = open_[second] = False
        open_[new] = True
        for other in range(new):
            if open_[other] and leaves[other] + leaves[new] <= max_leaves:
                d, n_rows, in_left, in_right = _join(
                    row_labels[other], row_labels[new], n_sums[other], n_sums[new],
                    row_labels[n_members - 1], keys, values, left, right, 0,
                )  # fmt: skip
                saved[new, other] = needed[other] + needed[new] - (n_rows - d + in_left + in_right)
    return merges[:n_merges]

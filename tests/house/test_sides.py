"""Parties meet only in a channel: what one side of a protocol reaches by imports, the other side never reaches.

A protocol is a package with a module for either side. A module belongs to a side if that side reaches it, however many
imports away; modules that both may reach (messages, settings, arithmetic) are listed here. Doors seat both sides.
"""

from fnmatch import fnmatchcase

import pytest

from .reading import MODULES, imports_in, imports_of, modules_in

SIDES = (("active", "passive"), ("leader", "follower"))
DOORS = {
    "estimator",
    "seating",
    "fitting",
    "saving",
    "logistic",
    "regression",
    "models",
}  # and the packages themselves
DOOR_PACKAGES = ("vflnn.runs", "vflnn.__main__")  # experiments seat everybody
SHARED = {
    "vfltree.growing": {"checks", "masks", "messages", "models", "numbering", "own_file", "rules"},
    "vfltree.secureboost": {"checkpoint", "continuation", "messages", "objectives", "settings"},
    "vfltree.forest": {"criteria", "groups", "messages", "pair_sums", "settings", "values"},
    "vfltree.linear": {
        "arithmetic", "batches", "columns", "features", "messages", "optimisers", "own", "shared",
        "exact.messages", "powers.cubes", "powers.messages", "rows.halves", "rows.layout", "rows.messages",
        "scores.messages",
    },
    "vflnn": {  # either side runs the same protocol object and the same kind of half; models are anybody's
        "agreement", "losses", "messages", "models", "models.*", "naming", "order", "protocols.*", "recipes", "samples",
        "setups", "split", "state", "working", "encrypted.factors", "encrypted.messages", "encrypted.numbers",
        "encrypted.share", "encrypted.terms",
    },
}  # fmt: skip

SHARED_NAMES = {f"{package}.{name}" for package, names in SHARED.items() for name in names}

Graph = dict[str, set[str]]  # module -> modules that it imports
NAMES = {name for name, _ in MODULES}
GRAPH: Graph = {name: modules_in(imports_of(name, path), NAMES) for name, path in MODULES}
PACKAGES = {name.rpartition(".")[0] for name in NAMES}
PROTOCOLS = {
    package: (f"{package}.{first}", f"{package}.{second}")
    for package in sorted(PACKAGES)
    for first, second in SIDES
    if {f"{package}.{first}", f"{package}.{second}"} <= NAMES
}


def reached(graph: Graph, start: str) -> set[str]:
    """The module and all that it imports, by way of others too."""
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += graph[name]
    return seen


def is_shared(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in SHARED_NAMES)


def is_door(name: str) -> bool:
    return name.rpartition(".")[2] in DOORS or name.startswith(DOOR_PACKAGES)


def crossings(graph: Graph) -> list[str]:
    """Where the two sides of a protocol meet outside the channel, in words."""
    reach = {name: reached(graph, name) for name in graph}
    wrong = [
        f"both {first} and {second} reach {name}: move what they share to a module of its own, and list that"
        for first, second in PROTOCOLS.values()
        for name in sorted(reach[first] & reach[second])
        if any(name.startswith(f"{package}.") for package in PROTOCOLS) and not is_shared(name)
    ]
    wrong += [
        f"{name} reaches both {first} and {second}; only an estimator may seat both"
        for name in sorted(graph)
        for package, (first, second) in PROTOCOLS.items()
        if name.startswith(f"{package}.") and not is_door(name)
        if {first, second} <= reach[name]
    ]
    return wrong


def test_both_sides_of_every_protocol_are_found():
    assert {"vfltree.growing", "vfltree.secureboost", "vfltree.forest", "vfltree.linear"} <= set(PROTOCOLS)


def test_no_side_reaches_what_is_the_other_sides():
    assert crossings(GRAPH) == []


def test_every_shared_module_is_reached_by_both_sides():
    met = set().union(*(reached(GRAPH, one) & reached(GRAPH, other) for one, other in PROTOCOLS.values()))
    assert {
        pattern for pattern in SHARED_NAMES if not any(fnmatchcase(name, pattern) for name in met)
    } == set()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vfltree.secureboost.active", "from vfltree.secureboost import messages, passive"),
        ("vfltree.secureboost.active", "from .passive import PassiveParty"),
        ("vfltree.secureboost.passive", "import vfltree.secureboost.active"),
        ("vfltree.secureboost.passive", "from . import active"),
        ("vfltree.secureboost.passive", "from . import ActiveParty"),
        ("vfltree.secureboost.passive", "from ..growing.leader import TreeLeader"),
        ("vfltree.secureboost.active", "def later():\n    from vfltree.growing import follower"),
        ("vfltree.growing.follower", "from .leader import TreeLeader"),
        # Modules that belong to a side by who reaches them, or by whom they reach.
        ("vfltree.secureboost.keeping", "from ..growing.follower import TreeFollower"),
        ("vfltree.secureboost.stepwise", "from .passive import PassiveParty"),
        ("vfltree.secureboost.passive", "from .evaluation import History"),
        ("vfltree.growing.follower", "from .nodes import Node"),
        ("vfltree.growing.grouping", "from .nodes import Node"),
        ("vfltree.linear.steps", "from .leading import Lead"),
        ("vfltree.linear.leading", "from .steps import StepKeeper"),
        ("vfltree.linear.exact.hiding", "from .keys import exchange_keys"),
        ("vfltree.linear.exact.active", "from .hiding import Hiding"),
        # By way of a module that is nobody's.
        ("vfltree.secureboost.messages", "from .nodes import BoostRound"),
        ("vfltree.binning", "from vfltree.secureboost.passive import PassiveParty"),
        ("vfltree.linear.residuals", "from .estimator import SecureLinear"),
    ],
)
def test_a_planted_crossing_is_found(name, text):
    planted = GRAPH | {name: GRAPH[name] | modules_in(imports_in(text, name), NAMES)}
    assert crossings(planted) != []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "vfltree.secureboost.estimator",
            "from .active import ActiveParty\nfrom .passive import PassiveParty",
        ),
        ("vfltree.secureboost.active", "from . import messages, order"),
        ("vfltree.linear.steps", "from .columns import FixedColumns"),
    ],
)
def test_an_import_within_a_side_is_allowed(name, text):
    planted = GRAPH | {name: GRAPH[name] | modules_in(imports_in(text, name), NAMES)}
    assert crossings(planted) == []

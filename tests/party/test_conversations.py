"""Conversations: the same in one process and in several; what goes wrong is raised and named."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest
import toy_parties
from toy_parties import (
    AskSum,
    Bank,
    BankSetup,
    PartialSum,
    Remember,
    Shop,
    ShopSetup,
    ShopState,
    Unlisted,
    toy_seats,
)

import vflparty
from vflparty import (
    DamagedFrameError,
    Done,
    ErrorReport,
    InProcessNetwork,
    Leader,
    LocalProtocolError,
    Message,
    Party,
    PartyFailedError,
    RemoteProtocolError,
    RowsDisagreeError,
    codec,
    make_network,
    make_seat,
    to_all,
)

NETWORKS = ["inprocess", "process"]


def shop(numbers: object = (1.0, 2.0, 3.0)) -> Shop:
    return Shop(ShopSetup(np.array(numbers), ""))


def ask(rows: object, how: str = "sum") -> AskSum:
    return AskSum(np.array(rows), how)


# ---------------------------------------------------------------- both networks


@pytest.fixture(scope="module")
def outcomes():
    """The same seats in both networks: result, ledger, transcript, progress, states."""
    found = {}
    for kind in NETWORKS:
        progress: list = []
        seats = toy_seats("sum", "nothing", "sum", "sum", n_shops=2)
        with make_network(
            kind, seats, record=True, on_progress=lambda *a, p=progress: p.append(a)
        ) as network:
            result = network.run()
            states = {party: network.collect(party) for party in (network.leader, *network.parties)}
        found[kind] = (result, network.ledger, network.transcript, progress, states)
    return found


def test_result_is_the_same_in_both_networks(outcomes):
    for kind in NETWORKS:
        assert outcomes[kind][0].totals.tolist() == [0.5, 0.5, 33.5, 66.5]


def test_ledger_is_the_same_in_both_networks(outcomes):
    one, several = outcomes["inprocess"][1], outcomes["process"][1]
    assert one.summary().equals(several.summary())
    assert one.rounds == several.rounds == 5  # compare rows, remember, three sums; an empty round is none
    assert one.counts == several.counts == {"additions": 16}
    assert set(one.seconds) == set(several.seconds) == {"adding", "waiting"}


def test_transcript_is_the_same_in_both_networks(outcomes):
    one, several = outcomes["inprocess"][2], outcomes["process"][2]
    assert one == several
    assert sum(len(sent.frame) for sent in one) == outcomes["process"][1].bytes_sent
    assert [sent.receiver for sent in one[:4]] == ["shop0", "shop1", "bank", "bank"]


def test_progress_is_the_same_in_both_networks(outcomes):
    assert (
        outcomes["inprocess"][3]
        == outcomes["process"][3]
        == [
            ("sum", 0, 4),
            ("nothing", 1, 4),
            ("sum", 2, 4),
            ("sum", 3, 4),
        ]
    )


def test_states_are_the_same_in_both_networks(outcomes):
    assert outcomes["inprocess"][4] == outcomes["process"][4]
    assert outcomes["process"][4]["shop1"] == ShopState(("hello",))


WRONG = {
    "value error": (ValueError, "shop1", "row 3 is not there"),
    "refusal": (RemoteProtocolError, "bank", r"asked for the same rows twice \(says 'shop1'\)"),
    "surprise": (PartyFailedError, "shop1", "failed with KeyError"),
    "wrong kind": (RemoteProtocolError, "shop1", "sent ShopState, expected one of: PartialSum"),
    "no message": (LocalProtocolError, "shop1", "only messages cross the wire, got float"),
    "unlisted": (RemoteProtocolError, "bank", "sent Unlisted, expected one of: RowsDigest, AskSum, Remember"),
    "unknown party": (LocalProtocolError, "bank", "no party is called 'nobody'"),
    "not a dict": (LocalProtocolError, "bank", r"yields dict\[party, message\], got list"),
    "own mistake": (ValueError, "bank", "the bank is broke"),
}


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("how", WRONG)
def test_error_inside_a_party_is_raised_in_the_caller_with_the_partys_name(kind, how):
    cls, party, text = WRONG[how]
    with (
        make_network(kind, toy_seats("sum", how)) as network,
        pytest.raises(cls, match=f"party '{party}': .*{text}") as caught,
    ):
        network.run()
    assert type(caught.value) is cls and caught.value.party == party
    assert "4711" not in str(caught.value)  # what an unexpected exception says stays in the party
    assert network.ledger.rounds >= 3  # what had been said until then is counted


@pytest.mark.parametrize("kind", NETWORKS)
def test_party_that_cannot_be_built_is_named(kind):
    seats = [*toy_seats(n_shops=1)[:1], make_seat("shop0", Shop, ShopSetup(np.zeros(0), ""))]
    with pytest.raises(ValueError, match="party 'shop0': there are no numbers"), make_network(kind, seats):
        pass


@pytest.mark.parametrize("kind", NETWORKS)
def test_parties_with_other_rows_do_not_start(kind):
    seats = [*toy_seats(n_shops=1)[:1], make_seat("shop0", Shop, ShopSetup(np.zeros(5), ""))]
    with (
        make_network(kind, seats) as network,
        pytest.raises(RowsDisagreeError, match=r"6 rows there, 5 here.*\(says 'shop0'\)"),
    ):
        network.run()
    assert network.ledger.rounds == 1


@pytest.mark.parametrize("kind", NETWORKS)
def test_state_that_nobody_promised_is_not_collected(kind):
    with make_network(kind, toy_seats(n_shops=1)) as network:
        with pytest.raises(LocalProtocolError, match="'nobody'"):
            network.collect("nobody")
        assert network.collect("bank") == BankSetup(("shop0",), 0.5, ("sum",), 6, "secret of bank")


def test_networks_want_distinct_names_and_one_leader():
    bank, shop0, shop1 = toy_seats()
    for kind in NETWORKS:
        with pytest.raises(ValueError, match="distinct names"):
            make_network(kind, [bank, shop0, shop0])
        with pytest.raises(ValueError, match="exactly one party leads, got 0 of 2"):
            make_network(kind, [shop0, shop1])
        with pytest.raises(ValueError, match="exactly one party leads, got 2"):
            make_network(kind, [bank, make_seat("other", Bank, BankSetup((), 0.0, (), 0))])
    with pytest.raises(ValueError, match="'inprocess' or 'process', got 'carrier pigeon'"):
        make_network("carrier pigeon", [bank, shop0])


def test_seats_want_an_importable_class_and_its_own_setup():
    class Local(Party):
        setup_message = ShopSetup

    with pytest.raises(ValueError, match="importable"):
        make_seat("shop", Local, ShopSetup(np.zeros(1), ""))
    with pytest.raises(LocalProtocolError, match="Shop is set up by ShopSetup, got BankSetup"):
        make_seat("shop", Shop, BankSetup((), 0.0, (), 0))


@pytest.mark.parametrize(
    "factory", ["toy_parties:Nobody", "no_such_module:Shop", "os:system", "json:JSONDecoder", "", "x"]
)
def test_seat_of_anything_but_a_party_is_refused(factory):
    with pytest.raises(LocalProtocolError, match="shop"):
        make_network("inprocess", [vflparty.Seat("shop", factory, b"")])


# ---------------------------------------------------------------- parties by hand


def test_generator_is_handed_the_answers_of_exactly_the_parties_it_asked():
    def conversation():
        both = yield to_all(["a", "b"], ask([0, 1]))
        one = yield {"b": ask([2])}
        none = yield {}
        return both, one, none

    network = InProcessNetwork({"a": shop(), "b": shop([5.0, 6.0, 7.0])})
    both, one, none = network.run(conversation())
    assert {party: answer.total for party, answer in both.items()} == {"a": 3.0, "b": 11.0}
    assert one["b"].total == 7.0 and set(one) == {"b"} and none == {}
    assert network.ledger.rounds == 2 and network.ledger.counts == {"additions": 5}


def test_handler_that_returns_nothing_answers_done():
    def conversation():
        return (yield {"a": Remember("x")})

    party = shop()
    assert InProcessNetwork({"a": party}).run(conversation()) == {"a": Done()}
    assert party.export_state() == ShopState(("x",))


def test_parties_in_one_process_share_no_array():
    kept = []

    class Keeper(Party):
        messages = (AskSum,)

        def on_ask_sum(self, msg: AskSum) -> PartialSum:
            kept.append(msg.rows)
            return PartialSum(0.0, msg.rows)

    def conversation():
        rows = np.arange(3)
        answers = yield to_all(["a", "b"], AskSum(rows, ""))
        kept.extend([rows, answers["a"].echo, answers["b"].echo])

    InProcessNetwork({"a": Keeper(), "b": Keeper()}).run(conversation())
    for array in kept:
        array += 1  # every one is writable, and no other changes with it
    assert [array.tolist() for array in kept] == [[1, 2, 3]] * 5


def test_direct_receive_refuses_kinds_outside_the_partys_list():
    with pytest.raises(RemoteProtocolError, match="Shop has no on_unlisted for Unlisted"):
        shop().receive(Unlisted())

    class Deaf(Party):
        messages = (Unlisted,)

    with pytest.raises(RemoteProtocolError, match="Deaf has no on_unlisted"):
        Deaf().receive(Unlisted())

    class Loose(Party):
        def on_unlisted(self, msg: Unlisted) -> None:
            raise AssertionError("has a method, but never promised to listen")

    with pytest.raises(RemoteProtocolError, match="Loose has no on_unlisted"):
        Loose().receive(Unlisted())


def test_error_is_thrown_into_the_conversation_which_may_say_where_it_was_or_go_on():
    def conversation(recover: bool):
        try:
            yield {"a": ask([0], "refusal")}
        except RemoteProtocolError as error:
            if not recover:
                raise error.at("tree 3, level 2") from error
        return (yield {"a": ask([0, 1])})["a"].total

    network = InProcessNetwork({"a": shop()})
    with pytest.raises(
        RemoteProtocolError, match="party 'active': tree 3, level 2: asked for the same rows twice"
    ):
        network.run(conversation(recover=False))
    assert network.run(conversation(recover=True)) == 3.0


def test_error_carries_its_cause_within_one_process():
    def conversation():
        yield {"a": ask([0], "surprise")}

    with pytest.raises(PartyFailedError) as caught:
        InProcessNetwork({"a": shop()}).run(conversation())
    assert isinstance(caught.value.__cause__, KeyError)


def test_all_parties_have_been_asked_before_the_first_error_is_raised():
    def conversation():
        yield {"a": ask([0], "value error"), "b": ask([0])}

    network = InProcessNetwork({"a": shop(), "b": shop()})
    with pytest.raises(ValueError, match="party 'a'"):
        network.run(conversation())
    table = network.ledger.summary().set_index(["party", "sender", "kind"])["messages"].to_dict()
    assert table == {
        ("a", "active", "AskSum"): 1,
        ("b", "active", "AskSum"): 1,
        ("active", "a", "ErrorReport"): 1,
        ("active", "b", "PartialSum"): 1,
    }


def test_conversation_is_closed_when_it_fails_half_way():
    closed = []

    def conversation():
        try:
            yield {"a": ask([0], "interrupt")}
        finally:
            closed.append(True)

    party = shop()
    party.on_ask_sum = lambda msg: toy_parties._raise(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        InProcessNetwork({"a": party}).run(conversation())
    assert closed == [True]


def test_leader_needs_a_name_of_its_own_and_a_conversation():
    with pytest.raises(ValueError, match="'a' leads"):
        InProcessNetwork({"a": shop()}, leader="a")
    with pytest.raises(LocalProtocolError, match="nobody leads"):
        InProcessNetwork({"a": shop()}).run()


def test_leader_that_returns_another_kind_than_promised_is_refused():
    class Liar(Leader):
        def conversation(self):
            yield {}
            return Remember("x")

    with pytest.raises(LocalProtocolError, match="Liar returned Remember, promised Done"):
        InProcessNetwork({}).run(Liar())


def test_what_the_ledger_counts_are_the_frames():
    network = InProcessNetwork({"a": shop()}, record=True)

    def conversation():
        yield {"a": ask([0, 1])}

    network.run(conversation())
    assert [sent[:2] for sent in network.transcript] == [("active", "a"), ("a", "active")]
    sizes = [len(codec.encode(ask([0, 1]))), len(codec.encode(PartialSum(3.0, np.array([0, 1]))))]
    assert [len(sent.frame) for sent in network.transcript] == sizes
    assert network.ledger.summary()["bytes"].tolist() == [sizes[0], sizes[1]]


# ---------------------------------------------------------------- damage on the way


def flip(position: int, direction: str):
    """A tamper hook that flips one bit of every frame in one direction."""

    def tamper(sender: str, receiver: str, frame: bytes) -> bytes:
        if direction != f"{sender}->{receiver}":
            return frame
        damaged = bytearray(frame)
        damaged[position] ^= 16
        return bytes(damaged)

    return tamper


@pytest.mark.parametrize("position", [0, 5, 9, 20, 33, -1])
def test_frame_damaged_on_its_way_is_an_error_naming_its_sender(position):
    def conversation():
        return (yield {"a": ask([0, 1])})

    back = InProcessNetwork({"a": shop()}, leader="bank", tamper=flip(position, "a->bank"))
    with pytest.raises(DamagedFrameError, match="party 'a'") as caught:
        back.run(conversation())
    assert caught.value.party == "a"
    there = InProcessNetwork({"a": shop()}, leader="bank", tamper=flip(position, "bank->a"))
    with pytest.raises(DamagedFrameError, match=r"party 'bank': .*\(says 'a'\)") as caught:
        there.run(conversation())
    assert caught.value.party == "bank" and there.ledger.counts == {}  # nothing was computed from it


def test_frame_swapped_for_another_sound_one_is_refused_by_kind():
    def conversation():
        return (yield {"a": ask([0, 1])})

    other = codec.encode(Remember("x"))
    network = InProcessNetwork(
        {"a": shop()}, tamper=lambda sender, receiver, frame: frame if sender == "active" else other
    )
    with pytest.raises(RemoteProtocolError, match="party 'a': sent Remember, expected one of: PartialSum"):
        network.run(conversation())


def test_forged_report_cannot_name_a_class_outside_the_list():
    def conversation():
        yield {"a": ask([0])}

    forged = codec.encode(ErrorReport("SystemExit", "bye", ""))
    network = InProcessNetwork({"a": shop()}, tamper=lambda s, r, frame: frame if s == "active" else forged)
    with pytest.raises(PartyFailedError, match="party 'a': bye"):
        network.run(conversation())


# ---------------------------------------------------------------- no pickle


def test_no_module_of_the_package_imports_a_way_to_run_code_from_bytes():
    forbidden = {
        "pickle",
        "cPickle",
        "dill",
        "cloudpickle",
        "marshal",
        "shelve",
        "joblib",
        "multiprocessing",
        "copyreg",
    }
    sources = sorted(Path(vflparty.__file__).parent.glob("**/*.py"))
    assert len(sources) >= 10
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not forbidden & {name.split(".")[0] for name in names}, source
            assert not (isinstance(node, ast.Name) and node.id in {"eval", "exec", "__import__"}), source


def test_conversation_needs_no_pickle(monkeypatch):
    def forbidden(*args: object, **kwargs: object) -> None:
        raise AssertionError("somebody pickles")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    with make_network("inprocess", toy_seats(), record=True) as network:
        network.run()
    frames = [sent.frame for sent in network.transcript]
    assert len(frames) == 12
    assert all(frame.startswith(b"VFLP\x01") and b"\x80\x04\x95" not in frame for frame in frames)


def test_message_classes_are_the_only_things_decoded(monkeypatch):
    """A frame names a kind; it never names code: an unknown kind is refused without looking anything up."""
    frame = codec.encode(Unlisted())
    monkeypatch.setattr("importlib.import_module", lambda name: pytest.fail(f"imports {name}"))
    with pytest.raises(RemoteProtocolError, match="sent Unlisted"):
        codec.decode(frame, (Remember,))


def test_every_message_of_the_package_is_fit_for_the_wire():
    from vflparty import control, ledger, messages
    from vflparty.messages import answers_to, field_types

    classes = {
        c
        for module in (control, ledger, messages, vflparty)
        for c in vars(module).values()
        if isinstance(c, type)
    }
    kinds = [c for c in classes if issubclass(c, Message) and c is not Message]
    assert len(kinds) >= 12
    for cls in kinds:
        field_types(cls)
        answers_to(cls)

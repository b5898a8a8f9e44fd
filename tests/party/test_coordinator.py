"""The coordinator: key, quota, steps, and what it logs."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from vflcrypto import CiphertextArray, PublicKey
from vflcrypto.masking import hide
from vflparty import InProcessNetwork, RemoteProtocolError, make_network, make_seat
from vflparty.coordinator import AskKey, Coordinator, CoordinatorSetup, OpenMasked

from .toy_parties import Bank, BankSetup

pytestmark = pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning")


@pytest.fixture
def coordinator():
    return Coordinator({"bank": 2, "shop": 3}, max_steps=2, key_bits=256, allow_weak_key=True)


def key_of(coordinator):
    return PublicKey.from_bytes(coordinator.receive(AskKey()).public_key, allow_weak_key=True)


def masked(key, *numbers):
    array, mask = hide(key.encrypt(np.array(numbers)))
    return array.to_bytes(), mask


def test_it_opens_what_was_masked_and_logs_how_much(coordinator, caplog):
    caplog.set_level(logging.INFO)
    key = key_of(coordinator)
    bank, bank_mask = masked(key, 5, -6)
    shop, shop_mask = masked(key, 1, 2, 3)
    answer = coordinator.receive(OpenMasked(0, ("bank", "shop"), (bank, shop)))
    assert bank_mask.remove(answer.values[0]).tolist() == [5, -6]
    assert shop_mask.remove(answer.values[1]).tolist() == [1, 2, 3]
    log = coordinator.export_state()
    assert (log.steps, log.parties, log.opened, log.refused) == (1, ("bank", "shop"), (2, 3), 0)
    assert "opened {'bank': 2, 'shop': 3}" in caplog.text
    assert coordinator.ledger.counts == {"decryptions": 5}


@pytest.mark.parametrize(
    ("step", "parties", "sizes", "words"),
    [
        (0, ("bank",), (1,), "exactly 2 masked ones"),
        (0, ("shop",), (4,), "exactly 3 masked ones"),
        (0, ("bank", "bank"), (2, 2), "2 arrays for the parties"),
        (0, ("bank",), (2, 2), "2 arrays for the parties"),
        (0, ("phone",), (2,), "no quota was agreed for"),
        (1, ("bank",), (2,), "step 1 to open, step 0 is next"),
    ],
)
def test_it_refuses_and_counts_what_was_not_agreed(coordinator, step, parties, sizes, words):
    key = key_of(coordinator)
    request = OpenMasked(step, parties, tuple(masked(key, *range(size))[0] for size in sizes))
    with pytest.raises(RemoteProtocolError, match=words):
        coordinator.receive(request)
    assert coordinator.export_state().refused == 1
    assert coordinator.export_state().opened == (0, 0)


def test_a_step_is_opened_once_and_steps_are_capped(coordinator):
    key = key_of(coordinator)
    for step in range(2):
        request = OpenMasked(step, ("bank",), (masked(key, 1, 2)[0],))
        coordinator.receive(request)
        with pytest.raises(RemoteProtocolError, match="each is opened once"):
            coordinator.receive(request)
    with pytest.raises(RemoteProtocolError, match="2 steps were agreed"):
        coordinator.receive(OpenMasked(2, ("bank",), (masked(key, 1, 2)[0],)))
    assert coordinator.export_state().opened == (4, 0)


def test_values_that_declare_no_mask_are_refused(coordinator):
    key = key_of(coordinator)
    bare = key.encrypt(np.array([1, 2])).to_bytes()
    with pytest.raises(RemoteProtocolError, match="masked"):
        coordinator.receive(OpenMasked(0, ("bank",), (bare,)))


def test_damaged_ciphertexts_name_the_party(coordinator):
    key_of(coordinator)
    with pytest.raises(RemoteProtocolError, match="masked values of 'bank'"):
        coordinator.receive(OpenMasked(0, ("bank",), (b"nothing",)))


def test_the_key_is_given_once_and_first(coordinator):
    with pytest.raises(RemoteProtocolError, match="before anybody asked for the key"):
        coordinator.receive(OpenMasked(0, (), ()))
    key_of(coordinator)
    with pytest.raises(RemoteProtocolError, match="given already"):
        coordinator.receive(AskKey())


@pytest.mark.parametrize("quota", [{}, {"bank": -1}])
def test_a_coordinator_needs_parties(quota):
    with pytest.raises(ValueError, match="needs parties"):
        Coordinator(quota, max_steps=1)


def conversation():
    answers = yield {"coordinator": AskKey()}
    key = PublicKey.from_bytes(answers["coordinator"].public_key, allow_weak_key=True)
    array, mask = hide(key.encrypt(np.array([7, 8])))
    answers = yield {"coordinator": OpenMasked(0, ("bank",), (array.to_bytes(),))}
    return mask.remove(answers["coordinator"].values[0]).tolist()


def test_nothing_but_the_key_and_masked_values_crosses():
    party = Coordinator({"bank": 2}, max_steps=1, key_bits=256, allow_weak_key=True)
    with InProcessNetwork({"coordinator": party}, leader="bank", record=True) as network:
        assert network.run(conversation()) == [7, 8]
        kinds = list(network.ledger.summary()["kind"])
    assert sorted(kinds) == ["AskKey", "KeyMade", "OpenMasked", "Opened"]
    primes = party._private_key.unsafe_primes()
    for sent in network.transcript:
        assert all(p.to_bytes(16, "little") not in sent.frame for p in primes)


def test_it_sits_in_a_process_of_its_own():
    setup = CoordinatorSetup(("bank",), (2,), 1, 256, True, 1)
    seats = [make_seat("bank", Bank, BankSetup((), 0.0, (), 0)), make_seat("coordinator", Coordinator, setup)]
    with make_network("process", seats) as network:
        assert network.collect("coordinator").opened == (0,)


def test_masks_of_one_step_say_nothing_about_the_next(coordinator):
    """The same sums, masked twice, are opened as unrelated numbers."""
    key = key_of(coordinator)
    sums = key.encrypt(np.array([1, 2]))
    opened = []
    for step in range(2):
        array = CiphertextArray.from_bytes(hide(sums)[0].to_bytes(), key)
        opened.append(coordinator.receive(OpenMasked(step, ("bank",), (array.to_bytes(),))).values[0])
    assert not (opened[0] == opened[1]).all(axis=1).any()

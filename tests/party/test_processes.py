"""Processes: each holds its own data only, dies with its launcher, and is missed at once when it dies alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from toy_parties import BankSetup, BigBank, Shop, ShopSetup, toy_seats

import vflparty
from vflparty import LocalProtocolError, PeerGoneError, PeerTimeoutError, make_network, make_seat
from vflparty.process import ProcessNetwork
from vflparty.wire import Wire

HERE = Path(__file__).parent
ROOTS = [str(HERE), str(Path(vflparty.__file__).parent.parent)]


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not. (Zombies of a killed launcher belong to init.)"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        return status.exists() and status.read_text().rpartition(")")[2].split()[0] not in "ZX"
    command = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return bool(state) and not state.startswith("Z")


def gone_soon(pids: list[int], seconds: float = 20.0) -> bool:
    """Whether all of them have ended before the time is up."""
    end = time.monotonic() + seconds
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(is_alive, pids))


def start_script(text: str) -> subprocess.Popen[str]:
    """A Python program of its own, with the toy parties on its path.

    It takes Ctrl-C even where these tests run in the background of a shell, which has it ignored.
    """
    opening = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"sys.path[:0] = {ROOTS!r}\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", opening + textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def pids_of(network: ProcessNetwork) -> list[int]:
    return [network.process_id(party) for party in (network.leader, *network.parties)]


# ---------------------------------------------------------------- who holds what


def test_every_party_has_a_process_of_its_own_and_none_stays():
    with ProcessNetwork(toy_seats()) as network:
        pids = pids_of(network)
        assert len({*pids, os.getpid()}) == 4 and all(map(is_alive, pids))
        assert network.run().pids == (pids[0],)  # the conversation is led in the leader's process
    for pid in pids:
        assert not is_alive(pid)
        with pytest.raises(ChildProcessError):  # reaped: nothing left to wait for
            os.waitpid(pid, 0)


def test_a_process_is_sent_its_own_seat_and_nothing_of_anothers(monkeypatch):
    sent: dict[str, bytes] = {}
    write = Wire.write

    def spy(self: Wire, frame: bytes) -> None:
        sent[self.peer] = sent.get(self.peer, b"") + frame
        write(self, frame)

    monkeypatch.setattr(Wire, "write", spy)
    with ProcessNetwork(toy_seats()) as network:
        network.run()
        surroundings = {party: outside_view(network.process_id(party)) for party in sent}
    assert set(sent) == {"bank", "shop0", "shop1"}
    for party, data in sent.items():
        for other in sent:
            assert (f"secret of {other}".encode() in data) == (other == party)
        assert b"secret of" not in surroundings[party]


def outside_view(pid: int) -> bytes:
    """Command line and environment of a process, where the system shows them."""
    folder = Path(f"/proc/{pid}")
    return (
        b"".join((folder / name).read_bytes() for name in ("cmdline", "environ")) if folder.exists() else b""
    )


def test_launcher_sees_no_frame_between_the_parties_unless_it_records():
    with ProcessNetwork(toy_seats()) as network:
        network.run()
    assert network.transcript == [] and network.ledger.rounds == 3


def test_ciphertexts_of_24000_rows_cross_between_processes():
    n_rows = 24_000 * 96  # eight bytes each: 18 MB out with the request and back with the echo
    shops = ("shop0", "shop1")
    seats = [make_seat("bank", BigBank, BankSetup(shops, 0.0, ("sum",), n_rows))]
    seats += [make_seat(name, Shop, ShopSetup(np.ones(n_rows), "")) for name in shops]
    with ProcessNetwork(seats) as network:
        assert network.run().totals.tolist() == [2.0 * n_rows]
    assert network.ledger.bytes_sent > 4 * 8 * n_rows


def test_conversation_can_be_led_again_and_figures_add_up():
    with ProcessNetwork(toy_seats("sum", n_shops=1)) as network:
        first = network.run()
        once = network.ledger.bytes_sent
        assert network.run().totals.tolist() == first.totals.tolist()
    assert network.ledger.bytes_sent == 2 * once and network.ledger.counts == {"additions": 2}


def test_network_is_used_inside_its_with_block_only():
    network = ProcessNetwork(toy_seats(n_shops=1))
    for use in (network.run, lambda: network.collect("bank"), lambda: network.process_id("bank")):
        with pytest.raises(LocalProtocolError, match="with"):
            use()
    with network, pytest.raises(LocalProtocolError, match="open already"):
        network.__enter__()
    network.close()
    with pytest.raises(LocalProtocolError, match="with"):
        network.run()


def test_opening_and_closing_leaves_no_descriptor_open():
    with ProcessNetwork(toy_seats(n_shops=1)):  # imports and caches are out of the way after the first
        pass
    before = len(os.listdir("/dev/fd"))
    with ProcessNetwork(toy_seats(n_shops=1)) as network:
        network.run()
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf")])
def test_timeout_must_be_positive(timeout):
    with pytest.raises(ValueError, match="positive"):
        ProcessNetwork(toy_seats(), timeout=timeout)


# ---------------------------------------------------------------- the dead and the silent


def test_party_that_dies_while_it_answers_is_named_with_its_exit_code():
    with ProcessNetwork(toy_seats("sum", "die")) as network:
        pids = pids_of(network)
        with pytest.raises(PeerGoneError, match=r"party 'shop1': .*exit code 7") as caught:
            network.run()
        assert caught.value.party == "shop1"
    assert not any(map(is_alive, pids))


@pytest.mark.parametrize("victim", ["shop0", "shop1", "bank"])
def test_party_that_is_killed_is_named_at_once(victim):
    with ProcessNetwork(toy_seats("never"), timeout=None) as network, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(network.run)
        time.sleep(0.3)
        os.kill(network.process_id(victim), signal.SIGKILL)
        with pytest.raises(PeerGoneError, match=f"party '{victim}': .*SIGKILL") as caught:
            waiting.result(timeout=60)
        assert caught.value.party == victim


def test_party_that_is_dead_already_is_named():
    with ProcessNetwork(toy_seats()) as network:
        os.kill(network.process_id("shop1"), signal.SIGKILL)
        with pytest.raises(PeerGoneError, match=r"party 'shop1': .*SIGKILL"):
            network.run()
        with pytest.raises(PeerGoneError, match="party 'shop1'"):
            network.collect("shop1")


def test_silent_party_is_named_after_the_timeout():
    with ProcessNetwork(toy_seats("sum", "never"), timeout=1.5) as network:
        with pytest.raises(PeerTimeoutError, match=r"party 'shop1': .*1.5 seconds") as caught:
            network.run()
        assert caught.value.party == "shop1"


def test_slow_party_within_the_timeout_is_waited_for():
    with ProcessNetwork(toy_seats("slow", n_shops=1), timeout=30) as network:
        assert network.run().totals.tolist() == [0.5]


@pytest.mark.parametrize("victim", ["bank", "shop1"])
def test_stopped_process_is_named_and_ended(victim):
    """A stopped process keeps its sockets open: only silence tells."""
    with ProcessNetwork(toy_seats("own silence"), timeout=2.0) as network, ThreadPoolExecutor(1) as pool:
        pids = pids_of(network)
        waiting = pool.submit(network.run)
        time.sleep(0.3)
        os.kill(network.process_id(victim), signal.SIGSTOP)
        with pytest.raises(PeerTimeoutError, match=f"party '{victim}': .*2 seconds"):
            waiting.result(timeout=60)
    assert not any(map(is_alive, pids))


def test_last_words_of_a_process_are_told():
    with (
        ProcessNetwork(toy_seats("last words", n_shops=1)) as network,
        pytest.raises(PeerGoneError, match=r"exit code 3, its last words:\n.*I am leaving"),
    ):
        network.run()


def test_what_an_unexpected_error_says_is_shown_by_the_launcher_and_not_sent_to_the_leader():
    with (
        ProcessNetwork(toy_seats("surprise", n_shops=1), record=True) as network,
        pytest.raises(vflparty.PartyFailedError) as caught,
    ):
        network.run()
    assert "KeyError: 'customer 4711'" in "".join(caught.value.__notes__)
    assert len(network.transcript) == 6 and not any(b"4711" in sent.frame for sent in network.transcript)


# ---------------------------------------------------------------- launchers that die, fork, or are interrupted

OPEN_AND_WAIT = """
    from toy_parties import toy_seats
    from vflparty.process import ProcessNetwork
    network = ProcessNetwork(toy_seats("never"), timeout=None).__enter__()
    print(*(network.process_id(p) for p in ("bank", "shop0", "shop1")), flush=True)
    network.run()
"""


def test_no_party_outlives_a_killed_launcher():
    with start_script(OPEN_AND_WAIT) as script:
        pids = [int(word) for word in script.stdout.readline().split()]
        assert len(pids) == 3 and all(map(is_alive, pids))
        script.kill()
        script.communicate()
    assert gone_soon(pids)


def test_ctrl_c_ends_the_parties_and_leaves_the_launcher_usable():
    script = start_script("""
        import os
        from toy_parties import toy_seats
        from vflparty.process import ProcessNetwork
        try:
            with ProcessNetwork(toy_seats("never"), timeout=None) as network:
                print(*(network.process_id(p) for p in ("bank", "shop0", "shop1")), flush=True)
                network.run()
        except KeyboardInterrupt:
            print("interrupted")
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("no children left")
        with ProcessNetwork(toy_seats("sum")) as network:
            print(network.run().totals.tolist())
    """)
    with script:
        pids = [int(word) for word in script.stdout.readline().split()]
        time.sleep(0.3)
        script.send_signal(signal.SIGINT)
        out, err = script.communicate(timeout=60)
    assert out.splitlines() == ["interrupted", "no children left", "[0.5]"] and err == ""
    assert not any(map(is_alive, pids))


def test_script_without_a_main_guard_opens_networks():
    with start_script("""
        from toy_parties import toy_seats
        from vflparty import make_network
        with make_network("process", toy_seats("sum")) as network:
            print(network.run().totals.tolist())
    """) as script:
        out, err = script.communicate(timeout=60)
    assert (out, err) == ("[0.5]\n", "")


def test_network_opens_in_a_forked_child_of_a_process_with_threads():
    with ThreadPoolExecutor(2) as pool, warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # newer Pythons warn about forks beside threads; that is what is tested
        list(pool.map(time.sleep, [0.01, 0.01]))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with make_network("process", toy_seats("sum")) as network:
                    code = 0 if network.run().totals.tolist() == [0.5] else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("copy", ["network.close()", "pass"], ids=["closes its copy", "forgets about it"])
def test_fork_while_a_network_is_open_neither_ends_it_nor_keeps_it(copy):
    with start_script(f"""
        import os, time
        from toy_parties import toy_seats
        from vflparty.process import ProcessNetwork
        with ProcessNetwork(toy_seats("sum", n_shops=1)) as network:
            pids = [network.process_id(p) for p in ("bank", "shop0")]
            child = os.fork()
            if child == 0:
                {copy}               # a copy of the network: not ours to end
                time.sleep(60)
            print(network.run().totals.tolist(), child, *pids, flush=True)
            os.kill(os.getpid(), 9)  # the forked copy lives on and must not keep the parties
    """) as script:
        total, child, *pids = script.stdout.readline().split()
        script.wait(timeout=60)
    try:
        assert total == "[0.5]" and gone_soon([int(pid) for pid in pids])
        assert is_alive(int(child))
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_networks_in_two_threads_do_not_disturb_each_other():
    def work(seed: int) -> list[float]:
        with make_network("process", toy_seats(*["sum"] * seed, n_shops=1)) as network:
            return network.run().totals.tolist()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, [1, 3])) == [[0.5], [0.5, 1.5, 3.5]]


def test_progress_callback_that_fails_ends_the_parties():
    def fail(text: str, done: int, total: int | None) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), ProcessNetwork(toy_seats("never"), on_progress=fail) as network:
        pids = pids_of(network)
        network.run()
    assert not any(map(is_alive, pids))

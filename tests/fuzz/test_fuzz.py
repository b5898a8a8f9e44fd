"""A short run of the fuzz target, and planted faults that it must find."""

import random

import pytest

from tests.fuzz import fuzz_from_bytes as fuzz
from tests.fuzz.fuzz_from_bytes import Finding, Target
from vflcrypto import DamagedCiphertextError

MUTATIONS = 2000


def test_readers_keep_their_promises_for_some_thousand_mutations():
    results = fuzz.run([*fuzz.targets()], seed=1, count=MUTATIONS)
    assert results.total() == MUTATIONS
    for name in fuzz.targets():
        assert results[name, False] > 0, f"{name}: nothing was refused"
    # Mutations get past the checksums, or the readers behind them would not be tried.
    assert results["frame, right digest", True] > 0
    assert results["array", True] > 0


def test_a_seed_gives_the_same_mutations_again():
    seeds = fuzz.targets()["array"].seeds
    first, again, other = (
        [fuzz.mutated(seeds, rng) for _ in range(50)]
        for rng in (random.Random(3), random.Random(3), random.Random(4))
    )
    assert first == again != other


def crashes(data: bytes) -> bytes:
    """Trusts an index that it has read."""
    return data if [0, 3][data[0]] + 1 else b""


def allocates(data: bytes) -> bytes:
    """Trusts a length that it has read."""
    return bytes(bytearray(int.from_bytes(data[:4], "little")))[:0] + data


def forgets(data: bytes) -> bytes:
    """Does not notice what follows the end."""
    return data[:64]


@pytest.mark.parametrize(
    ("reader", "what"), [(crashes, "IndexError"), (allocates, "were set aside"), (forgets, "but written as")]
)
def test_planted_careless_readers_are_found(reader, what, monkeypatch):
    planted = Target((bytes(64),), reader, (DamagedCiphertextError,))
    monkeypatch.setattr(fuzz, "targets", lambda: {"planted": planted})
    with pytest.raises(Finding, match=what) as found:
        fuzz.run(["planted"], seed=0, count=2000)
    with pytest.raises(Finding, match=what):
        fuzz.check("planted", found.value.data)


def test_a_finding_is_written_and_can_be_replayed(monkeypatch, tmp_path, capsys):
    planted = Target((bytes(64),), crashes, (DamagedCiphertextError,))
    monkeypatch.setattr(fuzz, "targets", lambda: {"planted": planted})
    monkeypatch.chdir(tmp_path)
    assert fuzz.main(["--count", "2000"]) == 1
    (path,) = tmp_path.iterdir()
    assert path.name in capsys.readouterr().out
    with pytest.raises(Finding):
        fuzz.main(["--replay", str(path)])


def test_the_command_reports_every_target(capsys):
    assert fuzz.main(["--count", "60", "--seed", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(fuzz.targets())

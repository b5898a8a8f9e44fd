"""The ledger adds up, in one thread or many, in one process or many."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from vflparty import Ledger, LedgerReport, codec


def example() -> Ledger:
    ledger = Ledger()
    ledger.open_round()
    ledger.record("bank", "shop", "Ask", 100)
    ledger.record("bank", "shop", "Ask", 50)
    ledger.record("shop", "bank", "Tell", 30)
    ledger.open_round()
    ledger.record("bank", "shop", "Ask", 7)
    ledger.record("bank", "phone", "Ask", 7)
    ledger.count("encryptions", 5)
    return ledger


def test_summary_has_one_sorted_row_per_receiver_sender_and_kind():
    table = example().summary()
    assert list(table.columns) == ["party", "sender", "kind", "messages", "bytes", "rounds"]
    assert table.values.tolist() == [
        ["bank", "shop", "Tell", 1, 30, 1],
        ["phone", "bank", "Ask", 1, 7, 1],
        ["shop", "bank", "Ask", 3, 157, 2],
    ]
    assert set(map(str, table.dtypes[3:])) == {"int64"}


def test_summary_of_nothing_is_an_empty_table_with_the_same_columns():
    table = Ledger().summary()
    assert len(table) == 0 and list(table.columns) == list(example().summary().columns)
    assert set(map(str, table.dtypes[3:])) == {"int64"}


def test_totals_are_the_sums_of_the_table():
    ledger = example()
    assert ledger.bytes_sent == ledger.summary()["bytes"].sum() == 194
    assert ledger.messages_sent == ledger.summary()["messages"].sum() == 5
    assert ledger.rounds == 2


def test_phases_add_up_and_survive_errors(monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 12.0, 20.0, 24.0])
    monkeypatch.setattr("vflparty.ledger.time.perf_counter", lambda: next(clock))
    ledger = Ledger()
    with ledger.phase("work"):
        pass
    with ledger.phase("other"):
        pass
    with pytest.raises(KeyError), ledger.phase("work"):
        raise KeyError
    assert ledger.seconds == {"other": 2.0, "work": 5.0}


def test_threads_lose_nothing():
    ledger = Ledger()

    def work(_: int) -> None:
        for _ in range(500):
            with ledger.phase("work"):
                ledger.count("products", 3)
                ledger.record("a", "b", "Ask", 2)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert ledger.counts == {"products": 12_000}
    assert ledger.messages_sent == 4000 and ledger.bytes_sent == 8000


def test_report_crosses_the_wire_and_gives_the_same_ledger():
    ledger = example()
    with ledger.phase("work"):
        pass
    report = codec.decode(codec.encode(ledger.to_message()), (LedgerReport,))
    copy = Ledger.from_message(report)
    assert copy.summary().equals(ledger.summary())
    assert (copy.rounds, copy.seconds, copy.counts) == (ledger.rounds, ledger.seconds, ledger.counts)


def test_merging_adds_every_figure():
    ledger = example()
    ledger.merge(example().to_message())
    assert ledger.rounds == 4 and ledger.counts == {"encryptions": 10} and ledger.bytes_sent == 388
    assert ledger.summary()["rounds"].tolist() == [2, 2, 4]


def test_what_was_taken_is_not_taken_twice():
    ledger, total = example(), Ledger()
    total.merge(ledger.take())
    total.merge(ledger.take())
    assert total.summary().equals(example().summary()) and ledger.bytes_sent == 0 and ledger.rounds == 0

"""Messages and errors as values: equality, names, what crosses as a report."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest

from vflparty import (
    DamagedFrameError,
    Done,
    ErrorReport,
    LocalProtocolError,
    Message,
    PartyFailedError,
    PeerTimeoutError,
    RemoteProtocolError,
    codec,
    may_cross,
)
from vflparty.messages import answers_to, handler_name


@dataclass(frozen=True)
class Question(Message, answer=("Answer", Done)):
    x: np.ndarray


@dataclass(frozen=True)
class Answer(Message):
    data: bytes


@dataclass(frozen=True)
class HTTPLikeName2Go(Message, answer="NoSuchKind"):
    pass


def test_answers_are_found_by_name_in_the_module_of_the_question():
    assert answers_to(Question) == (Answer, Done)
    assert answers_to(Answer) == (Done,)
    with pytest.raises(LocalProtocolError, match="answered by NoSuchKind"):
        answers_to(HTTPLikeName2Go)


def test_answers_survive_a_class_that_is_made_anew_with_slots():
    @dataclass(frozen=True, slots=True)
    class Slotted(Message, answer=Answer):
        x: int

    assert answers_to(Slotted) == (Answer,)
    assert codec.decode(codec.encode(Slotted(3)), (Slotted,)) == Slotted(3)


def test_handler_is_the_kind_in_snake_case():
    assert handler_name(Question) == "on_question"
    assert handler_name(ErrorReport) == "on_error_report"
    assert handler_name(HTTPLikeName2Go) == "on_http_like_name2_go"


def test_messages_with_arrays_compare_by_content_and_dtype():
    assert Question(np.arange(3)) == Question(np.arange(3))
    assert Question(np.arange(3)) != Question(np.arange(3.0))
    assert Question(np.array([np.nan])) == Question(np.array([np.nan]))
    assert Answer(b"x") != Done()


def test_repr_of_a_message_shows_sizes_and_not_megabytes():
    assert repr(Question(np.zeros(10**6))) == "Question(x=<float64 (1000000,)>)"
    assert repr(Answer(bytes(10**6))) == "Answer(data=<bytes of 1000000>)"


def test_messages_are_frozen():
    with pytest.raises(FrozenInstanceError):
        Answer(b"").data = b"x"  # type: ignore[misc]


def report(error: Exception, reporter: str = "shop") -> Exception:
    """The error after a trip over the wire."""
    return codec.decode(codec.encode(ErrorReport.of(error)), (ErrorReport,)).rebuild(reporter)


@pytest.mark.parametrize(
    "cls", [ValueError, TypeError, OverflowError, LocalProtocolError, RemoteProtocolError]
)
def test_error_crosses_as_its_class_and_names_the_party(cls):
    got = report(cls("3 rows, 4 wanted"))
    assert type(got) is cls and str(got) == "party 'shop': 3 rows, 4 wanted" and got.party == "shop"


def test_error_that_names_a_party_keeps_that_name():
    got = report(report(PeerTimeoutError("silent for 3 seconds", "phone"), "bank"), "bank")
    assert (
        type(got) is PeerTimeoutError
        and got.party == "phone"
        and str(got) == "party 'phone': silent for 3 seconds"
    )
    assert str(report(report(ValueError("no"), "shop"), "bank")) == "party 'shop': no"


def test_unexpected_error_crosses_by_class_name_only():
    got = report(KeyError("customer 4711"))
    assert type(got) is PartyFailedError and "KeyError" in str(got) and "4711" not in str(got)


def test_subclass_crosses_as_its_nearest_listed_ancestor():
    class OddValueError(ValueError):
        pass

    class StrangeFrame(DamagedFrameError):
        pass

    assert type(report(OddValueError("odd"))) is ValueError
    assert type(report(StrangeFrame("strange"))) is DamagedFrameError


def test_report_of_an_unknown_class_becomes_party_failed():
    assert type(ErrorReport("SystemExit", "0", "").rebuild("shop")) is PartyFailedError
    assert type(ErrorReport("os.system", "ls", "").rebuild("shop")) is PartyFailedError


def test_class_can_join_the_list_once():
    @may_cross
    class ToySlotError(ArithmeticError):
        pass

    assert type(report(ToySlotError("full"))) is ToySlotError
    assert may_cross(ToySlotError) is ToySlotError
    with pytest.raises(LocalProtocolError, match="ToySlotError"):
        may_cross(type("ToySlotError", (Exception,), {}))


def test_place_in_the_protocol_can_be_added_to_an_error():
    error = DamagedFrameError("digest", "shop").at("tree 3, level 2")
    assert str(error) == "party 'shop': tree 3, level 2: digest" and error.party == "shop"
    assert error.by("other") is error
    assert DamagedFrameError("digest").by("shop").party == "shop"


def test_errors_survive_a_worker_process_of_a_search():
    """joblib sends exceptions of its workers by pickle; that is its business, but ours must survive it."""
    error = pickle.loads(pickle.dumps(DamagedFrameError("digest", "shop")))
    assert str(error) == "party 'shop': digest" and error.party == "shop" and error.text == "digest"


def test_an_error_that_names_its_party_names_it_once():
    report = ErrorReport("OverflowError", "party 'one': outputs reach 1e+12", "")
    assert str(report.rebuild("one")) == "party 'one': outputs reach 1e+12"
    assert str(report.rebuild("two")) == "party 'two': party 'one': outputs reach 1e+12"

import multiprocessing
import sqlite3
import stat
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.standings import standings

from paydesk.adapters.acquirers.interface import Approved
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import TEST_CARDS, Bank, Record
from paydesk.adapters.acquirers.simulator.record import MARK_LENGTH, Kind, Operation, plain
from paydesk.core.cards import Brand, parse_number

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def purchase(key: str, number: str = "4242424242424242") -> Purchase:
    return Purchase(
        key=key,
        amount=Decimal("10.00"),
        currency="USD",
        card=CardDetails(number, 12, 2030, "Ada Lovelace", "987"),
        capture=True,
        not_after=NOON + timedelta(hours=1),
        return_url="http://shop.test/",
    )


def _charge(path: Path, key: str, times: int, replies: "multiprocessing.Queue[str]") -> None:
    bank = Bank(Record(path), now=lambda: NOON)
    for _ in range(times):
        outcome = bank.purchase(purchase(key), stored=False)
        assert isinstance(outcome, Approved)
        replies.put(outcome.reference)


def test_fifty_charges_of_one_key_from_two_processes_are_one_charge(tmp_path: Path) -> None:
    path = tmp_path / "bank.sqlite"
    spawn = multiprocessing.get_context("spawn")
    replies: multiprocessing.Queue[str] = spawn.Queue()
    processes = [spawn.Process(target=_charge, args=(path, "the key", 25, replies)) for _ in range(2)]
    for process in processes:
        process.start()
    references = {replies.get(timeout=60) for _ in range(50)}
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(references) == 1
    record = Record(path)
    assert [line.kind for line in record.operations()] == [Kind.AUTHORIZE]
    assert standings(record.operations())["the key"].net == 10


def test_a_new_file_that_another_process_is_just_making_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bank.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    monkeypatch.setattr("time.sleep", lambda seconds: other.execute("rollback") if other.in_transaction else None)
    record = Record(path)
    assert list(record.operations()) == []
    record.close()


def test_the_file_itself_lets_a_key_be_decided_once(record: Record) -> None:
    decided = Operation(at=NOON, key="one", kind=Kind.AUTHORIZE, of_key="one", result="approved")
    record.write(decided)
    with pytest.raises(sqlite3.IntegrityError):
        record.write(decided)


def test_nothing_in_the_record_can_be_changed_or_removed(record: Record) -> None:
    record.write(Operation(at=NOON, key="one", kind=Kind.AUTHORIZE, of_key="one", result="approved"))
    other = sqlite3.connect(record.path, isolation_level=None)
    for change in ("update operation set amount = '1'", "delete from operation"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            other.execute(change)


def test_a_failed_decision_leaves_no_trace(record: Record) -> None:
    def fail_after_writing() -> None:
        with record.transaction():
            record.write(Operation(at=NOON, key="one", kind=Kind.AUTHORIZE, of_key="one", result="approved"))
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        fail_after_writing()
    assert list(record.operations()) == []


def test_no_card_number_and_no_security_code_is_ever_stored(record: Record) -> None:
    bank = Bank(record, now=lambda: NOON)
    for card in TEST_CARDS:
        try:
            bank.purchase(purchase(card.number, card.number), stored=False)
        except Exception as unknown:
            assert card.answer_lost, unknown  # noqa: PT017
    # The key of this test is the number itself, so the key's own columns are looked at apart.
    columns = ("amount", "currency", "last4", "card_token", "reference", "result", "capture", "at")
    shown = [tuple(str(getattr(line, column)) for column in columns) for line in record.operations()]
    assert len(shown) == len(TEST_CARDS) + 1, "each card, and the dispute of one"
    assert not [row for row in shown for text in row for card in TEST_CARDS if card.number in text or text == "987"]


def test_the_bytes_of_the_file_hold_no_card_number_and_no_name(record: Record) -> None:
    Bank(record, now=lambda: NOON).purchase(purchase("one"), stored=False)
    stored = b"".join(file.read_bytes() for file in record.path.parent.iterdir())
    assert b"4242424242424242" not in stored
    assert b"Ada Lovelace" not in stored


def test_card_marks_of_different_purchases_can_not_be_linked(record: Record) -> None:
    assert record.card_token("one", "4242424242424242") == record.card_token("one", "4242424242424242")
    marks = {record.card_token(f"key {n}", "4242424242424242") for n in range(100)}
    assert len(marks) > 50


def test_a_card_mark_confirms_no_guess(record: Record) -> None:
    """Who has the file has the key of its marks; of the numbers that end alike many have
    the same one.
    """
    mark = record.card_token("one", "4242424242424242")
    assert len(mark) == MARK_LENGTH
    assert any(record.card_token("one", f"{n:012}4242") == mark for n in range(2_000_000))


def test_only_its_owner_may_read_the_file(record: Record) -> None:
    record.write(Operation(at=NOON, key="one", kind=Kind.AUTHORIZE, of_key="one", result="approved"))
    modes = {stat.S_IMODE(file.stat().st_mode) for file in record.path.parent.glob("bank.sqlite*")}
    assert modes == {0o600}


def test_all_operations_are_read_in_order_however_many(record: Record) -> None:
    with record.transaction():
        for number in range(2500):
            record.write(
                Operation(at=NOON, key=str(number), kind=Kind.AUTHORIZE, of_key=str(number), result="approved")
            )
    assert [line.key for line in record.operations()] == [str(number) for number in range(2500)]
    assert len(standings(record.operations())) == 2500


def test_a_record_survives_being_opened_again(record: Record) -> None:
    answer = Bank(record, now=lambda: NOON).purchase(purchase("one"), stored=False)
    record.close()
    again = Record(record.path)
    assert Bank(again, now=lambda: NOON).purchase(purchase("one"), stored=False) == answer
    again.close()


@pytest.mark.parametrize(
    ("amount", "text"), [("10.00", "10"), ("100", "100"), ("1E+3", "1000"), ("0.50", "0.5"), ("0.0001", "0.0001")]
)
def test_equal_amounts_are_written_alike(amount: str, text: str) -> None:
    assert plain(Decimal(amount)) == text


def test_the_test_cards_are_valid_numbers_of_their_brands() -> None:
    assert [parse_number(card.number) for card in TEST_CARDS] == [card.number for card in TEST_CARDS]
    assert {card.brand for card in TEST_CARDS} == {Brand.VISA, Brand.MASTERCARD, Brand.AMEX}

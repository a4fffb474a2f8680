"""Files of transfers, as a bank reads them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from sepaxml.validation import ValidationError

from paydesk.adapters.bank_files import SCHEMA, Transfer, transfers_file
from paydesk.core.bank_accounts import BankAccount

NAMES = {"": f"urn:iso:std:iso:20022:tech:xsd:{SCHEMA}"}
OURS = BankAccount("Desk & Söhne Ltd", "DE89370400440532013000")
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


def transfer(amount: str, reference: str, holder: str = "Łódź Shop", iban: str = "NL91ABNA0417164300") -> Transfer:
    return Transfer(BankAccount(holder, iban), Decimal(amount), reference)


def written(*transfers: Transfer, name: str = "PAYOUTS-8") -> bytes:
    return transfers_file(name, OURS, transfers, made_at=NOON, execute_on=date(2027, 3, 1))


def test_it_says_who_gets_how_much() -> None:
    file = ElementTree.fromstring(written(transfer("1000.10", "PAYOUT-8-18"), transfer("0.05", "PAYOUT-8-28")))
    assert [one.text for one in file.iterfind(".//GrpHdr/MsgId", NAMES)] == ["PAYOUTS-8"]
    assert [one.text for one in file.iterfind(".//GrpHdr/NbOfTxs", NAMES)] == ["2"]
    assert [one.text for one in file.iterfind(".//GrpHdr/CtrlSum", NAMES)] == ["1000.15"]
    assert [(one.text, one.get("Ccy")) for one in file.iterfind(".//InstdAmt", NAMES)] == [
        ("1000.10", "EUR"),
        ("0.05", "EUR"),
    ]
    assert [one.text for one in file.iterfind(".//EndToEndId", NAMES)] == ["PAYOUT-8-18", "PAYOUT-8-28"]
    assert [one.text for one in file.iterfind(".//CdtrAcct/Id/IBAN", NAMES)] == ["NL91ABNA0417164300"] * 2
    assert [one.text for one in file.iterfind(".//Dbtr/Nm", NAMES)] == ["Desk Sohne Ltd"]
    assert [one.text for one in file.iterfind(".//Cdtr/Nm", NAMES)] == ["Lodz Shop"] * 2


def test_taken_again_it_is_the_same() -> None:
    assert written(transfer("1.00", "A")) == written(transfer("1.00", "A"))
    assert written(transfer("1.00", "A")) != written(transfer("1.00", "A"), name="PAYOUTS-18")


def test_no_name_can_say_more_than_a_name() -> None:
    file = written(transfer("1.00", "A", holder='</Nm><IBAN>"&;' * 20))
    assert file.count(b"<IBAN>") == 2
    assert written(transfer("1.00", "A", holder="北京")).count(b"Bei Jing") == 1
    assert b"<Nm>-</Nm>" in written(transfer("1.00", "A", holder="☃"))


def test_what_no_bank_takes_is_never_written() -> None:
    with pytest.raises(ValidationError):
        written(transfer("1.00", "A", iban="NOT AN IBAN"))

"""Transfers as a file for a bank: ISO 20022, `pain.001.001.09`, checked against its schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from xml.etree import ElementTree

from sepaxml import SepaTransfer
from sepaxml.validation import try_valid_xml
from text_unidecode import unidecode

from paydesk.core.bank_accounts import BankAccount

SCHEMA = "pain.001.001.09"
_SPACE = f"{{urn:iso:std:iso:20022:tech:xsd:{SCHEMA}}}"
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9/\-?:().,'+ ]")
"""Characters that SEPA's rules don't promise to carry."""
_NO_BIC = "NOTPROVIDED"


@dataclass(frozen=True, slots=True)
class Transfer:
    """Euros to one account; the statement shows `reference`, which stays with it end to end."""

    to: BankAccount
    amount: Decimal
    reference: str


def transfers_file(
    name: str, payer: BankAccount, transfers: Sequence[Transfer], *, made_at: datetime, execute_on: date
) -> bytes:
    """A file of SEPA credit transfers (euros), the same bytes for the same arguments.

    A bank that gets it twice knows it by its `name` (at most 35 characters, as a reference has).
    """
    sepa = SepaTransfer(
        {"name": _plain(payer.holder), "IBAN": payer.iban, "currency": "EUR", "batch": True}, SCHEMA, clean=True
    )
    for one in transfers:
        sepa.add_payment(
            {
                "name": _plain(one.to.holder),
                "IBAN": one.to.iban,
                "amount": int(one.amount.scaleb(2)),
                "execution_date": execute_on,
                "description": one.reference,
                "endtoend_id": one.reference,
            }
        )
    document = ElementTree.fromstring(sepa.export(validate=False))  # noqa: S314 - it was written above
    _say(document, f"{_SPACE}CstmrCdtTrfInitn/{_SPACE}GrpHdr/{_SPACE}MsgId", name)
    _say(document, f"{_SPACE}CstmrCdtTrfInitn/{_SPACE}GrpHdr/{_SPACE}CreDtTm", f"{made_at:%Y-%m-%dT%H:%M:%S}")
    _say(document, f"{_SPACE}CstmrCdtTrfInitn/{_SPACE}PmtInf/{_SPACE}PmtInfId", name)
    bank = document.find(f".//{_SPACE}DbtrAgt/{_SPACE}FinInstnId")
    assert bank is not None, "the library writes the payer's bank"
    ElementTree.SubElement(ElementTree.SubElement(bank, f"{_SPACE}Othr"), f"{_SPACE}Id").text = _NO_BIC
    ElementTree.register_namespace("", _SPACE.strip("{}"))
    written: bytes = ElementTree.tostring(document, encoding="UTF-8", xml_declaration=True)
    try_valid_xml(written, SCHEMA)
    return written


def _say(document: ElementTree.Element, path: str, text: str) -> None:
    found = document.find(path)
    assert found is not None, f"the library writes {path}"
    found.text = text


def _plain(name: str) -> str:
    """A name in the characters that every bank takes, as near as they come."""
    return " ".join(_NOT_ALLOWED.sub(" ", unidecode(name)).split())[:70] or "-"

"""What a programmer wants to see: how a form's hash came about, and a pingback's body set out
for reading.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from paydesk.web.demo.orders import ReceivedPingback
from paydesk_client import Gateway, MalformedForm, Parameters
from paydesk_client.parameters import parse_form, text
from paydesk_client.signature import canonical_string, leaves, signature_version


@dataclass(frozen=True, slots=True)
class Explanation:
    """The posted fields in order, the string that was hashed (without the key),
    and what was done with it.
    """

    action: str
    fields: tuple[tuple[str, str], ...]
    hashed: str
    formula: str
    digest: str


def explain(gateway: Gateway, posted: Parameters) -> Explanation:
    """Show how the client library signed the fields of a form;
    the private key is named, never shown.
    """
    version = signature_version(posted)
    formula = "HMAC-SHA-256(key: private key, string)" if version == "v2" else "SHA-256(string + private key)"
    return Explanation(
        action=gateway.payment_form().action,
        fields=tuple((one.bracket_name, text(one.value)) for one in leaves(posted)),
        hashed=canonical_string(posted, version),
        formula=formula,
        digest=str(posted["hash"]),
    )


def readable(pingback: ReceivedPingback) -> str:
    """The body with indentation: JSON as it is, a form as one field per line,
    anything else unchanged.
    """
    try:
        return msgspec.json.format(pingback.body, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return _form_lines(pingback.body) or pingback.body


def _form_lines(body: str) -> str:
    try:
        fields = list(leaves(parse_form(body.encode())))
    except MalformedForm:
        return ""
    return "\n".join(f"{one.bracket_name} = {text(one.value)}" for one in fields)

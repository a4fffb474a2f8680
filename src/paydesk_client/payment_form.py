"""The form that takes a customer from the shop to the hosted checkout page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias, cast

from paydesk_client.parameters import Leaf, Parameters, Value, is_nested, leaf, leaves, text
from paydesk_client.signature import Signature

FormValue: TypeAlias = "str | dict[str, FormValue] | list[FormValue]"
"""What a form can carry: text, and text nested under bracket names."""

_NEWLINE = re.compile(r"\r\n|\r|\n")

# A field named "submit" would hide form.submit(), so the method is taken from the prototype.
_SUBMIT = "HTMLFormElement.prototype.submit.call(document.currentScript.previousElementSibling)"


@dataclass(frozen=True, slots=True)
class PaymentForm:
    """Builds signed checkout requests; get one from `Gateway.payment_form()`."""

    api_url: str
    public_key: str
    signature: Signature

    @property
    def action(self) -> str:
        """The address that the form is posted to."""
        return f"{self.api_url}/payment/form"

    def build_parameters(self, parameters: Parameters) -> dict[str, FormValue]:
        """Return the fields to post, as text, with `api_key` and `hash` set (interface.md §2.2).

        `sign_version` among the parameters chooses the signature, v1 by default. None is left out,
        a bool becomes 1 or 0, and line ends become CRLF, because browsers post them so and would
        otherwise break the hash.

        Raises: UnknownSignatureVersion; MalformedForm if nested too deep; TypeError for a value
        without a text form; A form that could be read in two ways is malformed too; the message
        says which field to change.
        """
        fields = {name: _as_text(name, value) for name, value in parameters.items() if name != "hash"}
        posted = {name: value for name, value in fields.items() if value not in (None, {}, [])}
        posted["api_key"] = self.public_key
        posted["hash"] = self.signature.sign(posted)
        return cast("dict[str, FormValue]", posted)

    def build_form(
        self,
        parameters: Parameters,
        auto_submit: bool = False,
        hide_pay_button: bool = False,
        *,
        nonce: str | None = None,
    ) -> str:
        """Return an HTML form with the signed fields; every name and value is escaped.

        Args:
            parameters: the fields of the checkout request but `api_key` and `hash`; nested ones get
                bracket names.
            auto_submit: add a one-line script that posts the form at once.
            hide_pay_button: leave the button out, for pages that post the form themselves.
            nonce: of the page's Content-Security-Policy, which otherwise may forbid the script; the
                policy's `form-action` must allow the service too. Without scripts the customer
                still needs the button, so with auto_submit a hidden one is shown where scripts
                are off.

        Raises: as build_parameters.
        """
        inputs = "".join(_hidden(one) for one in leaves(cast("Parameters", self.build_parameters(parameters))))
        button = '<button type="submit">Pay now</button>'
        if hide_pay_button:
            button = f"<noscript>{button}</noscript>" if auto_submit else ""
        allowed = f' nonce="{escape(nonce)}"' if nonce else ""
        script = f"<script{allowed}>{_SUBMIT};</script>" if auto_submit else ""
        return (
            f'<form method="post" action="{escape(self.action)}" accept-charset="utf-8" id="paydesk_payment_form">'
            f"{inputs}{button}</form>{script}"
        )


def _as_text(name: str, value: Value) -> Value:
    """Turn a value into what a browser posts for it;
    None and what is empty stay, for the caller to leave out.
    """
    if isinstance(value, Mapping):
        inner = {str(key): _as_text(name, item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item not in (None, {}, [])}
    if is_nested(value):
        items = [_as_text(name, item) for item in cast("Sequence[Value]", value)]
        return [item for item in items if item not in (None, {}, [])]
    single = leaf((name,), value).value
    return None if single is None else _NEWLINE.sub("\r\n", text(single))


def _hidden(one: Leaf) -> str:
    return f'<input type="hidden" name="{escape(one.bracket_name)}" value="{escape(text(one.value))}">'

"""What the fields of a business profile are called."""

from __future__ import annotations

from paydesk.web.texts import mark

NAMES = {
    "legal_name": mark("Legal name"),
    "street": mark("Street and number"),
    "postal_code": mark("Postal code"),
    "city": mark("City"),
    "country": mark("Country"),
    "registration": mark("Registration number"),
    "vat_number": mark("VAT number"),
    "website": mark("Website"),
    "support_email": mark("Support e-mail"),
    "support_phone": mark("Support telephone"),
    "terms_url": mark("Terms and conditions"),
    "privacy_url": mark("Privacy policy"),
    "description": mark("What the business does"),
    "goods": mark("What you sell, and how it is delivered"),
    "account_holder": mark("Account holder"),
    "iban": mark("IBAN"),
}

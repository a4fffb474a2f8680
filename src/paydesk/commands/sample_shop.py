"""The sample shop's accounts and their owner, as `paydesk run` opens them at its first start."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.joining import sign_up_invited
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.team import accept_invitation, invite_first
from paydesk.domain.business.branding import brand_account
from paydesk.domain.coupons.coupons import CouponTerms
from paydesk.domain.coupons.keeping import make_coupon
from paydesk.domain.merchants.customer_ways import PortalCancels, PortalPlans
from paydesk.domain.merchants.keys import pairs_of
from paydesk.domain.merchants.merchant import change_merchant, create_merchant, find_merchant, shop_of
from paydesk.equipment import gate_of
from paydesk.settings import Settings
from paydesk.web.demo.articles import COUPON_CODE, COUPON_PERCENT, COUPON_PERIODS
from paydesk.web.demo.routes import SHIPPING_PINGBACKS

KeyPair: TypeAlias = tuple[str, str]
"""A merchant's public and private key."""

NAME = "Fern & Kettle"
ACCENT = "#1f5a43"
LOGO = "shop-mark.png"
"""As the shop's own pages have them: one brand from the shelf to the receipt."""

COUPON = CouponTerms(
    code=COUPON_CODE,
    percent=Decimal(COUPON_PERCENT),
    amount=None,
    currency=None,
    periods=COUPON_PERIODS,
    valid_from=None,
    valid_until=None,
    most_uses=None,
    most_per_customer=None,
    skus=(),
)
"""What the shelf says to subscribers."""

OWNER = "owner@sample-shop.example"


@dataclass(frozen=True, slots=True)
class Owner:
    """How the sample shop's owner logs in."""

    email: str
    password: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The sample shop's two accounts, as an account either ships its goods or does not,
    and their owner.
    """

    keys: KeyPair
    shipping_keys: KeyPair
    owner: Owner


def demo_address(settings: Settings) -> str:
    """Where the sample shop is."""
    return f"http://{settings.host}:{settings.demo_port}"


async def open_sample(settings: Settings, database: Database, vault: Vault, address: str) -> Sample:
    """The sample shop at `address`: made at the first start of a data directory,
    random but for names.
    """
    folder = settings.data_dir / "demo"
    folder.mkdir(mode=0o700, exist_ok=True)
    merchant_id, keys = await _account(database, vault, folder / "merchant", NAME, pingback_url=f"{address}/pingback")
    shipping_id, shipping_keys = await _account(
        database,
        vault,
        folder / "merchant-shipping",
        f"{NAME}, shipped goods",
        pingback_url=address + SHIPPING_PINGBACKS,
        shipped_goods=True,
    )
    owner = await _owner(gate_of(settings, database, vault), folder / "owner", (merchant_id, shipping_id))
    return Sample(keys, shipping_keys, owner)


async def _account(
    database: Database, vault: Vault, note: Path, name: str, *, pingback_url: str, shipped_goods: bool = False
) -> tuple[int, KeyPair]:
    """The id and key pair of the account whose id the note holds, or of a new one."""
    try:
        merchant = await find_merchant(database, int(_noted(note)))
        return merchant.id, (await pairs_of(database, vault, merchant.id))[0]
    except (ValueError, NotFound):
        merchant = await create_merchant(
            database,
            vault,
            name=name,
            email=OWNER,
            pingback_url=pingback_url,
            now=utc_now(),
            shipped_goods=shipped_goods,
        )
        await change_merchant(
            database,
            merchant.id,
            portal_cancels=PortalCancels.BOTH,
            portal_pauses=True,
            portal_plans=PortalPlans.BOTH,
            slow_methods=True,
            types_coupons=not shipped_goods,
            trials_without_card=True,
        )
        if not shipped_goods:
            await make_coupon(database, shop_of(merchant, live=False), COUPON, now=utc_now())
        logo = (files("paydesk.web.demo") / "static" / LOGO).read_bytes()
        await brand_account(database, merchant.id, accent=ACCENT, logo=logo, now=utc_now())
        _note(note, str(merchant.id))
        return merchant.id, (merchant.public_key, merchant.private_key)


async def _owner(gate: Gate, note: Path, merchant_ids: tuple[int, ...]) -> Owner:
    """The owner of the accounts with the password that the note holds, or a new one."""
    wanted, known = " ".join(map(str, merchant_ids)), _noted(note).split("\n")
    if known[0] == wanted:
        return Owner(*known[1:3])
    now, nobody = utc_now(), Client("127.0.0.1", "paydesk run")
    # Accounts made anew on a database that had some before: the first owner's address is taken.
    email = OWNER if len(known) == 1 else f"owner-{merchant_ids[0]}@sample-shop.example"
    owner = Owner(email, secrets.token_urlsafe(12))
    # Who accepts an invitation looks at that shop next: the first one comes last.
    tokens = [
        (await invite_first(gate, merchant_id, email=owner.email, role=Role.owner, now=now)).token
        for merchant_id in reversed(merchant_ids)
    ]
    entered = await sign_up_invited(
        gate, tokens[0], name="Fern Kettle", password=owner.password, client=nobody, now=now
    )
    for token in tokens[1:]:
        await accept_invitation(gate, entered.session, token, now=now)
    _note(note, f"{wanted}\n{owner.email}\n{owner.password}\n")
    return owner


def _noted(path: Path) -> str:
    """What a note says, nothing if there is none."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def _note(path: Path, text: str) -> None:
    """Keep a note that only this user can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)

"""`paydesk merchant`: accounts, as an operator opens, reads and changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Final

import typer

from paydesk.adapters.vault import VaultError
from paydesk.commands import card_guard, moving_merchants, shop_forms, suspending
from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.options import (
    MerchantId,
    SavesCards,
    SignedCoupons,
    SignedLineItems,
    SignedQuantities,
    TrialsWithoutCard,
    TypedCoupons,
)
from paydesk.commands.printing import AsJson, counted, note, show_facts, show_json, show_table
from paydesk.commands.reconciling import acquirers_of
from paydesk.core.clock import utc_now
from paydesk.core.email_addresses import parse_email
from paydesk.core.errors import Malformed, SetupError
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.accounts.links import AccountLink
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.team import INVITATION_LIFETIME, invite_first
from paydesk.domain.business.key_pairs import public_keys
from paydesk.domain.merchants.customer_ways import PortalCancels, PortalPlans
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.keys import KeyScope, pairs_of
from paydesk.domain.merchants.merchant import (
    MUTABLE_EVENTS,
    Merchant,
    change_merchant,
    create_merchant,
    find_merchant,
    go_live,
    list_merchants,
)
from paydesk.domain.merchants.notice_days import MOST_NOTICE_DAYS
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.noting_settings import noting_changes
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP, in_words, require_one_holds
from paydesk.domain.pingbacks.destinations import parse_pingback_url
from paydesk.domain.pingbacks.resending_by_hand import send_waiting
from paydesk.domain.subscriptions.dunning import parse_delays
from paydesk.equipment import gate_of
from paydesk.required_keys import require_live_key

LONGEST_NAME = 100

_NOT_YET: Final = 0
"""A merchant that has no id yet, and no account of its own at an acquirer."""

app = typer.Typer(help="Open, read and change merchants' accounts.", no_args_is_help=True)
app.add_typer(card_guard.app, name="guard")


class BodyFormat(StrEnum):
    """The body of version 1 pingbacks."""

    json = "json"
    form = "form"


@app.command(epilog='Example: paydesk merchant create --name "Corner Shop" --email owner@shop.example --json')
@command
async def create(
    name: Annotated[str, typer.Option(help="Shown to customers.")],
    email: Annotated[str, typer.Option(help="Where the merchant is reached.")],
    pingback_url: Annotated[str | None, typer.Option(help="Where pingbacks go if a form names no URL.")] = None,
    public_key: Annotated[str | None, typer.Option(help="A key pair to keep; random if left out.")] = None,
    private_key: Annotated[str | None, typer.Option(help="The private half of that pair.")] = None,
    shipped_goods: Annotated[
        bool,
        typer.Option(
            "--shipped-goods",
            help=f"Goods are shipped: money is held until delivery is confirmed, {in_words(TIME_TO_SHIP)} at most.",
        ),
    ] = False,
    scope: Annotated[
        list[KeyScope] | None, typer.Option(help="What the key pair may do, once for each; everything if left out.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open an account in test mode and print its key pair."""
    account_name, address, url = _name(name), parse_email(email), _web_url(pingback_url, "--pingback-url")
    async with deployment(again="look before you open it again: paydesk merchant list") as here:
        if shipped_goods:
            await require_holding(here, _NOT_YET)
        merchant = await create_merchant(
            here.database,
            here.vault,
            name=account_name,
            email=address,
            now=utc_now(),
            pingback_url=url or None,
            public_key=public_key,
            private_key=private_key,
            shipped_goods=shipped_goods,
            scopes=frozenset(scope or KeyScope),
            entering=here.entering,
        )
    _show(_account(merchant, with_private_key=True), as_json=as_json)


@app.command("list", epilog="Example: paydesk merchant list")
@command
async def list_(as_json: AsJson = False) -> None:
    """List all accounts, oldest first."""
    async with deployment() as here:
        merchants = await list_merchants(here.database)
    if as_json:
        show_json([_account(merchant) for merchant in merchants])
        return
    show_table(
        ("id", "name", "email", "public key", "key may", "mode", "pingback url", "created"),
        [
            (
                m.id,
                m.name,
                m.email,
                m.public_key,
                ", ".join(m.key_scopes),
                "test" if m.test_mode else "live",
                m.pingback_url,
                m.created_at,
            )
            for m in merchants
        ],
    )


@app.command(epilog="Example: paydesk merchant show 1 --with-private-key --json")
@command
async def show(
    merchant_id: MerchantId,
    with_private_key: Annotated[bool, typer.Option("--with-private-key", help="Also the private key.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one account with its newest key."""
    async with deployment() as here:
        merchant = await find_merchant(here.database, merchant_id)
        account = await _with_keys(here, merchant, with_private_key=with_private_key)
    _show(account, as_json=as_json)


@app.command("set", epilog="Example: paydesk merchant set 1 --pingback-url https://shop.example/pingback")
@command
async def set_(
    merchant_id: MerchantId,
    pingback_url: Annotated[str | None, typer.Option(help="Where pingbacks go; empty clears it.")] = None,
    test_pingback_url: Annotated[
        str | None, typer.Option(help="Where test pingbacks go, the only place once live; empty clears it.")
    ] = None,
    pingback_format: Annotated[BodyFormat | None, typer.Option(help="Body of version 1 pingbacks.")] = None,
    test_mode: Annotated[
        bool | None, typer.Option("--test-mode/--no-test-mode", help="Whether forms at the live base count as test.")
    ] = None,
    shipped_goods: Annotated[
        bool | None,
        typer.Option(
            "--shipped-goods/--no-shipped-goods", help="Whether new payments are only held until delivery is confirmed."
        ),
    ] = None,
    slow_methods: Annotated[
        bool | None,
        typer.Option(
            "--slow-methods/--no-slow-methods", help="Whether what takes days is taken, where PAYDESK_SLOW_METHODS is."
        ),
    ] = None,
    mute_event: Annotated[
        list[str] | None,
        typer.Option(help=f"Don't send this pingback any more: {', '.join(MUTABLE_EVENTS)}. Repeatable."),
    ] = None,
    unmute_event: Annotated[list[str] | None, typer.Option(help="Send this pingback again. Repeatable.")] = None,
    fees_returned: Annotated[
        bool | None,
        typer.Option("--fees-returned/--fees-kept", help="Whether refunds give back the merchant's share of fees."),
    ] = None,
    portal_cancels: Annotated[
        PortalCancels | None,
        typer.Option(help="When a subscription ends that its customer cancels on its page."),
    ] = None,
    portal_pauses: Annotated[
        bool | None,
        typer.Option("--portal-pauses/--no-portal-pauses", help="Whether customers may pause a subscription."),
    ] = None,
    portal_plans: Annotated[
        PortalPlans | None,
        typer.Option(help="When a plan holds that a customer changes to on the page of a subscription."),
    ] = None,
    portal_quantities: Annotated[
        bool | None,
        typer.Option("--portal-quantities/--no-portal-quantities", help="Whether customers may change how many."),
    ] = None,
    dunning_delays: Annotated[
        str | None,
        typer.Option(help="Hours (24) or days (3d) from each failed charge to its next try; empty: the usual ones."),
    ] = None,
    dunning_by_reason: Annotated[
        bool | None,
        typer.Option("--dunning-by-reason/--no-dunning-by-reason", help="Whether tries look at the bank's reason."),
    ] = None,
    dunning_end: Annotated[
        DunningEnd | None,
        typer.Option(help="After the last try: stop the subscription, or keep it open for its customer to pay."),
    ] = None,
    charge_notice_days: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_NOTICE_DAYS,
            help="Days before a trial ends, other terms begin or a year is charged to tell customers; 0: don't.",
        ),
    ] = None,
    trials_without_card: TrialsWithoutCard = None,
    app_scheme: Annotated[
        list[str] | None,
        typer.Option(
            help="Scheme of the account's own app: customers go there without a button. Replaces; repeatable."
        ),
    ] = None,
    saves_cards: SavesCards = None,
    signed_quantities: SignedQuantities = None,
    signed_line_items: SignedLineItems = None,
    typed_coupons: TypedCoupons = None,
    signed_coupons: SignedCoupons = None,
    as_json: AsJson = False,
) -> None:
    """Change settings of an account; setting a URL also sends the pingbacks that waited for one."""
    names = {"pingback_url": pingback_url, "test_pingback_url": test_pingback_url}
    urls = {name: _web_url(url, f"--{name.replace('_', '-')}") for name, url in names.items()}
    muted, unmuted = mute_event or [], unmute_event or []
    flags = (test_mode, shipped_goods, slow_methods, fees_returned, saves_cards, portal_pauses, dunning_by_reason)
    read = (signed_quantities, signed_line_items, typed_coupons, signed_coupons, trials_without_card)
    portal = (portal_cancels, portal_plans, portal_quantities, charge_notice_days, app_scheme or None)
    chosen = (*portal, pingback_format, dunning_delays, dunning_end)
    given = (*urls.values(), *flags, *read, *chosen)
    if not (muted or unmuted) and all(value is None for value in given):
        raise Malformed("nothing to change; see: paydesk merchant set --help")
    async with deployment() as here:
        if shipped_goods:
            await require_holding(here, merchant_id)
        hours = None if dunning_delays is None else parse_delays(dunning_delays, "--dunning-delays") or ()
        async with noting_changes(here.database, COMMAND_LINE, merchant_id, now=utc_now()) as connection:
            merchant = await change_merchant(
                connection,
                merchant_id,
                **urls,
                pingback_format=pingback_format.value if pingback_format else None,
                test_mode=test_mode,
                shipped_goods=shipped_goods,
                slow_methods=slow_methods,
                muted=muted,
                unmuted=unmuted,
                fees_returned=fees_returned,
                app_schemes=app_scheme or None,
                saves_cards=saves_cards,
                signs_quantities=signed_quantities,
                signs_line_items=signed_line_items,
                types_coupons=typed_coupons,
                signs_coupons=signed_coupons,
                portal_cancels=portal_cancels,
                portal_pauses=portal_pauses,
                portal_plans=portal_plans,
                portal_quantities=portal_quantities,
                dunning_hours=hours,
                dunning_by_reason=dunning_by_reason,
                dunning_end=dunning_end,
                charge_notice_days=charge_notice_days,
                trials_without_card=trials_without_card,
            )
        sent = await send_waiting(here.database, merchant, now=utc_now()) if any(urls.values()) else 0
        account = await _with_keys(here, merchant, with_private_key=False)
    if sent:
        note(f"sent now, after waiting for a URL: {counted(sent, 'pingback')}")
    _show(account, as_json=as_json)


async def require_live_acquirer(here: Deployment, merchant: Merchant) -> None:
    """Make sure that somebody can take live payments. Raises: SetupError, Unavailable."""
    if not here.settings.live_acquirer:
        raise SetupError(
            "no acquirer takes live payments yet: set PAYDESK_LIVE_ACQUIRER=stripe and PAYDESK_STRIPE_SECRET_KEY, or "
            "PAYDESK_LIVE_ACQUIRER=mollie and PAYDESK_MOLLIE_KEY, for serve, work and this command, restart them, and "
            "try again"
        )
    require_live_key(here.settings)
    if merchant.shipped_goods:
        await require_holding(here, merchant.id, sides=(True,))


@app.command("go-live", epilog="Example: paydesk merchant go-live 1")
@command
async def go_live_(merchant_id: MerchantId, as_json: AsJson = False) -> None:
    """Take an account whose business profile is accepted out of test mode;
    its test side stays as it is.
    """
    async with deployment() as here:
        await require_live_acquirer(here, await find_merchant(here.database, merchant_id))
        merchant = await go_live(here.database, merchant_id, now=utc_now())
        account = await _with_keys(here, merchant, with_private_key=False)
    _show(account, as_json=as_json)


app.command(epilog='Example: paydesk merchant suspend 1 --reason "Goods do not arrive"')(suspending.suspend)
app.command(epilog="Example: paydesk merchant resume 1")(suspending.resume)
app.command(epilog=moving_merchants.EXAMPLES)(moving_merchants.move)


@app.command(
    help="Invite somebody into the team of an account, by mail, and print the link, which works once and for "
    f"{INVITATION_LIFETIME.days} days.",
    epilog="Example: paydesk merchant invite 1 --email owner@shop.example",
)
@command
async def invite(
    merchant_id: MerchantId,
    email: Annotated[str, typer.Option(help="The address that the link is for.")],
    role: Annotated[Role, typer.Option(help="What they may do.")] = Role.owner,
    as_json: AsJson = False,
) -> None:
    """Invite somebody into the team of an account, by mail, and print the link."""
    async with deployment(again="run the same command again: only its newest link works, each is mailed") as here:
        gate = gate_of(here.settings, here.database, here.vault, here.entering)
        sent = await invite_first(gate, merchant_id, email=email, role=role, now=utc_now())
        link = AccountLink.invitation.at(here.settings.address, sent.token)
    facts = {"merchant_id": merchant_id, "email": sent.email, "role": role.value, "link": link}
    if as_json:
        show_json(facts)
    else:
        show_facts(facts.items())


app.command(epilog="Example: paydesk merchant rejected-forms 1 --last 5")(shop_forms.rejected_forms)
app.command(epilog="Example: paydesk merchant ignored-fields 1 --live")(shop_forms.ignored_fields)


async def require_holding(here: Deployment, merchant_id: int, *, sides: Sequence[bool] = (False, True)) -> None:
    """Make sure that on each side an acquirer that serves a merchant holds money until goods are
    shipped.

    Raises: Unavailable, naming the acquirer.
    """
    async with acquirers_of(here) as desk:
        for live in sides:
            require_one_holds(await desk.serving(Shop(merchant_id, live), None))


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise Malformed(f"--name needs 1 to {LONGEST_NAME} printable characters", "name")
    return name


def _web_url(url: str | None, option: str) -> str | None:
    """Check a URL as the checkout form's is checked; None and empty stay as they are.

    Raises: Malformed.
    """
    return parse_pingback_url(url, option, "pingback_url") if url else url


async def _with_keys(here: Deployment, merchant: Merchant, *, with_private_key: bool) -> dict[str, object]:
    """The account with its newest key pair.

    Raises: SetupError if the vault's keys are not those that sealed it.
    """
    try:
        pairs = await pairs_of(here.database, here.vault, merchant.id)
    except VaultError as error:
        raise SetupError(f"{error}; check PAYDESK_VAULT_KEYS") from error
    public, private = pairs[0] if pairs else ("", "")
    scopes = [str(scope) for key in (await public_keys(here.database, merchant.id))[:1] for scope in key.scopes]
    account = _account(merchant) | {"public_key": public, "key_scopes": ", ".join(scopes)}
    return account | {"private_key": private} if with_private_key else account


def _account(merchant: Merchant, *, with_private_key: bool = False) -> dict[str, object]:
    """An account as it is printed; the private key only where it was asked for."""
    account = asdict(merchant)
    private_key = account.pop("private_key")
    account["key_scopes"] = ", ".join(merchant.key_scopes)
    return account | {"private_key": private_key} if with_private_key else account


def _show(account: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        show_json(account)
    else:
        show_facts(account.items())

"""`paydesk acquirer`: accounts at acquirers beside the one of the settings."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.options import HowMany
from paydesk.commands.printing import AsJson, note, show_facts, show_json, show_table
from paydesk.commands.reconciling import acquirers_of
from paydesk.commands.verifying import EXAMPLE, verify
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed, NotFound
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.accounts import KINDS, AcquirerAccount, account_named, list_accounts
from paydesk.domain.acquirers.health import OutOfTurn, list_out_of_turn
from paydesk.domain.acquirers.routing import Order, Rule, list_rules
from paydesk.domain.merchants.merchant import find_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations import acquirer_accounts
from paydesk.domain.operations.acquirer_accounts import NewAccount
from paydesk.domain.operations.acquirer_figures import account_figures
from paydesk.domain.operations.acquirer_rules import add_rule, in_words, parse_bound, remove_rule
from paydesk.domain.operations.proceeds import Contract, list_fees, remove_fee, set_fee
from paydesk.domain.operations.remembered_accounts import say_gone
from paydesk.domain.operations.told_unknown import list_told_unknown

app = typer.Typer(help="Add, list, change and disable accounts at acquirers; try one out.", no_args_is_help=True)
app.command("verify", epilog=EXAMPLE)(verify)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The account's name.")]
Currencies = Annotated[
    str, typer.Option(metavar="CODES", help="In which it takes payments, like EUR,CHF; empty for all.")
]


@app.command(epilog="Example: paydesk acquirer add stripe-eu --currencies EUR,CHF < key.txt")
@command
async def add(
    name: Name,
    kind: Annotated[str, typer.Option(help=f"What it is: {', '.join(KINDS)}.")] = "stripe",
    currencies: Currencies = "",
    merchant: Annotated[str, typer.Option(metavar="ID", help="The only merchant that it serves.")] = "",
    pages: Annotated[bool, typer.Option("--pages", help="Customers pay on its own page.")] = False,
    page_domain: Annotated[str, typer.Option(help="The account's own domain of that page.")] = "",
    address: Annotated[str, typer.Option(help="Where a simulated bank is.")] = "",
    as_json: AsJson = False,
) -> None:
    """Add an account, which takes payments before the settings' own; its key is asked for, or read
    from stdin, and never shown again. `paydesk acquirer webhook` adds the secret of notifications.

    The processes notice it without a restart, and it takes payments some 15 seconds later.
    """
    key = "" if kind == "simulator" else _key()
    typed = NewAccount(name, kind, key, address, currencies, merchant, pages, page_domain)
    async with deployment() as here, acquirers_of(here) as desk:
        account = await acquirer_accounts.add_account(desk, COMMAND_LINE, typed, now=utc_now())
    _show(account, as_json=as_json)


@app.command("list", epilog="Example: paydesk acquirer list --json")
@command
async def list_(as_json: AsJson = False) -> None:
    """List all accounts that were added, in the order in which they are asked."""
    async with deployment() as here:
        found = await list_accounts(here.database)
        out = {one.account: one for one in await list_out_of_turn(here.database)}
    if as_json:
        show_json([_facts(one) | _turn(out.get(one.name)) for one in found])
        return
    rows = [
        (
            one.name,
            one.kind,
            _side(one),
            one.for_merchant_id or "all",
            " ".join(one.currencies) or "all",
            "out of turn" if one.enabled and one.name in out else _state(one),
        )
        for one in found
    ]
    show_table(("name", "kind", "side", "merchant", "currencies", "new payments"), rows)


@app.command(epilog="Example: paydesk acquirer show stripe-eu --hours 24")
@command
async def show(
    name: Name,
    hours: Annotated[int, typer.Option(min=1, max=24 * 400, help="Of how many hours, up to now.")] = 24,
    as_json: AsJson = False,
) -> None:
    """Show what became of an account's payments, how quickly it answered, and what routing did."""
    async with deployment() as here, acquirers_of(here) as desk:
        if name not in desk.acquirers and await account_named(here.database, name) is None:
            raise NotFound(f'there is no account "{name[:40]}"')
        now = utc_now()
        found = await account_figures(here.database, name, since=now - timedelta(hours=hours), until=now)
        out = {one.account: one for one in await list_out_of_turn(here.database)}
    shown = asdict(found) | _turn(out.get(name))
    if as_json:
        show_json(shown)
        return
    show_facts([(key, _listed(value) if isinstance(value, dict) else value) for key, value in shown.items()])


@app.command(epilog="Examples: paydesk acquirer waiting; paydesk acquirer waiting --account stripe-eu --json")
@command
async def waiting(
    account: Annotated[str, typer.Option(metavar="NAME", help="Only what this account told; else all.")] = "",
    last: HowMany = 50,
    as_json: AsJson = False,
) -> None:
    """List the failed refunds and disputes that accounts told of and whose payment is not known in
    this cell, the oldest first: since when, whether an alarm tells of it, and for what it waits.
    """
    async with deployment() as here:
        found = await list_told_unknown(here.database, account=account or None, most=last)
    if as_json:
        show_json([asdict(one) for one in found])
        return
    show_table(
        ("account", "what", "reference", "amount", "since", "told last", "alarm since", "what it waits for"),
        [
            (
                one.acquirer,
                one.what,
                one.told.reference,
                f"{one.told.amount} {one.told.currency}",
                one.first_at,
                one.last_at,
                one.alarmed_at,
                one.reason,
            )
            for one in found
        ],
    )
    if any(one.alarmed_at is not None for one in found):
        note(
            "An alarm settles itself once it is booked here, or another cell says that it has booked it, which is asked"
            " every six hours for an account that nobody reads here any more. One that you have seen to yourself: "
            "paydesk alarm list, then paydesk alarm settle ID --note TEXT"
        )


@app.command(epilog="Example: paydesk acquirer disable stripe-eu")
@command
async def disable(name: Name, as_json: AsJson = False) -> None:
    """Let an account take no new payments; what it took is captured, refunded and renewed there."""
    async with deployment() as here, acquirers_of(here) as desk:
        account = await acquirer_accounts.set_enabled(desk, COMMAND_LINE, name, enabled=False, now=utc_now())
    _show(account, as_json=as_json)


@app.command(epilog="Example: paydesk acquirer enable stripe-eu")
@command
async def enable(name: Name, as_json: AsJson = False) -> None:
    """Let an account take new payments again."""
    async with deployment() as here, acquirers_of(here) as desk:
        account = await acquirer_accounts.set_enabled(desk, COMMAND_LINE, name, enabled=True, now=utc_now())
    _show(account, as_json=as_json)


@app.command(epilog='Example: paydesk acquirer gone stripe-eu "the contract was ended, its last payments are refunded"')
@command
async def gone(
    name: Name,
    words: Annotated[str, typer.Argument(metavar="WHY", help="Why it never answers again, for the operators' log.")],
) -> None:
    """Say that an account which a restored database has forgotten is not added again, or that a
    disabled one can't be read any more, so that the hold may end.

    What it took is not compared with our books from then on: settle it at the acquirer first.
    """
    async with deployment() as here, acquirers_of(here) as desk:
        if await account_named(here.database, name) is None:
            await say_gone(here.database, COMMAND_LINE, name, words, now=utc_now())
        else:
            await acquirer_accounts.give_up(desk, COMMAND_LINE, name, words, now=utc_now())
    note(f"{name} is not waited for any more")


@app.command(epilog="Example: paydesk acquirer currencies stripe-eu EUR,CHF")
@command
async def currencies(
    name: Name,
    codes: Annotated[str, typer.Argument(metavar="[CODES]", help="Like EUR,CHF; left out: all.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say in which currencies an account takes new payments."""
    async with deployment() as here, acquirers_of(here) as desk:
        account = await acquirer_accounts.set_currencies(desk, COMMAND_LINE, name, codes, now=utc_now())
    _show(account, as_json=as_json)


@app.command(epilog="Example: paydesk acquirer key stripe-eu < key.txt")
@command
async def key(name: Name, as_json: AsJson = False) -> None:
    """Give an account another key of the same account; the older one may end a minute later."""
    async with deployment() as here, acquirers_of(here) as desk:
        account = await acquirer_accounts.set_key(desk, COMMAND_LINE, name, _key(), now=utc_now())
    _show(account, as_json=as_json)
    note("every process asks by the new key within seconds")


@app.command(epilog="Example: paydesk acquirer webhook stripe-eu < secrets.txt")
@command
async def webhook(
    name: Name,
    none: Annotated[bool, typer.Option("--none", help="Believe no notification of this account.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say by which secrets (whsec_…) Stripe signs its notifications to an account, separated by
    commas; they are asked for, or read from stdin, and never shown again.
    """
    typed = "" if none else _key("Signing secrets")
    async with deployment() as here, acquirers_of(here) as desk:
        account = await acquirer_accounts.set_webhook_secrets(desk, COMMAND_LINE, name, typed, now=utc_now())
    _show(account, as_json=as_json)


Merchant = Annotated[int | None, typer.Option(min=1, max=2**53 - 1, help="The merchant's id.")]
Currency = Annotated[str, typer.Option(help="Like EUR.")]
Country = Annotated[str, typer.Option(help="The customer's, as two letters.")]
Brand = Annotated[str, typer.Option(help="The card's, like visa.")]


@app.command(epilog="Example: paydesk acquirer route --preview --merchant 1 --currency EUR --amount 10 --order A-1")
@command
async def route(
    preview: Annotated[bool, typer.Option("--preview", help="Say where an order would go, and why.")] = False,
    merchant: Merchant = None,
    currency: Currency = "USD",
    amount: Annotated[str, typer.Option(help="In main units.")] = "10",
    country: Country = "",
    brand: Brand = "",
    order: Annotated[str, typer.Option(help="The shop's reference, which decides about shares.")] = "",
    live: Annotated[bool, typer.Option("--live/--test", help="On which side.")] = True,
    as_json: AsJson = False,
) -> None:
    """List the rules that choose an account, in their order; or try them on an order."""
    async with deployment() as here, acquirers_of(here) as desk:
        if not preview:
            rules = await list_rules(here.database)
            shown = [{"id": one.id, "account": one.account, "if": in_words(one)} for one in rules]
        else:
            side = Shop((await find_merchant(here.database, merchant or 0)).id, live)
            wanted = Order(side, order, currency, parse_bound(amount, "--amount"), country.upper(), brand)
            steps = await desk.preview(wanted)
            shown = [{"step": one.what, "account": one.account, "taken": one.is_taken, "why": one.why} for one in steps]
    if as_json:
        show_json(shown)
        return
    show_table(tuple(shown[0]) if shown else ("id", "account", "if"), [tuple(one.values()) for one in shown])


@app.command("rule-add", epilog="Example: paydesk acquirer rule-add stripe-eu --currency EUR --share 30")
@command
async def add_one(
    account: Name,
    merchant: Merchant = None,
    currency: Annotated[str, typer.Option(help="Like EUR; needed with amounts.")] = "",
    country: Country = "",
    brand: Brand = "",
    least: Annotated[str, typer.Option("--from", help="The least amount.")] = "",
    most: Annotated[str, typer.Option("--to", help="The largest amount.")] = "",
    share: Annotated[int, typer.Option(help="Of a hundred such orders, how many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Send the orders that fit to an account; the rules are tried in the order in which they were
    added.
    """
    look = "look before you add it again: paydesk acquirer route"
    async with deployment(again=look) as here, acquirers_of(here) as desk:
        bounds = [parse_bound(text, name) if text else None for text, name in ((least, "--from"), (most, "--to"))]
        rule = Rule(0, account, merchant, currency.upper(), country.upper(), brand.lower(), bounds[0], bounds[1], share)
        made = await add_rule(here.database, COMMAND_LINE, rule, set(desk.acquirers), now=utc_now())
    facts = {"id": made.id, "account": made.account, "if": in_words(made)}
    if as_json:
        show_json(facts)
    else:
        show_facts(list(facts.items()))


@app.command("rule-remove", epilog="Example: paydesk acquirer rule-remove 1")
@command
async def remove_one(
    rule_id: Annotated[int, typer.Argument(metavar="RULE", min=1, max=2**53 - 1, help="The rule's id.")],
) -> None:
    """Take a rule away; orders that were tried stay where they are."""
    async with deployment() as here:
        await remove_rule(here.database, COMMAND_LINE, rule_id, now=utc_now())
    note("the rule is gone")


@app.command(epilog="Example: paydesk acquirer fee stripe EUR 1.5 0.25")
@command
async def fee(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="The account's name; left out: all are listed.")] = "",
    currency: Annotated[str, typer.Argument(metavar="[CURRENCY]", help="Like EUR.")] = "",
    rate: Annotated[str, typer.Argument(metavar="[PERCENT]", help="What it keeps, in percent.")] = "",
    fixed: Annotated[str, typer.Argument(metavar="[SUM]", help="What it keeps beside, of each payment.")] = "0",
    remove: Annotated[bool, typer.Option("--remove", help="Compare these fees no more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a payment costs at an account by its contract; a fee that is another is named."""
    async with deployment() as here, acquirers_of(here) as desk:
        if remove:
            await remove_fee(desk, COMMAND_LINE, name, currency.upper(), now=utc_now())
        elif name:
            wanted = Contract(name, currency.upper(), parse_bound(rate, "PERCENT"), parse_bound(fixed, "SUM"))
            await set_fee(desk, COMMAND_LINE, wanted, now=utc_now())
        found = await list_fees(here.database)
    rows = [(one.acquirer, one.currency, one.rate, one.fixed, one.changed_at) for one in found]
    names = ("acquirer", "currency", "percent", "sum", "changed_at")
    if as_json:
        show_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        show_table(names, rows)


def _key(asked: str = "Secret key") -> str:
    """A secret, typed unseen, or the first line of stdin. Raises: Malformed without one."""
    if sys.stdin.isatty():
        return str(typer.prompt(asked, hide_input=True, err=True))
    typed = sys.stdin.readline().strip()
    if not typed:
        raise Malformed(f"{asked.lower()}: read from stdin, as in paydesk acquirer add NAME < key.txt")
    return typed


def _facts(account: AcquirerAccount) -> dict[str, object]:
    return {
        "name": account.name,
        "kind": account.kind,
        "live": account.live,
        "merchant": account.for_merchant_id,
        "currencies": account.currencies,
        "pages": account.hosts_pages,
        "enabled": account.enabled,
        "own_id": account.own_id,
        "gone_at": account.gone_at,
        "webhook_secret": account.has_webhook_secret,
        "created_at": account.created_at,
    }


def _listed(counts: dict[str, object]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def _turn(out: OutOfTurn | None) -> dict[str, object]:
    """Whether an account is asked in its turn, else since when and why not."""
    return {"in_turn": out is None, "out_since": out and out.out_since, "why": out.why if out else ""}


def _side(account: AcquirerAccount) -> str:
    return "live" if account.live else "test"


def _state(account: AcquirerAccount) -> str:
    if account.gone_at is not None:
        return "gone"
    return "takes" if account.enabled else "none"


def _show(account: AcquirerAccount, *, as_json: bool) -> None:
    if as_json:
        show_json(_facts(account))
    else:
        show_facts([(name, value) for name, value in _facts(account).items()])

import re
from functools import partial
from typing import Any

import pytest
from tests import breaking, set_back
from tests.conftest import accept_waiting
from tests.web.account.conftest import PASSWORD, Join, LinkInMail, OpenVisitor, Visitor, leads_to, text_of

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.accounts.roles import Role
from paydesk.domain.business.profile_changes import refuse, seen_now
from paydesk.domain.business.profiles import bank_account_of, find_profile, waiting_profiles
from paydesk.domain.merchants.merchant import find_merchant

SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
COMPLETE = {
    "legal_name": "Corner Shop Ltd",
    "street": "1 High Street",
    "postal_code": "10115",
    "city": "Berlin",
    "country": "DE",
    "website": "https://shop.example",
    "support_email": "help@shop.example",
    "description": "We sell tea.",
    "goods": "Tea, by post.",
    "account_holder": "Corner Shop Ltd",
    "iban": "DE89 3704 0044 0532 0130 00",
}


def merchant_id(visitor: Visitor) -> int:
    return int(visitor.merchant_path.split("/")[2])


def settings(visitor: Visitor, page: str) -> str:
    return f"{visitor.merchant_path}/settings/{page}"


async def save(visitor: Visitor, **changed: Any) -> Any:
    return await visitor.send(settings(visitor, "profile"), **{**COMPLETE, **changed})


@pytest.fixture
async def confirmed(owner: Visitor, link_in_mail: LinkInMail) -> Visitor:
    """An owner whose e-mail address is confirmed."""
    await owner.send(await link_in_mail(owner.email))
    return owner


async def test_a_profile_is_saved_piece_by_piece_and_says_what_is_missing(owner: Visitor) -> None:
    page = settings(owner, "profile")
    assert leads_to(await owner.send(page, legal_name="Corner Shop Ltd")) == page
    shown = text_of(await owner.see(page))
    missing = shown.split("Still missing:")[1].split("The business")[0]
    assert "Legal name" not in missing
    assert "IBAN" in missing
    assert "Your confirmed e-mail address" in missing


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("website", "javascript:alert(1)", "web address"),
        ("website", "shop.example", "absolute URL"),
        ("support_email", "nobody", "is not an e-mail address"),
        ("support_phone", "call me", "telephone number"),
        ("terms_url", "http://shop.example/terms", "https address"),
        ("privacy_url", "javascript:alert(1)", "https address"),
        ("country", "XX", "country of the list"),
        ("country", "<b>", "country of the list"),
        ("iban", "DE00 1234", "no IBAN"),
        ("description", "x" * 2001, "at most 2000"),
        ("legal_name", "x" * 201, "at most 200"),
        ("legal_name", "Shop \u202edtL", "characters that nobody sees"),
        ("city", "Lon\x1b[31mdon", "characters that nobody sees"),
        ("account_holder", "Corner\x01Shop", "characters that nobody sees"),
        ("goods", "Mugs\u2066, by post", "characters that nobody sees"),
        ("goods", "Mugs\x1c, by post", "characters that nobody sees"),
        ("legal_name", "\u200d\u200c", "characters that nobody sees"),
        ("legal_name", "Shop\U000e0041\U000e01ff", "characters that nobody sees"),
        ("legal_name", "\U0001f3f4\U000e0075\U000e0073\U000e0074\U000e0078\U000e007f", "characters that nobody sees"),
        *(("legal_name", blank, "characters that nobody sees") for blank in "\u115f\u1160\u2800\u3164\uffa0"),
        ("legal_name", "Tea\u3164House", "characters that nobody sees"),
    ],
)
async def test_what_can_not_be_right_is_named_at_its_field(owner: Visitor, field: str, value: str, said: str) -> None:
    answer = await save(owner, **{field: value})
    assert answer.status_code == 400
    assert said in text_of(answer)
    assert re.search(rf'id="f-{field}"[^>]*aria-invalid="true"', answer.text)
    assert 'value="1 High Street"' in answer.text, "what was typed stays"


async def test_a_text_of_several_lines_in_any_script_is_taken(owner: Visitor) -> None:
    text = "Mugs,\u00a0and\r\n\r\n\tمی\u200cخواهم 👨\u200d👩\u200d👧"
    assert leads_to(await save(owner, description=text))


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("\ufeffDonau\u00addampf\u200b GmbH\u2060", "Donaudampf GmbH"),
        ('\u200fשלום בע"מ\u200e', 'שלום בע"מ'),
        ("متجر\u061c الشاي", "متجر الشاي"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        ("Cafe\u0301 ❤\ufe0f", "Cafe\u0301 ❤\ufe0f"),
        ("\U00031350田商店", "\U00031350田商店"),
        ("葛\U000e0100城市", "葛\U000e0100城市"),
        (f"{SCOTLAND} Kilts", f"{SCOTLAND} Kilts"),
        (WALES, WALES),
        ("한글 ㅎㅏㄴ", "한글 ㅎㅏㄴ"),
    ],
)
async def test_names_in_any_script_are_taken_without_marks_that_came_along(
    owner: Visitor, database: Database, typed: str, kept: str
) -> None:
    assert leads_to(await save(owner, legal_name=typed, account_holder=typed, goods=typed))
    details = (await find_profile(database, merchant_id(owner))).details
    assert (details.legal_name, details.account_holder, details.goods) == (kept, kept, kept)


async def test_the_bank_account_is_kept_sealed_and_shown_by_its_end(
    owner: Visitor, database: Database, vault: Vault
) -> None:
    await save(owner)
    shown = (await owner.see(settings(owner, "profile?step=bank"))).text
    assert "3000" in shown
    assert "0440532" not in shown.replace(" ", "")
    await save(owner, iban="")
    with pytest.raises(NotFound, match="no accepted bank account"):
        await bank_account_of(database, vault, merchant_id(owner))
    await breaking.say(database, "business_profile", {"merchant_id": merchant_id(owner)}, status="accepted")
    assert await bank_account_of(database, vault, merchant_id(owner)) == ("Corner Shop Ltd", "DE89370400440532013000")
    stored = await database.fetchval(
        "select iban_sealed from business_profile where merchant_id = $1", merchant_id(owner)
    )
    assert b"37040044" not in stored


async def test_a_complete_profile_goes_to_the_operator_and_opens_the_way_to_live(
    confirmed: Visitor, database: Database
) -> None:
    await save(confirmed)
    submit = settings(confirmed, "profile/submit")
    assert leads_to(await confirmed.send(settings(confirmed, "profile"), submit)) == settings(confirmed, "profile")
    assert merchant_id(confirmed) in {one.merchant_id for one in await waiting_profiles(database)}
    waiting = await confirmed.see(settings(confirmed, "profile"))
    assert "We look at your profile" in text_of(waiting)
    assert "disabled" in waiting.text
    now, seen = utc_now(), await seen_now(database, merchant_id(confirmed))
    await accept_waiting(database, merchant_id(confirmed), now=now)
    assert (await find_merchant(database, merchant_id(confirmed))).went_live_at == now
    assert "You may take real payments" in text_of(await confirmed.see(settings(confirmed, "profile")))
    with pytest.raises(Conflict):
        await accept_waiting(database, merchant_id(confirmed), seen=seen)


async def test_what_waits_for_the_operator_cannot_be_changed_but_taken_back(confirmed: Visitor) -> None:
    page = settings(confirmed, "profile")
    await save(confirmed)
    await confirmed.send(page, f"{page}/submit")
    assert (await save(confirmed, city="Bonn")).status_code == 409
    assert leads_to(await confirmed.send(page, f"{page}/withdraw")) == page
    assert leads_to(await save(confirmed, city="Bonn")) == page


async def test_a_refusal_says_why(confirmed: Visitor, database: Database) -> None:
    page = settings(confirmed, "profile")
    await save(confirmed)
    await confirmed.send(page, f"{page}/submit")
    answer = partial(refuse, database, COMMAND_LINE, merchant_id(confirmed))
    seen, now = await seen_now(database, merchant_id(confirmed)), utc_now()
    with pytest.raises(Malformed):
        await answer(seen=seen, reason=" ", now=now)
    await answer(seen=seen, reason="The website <b>shows nothing</b>.", now=now)
    shown = await confirmed.see(page)
    assert "The website <b>shows nothing</b>." in text_of(shown).replace("&lt;", "<") or "&lt;b&gt;" in shown.text
    assert "<b>shows" not in shown.text
    assert leads_to(await confirmed.send(page, f"{page}/submit")) == page


def steps(answer: Any) -> dict[str, bool]:
    """The steps of the profile, and whether each is ticked; the one that is open has a form."""
    found = re.findall(r'\?step=(\w+)"[^>]*>(.*?)</a>', answer.text, re.S)
    return {name: "Done:" in inside for name, inside in found}


async def test_a_profile_is_written_in_four_steps_and_goes_on_with_what_is_missing(owner: Visitor) -> None:
    page = settings(owner, "profile")
    shown = await owner.see(page)
    assert steps(shown) == {"business": False, "address": False, "support": False, "bank": False}
    assert 'name="legal_name"' in shown.text
    assert 'name="city"' not in shown.text
    of_business = ("legal_name", "website", "description", "goods")
    await owner.send(page, **{name: COMPLETE[name] for name in of_business})
    shown = await owner.see(page)
    assert steps(shown)["business"]
    assert 'name="city"' in shown.text, "the next step is open"
    assert 'value="Corner Shop Ltd"' in (await owner.see(f"{page}?step=business")).text, (
        "the first one can be seen again"
    )


async def test_who_saves_one_step_loses_nothing_of_another(owner: Visitor, database: Database) -> None:
    await save(owner)
    page = settings(owner, "profile")
    await owner.send(page, city="Bonn")
    profile = await find_profile(database, merchant_id(owner))
    assert (profile.details.city, profile.details.legal_name, profile.missing) == ("Bonn", "Corner Shop Ltd", ())
    await owner.send(page, city="")
    assert (await find_profile(database, merchant_id(owner))).missing == ("city",), "what is sent empty is emptied"


async def test_an_incomplete_profile_is_not_submitted(owner: Visitor, database: Database) -> None:
    await save(owner)
    await set_back.address_confirmed(database, owner.email)
    page = settings(owner, "profile")
    shown = await owner.see(page)
    assert "Ask to go live" in text_of(shown)
    await save(owner, goods="")
    token = re.search(r'name="csrf" value="(\w+)"', shown.text)
    assert token is not None
    answer = await owner.web.post(f"{page}/submit", data={"csrf": token[1]})
    assert answer.status_code == 400
    assert (await find_profile(database, merchant_id(owner))).missing == ("goods",)


@pytest.fixture
async def proven(owner: Visitor, database: Database) -> Visitor:
    """An owner whose e-mail address is confirmed."""
    await set_back.address_confirmed(database, owner.email)
    return owner


async def test_an_owner_whose_address_is_not_confirmed_is_told_to_before_inviting(owner: Visitor) -> None:
    shown = await owner.see(settings(owner, "team"))
    assert "Confirm your own e-mail address first" in text_of(shown)
    assert 'team/invite"' not in shown.text


async def test_a_colleague_is_invited_joins_and_sees_what_the_role_allows(
    proven: Visitor, stranger: OpenVisitor, link_in_mail: LinkInMail
) -> None:
    page = settings(proven, "team")
    email = f"grace-{merchant_id(proven)}@shop.example"
    assert leads_to(await proven.send(page, f"{page}/invite", email=email, role="support")) == page
    assert email in (await proven.see(page)).text
    link = await link_in_mail(email)
    colleague = await stranger()
    shown = text_of(await colleague.see(link))
    assert "Ada Lovelace invites" in shown
    assert "Support" in shown
    answer = await colleague.send(link, name="Grace Hopper", password=PASSWORD)
    assert leads_to(answer) == proven.merchant_path
    assert (await colleague.see(page)).status_code == 403
    assert "Grace Hopper" in (await proven.see(page)).text
    assert (await colleague.see(link)).status_code == 410


async def test_who_has_an_account_joins_with_it(
    proven: Visitor, stranger: OpenVisitor, sign_up: Any, link_in_mail: LinkInMail
) -> None:
    page, colleague = settings(proven, "team"), await sign_up("Side Business")
    await proven.send(page, f"{page}/invite", email=colleague.email.upper(), role="developer")
    link = await link_in_mail(colleague.email)
    assert "log in, then join" in text_of(await (await stranger()).see(link))
    assert "You are logged in as" in text_of(await proven.see(link)), "the link is for somebody else"
    assert leads_to(await colleague.send(link)) == proven.merchant_path


async def test_an_invitation_that_is_withdrawn_lets_nobody_in(
    proven: Visitor, stranger: OpenVisitor, link_in_mail: LinkInMail
) -> None:
    page, email = settings(proven, "team"), f"eve-{merchant_id(proven)}@shop.example"
    await proven.send(page, f"{page}/invite", email=email, role="owner")
    link = await link_in_mail(email)
    found = re.search(rf'action="({page}/invitations/\d+/withdraw)"', (await proven.see(page)).text)
    assert found is not None
    await proven.send(page, found[1])
    assert (await (await stranger()).see(link)).status_code == 410


async def test_roles_change_and_members_leave(owner: Visitor, join: Join) -> None:
    member, page = await join(owner, Role.viewer), settings(owner, "team")
    shown = (await owner.see(page)).text
    ids = re.findall(rf'action="{page}/members/(\d+)/role"', shown)
    other = next(one for one in ids if f"members/{one}/remove" in shown and one != ids[0]) if len(ids) > 1 else ids[0]
    mine = re.search(r'members/(\d+)/remove">\s*Leave', shown)
    assert mine is not None
    other = next(one for one in ids if one != mine[1])
    await owner.send(page, f"{page}/members/{other}/role", role="owner")
    assert (await member.see(page)).status_code == 200
    question = f"{page}/members/{other}/remove"
    assert "Take Ada Lovelace out of the team?" in text_of(await owner.see(question))
    assert leads_to(await owner.send(question)) == page
    assert (await member.see(page)).status_code == 404
    last = await owner.send(f"{page}/members/{mine[1]}/remove")
    assert last.status_code == 409, "a team keeps an owner"
    assert (await owner.send(page, f"{page}/members/{mine[1]}/role", role="king")).status_code == 400


async def test_the_audit_log_tells_who_did_what_from_where(owner: Visitor) -> None:
    await save(owner)
    page = settings(owner, "audit")
    shown = text_of(await owner.see(page))
    assert "Opened the shop" in shown
    assert "Changed the settings" in shown
    assert "198.51." in shown
    only = text_of(await owner.see(f"{page}?action=merchant_opened"))
    assert "business profile" not in only


@pytest.mark.parametrize(
    "query",
    [
        "before=x",
        "before=1-99999999999999999999",
        "before=99999999999999999-1",
        "before=%00",
        "before=-",
        "action=x",
        "person=99999999999999999999",
        "person=-1",
    ],
)
async def test_a_hostile_query_shows_the_log_from_the_start(owner: Visitor, query: str) -> None:
    assert (await owner.see(f"{settings(owner, 'audit')}?{query}")).status_code == 200


async def test_a_long_log_is_read_page_by_page(owner: Visitor, database: Database) -> None:
    await database.execute(
        "insert into audit_entry (merchant_id, at, operator, client_address, action, subject, details)"
        " select $1, now() - n * interval '1 minute', false, '', 'exported', 'list ' || n, '{}'"
        " from generate_series(1, 120) n",
        merchant_id(owner),
    )
    seen: list[str] = []
    page = settings(owner, "audit")
    while page:
        shown = (await owner.see(page)).text
        seen += re.findall(r"list \d+", shown)
        older = re.search(r'href="([^"]+)" rel="next"', shown)
        page = older[1] if older else ""
    assert seen == [f"list {n}" for n in range(1, 121)]

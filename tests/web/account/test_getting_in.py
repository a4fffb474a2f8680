import re
import time

import pyotp
import pytest
from tests import set_back
from tests.web.account.conftest import PASSWORD, LinkInMail, OpenVisitor, Visitor, leads_to, text_of

from paydesk.database.pool import Database
from paydesk.settings import Settings
from paydesk.web.console.guards import REFRESH
from paydesk.web.console.return_paths import own_path

NEW_PASSWORD = "another battery staple"


async def log_in(visitor: Visitor, email: str, password: str = PASSWORD, page: str = "/account/login") -> str:
    return leads_to(await visitor.send(page, "/account/login", email=email, password=password))


async def test_signing_up_opens_a_shop_and_logs_in(owner: Visitor) -> None:
    shown = await owner.see("/account/security")
    assert "Corner Shop" in text_of(shown)
    assert "Test data" in text_of(shown)
    assert "Please confirm your e-mail address" in text_of(shown)


async def test_a_wrong_field_is_named_and_what_was_typed_stays(stranger: OpenVisitor) -> None:
    visitor = await stranger()
    answer = await visitor.send(
        "/account/signup", shop_name="Corner Shop", name="Ada", email="ada@shop.example", password="short"
    )
    assert answer.status_code == 400
    assert "choose one of at least 12" in text_of(answer)
    assert 'value="Corner Shop"' in answer.text
    assert "short" not in answer.text
    assert re.search(r'id="f-password"[^>]*aria-invalid="true" aria-describedby="e-password', answer.text)


async def test_a_taken_address_is_told_to_log_in(owner: Visitor, stranger: OpenVisitor) -> None:
    visitor = await stranger()
    answer = await visitor.send(
        "/account/signup", shop_name="Corner Shop", name="Ada", email=owner.email, password=PASSWORD
    )
    assert answer.status_code == 409
    assert "has an account already" in text_of(answer)


async def test_the_link_of_the_mail_confirms_the_address(owner: Visitor, link_in_mail: LinkInMail) -> None:
    link = await link_in_mail(owner.email)
    assert "confirmed" not in text_of(await owner.see(link)), "following a link alone must not use it up"
    assert leads_to(await owner.send(link)) == "/account"
    assert "Please confirm your e-mail" not in text_of(await owner.see("/account/security"))
    assert (await owner.send(link)).status_code == 410


async def test_logging_in_leads_to_what_was_asked_for(owner: Visitor, stranger: OpenVisitor) -> None:
    visitor = await stranger()
    asked = await visitor.see("/account/security")
    assert leads_to(asked) == "/account/login?next=/account/security"
    assert await log_in(visitor, owner.email, page=leads_to(asked)) == "/account/security"
    assert (await visitor.see("/account/security")).status_code == 200


async def test_a_wrong_password_lets_nobody_in_and_says_no_more(owner: Visitor, stranger: OpenVisitor) -> None:
    visitor = await stranger()
    for email, password in ((owner.email, "wrong password here"), ("nobody@shop.example", PASSWORD)):
        answer = await visitor.send("/account/login", email=email, password=password)
        assert answer.status_code == 401
        assert "E-mail address or password is wrong." in text_of(answer)
        assert "paydesk=" not in answer.headers.get("set-cookie", "")


async def test_many_wrong_passwords_lead_to_a_lock_out(owner: Visitor, stranger: OpenVisitor) -> None:
    visitor = await stranger()
    answers = [
        await visitor.send("/account/login", email=owner.email, password="wrong password here") for _ in range(7)
    ]
    assert answers[-1].status_code == 429
    assert "too many tries" in text_of(answers[-1]).lower()


async def test_each_log_in_is_a_new_session(owner: Visitor) -> None:
    before = owner.web.cookies["paydesk"]
    owner.web.cookies.delete("paydesk")
    await log_in(owner, owner.email)
    assert owner.web.cookies["paydesk"] != before


async def test_logging_out_ends_the_session_itself(owner: Visitor) -> None:
    token = owner.web.cookies["paydesk"]
    assert leads_to(await owner.send("/account/security", "/account/logout")) == "/account/login"
    owner.web.cookies.set("paydesk", token)
    assert leads_to(await owner.see("/account/security")).startswith("/account/login")


async def test_pages_are_never_stored_nor_framed(owner: Visitor) -> None:
    for path in ("/account/security", "/account/nowhere", f"{owner.merchant_path}/settings/team"):
        headers = (await owner.see(path)).headers
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


async def test_the_cookie_is_for_scripts_and_other_sites_invisible(stranger: OpenVisitor, settings: Settings) -> None:
    visitor = await stranger()
    set_cookie = (await visitor.see("/account/login")).headers["set-cookie"]
    assert set_cookie.startswith("paydesk-form=")
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(set_cookie.split("; "))


async def test_over_https_the_cookies_belong_to_this_host_alone(open_web: object) -> None:
    web = await open_web(base_url="https://pay.test")  # type: ignore[operator]
    set_cookie = (await web.get("/account/login")).headers["set-cookie"]
    assert set_cookie.startswith("__Host-paydesk-form=")
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Secure"} <= set(set_cookie.split("; "))
    assert "domain" not in set_cookie.lower()


@pytest.mark.parametrize(
    "goal",
    ["https://evil.example/", "//evil.example", "/account//evil.example", "/\\evil.example", "/account\\@evil.example",
     "/accountevil", "javascript:alert(1)",
     "/account/x\r\nSet-Cookie: a=b", "/account/logout", "/account/" + "x" * 2000,
     "/payment/form", "", "/account/ü"],
)  # fmt: skip
def test_nobody_is_sent_elsewhere_after_the_log_in(goal: str) -> None:
    assert own_path(goal) == "/account"


def test_a_page_with_its_filters_is_found_again() -> None:
    assert own_path("/account/5/payments?state=paid&before=12-5") == "/account/5/payments?state=paid&before=12-5"


async def test_a_forgotten_password_is_chosen_anew(
    owner: Visitor, stranger: OpenVisitor, link_in_mail: LinkInMail
) -> None:
    visitor = await stranger()
    for email in (owner.email, "nobody@shop.example"):
        assert f"If {email} has an account here" in text_of(await visitor.send("/account/forgotten", email=email))
    link = await link_in_mail(owner.email)
    weak = await visitor.send(link, password="short")
    assert weak.status_code == 400
    assert leads_to(await visitor.send(link, password=NEW_PASSWORD)) == "/account/login"
    assert leads_to(await owner.see("/account/security")).startswith("/account/login"), "all sessions end"
    assert (await visitor.see(link)).status_code == 410
    assert await log_in(visitor, owner.email, NEW_PASSWORD) == "/account"


async def second_factor(visitor: Visitor) -> tuple[pyotp.TOTP, list[str]]:
    """Set a second factor up; the app's side of it, and the recovery codes."""
    page = await visitor.see("/account/security/second-factor")
    found = re.search(r"<code[^>]*>([A-Z2-7]{32})</code>", page.text)
    assert found is not None
    assert "<svg" in page.text
    app = pyotp.TOTP(found[1])
    done = await visitor.send("/account/security/second-factor", code=app.now())
    assert done.status_code == 200
    return app, re.findall(r"<li>([a-z2-9]{5}-[a-z2-9]{5})", done.text)


async def test_the_code_gives_the_session_another_token(owner: Visitor, stranger: OpenVisitor) -> None:
    app, _ = await second_factor(owner)
    visitor = await stranger()
    await log_in(visitor, owner.email)
    before = visitor.web.cookies["paydesk"]
    await visitor.send("/account/second-factor", code=app.at(int(time.time()) + 30))
    assert (await visitor.see("/account/security")).status_code == 200
    visitor.web.cookies.clear()
    visitor.web.cookies.set("paydesk", before)
    assert leads_to(await visitor.see("/account/security")).startswith("/account/login")


async def test_setting_up_a_second_factor_and_a_new_password_give_the_session_another_token(owner: Visitor) -> None:
    tokens = [owner.web.cookies["paydesk"]]
    page = await owner.see("/account/security/second-factor")
    app = pyotp.TOTP(re.findall(r"<code[^>]*>([A-Z2-7]{32})</code>", page.text)[0])
    await owner.send("/account/security/second-factor", code=app.now())
    tokens.append(owner.web.cookies["paydesk"])
    await owner.send("/account/security", "/account/security/password", current=PASSWORD, password=NEW_PASSWORD)
    tokens.append(owner.web.cookies["paydesk"])
    assert len(set(tokens)) == 3
    assert (await owner.see("/account/security")).status_code == 200
    for old in tokens[:2]:
        owner.web.cookies.clear()
        owner.web.cookies.set("paydesk", old)
        assert leads_to(await owner.see("/account/security")).startswith("/account/login")


async def test_two_tabs_that_ask_for_news_of_two_shops_keep_no_session_awake(
    owner: Visitor, database: Database
) -> None:
    second = leads_to(await owner.send("/account/shops/new", shop_name="Second Shop"))
    person = "person_id = (select id from person where email = $1)"
    await database.execute(
        f"update account_session set last_seen_at = now() - interval '30 minutes' where {person}", owner.email
    )
    before = await database.fetchval(f"select last_seen_at from account_session where {person}", owner.email)
    for shop in (owner.merchant_path, second):
        assert (await owner.see(f"{shop}/pingbacks", **{REFRESH: "1"})).status_code == 200
    assert before == await database.fetchval(f"select last_seen_at from account_session where {person}", owner.email)


async def test_a_second_factor_is_asked_for_and_a_recovery_code_does(owner: Visitor, stranger: OpenVisitor) -> None:
    app, codes = await second_factor(owner)
    assert len(codes) == 10
    visitor = await stranger()
    assert await log_in(visitor, owner.email) == "/account/second-factor"
    assert leads_to(await visitor.see("/account/security")) == "/account/second-factor?next=/account/security"
    wrong = await visitor.send("/account/second-factor?next=/account/security", "/account/second-factor", code="000000")
    assert wrong.status_code == 401
    assert app.secret not in wrong.text
    goal = leads_to(
        await visitor.send("/account/second-factor?next=/account/security", "/account/second-factor", code=codes[0])
    )
    assert goal == "/account/security"
    assert "9 recovery codes are left." in text_of(await visitor.see("/account/security"))
    again = await stranger()
    await log_in(again, owner.email)
    assert (await again.send("/account/second-factor", code=codes[0])).status_code == 401, "each works once"


async def test_the_cookie_from_before_the_code_is_worth_nothing_after_it(owner: Visitor, stranger: OpenVisitor) -> None:
    planted = owner.web.cookies["paydesk"]
    _, codes = await second_factor(owner)
    assert owner.web.cookies["paydesk"] != planted
    visitor = await stranger()
    await log_in(visitor, owner.email)
    seen = visitor.web.cookies["paydesk"]
    assert leads_to(await visitor.send("/account/second-factor", code=codes[0])) == "/account"
    assert (await visitor.see("/account/security")).status_code == 200
    for old in (planted, seen):
        thief = await stranger()
        thief.web.cookies["paydesk"] = old
        assert leads_to(await thief.see("/account/security")).startswith("/account/login")


async def test_a_page_that_asks_by_itself_keeps_nobody_logged_in(owner: Visitor, database: Database) -> None:
    seen = "select s.last_seen_at from account_session s join person p on p.id = s.person_id where p.email = $1"
    await database.execute(
        "update account_session set last_seen_at = now() - interval '1 hour'"
        " where person_id = (select id from person where email = $1)",
        owner.email,
    )
    before = await database.fetchval(seen, owner.email)
    page = f"{owner.merchant_path}/pingbacks"
    assert (await owner.see(page, **{"X-Paydesk-Refresh": "1"})).status_code == 200
    assert await database.fetchval(seen, owner.email) == before
    assert (await owner.see(page)).status_code == 200
    assert await database.fetchval(seen, owner.email) > before


async def test_the_secret_stays_the_same_until_it_is_confirmed(owner: Visitor) -> None:
    pages = [(await owner.see("/account/security/second-factor")).text for _ in range(2)]
    secrets = [re.findall(r"<code[^>]*>([A-Z2-7]{32})</code>", page) for page in pages]
    assert secrets[0] == secrets[1]
    wrong = await owner.send("/account/security/second-factor", code="000000")
    assert wrong.status_code == 400
    assert secrets[0][0] in wrong.text


async def test_half_a_log_in_can_only_log_out(owner: Visitor, stranger: OpenVisitor) -> None:
    await second_factor(owner)
    visitor = await stranger()
    await log_in(visitor, owner.email)
    for path in ("/account", "/account/security", f"{owner.merchant_path}/settings/team", "/account/shops/new"):
        assert leads_to(await visitor.see(path)).startswith("/account/second-factor")
    assert leads_to(await visitor.see("/account/security/second-factor")) == "/account/second-factor"
    assert leads_to(await visitor.send("/account/second-factor", "/account/logout")) == "/account/login"


async def test_an_operator_goes_nowhere_without_a_second_factor(owner: Visitor, database: Database) -> None:
    await set_back.runs_the_deployment(database, owner.email)
    owner.web.cookies.delete("paydesk")
    assert await log_in(owner, owner.email) == "/account/security/second-factor"
    for path in ("/account/security", f"{owner.merchant_path}/settings/team"):
        assert leads_to(await owner.see(path)).startswith("/account/security/second-factor")
    _, codes = await second_factor(owner)
    assert len(codes) == 10
    assert (await owner.see("/account/security")).status_code == 200


async def test_a_log_in_from_a_new_browser_is_told_by_mail_once(
    owner: Visitor, stranger: OpenVisitor, database: Database
) -> None:
    told = "select count(*) from mail where recipient = $1 and facts ->> 'what' = 'logged_in'"

    async def log_in_again(visitor: Visitor) -> int:
        visitor.web.cookies.delete("paydesk")
        await log_in(visitor, owner.email)
        return int(await database.fetchval(told, owner.email))

    assert await log_in_again(owner) == 0, "the browser of the sign-up is no news"
    visitor = await stranger()
    assert await log_in_again(visitor) == 1
    assert await log_in_again(visitor) == 1
    other = await stranger()
    visitor.web.cookies["paydesk-device"] = "nonsense"
    assert await log_in_again(visitor) == 2
    assert await log_in_again(other) == 3


async def test_a_new_browser_is_told_only_after_the_second_factor(
    owner: Visitor, stranger: OpenVisitor, database: Database
) -> None:
    told = "select count(*) from mail where recipient = $1 and facts ->> 'what' = 'logged_in'"
    _, codes = await second_factor(owner)
    visitor = await stranger()
    await log_in(visitor, owner.email)
    assert await database.fetchval(told, owner.email) == 0
    await visitor.send("/account/second-factor", code=codes[0])
    assert await database.fetchval(told, owner.email) == 1


async def test_at_most_twenty_browsers_are_remembered(
    owner: Visitor, stranger: OpenVisitor, database: Database
) -> None:
    visitor = await stranger()
    for _ in range(21):
        visitor.web.cookies.clear()
        await log_in(visitor, owner.email)
    kept = "select count(*) from person_device d join person p on p.id = d.person_id where p.email = $1"
    assert await database.fetchval(kept, owner.email) == 20

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.domain.merchants.drawing import jpeg, png, webp
from tests.web.account.conftest import Join, Visitor, fields_of, leads_to, text_of
from tests.web.mails.every_mail import ADDRESSES, mail_of

from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.team import add_member
from paydesk.domain.mail.kinds import MailKind
from paydesk.domain.merchants.merchant import Merchant
from paydesk.web.assets import ASSETS
from paydesk.web.console.forms import parse_parts
from paydesk.web.mails.writing import write

PNG = png(240, 80)
PLAIN = ("logo.png", b"", "application/octet-stream")


async def save(visitor: Visitor, logo: tuple[str, bytes, str] = PLAIN, **fields: Any) -> httpx.Response:
    page = f"{visitor.merchant_path}/settings/branding"
    hidden = fields_of((await visitor.see(page)).text, page)
    return await visitor.web.post(page, data={**hidden, **fields}, files={"logo": logo})


async def look(visitor: Visitor) -> str:
    """The address of the present logo on the page."""
    page = (await visitor.see(f"{visitor.merchant_path}/settings/branding")).text
    found = re.search(r'src="(/brand/[^"]+/logo)"', page)
    return found[1] if found else ""


async def test_colour_and_logo_are_kept_and_served_from_here(owner: Visitor) -> None:
    assert leads_to(await save(owner, ("a.png", PNG, "text/html"), accent="#0A6640")).endswith("/settings/branding")
    logo = await owner.see(await look(owner))
    assert logo.content == PNG
    assert logo.headers["content-type"] == "image/png", "what it is, not what was said of it"
    assert logo.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in logo.headers["content-security-policy"]
    style = await owner.see((await look(owner)).replace("/logo", "/style.css"))
    assert "--accent: #0a6640" in style.text
    assert style.headers["content-type"].startswith("text/css")


async def test_a_logo_stays_until_it_is_replaced_or_removed(owner: Visitor) -> None:
    await save(owner, ("a.png", PNG, "image/png"), accent="")
    first = await look(owner)
    await save(owner, accent="#0a6640")
    assert await look(owner) not in ("", first), "the address changes with each choice"
    refused = await save(owner, accent="", remove_logo="0")
    assert (refused.status_code, 'id="e-remove_logo"' in refused.text) == (400, True)
    assert await look(owner)
    await save(owner, accent="", remove_logo="1")
    assert await look(owner) == ""
    assert (await owner.see(first)).status_code == 404


@pytest.mark.parametrize(
    ("logo", "said"),
    [
        (b"<svg onload=alert(1)>", "PNG, JPEG or WebP"),
        (b"GIF89a", "PNG, JPEG or WebP"),
        (PNG + b"x" * 205_000, "at most 200 kB"),
        (png(60_000, 60_000), "60000 × 60000 pixels; at most 4096 each way"),
        (jpeg(4_000, 4_000), "at most 4 million in all"),
        (webp(16_000, 10), "16000 × 10 pixels"),
        (PNG[:20], "PNG, JPEG or WebP"),
    ],
)
async def test_what_is_no_small_picture_is_refused(owner: Visitor, logo: bytes, said: str) -> None:
    answer = await save(owner, ("a.png", logo, "image/png"), accent="")
    assert answer.status_code == 400
    assert said in text_of(answer)
    assert await look(owner) == ""


async def test_a_colour_that_nobody_can_read_is_refused_with_a_better_one(owner: Visitor) -> None:
    answer = await save(owner, accent="#ffcc00")
    assert answer.status_code == 400
    assert "has a contrast of 1.5 to white" in text_of(answer)
    assert 'value="#ffcc00"' in answer.text


async def test_a_huge_upload_is_cut_off(owner: Visitor) -> None:
    assert (await save(owner, ("a.png", b"x" * 600_000, "image/png"), accent="")).status_code == 413


async def test_only_who_may_change_settings_changes_the_looks(owner: Visitor, join: Join) -> None:
    support = await join(owner, Role.support)
    assert (await support.see(f"{owner.merchant_path}/settings/branding")).status_code == 403


async def test_the_checkout_page_wears_them(
    owner: Visitor,
    merchant: Merchant,
    database: Database,
    signed_form: Callable[..., dict[str, Any]],
    web: httpx.AsyncClient,
) -> None:
    form = signed_form()
    plain = await web.get((await web.post("/payment/form", data=form)).headers["location"])
    assert "/brand/" not in plain.text
    person_id = await database.fetchval("select id from person where email = $1", owner.email)
    await add_member(database, merchant.id, person_id, Role.owner, now=utc_now())
    owner.merchant_path = f"/account/{merchant.id}"
    await save(owner, ("a.png", PNG, "image/png"), accent="#0a6640")
    page = (await web.get((await web.post("/payment/form", data=form)).headers["location"])).text
    style = re.search(rf'<link rel="stylesheet" href="(/brand/{merchant.id}/\w+/style.css)">', page)
    assert style is not None
    assert page.index("/static/page.") < page.index(style[1]), "ours first, theirs over it"
    assert f'<img src="{style[1].replace("style.css", "logo")}" alt="">' in page


@pytest.mark.parametrize("number", ["0", "99999999999999999999", "1000000"])
async def test_who_chose_nothing_has_no_logo(web: httpx.AsyncClient, number: str) -> None:
    assert (await web.get(f"/brand/{number}/x/logo")).status_code == 404
    assert "--accent" not in (await web.get(f"/brand/{number}/x/style.css")).text


def test_parts_are_read_as_they_were_sent() -> None:
    body = (
        b'preamble\r\n--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xc3\xa4\r\n'
        b'--x\r\nContent-Disposition: form-data; name="f"; filename="n.png"\r\n\r\n\r\n\x00--x\n\r\n--x--\r\n'
    )
    form = parse_parts(body, b"x")
    assert form.raw("a") == "ä"
    assert form.files["f"] == b"\r\n\x00--x\n"


@pytest.mark.parametrize("end", [b"", b"\r\n--x", b"\r\n--x\r\nContent-Disposition: form-data; na"])
def test_a_form_that_ends_too_early_is_none(end: bytes) -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="logo"; filename="l.png"\r\n\r\n'
    assert parse_parts(head + PNG + b"\r\n--x--", b"x").files == {"logo": PNG}
    with pytest.raises(Malformed, match="did not arrive whole"):
        parse_parts(head + PNG + end, b"x")


async def shades_of(visitor: Visitor, accent: str) -> httpx.Response:
    return await visitor.web.get(f"{visitor.merchant_path}/settings/branding/shades.css", params={"accent": accent})


async def test_the_pages_in_small_wear_a_colour_before_it_is_saved(owner: Visitor) -> None:
    style = await shades_of(owner, "#0A6640")
    assert style.headers["content-type"].startswith("text/css")
    light, dark = style.text.splitlines()
    assert light == ".minis .mini.light { --accent: #0a6640; --on-accent: #ffffff; }"
    assert dark.startswith(".minis .mini.dark { --accent: #")
    assert "#0a6640" not in dark, "lighter, to be read in the dark"
    assert (await shades_of(owner, "")).text == "", "ours"


@pytest.mark.parametrize(
    ("accent", "said"),
    [("#ffcc00", "a darker shade of it, would do"), ("red", "six hexadecimal"), ("#fff}*{", "six hexadecimal")],
)
async def test_the_pages_in_small_say_why_a_colour_will_not_do(owner: Visitor, accent: str, said: str) -> None:
    answer = await shades_of(owner, accent)
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/plain")
    assert said in answer.text


def variables(style: str) -> dict[str, str]:
    return dict(re.findall(r"(--[\w-]+): (#\w+);", style))


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_the_pages_in_small_have_the_colours_of_the_page(ground: str) -> None:
    small = ASSETS.find("branding.css").content.decode()
    light, _, dark = ASSETS.find("page.css").content.decode().partition("@media (prefers-color-scheme: dark)")
    real = variables(light.partition("}")[0] if ground == "light" else dark.partition("}")[0])
    shown = variables(re.findall(rf"^\.mini\.{ground} {{.*", small, re.MULTILINE)[0])
    assert shown.keys() >= {"--page", "--panel", "--text", "--accent", "--on-accent"}
    assert {name: real[name] for name in shown} == shown


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_the_mail_in_small_has_the_colours_of_mails(ground: str) -> None:
    small = ASSETS.find("branding.css").content.decode()
    shown = variables(re.findall(rf"^\.mini\.mail\.{ground} {{.*", small, re.MULTILINE)[0])
    style, _, body = write(mail_of(MailKind.subscription_started), ADDRESSES).html.partition("</style>")
    assert len(shown) == 7
    assert [colour for colour in shown.values() if colour not in (style if ground == "dark" else body)] == []


DARK = png(200, 60)


async def test_a_logo_for_dark_pages_is_kept_beside_the_other(owner: Visitor) -> None:
    page = f"{owner.merchant_path}/settings/branding"
    await save(owner, ("a.png", PNG, "image/png"), accent="")
    assert "logo-dark" not in (await owner.see((await look(owner)).replace("/logo", "/style.css"))).text
    hidden = fields_of((await owner.see(page)).text, page)
    await owner.web.post(page, data=hidden, files={"logo": PLAIN, "dark_logo": ("d.png", DARK, "image/png")})
    light = await look(owner)
    assert (await owner.see(light)).content == PNG
    assert (await owner.see(f"{light}-dark")).content == DARK
    style = (await owner.see(light.replace("/logo", "/style.css"))).text
    assert ".shop img { content: url(logo-dark); }" in style.partition("prefers-color-scheme: dark")[2]
    await save(owner, accent="", remove_dark_logo="1")
    assert (await owner.see(f"{await look(owner)}-dark")).content == PNG, "the other, if there is one alone"


async def test_what_is_wrong_with_a_logo_for_dark_pages_stands_at_its_field(owner: Visitor) -> None:
    page = f"{owner.merchant_path}/settings/branding"
    hidden = fields_of((await owner.see(page)).text, page)
    answer = await owner.web.post(page, data=hidden, files={"logo": PLAIN, "dark_logo": ("d", b"GIF89a", "image/gif")})
    assert answer.status_code == 400
    assert 'id="e-dark_logo"' in answer.text
    assert "The dark logo must be a PNG" in text_of(answer)

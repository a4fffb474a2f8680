import os
import re
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest
from tests.docs.shops import SHOPS, RunningShop, running_shop
from tests.docs.test_integrate import KEY, SNIPPETS, as_json, needs, payment, v1, v2
from tests.servers import answering

from paydesk.web.account.sample_programs import programs
from paydesk_client.signature import Value, Version, encode_form, parse_form, verify

PUBLIC_KEY = 'it\'s <a> "key" $x \\'
ADDRESS = "http://127.0.0.1:8000/sandbox"


def write(folder: Path, filename: str, version: str, address: str = ADDRESS, public_key: str = PUBLIC_KEY) -> Path:
    """A program as the page shows it, in a file."""
    (program,) = (one for one in programs(address, public_key, version) if one.filename == filename)
    path = folder / filename
    path.write_text(program.text)
    return path


@pytest.fixture(params=["v1", "v2"])
def version(request: pytest.FixtureRequest) -> Version:
    chosen: Version = request.param
    return chosen


@pytest.fixture(params=[pytest.param(name, marks=needs(command[0])) for name, command in SHOPS.items()])
def shop(request: pytest.FixtureRequest, version: Version, tmp_path: Path) -> Iterator[RunningShop]:
    write(tmp_path, request.param, version)
    with running_shop(SHOPS[request.param], tmp_path, PRIVATE_KEY=KEY) as running:
        yield running


def test_a_copied_shop_signs_forms_and_believes_genuine_pingbacks_alone(shop: RunningShop, version: Version) -> None:
    html = httpx.get(f"{shop.url}/buy", params={"order": "A&'7~"}).text
    fields: dict[str, Value] = {
        name: unescape(value) for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html)
    }
    assert (fields["api_key"], fields["merchant_order_id"]) == (PUBLIC_KEY, "A&'7~")
    assert f'action="{ADDRESS}/payment/form"' in html
    assert verify(fields, fields["hash"], KEY, version).variant == "canonical"
    stamp = v1 if version == "v1" else v2
    assert shop.told(*stamp(as_json(payment()))) == (200, "ok")
    paid = ["A-7"]
    if version == "v1":
        body, key = v1(encode_form(payment()).encode())
        assert shop.told(body, {**key, "Content-Type": "application/x-www-form-urlencoded"}) == (200, "ok")
        paid.append("A-7")
    body = as_json(payment())
    for forged in (stamp(body, "guess"), (body, {}), stamp(b""), stamp(as_json(payment(age=400)))):
        assert shop.told(*forged) == (200, "NOK")
    assert shop.paid() == paid


def test_the_copied_club_is_the_guides_with_the_shops_own_key(tmp_path: Path, version: Version) -> None:
    """What differs are the lines that say who and where."""
    copied = write(tmp_path, "club.py", version).read_text().splitlines()[1:]
    guides = SNIPPETS["club.py"].replace('"sign_version": "v2"', f'"sign_version": "{version}"').splitlines()
    differing = [line for line, theirs in zip(copied, guides, strict=True) if line != theirs]
    assert [line.split(" = ")[0] for line in differing] == ["PAY_URL", "PUBLIC_KEY", "PRIVATE_KEY"]
    compile("\n".join(copied), "club.py", "exec")


@needs("curl")
@needs("openssl")
def test_the_copied_curl_program_posts_a_valid_form(tmp_path: Path, version: Version) -> None:
    environment = {**os.environ, "PRIVATE_KEY": KEY, "ORDER": "A-9"}
    with answering(303) as (address, posted):
        program = write(tmp_path, "checkout.sh", version, f"{address}/sandbox", "95b682bafc8837b1e80e5fe940cb5731")
        subprocess.run(["sh", "-e", str(program)], env=environment, capture_output=True, check=True)
    (came,) = posted
    form = parse_form(came.body)
    assert came.path == "/sandbox/payment/form"
    assert form["merchant_order_id"] == "A-9"
    assert verify(form, form["hash"], KEY, version).variant == "canonical"

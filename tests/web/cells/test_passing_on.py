from __future__ import annotations

import asyncio

import httpx
import pytest
from tests import breaking
from tests.shopfront import open_page, order, press_pay
from tests.web.cells.two_cells import CLIENT, HOME, SECOND, Cells, form_of, silent

import paydesk.app
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.domain.cells import finding
from paydesk.domain.cells.directory import Cell, Kind
from paydesk.domain.cells.fencing import close, fence, find_fence, forget, say_moved
from paydesk.domain.merchants.merchant import shop_of
from paydesk.domain.moving.copying import empty
from paydesk.domain.payments.hurrying import Notified, notify_url
from paydesk.web.cells import calling, passing_on, places
from paydesk.web.cells.marks import HEADER, Passed, mark
from paydesk.web.connections import limits
from paydesk_client import Gateway

PAYMENTS = "/api/v1/payments"


def key_of(cells: Cells, number: int) -> dict[str, str]:
    """The header by which the merchant of a cell calls."""
    return {"X-ApiKey": cells.merchants[number].private_key}


def own(answer: httpx.Response) -> list[tuple[str, str]]:
    """The header fields that a cell itself has given."""
    return [one for one in answer.headers.multi_items() if one[0] not in ("date", "x-request-id")]


async def without_key(cells: Cells, number: int) -> None:
    """The merchant of a cell has no key there any more."""
    await breaking.say(cells.databases[number], "merchant_key", {}, valid_until=utc_now())


class TestWhatIsPassedOn:
    async def test_a_customer_orders_and_pays_at_the_wrong_cell(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        path = await open_page(cells.web[HOME], form_of(cells.merchants[SECOND]))
        assert "Golden Ticket" in (await cells.web[HOME].get(path)).text
        paid = await press_pay(cells.web[HOME], path)
        assert (paid.status_code, paid.headers["location"]) == (303, "https://shop.example/thanks?order=1")
        counts = {
            number: await each.fetchval("select count(*) from payment where state = 'captured'")
            for number, each in cells.databases.items()
        }
        assert counts == {HOME: 0, SECOND: 1}

    async def test_a_call_is_answered_as_by_its_own_cell(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        for asked in (PAYMENTS, f"{PAYMENTS}?limit=x", "/api/v1/no-such"):
            there = await cells.web[SECOND].get(asked, headers=key_of(cells, SECOND))
            here = await cells.web[HOME].get(asked, headers=key_of(cells, SECOND))
            assert (here.status_code, here.content, own(here)) == (there.status_code, there.content, own(there))
            assert len(here.headers.get_list("x-request-id")) == 1

    async def test_what_the_way_adds_to_a_head_is_what_the_other_cell_leaves_room_for(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        fields = {f"h{number}": "1" for number in range(limits.MOST_HEADERS - 10)}
        asked = cells.web[HOME].build_request("GET", PAYMENTS, headers={**key_of(cells, SECOND), **fields})
        assert (await cells.web[HOME].send(asked)).status_code == 200
        (arrived,) = cells.served[SECOND].arrived
        names = [name for name, _ in arrived.headers]
        assert len(names) <= len(asked.headers) + limits.MORE_MARKED_HEADERS
        assert names.index(HEADER) < names.index("h0"), "it makes room before it is needed"
        before, after = [
            sum(len(f"{name}: {value}\r\n") for name, value in one) for one in (asked.headers.items(), arrived.headers)
        ]
        assert after <= before + limits.MORE_MARKED_BYTES

    async def test_a_body_that_was_not_read_here_arrives_whole(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        form = form_of(cells.merchants[SECOND])
        asked = {"amount": "12.50", "currency": "USD", "merchant_order_id": form["merchant_order_id"]}
        body = {**asked, "description": "A mug", "success_url": "https://shop.example/thanks"}
        made = await cells.web[HOME].post(
            "/api/v1/checkouts", json=body, headers={**key_of(cells, SECOND), "Idempotency-Key": "one"}
        )
        assert made.status_code in (200, 201), made.text
        assert "http://pay2.test/" in made.text

    async def test_a_call_that_its_body_signs_is_led_by_the_key_in_it(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        merchant = cells.merchants[SECOND]
        fields = {"public_key": merchant.public_key, "sign_version": "v2", "merchant_order_id": "none"}
        signed = {**fields, "hash": Gateway(merchant.public_key, merchant.private_key).signature().sign(fields)}
        for answer in (
            await cells.web[HOME].post("/api/v1/deliveries", json=signed),
            await cells.web[HOME].post("/api/v1/deliveries", data=signed),
        ):
            assert answer.status_code not in (401, 403, 503), answer.text
        assert [one.path for one in cells.served[SECOND].arrived] == ["/api/v1/deliveries"] * 2

    async def test_links_lead_by_the_merchant_that_they_name(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        merchant = f"{cells.merchants[SECOND].id:x}"
        token = f"t{merchant}-{'0' * 48}"
        paths = [
            *(f"/checkout/{token}", f"/checkout/{token}/status", f"/portal/{token}", f"/portal/{token}/receipt/7"),
            *(f"/portal/cards/{token}", f"/portal/pay/3/{token}", f"/buy/{token}", f"/checkout/t{merchant}-{'0' * 32}"),
            f"/brand/{cells.merchants[SECOND].id}/1/logo",
        ]
        for path in paths:
            assert (await cells.web[HOME].get(path)).status_code == 404
        assert [one.path for one in cells.served[SECOND].arrived] == paths

    async def test_an_acquirers_notification_is_led_by_the_merchant_of_its_address(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        genuine = notify_url(
            cells.vault, "", "simulator", Notified(shop_of(cells.merchants[SECOND], live=False), 4_711)
        )
        assert (await cells.web[HOME].post(genuine)).text == "ok"
        forged = genuine[:-1] + ("0" if genuine[-1] != "0" else "1")
        assert (await cells.web[HOME].post(forged)).status_code == 403
        assert [one.path for one in cells.served[SECOND].arrived] == ["/acquirers/simulator/notify"]

    async def test_one_to_an_account_that_went_with_its_merchant_is_passed_on(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        about = Notified(shop_of(cells.merchants[SECOND], live=False), 4_711)
        await cells.web[HOME].post(notify_url(cells.vault, "", "mollie-own", about))
        assert [one.path for one in cells.served[SECOND].arrived] == ["/acquirers/mollie-own/notify"]

    async def test_what_came_to_the_sandbox_is_test_data_there_too(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        await breaking.say(cells.databases[SECOND], "merchant", {}, test_mode=False)
        live = await cells.web[HOME].post("/payment/form", data=form_of(cells.merchants[SECOND]))
        assert live.status_code == 409
        test = await cells.web[HOME].post("/sandbox/payment/form", data=form_of(cells.merchants[SECOND]))
        assert (test.status_code, test.headers["location"][:18]) == (303, "/sandbox/checkout/")
        page = await cells.web[HOME].get(test.headers["location"])
        assert (page.status_code, test.headers["location"] in page.text) == (200, True)

    async def test_what_a_cell_has_itself_is_looked_up_in_no_directory(
        self, cells: Cells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await cells.know(HOME, SECOND)
        looked: list[str] = []

        async def find_cell(_database: object, kind: Kind, _name: str) -> None:
            looked.append(kind)

        monkeypatch.setattr(finding, "find_cell", find_cell)
        path = await open_page(cells.web[HOME], form_of(cells.merchants[HOME]))
        assert (await press_pay(cells.web[HOME], path)).status_code == 303
        assert (await cells.web[HOME].get(PAYMENTS, headers=key_of(cells, HOME))).status_code == 200
        assert (await cells.web[HOME].get(f"{PAYMENTS}/7", headers=key_of(cells, HOME))).status_code == 404
        assert looked == []

    async def test_without_cells_nothing_is_looked_up(self, cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
        for each in cells.databases.values():
            await breaking.say(each, "deployment", {}, home_cell=None)
        alone = await cells.open(HOME)
        monkeypatch.setattr(finding, "find_cell", None)
        assert (await alone.get(PAYMENTS, headers=key_of(cells, SECOND))).status_code == 401
        assert (await alone.post("/payment/form", data=form_of(cells.merchants[SECOND]))).status_code == 404


class TestWhoHasLeft:
    async def test_all_of_a_merchant_that_has_left_goes_to_where_it_is(self, cells: Cells) -> None:
        """Though its rows are here still."""
        await cells.know(HOME, SECOND)
        left = cells.merchants[HOME]
        path = await open_page(cells.web[HOME], form_of(left))
        await fence(cells.databases[HOME], left.id, other_cell=SECOND, tables=["form_count"])
        await close(cells.databases[HOME], left.id, patience=0)
        during = await cells.web[HOME].get(PAYMENTS, headers=key_of(cells, HOME))
        assert (during.status_code, "retry-after" in during.headers) == (503, True)
        fenced = await find_fence(cells.databases[HOME], left.id)
        assert fenced is not None
        assert fenced.closed_at is not None
        await say_moved(cells.databases[HOME], left.id, closed_at=fenced.closed_at)
        for each in cells.databases.values():
            await breaking.say(each, "directory", {"merchant_id": left.id}, cell=SECOND)
        await cells.served[HOME].state[passing_on.BetweenCells.key].finder.look_at_standing()
        await cells.web[HOME].get(path)
        await cells.web[HOME].get(PAYMENTS, headers=key_of(cells, HOME))
        await cells.web[HOME].post("/payment/form", data=form_of(left))
        assert [one.path for one in cells.served[SECOND].arrived] == [path, PAYMENTS, "/payment/form"]
        await forget(cells.databases[HOME], left.id, tables=["form_count"])
        for each in cells.databases.values():
            await breaking.say(each, "directory", {"merchant_id": left.id}, cell=HOME)
        assert (await cells.web[HOME].get(path)).status_code == 200, "it has come back just now"


class TestWhoAsked:
    async def counted_for(self, cells: Cells) -> str:
        address: str = await cells.databases[SECOND].fetchval("select min(client_address) from form_count")
        return address

    async def test_limits_and_guards_see_the_customer(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        forged = {"X-Forwarded-For": "198.51.100.7"}
        await cells.web[HOME].post("/payment/form", data=form_of(cells.merchants[SECOND]), headers=forged)
        assert await self.counted_for(cells) == CLIENT

    async def test_behind_a_proxy_it_is_whom_the_proxy_names(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        proxied = await cells.open(HOME, address="192.0.2.99", trusted_proxies="192.0.2.99/32")
        headers = {"X-Forwarded-For": "203.0.113.5, 198.51.100.7"}
        await proxied.post("/payment/form", data=form_of(cells.merchants[SECOND]), headers=headers)
        assert await self.counted_for(cells) == "198.51.100.7"

    async def test_a_forged_mark_does_nothing(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        stranger = Vault.from_settings(generate_key_setting(), generate_secret())
        passed = Passed("203.0.113.5", "/sandbox")
        genuine = mark(cells.vault, "POST", "/payment/other", passed, now=utc_now())
        for forged in ("", "1 203.0.113.5 live 00", genuine):
            headers = {HEADER: forged}
            own_form = await cells.web[SECOND].post(
                "/payment/form", data=form_of(cells.merchants[SECOND]), headers=headers
            )
            assert (own_form.status_code, own_form.headers["location"][:10]) == (303, "/checkout/")
        headers = {HEADER: mark(stranger, "POST", "/payment/form", passed, now=utc_now())}
        assert (
            await cells.web[SECOND].post("/payment/form", data=form_of(cells.merchants[SECOND]), headers=headers)
        ).status_code == 303
        assert await self.counted_for(cells) == CLIENT
        elsewhere = await cells.web[SECOND].get("/healthz2", headers={**headers, "host": "evil.example"})
        assert elsewhere.status_code == 421

    async def test_a_mark_is_of_use_for_a_short_time(self, cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
        passed = Passed("203.0.113.5")
        kept = mark(cells.vault, "POST", "/payment/form", passed, now=utc_now())
        assert (
            await cells.web[SECOND].post("/payment/form", data=form_of(cells.merchants[SECOND]), headers={HEADER: kept})
        ).status_code == 303
        assert await self.counted_for(cells) == "203.0.113.5"
        monkeypatch.setattr("paydesk.web.cells.marks.LASTS", -1)
        late = await cells.web[SECOND].post(
            "/payment/form", data=form_of(cells.merchants[SECOND]), headers={HEADER: kept}
        )
        assert (late.status_code, late.headers["retry-after"]) == (503, "3")

    async def test_what_came_to_the_sandbox_is_never_live_however_far_clocks_are_apart(
        self, cells: Cells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await cells.know(HOME, SECOND)
        await breaking.say(cells.databases[SECOND], "merchant", {}, test_mode=False)
        monkeypatch.setattr("paydesk.web.cells.marks.LASTS", -1)
        form = form_of(cells.merchants[SECOND])
        answer = await cells.web[HOME].post("/sandbox/payment/form", data=form, headers={"Host": "localhost"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
        assert await cells.databases[SECOND].fetchval("select count(*) from checkout") == 0


class TestNothingGoesRound:
    async def test_cells_that_disagree_ask_each_other_once(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        for number, other in ((HOME, SECOND), (SECOND, HOME)):
            await breaking.say(cells.databases[number], "directory", {}, cell=other)
            await without_key(cells, number)
        answer = await cells.web[HOME].get(PAYMENTS, headers=key_of(cells, SECOND))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
        assert (len(cells.served[SECOND].arrived), len(cells.served[HOME].arrived)) == (1, 0)

    async def test_not_even_where_clocks_are_far_apart(self, cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
        await cells.know(HOME, SECOND)
        await breaking.say(cells.databases[SECOND], "directory", {}, cell=HOME)
        await without_key(cells, SECOND)
        monkeypatch.setattr("paydesk.web.cells.marks.LASTS", -1)
        by_any_name = {**key_of(cells, SECOND), "Host": "localhost"}
        answer = await cells.web[HOME].get(PAYMENTS, headers=by_any_name)
        assert answer.status_code == 503
        assert (len(cells.served[SECOND].arrived), len(cells.served[HOME].arrived)) == (1, 0)


class TestWhileTheOtherIsNotWell:
    async def dead(self, cells: Cells) -> None:
        """The second cell's web server is nowhere any more."""
        await cells.know(HOME, SECOND)
        await breaking.say(cells.databases[HOME], "cell", {"number": SECOND}, inside="http://127.0.0.1:9")

    async def test_its_customers_are_told_to_come_back_and_nobody_else(self, cells: Cells) -> None:
        await self.dead(cells)
        for _ in range(2):
            page = await cells.web[HOME].post("/payment/form", data=form_of(cells.merchants[SECOND]))
            assert (page.status_code, page.headers["retry-after"]) == (503, "3")
            assert page.headers["content-type"].startswith("text/html")
            call = await cells.web[HOME].get(PAYMENTS, headers=key_of(cells, SECOND))
            assert (call.status_code, call.headers["retry-after"], call.json()["code"]) == (503, "3", 503)
            assert "nothing was done" in call.json()["message"]
            path = await open_page(cells.web[HOME], form_of(cells.merchants[HOME]))
            assert (await press_pay(cells.web[HOME], path)).status_code == 303

    async def test_whether_a_write_was_done_nobody_claims_to_know(
        self, cells: Cells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await cells.know(HOME, SECOND)
        cells.served[SECOND].instead = silent
        arrived = cells.served[SECOND].arrived
        for seconds in (0.5, 5.0, 50.0):
            # A machine that stands still so long has sent nothing by then.
            monkeypatch.setattr(calling, "ANSWER", seconds)
            arrived.clear()
            web = await cells.open(HOME)
            read = await web.get(PAYMENTS, headers=key_of(cells, SECOND))
            assert (read.status_code, read.headers["retry-after"]) == (503, "3")
            write = await web.post("/payment/7/refund", headers=key_of(cells, SECOND))
            if len(arrived) == 2:
                break
        assert len(arrived) == 2
        assert (write.status_code, "retry-after" in write.headers) == (503, False)
        assert "not known whether this was done" in write.json()["message"]

    async def test_one_that_is_slow_holds_up_few_and_no_other_merchant(
        self, cells: Cells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await cells.know(HOME, SECOND)
        monkeypatch.setattr(places, "AT_ONCE", 6)
        cells.served[SECOND].instead = silent
        waiting = [asyncio.create_task(cells.web[HOME].get(PAYMENTS, headers=key_of(cells, SECOND))) for _ in range(2)]
        while len(cells.served[SECOND].arrived) < 2:  # noqa: ASYNC110 (it sends no event)
            await asyncio.sleep(0.01)
        more = await cells.web[HOME].get(PAYMENTS, headers=key_of(cells, SECOND))
        assert (more.status_code, more.headers["retry-after"]) == (503, "3")
        assert (await cells.web[HOME].get(PAYMENTS, headers=key_of(cells, HOME))).status_code == 200
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


class TestWhatIsNotKnownHere:
    async def test_home_knows_all(self, cells: Cells) -> None:
        assert (await cells.web[HOME].get(PAYMENTS, headers={"X-ApiKey": "0" * 48})).status_code == 401
        assert (await cells.web[HOME].get(f"/checkout/t7-{'0' * 48}")).status_code == 404

    async def test_a_copy_that_is_behind_asks_home(self, cells: Cells) -> None:
        await cells.know(HOME)
        answer = await cells.web[SECOND].get(PAYMENTS, headers=key_of(cells, HOME))
        assert answer.status_code == 200
        assert len(cells.served[HOME].arrived) == 1

    async def test_a_copy_that_still_leads_here_to_who_has_moved_asks_home(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        moved = cells.merchants[SECOND]
        path = await open_page(cells.web[SECOND], form_of(moved))
        await breaking.say(cells.databases[HOME], "directory", {"merchant_id": moved.id}, cell=HOME)
        async with cells.databases[SECOND].acquire() as connection, connection.transaction():
            await empty(connection, moved.id)

        async def ask(web: httpx.AsyncClient) -> list[int]:
            answers = [
                await web.get(PAYMENTS, headers=key_of(cells, SECOND)),
                await web.post("/payment/form", data=form_of(moved)),
                await web.get(path),
            ]
            return [one.status_code for one in answers]

        await ask(cells.web[SECOND])
        assert [one.path for one in cells.served[HOME].arrived] == [PAYMENTS, "/payment/form", path]
        away = await cells.open(SECOND, home_database_url="postgresql://paydesk@127.0.0.1:9/home")
        assert await ask(away) == [503, 503, 503]

    async def test_a_process_that_began_while_its_database_was_away_knows_of_cells_once_it_is_back(
        self, cells: Cells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await cells.know(HOME, SECOND)

        async def away(_database: object) -> None:
            raise ConnectionRefusedError

        with monkeypatch.context() as patched:
            patched.setattr(finding, "this_cell", away)
            web = await cells.open(SECOND)
        assert (await web.get(PAYMENTS, headers=key_of(cells, HOME))).status_code == 200

    async def test_what_home_does_not_know_is_nowhere_and_it_is_not_asked_at_once_again(
        self, cells: Cells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []
        ask = finding.Home.find

        async def find(home: finding.Home, kind: Kind, name: str) -> Cell | None:
            asked.append(kind)
            return await ask(home, kind, name)

        monkeypatch.setattr(finding.Home, "find", find)
        for _ in range(3):
            assert (await cells.web[SECOND].get(PAYMENTS, headers={"X-ApiKey": "0" * 48})).status_code == 401
            unknown = {**form_of(cells.merchants[SECOND]), "api_key": "0" * 32}
            assert (await cells.web[SECOND].post("/payment/form", data=unknown)).status_code == 404
        assert asked == [Kind.private_key, Kind.public_key]

    async def test_while_home_is_away_nobody_says_401(self, cells: Cells) -> None:
        away = await cells.open(SECOND, home_database_url="postgresql://paydesk@127.0.0.1:9/home")
        for _ in range(2):
            call = await away.get(PAYMENTS, headers={"X-ApiKey": "0" * 48})
            assert (call.status_code, call.headers["retry-after"], call.json()["type"]) == (503, "3", "error")
            page = await away.get(f"/checkout/t7-{'0' * 48}")
            assert (page.status_code, page.headers["retry-after"]) == (503, "3")
            assert (await away.get(PAYMENTS, headers=key_of(cells, SECOND))).status_code == 200
            assert (await away.get(PAYMENTS)).status_code == 401

    async def test_what_strangers_make_up_does_not_flood_home(
        self, cells: Cells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(passing_on, "HOME_ADDRESS_A_MINUTE", 3)
        minute = utc_now()
        monkeypatch.setattr(paydesk.app, "utc_now", lambda: minute)
        web = await cells.open(SECOND)
        said = [(await web.get(PAYMENTS, headers={"X-ApiKey": f"{one:048}"})).status_code for one in range(5)]
        assert said == [401, 401, 401, 503, 503]

    async def test_its_own_merchants_link_that_leads_nowhere_is_not_found(self, cells: Cells) -> None:
        await cells.know(HOME, SECOND)
        link = await order(cells.databases[SECOND], shop_of(cells.merchants[SECOND], live=False))
        token = link.token(cells.vault)
        other = f"t{cells.merchants[HOME].id:x}-{token.partition('-')[2]}"
        assert (await cells.web[SECOND].get(f"/checkout/{token}")).status_code == 200
        assert (await cells.web[SECOND].get(f"/checkout/{token[:-1]}x")).status_code == 404
        assert (await cells.web[HOME].get(f"/checkout/{other}")).status_code == 404

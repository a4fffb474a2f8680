"""Every setting of a deployment, described where it is defined;
docs/operate.md's table is made from here.

A setting comes from the environment (`PAYDESK_PORT=9000`), else from the file `settings.env` in the
data directory, which `paydesk run` writes; a secret may stand in a file of its own
(`PAYDESK_SECRET_KEY_FILE`). While `run` runs, it also says in `running.env` what it runs with, for
commands of other processes: the ports that it has got, the networks that it allows, and what came
from its own environment (no secrets).
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from paydesk.announcing import announced_ports, is_held
from paydesk.core.bank_accounts import BankAccount, set_account
from paydesk.core.errors import SetupError
from paydesk.named_addresses import Network, check_acquirers_own, check_public, networks_in
from paydesk.secret_files import SUFFIX, WithSecretFiles, is_open_to_all, paths_of

PREFIX = "PAYDESK_"
FILE = "settings.env"
RUNNING_FILE = "running.env"

_HOST_NAME = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9._-]*[a-z0-9_-])?")


class Settings(BaseSettings):
    """The settings of one deployment; secrets never show in logs or representations."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="Address that the service listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port of the service.")
    tls_certificate: str = Field(
        "",
        description="File (PEM) of the certificate and its chain with which `serve` speaks TLS itself, to proxies on "
        "other machines; empty: plain HTTP.",
    )
    tls_private_key: str = Field("", description="File (PEM) of its private key, if it is not in the same file.")
    demo_port: int = Field(8001, ge=0, le=65535, description="Port of the sample shop (`paydesk run` only).")
    metrics_port: int = Field(8002, ge=0, le=65535, description="Port for Prometheus; 0 takes any free one.")
    metrics_host: str = Field("127.0.0.1", description="Address that the metrics are served on; they need no password.")
    base_url: str = Field("", description="Public address of the service; default `http://HOST:PORT`.")
    sandbox_base_url: str = Field(
        "", description="Public address where everything is test data; default `BASE_URL/sandbox`."
    )
    other_hosts: str = Field(
        "", description="Host names besides those of both addresses that the service answers to, separated by commas."
    )
    data_dir: Path = Field(
        Path(".paydesk"), description="Directory of the embedded database, the simulated bank's record and stored keys."
    )
    database_url: str = Field(
        "",
        repr=False,
        description="`postgresql://…` of a PostgreSQL 15 or newer; empty means the embedded server.",
    )
    allow_async: bool = Field(
        False, description="Take live payments without a synchronous standby, though a failover may forget some."
    )
    without_standby: Literal["serve", "hold"] = Field(
        "serve", description="While no synchronous standby is there, live payments go on (`serve`) or wait (`hold`)."
    )
    cell: int | None = Field(None, ge=0, le=899, description="Number of this cell, where several share out merchants.")
    home_database_url: str = Field(
        "", repr=False, description="`postgresql://…` of the home cell's database: see Cells."
    )
    cell_databases: SecretStr = Field(
        SecretStr(""), description="At home: `number=postgresql://…` of each other cell, for `paydesk cell`."
    )
    database_connections: int = Field(16, ge=2, le=500, description="Most database connections of one process.")
    console_connections: int = Field(
        4, ge=2, le=100, description="Most database connections of one process for account and operator pages, besides."
    )
    secret_key: SecretStr = Field(
        SecretStr(""),
        description="At least 32 random characters; fingerprints of keys, sessions and links derive from it.",
    )
    idempotency_secret: SecretStr = Field(
        SecretStr(""),
        description="At least 32 random characters that never change: the keys that acquirers are asked under are made "
        "with it. Live payments need it.",
    )
    adopt_forgotten: bool = Field(
        True,
        description="Whether workers write into our books, every hour, what acquirers know and the database forgot. "
        "`paydesk reconcile --fix` does it in any case.",
    )
    give_back_paid_twice: bool = Field(
        False,
        description="Whether a purchase that the database forgot is given back by itself if its order was paid again "
        "since; otherwise an operator does it, with `paydesk undo`.",
    )
    vault_keys: SecretStr = Field(
        SecretStr(""),
        description="`id:base64key[,id:base64key…]`, 32 random bytes each; the first encrypts, all decrypt.",
    )
    lost_vault_keys: str = Field(
        "", description="Ids of vault keys that are gone for good, separated by commas: a start only warns of them."
    )
    pingback_header_prefix: str = Field(
        "X-Service",
        pattern=r"^[A-Za-z][A-Za-z0-9-]*$",
        description="Start of the names of the version 2 signature headers.",
    )
    outbound_allow: str = Field(
        "", description="Networks besides public ones that pingbacks may reach, separated by commas (`10.1.0.0/16`)."
    )
    copy_allow: str = Field(
        "", description="All networks that a staging copy may reach with pingbacks and mails, separated by commas."
    )
    trusted_proxies: str = Field(
        "", description="Networks of reverse proxies whose `X-Forwarded-For` is believed, separated by commas."
    )
    connections: int = Field(
        4000, ge=10, description="Most connections of clients to one process; fewer if it may open fewer files."
    )
    connections_per_address: int = Field(
        200, ge=1, description="Most connections to one process from one address; proxies and loopback aside."
    )
    head_seconds: float = Field(10.0, gt=0, description="Seconds that the head of a request may take to arrive.")
    body_seconds: float = Field(60.0, gt=0, description="Seconds that the body of a request may take to arrive.")
    idle_seconds: int = Field(
        5, ge=0, description="Seconds that a connection is kept open for another request; a proxy's for 75 at least."
    )
    unread_seconds: float = Field(
        30.0, gt=0, description="Seconds that a client may leave its answer unread before its connection ends."
    )
    forms_per_minute: int = Field(300, ge=1, description="Checkout forms a minute per client address and merchant.")
    calls_per_minute: int = Field(600, ge=1, description="API calls a minute per client address and merchant.")
    attempts_per_checkout: int = Field(10, ge=1, description="Attempts to pay one checkout.")
    declines_per_hour: int = Field(
        30, ge=1, description="Failed tries with cards an hour per client address and merchant."
    )
    tries_per_card: int = Field(20, ge=1, description="Failed tries an hour with one card at one merchant.")
    wrong_cvcs_per_card: int = Field(
        10, ge=1, description="Wrong security codes a day for one card at one merchant; no more are put to the bank."
    )
    checks_per_card: int = Field(
        10,
        ge=1,
        description="Trials and changes of cards an hour with one card at one merchant; six times as many per address.",
    )
    declines_before_challenge: int = Field(
        50,
        ge=1,
        description="Declines of one merchant in ten minutes, if half of all tries, from which all need 3-D Secure.",
    )
    page_check_hours: int = Field(
        24,
        ge=0,
        le=168,
        description="Hours between two comparisons of the payment page, as customers get it, with the build; 0: none.",
    )
    ip_countries: str = Field("", description="File (mmdb) of the countries that IP addresses belong to, for disputes.")
    breached_passwords: str = Field(
        "", description="File of SHA-1 hashes of leaked passwords, sorted by hash; such passwords are refused."
    )
    iban_wait_days: int = Field(
        3, ge=0, le=60, description="Days that payouts wait when a merchant's new bank account was accepted."
    )
    payout_name: str = Field("", max_length=70, description="Holder of your bank account that merchants are paid from.")
    payout_iban: str = Field("", description="Its IBAN; files of SEPA transfers (console, Payouts) need both.")
    pingback_timeout: float = Field(15.0, gt=0, le=60, description="Seconds that a merchant's server has to answer.")
    pingbacks_in_flight: int = Field(
        768,
        ge=1,
        le=10000,
        description="Pingbacks that one worker sends at a time, and a quarter more where no answer is owed.",
    )
    pingbacks_per_endpoint: int = Field(
        32, ge=1, le=1000, description="Pingbacks that one worker sends to one URL at a time."
    )
    billing_batch: int = Field(
        500, ge=1, le=5000, description="Renewals a lane claims; up to four times that while the bank answers at once."
    )
    billing_in_flight: int = Field(100, ge=1, le=2000, description="Renewals that a worker puts to the bank at a time.")
    retention_months: int = Field(
        13, ge=1, le=120, description="Months that pingback attempts, rejected forms and the audit log are kept."
    )
    erasure_list: str = Field(
        "",
        description="File that notes who was erased, as keyed fingerprints; default `DATA_DIR/erasures.jsonl`.",
    )
    smtp_url: SecretStr = Field(
        SecretStr(""),
        description="Mail server, `smtp://user:password@host:587?starttls=1` or `smtps://…`; without one mails wait.",
    )
    mail_from: str = Field("", description="Address that mails come from: `Paydesk <pay@shop.example>`.")
    mails_in_flight: int = Field(8, ge=1, le=200, description="Mails that one worker hands over at a time.")
    mails_per_address: int = Field(
        50, ge=1, description="Mails a day to one address, of each sort (customers', links); ten times for teams."
    )
    mails_per_merchant: int = Field(20_000, ge=1, description="Mails a day in one merchant's name.")
    mails_per_person: int = Field(50, ge=1, description="Invitations and links a day that one person has sent.")
    simulator_latency: float = Field(0.3, ge=0, le=30, description="Seconds that the simulated bank takes to answer.")
    simulator_url: str = Field(
        "", description="Address of a simulated bank in a process of its own; empty means inside the service."
    )
    simulator_fees: str = Field(
        "1.4 0.25 0.10 15",
        description="What the simulated bank keeps of a payment, percent and a sum, of a refund, and of a dispute.",
    )
    simulator_payout_minutes: int = Field(
        24 * 60, ge=1, le=24 * 60, description="Minutes between payouts of the simulated bank, from midnight (UTC)."
    )
    live_acquirer: Literal["", "stripe", "mollie"] = Field(
        "", description="Who takes live payments: `stripe`, `mollie`, or empty for nobody yet."
    )
    payout_days: int = Field(
        14, ge=1, le=90, description="Days after which a payment that an acquirer has not paid out is named."
    )
    stripe_secret_key: SecretStr = Field(
        SecretStr(""), description="Secret key of the Stripe account (`sk_live_…`, or `sk_test_…` to try it)."
    )
    stripe_api_base: str = Field(
        "", description="Address of a stand-in for Stripe's API, for tests; empty means Stripe itself."
    )
    stripe_checkout: bool = Field(
        False,
        description="Whether customers pay on Stripe's own page, for accounts that may not send card numbers.",
    )
    slow_methods: bool = Field(
        False,
        description="Whether merchants may choose to have methods offered whose money is sure only in some days, such "
        "as direct debits; only once all processes know it.",
    )
    slow_renewals: bool = Field(
        False,
        description="Whether such methods, besides `PAYDESK_SLOW_METHODS`, may also be kept for subscriptions with "
        "periods of 14 days or more; only once all processes know it.",
    )
    stripe_checkout_domain: str = Field(
        "",
        description="Domain of the account's own at which Stripe shows that page; empty means `checkout.stripe.com`.",
    )
    stripe_webhook_secret: SecretStr = Field(
        SecretStr(""),
        description="Secret with which Stripe signs its notifications (`whsec_…`), several while it is rolled, "
        "separated by commas; empty: none are taken.",
    )
    mollie_key: SecretStr = Field(
        SecretStr(""),
        description="API key of the Mollie account (`live_…`, or `test_…` to try it); behind a blank an access token "
        "(`access_…`) by which fees and payouts are read.",
    )
    mollie_api_base: str = Field(
        "", description="Address of a stand-in for Mollie's API, for tests; empty means Mollie itself."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severity that is logged."
    )
    log_format: Literal["json", "console"] = Field("json", description="Form of the log lines on stderr.")
    log_requests: bool = Field(
        True,
        description="Whether each request is a line of the log; if not, results of pingbacks, test events and refused "
        "forms are, as in the terminal of `paydesk run`.",
    )

    @classmethod
    def secrets(cls) -> frozenset[str]:
        """The fields whose values nobody may see; each may stand in a file of its own."""
        fields = cls.model_fields.items()
        return frozenset(name for name, field in fields if field.annotation is SecretStr or not field.repr)

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *given: PydanticBaseSettingsSource, **sources: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is handed over, else the environment, else the files, each with its secret files."""
        named = (sources["env_settings"], sources["dotenv_settings"])
        with_files = (WithSecretFiles(each, cls.secrets()) for each in named if isinstance(each, EnvSettingsSource))
        return (sources["init_settings"], *with_files)

    @property
    def address(self) -> str:
        """The public address without a trailing slash."""
        return (self.base_url or f"http://{self.host}:{self.port}").rstrip("/")

    @property
    def iban_wait(self) -> timedelta:
        """How long payouts to a newly accepted bank account wait."""
        return timedelta(days=self.iban_wait_days)

    @property
    def payout_account(self) -> BankAccount | None:
        """The bank account that merchants are paid from. Raises: SetupError."""
        return set_account(f"{PREFIX}PAYOUT", self.payout_name, self.payout_iban)

    @property
    def sandbox_address(self) -> str:
        """The sandbox's public address without a trailing slash."""
        return (self.sandbox_base_url or f"{self.address}/sandbox").rstrip("/")

    @property
    def simulator_record(self) -> Path:
        """The file of the simulated bank's own record."""
        return self.data_dir / "simulator" / "record.sqlite"

    @property
    def erasures(self) -> Path:
        """The file that names who was erased."""
        return Path(self.erasure_list) if self.erasure_list else self.data_dir / "erasures.jsonl"

    def other_host_names(self) -> tuple[str, ...]:
        """The parsed `other_hosts`, in lower case. Raises: SetupError."""
        names = [part.strip().lower().rstrip(".") for part in self.other_hosts.split(",") if part.strip()]
        for name in names:
            if not _HOST_NAME.fullmatch(name):
                raise SetupError(f"{PREFIX}OTHER_HOSTS: {name!r} is no host name; write pay.example, without a port")
        return tuple(names)

    def lost_keys(self) -> frozenset[str]:
        """The parsed `lost_vault_keys`."""
        return frozenset(part.strip() for part in self.lost_vault_keys.split(",") if part.strip())

    @property
    def lacks_proxies(self) -> bool:
        """Whether TLS ends at an unnamed proxy, whose address all customers then seem to have."""
        return self.address.startswith("https://") and not self.trusted_proxies.strip()

    def outbound_networks(self) -> tuple[Network, ...]:
        """The parsed `outbound_allow`. Raises: SetupError."""
        return networks_in(f"{PREFIX}OUTBOUND_ALLOW", self.outbound_allow)

    def copy_networks(self) -> tuple[Network, ...]:
        """The parsed `copy_allow`. Raises: SetupError."""
        return networks_in(f"{PREFIX}COPY_ALLOW", self.copy_allow)

    def webhook_secrets(self) -> tuple[str, ...]:
        """The secrets of `stripe_webhook_secret`, one by one."""
        return tuple(one for part in self.stripe_webhook_secret.get_secret_value().split(",") if (one := part.strip()))

    def proxy_networks(self) -> tuple[Network, ...]:
        """The parsed `trusted_proxies`. Raises: SetupError."""
        return networks_in(f"{PREFIX}TRUSTED_PROXIES", self.trusted_proxies)


def load_settings(*, as_running: bool = False, **overrides: object) -> Settings:
    """Read the settings: `overrides` (names as in Settings), else the environment, else the file.

    `as_running` is for commands beside a service: what a `paydesk run` that is alive on the data
    directory runs with wins over the file, and over a port 0 of the environment.

    Raises: SetupError, naming the setting that is wrong.
    """
    try:
        first = Settings(**overrides)  # type: ignore[arg-type]
        files = [first.data_dir / FILE]
        if as_running and is_held(first.data_dir / RUNNING_FILE):
            files.append(first.data_dir / RUNNING_FILE)
            any_port = {PREFIX + name.upper(): name for name in ("port", "demo_port") if not getattr(first, name)}
            got = announced_ports(files[-1], any_port)
            overrides = {**{any_port[setting]: port for setting, port in got.items()}, **overrides}
        settings = Settings(_env_file=files, **overrides)  # type: ignore[call-arg, arg-type]
    except ValidationError as error:
        wrong = error.errors()[0]
        name = "_".join(str(part) for part in wrong["loc"]).upper()
        raise SetupError(f"{PREFIX}{name}: {wrong['msg'][:1].lower()}{wrong['msg'][1:]}") from error
    _check(settings)
    return settings


def open_secret_files(settings: Settings) -> dict[str, Path]:
    """The files of secrets that any user of this machine may read, by their settings."""
    file = DotEnvSettingsSource(Settings, env_file=settings.data_dir / FILE)
    named = paths_of({**file.env_vars, **EnvSettingsSource(Settings).env_vars}, PREFIX, Settings.secrets())
    return {f"{PREFIX}{name.upper()}{SUFFIX}": path for name, path in named.items() if is_open_to_all(path)}


def _check(settings: Settings) -> None:
    for read in (
        settings.outbound_networks,
        settings.copy_networks,
        settings.proxy_networks,
        settings.other_host_names,
        lambda: settings.payout_account,
    ):
        read()
    check_public(f"{PREFIX}BASE_URL", settings.address)
    check_public(f"{PREFIX}SANDBOX_BASE_URL", settings.sandbox_address)
    stripe, mollie = settings.stripe_api_base, settings.mollie_api_base
    check_acquirers_own(f"{PREFIX}STRIPE_API_BASE", stripe, "https://api.stripe.com", "card numbers go there")
    check_acquirers_own(f"{PREFIX}MOLLIE_API_BASE", mollie, "https://api.mollie.com", "the key goes there")
    if settings.database_url and urlsplit(settings.database_url).scheme not in ("postgresql", "postgres"):
        raise SetupError(f"{PREFIX}DATABASE_URL must start with postgresql://")

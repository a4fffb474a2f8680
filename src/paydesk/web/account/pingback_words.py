"""What the account calls states and events of pingbacks, and what it says to who wants
to know why one failed.
"""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.pingbacks.reasons import Why
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.web.texts import mark

STATES: Mapping[PingbackState, tuple[str, str]] = {
    PingbackState.WAITING: (mark("Waits for a URL"), "yellow"),
    PingbackState.DUE: (mark("Being sent"), "blue"),
    PingbackState.ACKNOWLEDGED: (mark("Acknowledged"), "green"),
    PingbackState.EXHAUSTED: (mark("Failed"), "red"),
    PingbackState.MUTED: (mark("Muted"), "secondary"),
}
"""What a state is called, and the tone of its badge."""

RETRIED = (mark("Being tried again"), "yellow")
"""What is said of one that is due, but failed before."""

REASONS: Mapping[Why, tuple[str, str]] = {
    Why.URL: (
        mark("The URL can't be called"),
        mark("Set a pingback URL that begins with https:// and has a host name, without user name and password."),
    ),
    Why.IN_CLEAR: (
        mark("Your private key would have been readable on the way"),
        mark(
            "Version 1 sends the key itself, so live pingbacks of it go to https only. Give the URL a certificate and "
            "https://, or sign your forms with version 2, then send this pingback again."
        ),
    ),
    Why.NAME: (
        mark("The host name was not found"),
        mark("Check the spelling of the URL and the DNS record of its host; a new record takes a while to be seen."),
    ),
    Why.ADDRESS: (
        mark("The address is not public"),
        mark("Pingbacks never go into private networks. Give the host a public address; while you develop, a tunnel."),
    ),
    Why.REFUSED: (
        mark("The connection was refused"),
        mark("Nothing listens at this port. Check that your server runs, and that the URL has its port."),
    ),
    Why.UNREACHABLE: (
        mark("The server can't be reached"),
        mark("Check that it is switched on, and that its firewall lets us in."),
    ),
    Why.TLS: (
        mark("The TLS connection failed"),
        mark(
            "Renew the certificate, make sure that it names this host, and send the intermediate certificates with it."
        ),
    ),
    Why.TIMEOUT: (
        mark("No answer in time"),
        mark("Answer ok as soon as you have stored the pingback, and do the slow work after that."),
    ),
    Why.BROKEN: (
        mark("The connection broke"),
        mark("Your server hung up before its answer was complete. Look for a crash in its log at this time."),
    ),
    Why.NOT_HTTP: (
        mark("The answer is not HTTP"),
        mark("Something other than a web server answers at this port. Check the port, and http or https, in the URL."),
    ),
    Why.REDIRECT: (
        mark("Redirected"),
        mark(
            "Redirects are not followed. Set the address that the answer points to (its Location) as the pingback URL."
        ),
    ),
    Why.FORBIDDEN: (
        mark("Not let in"),
        mark(
            "A log-in or a bot filter stands before your program. Let this path pass: the signature proves who sends."
        ),
    ),
    Why.MISSING: (
        mark("No such page"),
        mark("Your server has nothing at this path. Compare the URL with the route of your program."),
    ),
    Why.METHOD: (mark("POST is not allowed"), mark("Let your program take POST at this path.")),
    Why.TOO_MANY: (
        mark("Your server asks us to slow down"),
        mark("Take this path out of its rate limit, or raise it."),
    ),
    Why.CLIENT_ERROR: (
        mark("Your server found fault with the request"),
        mark("Its answer below may say what. Your program must take the body exactly as it is shown here."),
    ),
    Why.SERVER_ERROR: (
        mark("Your server failed"),
        mark("Look for an error of your program in its log at this time, mend it, and send the pingback again."),
    ),
    Why.OTHER_STATUS: (
        mark("The status is not 200"),
        mark("Answer with status 200 and the body ok; no other status counts."),
    ),
    Why.EMPTY: (mark("The answer is empty"), mark("Answer with the body ok; status 200 alone does not count.")),
    Why.REJECTED: (
        mark("Your program answered NOK"),
        mark("Check that it verifies the raw body, with this shop's private key, and that its clock is right."),
    ),
    Why.BODY: (
        mark("The answer is not ok"),
        mark("Answer with nothing but ok: no page, no JSON, no text around it."),
    ),
    Why.OTHER: (
        mark("The call failed"),
        mark("The words below are all that is known; try again, or ask the operator."),
    ),
}
"""Why an attempt failed, in a few words, and what to do about it."""

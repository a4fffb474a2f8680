"""Signatures of requests and pingbacks: the one place that knows how they are computed
(interface.md §3.2, §3.3, §4.2).

The service imports this module, so that merchant and service can't drift apart.
"""

import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations
from typing import Final, Literal, TypeAlias, cast

from paydesk_client.parameters import (
    Leaf,
    MalformedForm,
    Parameters,
    Value,
    check_depth,
    check_names,
    encode_form,
    is_nested,
    items,
    leaf,
    leaves,
    parse_form,
    text,
    urlencode,
)
from paydesk_client.readings import CHECKOUT_FIELDS, find_ambiguity, find_mixed_doors

__all__ = [
    "CHECKOUT_FIELDS",
    "Budget",
    "MalformedForm",
    "Parameters",
    "Signature",
    "UnknownSignatureVersion",
    "Value",
    "Verification",
    "Version",
    "canonical_string",
    "encode_form",
    "find_ambiguity",
    "leaves",
    "parse_form",
    "pingback_signature",
    "sign",
    "signature_version",
    "verify",
]

Version: TypeAlias = Literal["v1", "v2"]

MOST_CANDIDATES = 256
"""How many strings `verify` hashes at most for one request."""

MOST_MIXED = 1_000_000
"""How much work (as a `Budget` counts it) may go into mixes of empty fields for one request:
some ten milliseconds."""

_WRITTEN_ALIKE = re.compile(r"[A-Za-z0-9_.-]*"), re.compile(r"[^~+!'()*]*")
"""Names and values that every way of writing writes in the same way."""

_PHP_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")

_Order: TypeAlias = Callable[[list[tuple[str, Value]]], list[tuple[str, Value]]]
_Writer: TypeAlias = Callable[[Leaf], str | None]
_Parts: TypeAlias = tuple[tuple[bool, str], ...]


class UnknownSignatureVersion(ValueError):
    """Raised for a `sign_version` other than v1, v2, empty or absent."""


@dataclass(slots=True)
class Budget:
    """How much work is left for checking hashes, in units of roughly ten nanoseconds;
    what doesn't fit is not tried.
    """

    left: int

    def take(self, work: int) -> bool:
        """Take so much, or nothing at all and say so."""
        if work > self.left:
            self.left = 0
            return False
        self.left -= work
        return True


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a hash is genuine, and if so which way of writing the parameters it was
    computed over.
    """

    valid: bool
    variant: str = ""

    def __bool__(self) -> bool:
        return self.valid


def signature_version(parameters: Parameters) -> Version:
    """Read the version that a request asks for: `sign_version`, v1 when absent or empty.

    Raises: UnknownSignatureVersion.
    """
    asked = parameters.get("sign_version")
    if asked is None or asked == "":
        return "v1"
    if asked not in ("v1", "v2"):
        shown = asked[:20] if isinstance(asked, str) else type(asked).__name__
        raise UnknownSignatureVersion(f'sign_version "{shown}" is unknown, expected v1 or v2')
    return cast("Version", asked)


def canonical_string(parameters: Parameters, version: Version) -> str:
    """Write parameters as they are hashed, without the key; a `hash` among them is left out
    (interface.md §3.2, §3.3).

    Raises: MalformedForm if nested too deep; TypeError for a value without a text form.
    """
    _, canonical = _WRITERS[_checked(version)][0]
    return _joined([part for _, part in _parts(parameters, version, _by_name, canonical)], version)


def sign(parameters: Parameters, private_key: str, version: Version = "v1") -> str:
    """Compute the `hash` of a request, in lower-case hexadecimal (interface.md §3.2, §3.3).

    The parameters are signed as given: for v2 they must already hold `sign_version`.

    Raises: MalformedForm if nested too deep, or if another request would have the same hash;
        TypeError for a value without a text form.
    """
    _require_one_reading(parameters, _checked(version))
    return _digest(canonical_string(parameters, version), private_key, version)


def verify(
    parameters: Parameters, given_hash: Value, private_key: str, version: Version, budget: Budget | None = None
) -> Verification:
    """Check the hash of a request in every way of writing that clients in the field use
    (interface.md §3.4).

    The canonical form is tried first; at most MOST_CANDIDATES strings are hashed; each comparison
    takes constant time. Upper-case hexadecimal is accepted. A given hash that is no hash at all is
    simply not valid. Who checks many guesses at one request gives them all one `budget`; a single
    check needs none.

    Raises: MalformedForm if nested too deep, or if another request would have the same hash;
        TypeError for a value without a text form.
    """
    _require_one_reading(parameters, _checked(version))
    given = given_hash.lower().encode("utf-8", "surrogatepass") if isinstance(given_hash, str) else b""
    for variant, candidate in _candidates(parameters, _checked(version), budget):
        if hmac.compare_digest(_digest(candidate, private_key, version).encode(), given):
            return Verification(valid=True, variant=variant)
    return Verification(valid=False)


def pingback_signature(raw_body: bytes, private_key: str) -> str:
    """Compute the version 2 signature of a pingback: HMAC-SHA-256 over the body exactly as sent
    (interface.md §4.2).
    """
    return hmac.new(private_key.encode(), raw_body, sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Signature:
    """Signs and verifies request parameters with one merchant's key;
    get one from `Gateway.signature()`.
    """

    private_key: str = field(repr=False)

    def sign(self, parameters: Parameters, version: Version | None = None) -> str:
        """Compute the `hash` of parameters, by the version that their `sign_version` names unless
        one is given.

        Raises: UnknownSignatureVersion, and as the function `sign`.
        """
        return sign(parameters, self.private_key, version or signature_version(parameters))

    def verify(self, parameters: Parameters, given_hash: Value, version: Version | None = None) -> Verification:
        """Check the `hash` of parameters; the result is true or false by itself
        and names the variant.

        Raises: UnknownSignatureVersion, and as the function `verify`.
        """
        return verify(parameters, given_hash, self.private_key, version or signature_version(parameters))


def _require_one_reading(parameters: Parameters, version: Version) -> None:
    """Refuse what could be read as another request with the same hash, at this door or another
    (interface.md §3.5).

    Raises: MalformedForm, saying what to change.
    """
    check_names({name: value for name, value in parameters.items() if name != "hash"})
    problem = find_mixed_doors(parameters) or (find_ambiguity(parameters) if version == "v2" else None)
    if problem is not None:
        raise MalformedForm(f"a {version} signature can't protect this: {problem}", field="sign_version")


def _checked(version: str) -> Version:
    if version not in ("v1", "v2"):
        raise UnknownSignatureVersion(f'signature version "{version}" is unknown, expected v1 or v2')
    return cast("Version", version)


def _digest(string: str, private_key: str, version: Version) -> str:
    signed, key = string.encode("utf-8", "surrogatepass"), private_key.encode()
    return hmac.new(key, signed, sha256).hexdigest() if version == "v2" else sha256(signed + key).hexdigest()


def _candidates(parameters: Parameters, version: Version, budget: Budget | None) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each way in which a client may have written the parameters,
    canonical first.

    A client may also have left out any of the fields that were posted empty (a PHP null), so those
    are tried in all combinations as far as MOST_CANDIDATES and MOST_MIXED allow, else all kept or
    all left out.
    """
    writings = []
    for name, parts in _distinct_writings(parameters, version):
        size = sum(len(part) for _, part in parts)
        if budget is not None and not budget.take(4 * size + 100 * len(parts)):
            return
        writings.append((name, parts, size // 4 + 5 * len(parts)))
        yield name, _joined([part for _, part in parts], version)
    empty = sum(is_empty for is_empty, _ in writings[0][1])
    mixes = 2 ** min(empty, 20)
    work = mixes * sum(cost for _, _, cost in writings)
    every_mix = len(writings) * mixes <= MOST_CANDIDATES and work <= MOST_MIXED
    sizes = range(empty, 0, -1) if every_mix else [empty] if empty else []
    for name, parts, cost in writings:
        # Each order puts the empty fields elsewhere, so they are found anew.
        blanks = [index for index, (is_empty, _) in enumerate(parts) if is_empty]
        for number in sizes:
            for left_out in combinations(blanks, number):
                if budget is not None and not budget.take(cost):
                    return
                without = frozenset(left_out)
                kept = [part for index, (_, part) in enumerate(parts) if index not in without]
                yield f"{name}, without empty fields", _joined(kept, version)


def _distinct_writings(parameters: Parameters, version: Version) -> Iterator[tuple[str, _Parts]]:
    """Write the parameters in every order and encoding, and yield what differs;
    most requests have one writing.
    """
    orders: list[tuple[str, list[Leaf]]] = []
    for order_name, order in _ORDERS:
        ordered = list(_ordered(parameters, version, order))
        if all(ordered != other for _, other in orders):
            orders.append((order_name, ordered))
    plain_name, plain_value = _WRITTEN_ALIKE
    alike = all(
        plain_name.fullmatch(one.bracket_name) and plain_value.fullmatch(text(one.value)) for one in orders[0][1]
    )
    seen: set[_Parts] = set()
    for writer_name, writer in _WRITERS[version][: 1 if alike else None]:
        for order_name, ordered in orders:
            parts = tuple(_written(ordered, version, writer))
            if parts not in seen:
                seen.add(parts)
                yield f"{writer_name}{order_name}", parts


def _parts(parameters: Parameters, version: Version, order: _Order, writer: _Writer) -> Iterator[tuple[bool, str]]:
    """Write each leaf in order, with whether its value is empty;
    what the writer drops (a v1 null) is left out.
    """
    return _written(_ordered(parameters, version, order), version, writer)


def _written(ordered: Iterable[Leaf], version: Version, writer: _Writer) -> Iterator[tuple[bool, str]]:
    for one in ordered:
        part = writer(one)
        if part is not None:
            yield not (_v2_text(one) if version == "v2" else text(one.value)), part


def _ordered(parameters: Parameters, version: Version, order: _Order) -> Iterator[Leaf]:
    """The leaves of all that is signed, sorted as the version sorts them."""
    signed = {name: value for name, value in parameters.items() if name != "hash"}
    top = order(items(signed))
    return _sorted_leaves(top, order) if version == "v2" else leaves(dict(top))


def _sorted_leaves(fields: list[tuple[str, Value]], order: _Order, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Walk nested parameters with every level sorted
    (v2 sorts all levels, v1 only the outermost).
    """
    for name, value in fields:
        here = (*path, name)
        check_depth(here)
        if is_nested(value):
            inner = order(items(cast("Mapping[str, Value] | Sequence[Value]", value)))
            yield from _sorted_leaves(inner, order, here)
        else:
            yield leaf(here, value)


def _joined(parts: list[str], version: Version) -> str:
    return ("&" if version == "v1" else "").join(parts)


def _by_name(fields: list[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """Sort as PHP's ksort does: whole numbers by size (2 before 10), other names by their bytes."""
    return sorted(fields, key=lambda field: _sort_key(field[0]))


def _by_lower_case_name(fields: list[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """Sort as the Node client does: by the lower-case name, equal ones as they came."""
    return sorted(fields, key=lambda field: _sort_key(field[0].lower()))


def _sort_key(name: str) -> tuple[bool, int, str]:
    return (False, int(name), "") if _PHP_INTEGER.fullmatch(name) else (True, 0, name)


def _write_v1(*, safe: str = "", safe_in_urls: str = "", raw_names: bool = False) -> _Writer:
    """Make a writer of `name=value` that leaves the characters in `safe` raw
    (others where the name has "url").
    """

    def write(one: Leaf) -> str | None:
        if one.value is None:
            return None
        name = one.bracket_name
        value = urlencode(text(one.value), safe=safe_in_urls if "url" in name else safe)
        return f"{name if raw_names else urlencode(name)}={value}"

    return write


def _v2_text(one: Leaf) -> str:
    return "" if one.value is False else text(one.value)


def _write_v2(one: Leaf) -> str:
    """Write `name=value;` without the parents' names; false and null are empty."""
    return f"{one.path[-1]}={_v2_text(one)};"


_JAVA_RAW = "+!'()~"

_ORDERS: Final[Sequence[tuple[str, _Order]]] = (("", _by_name), (", sorted by lower-case name", _by_lower_case_name))

_WRITERS: Final[Mapping[Version, Sequence[tuple[str, _Writer]]]] = {
    "v1": (
        ("canonical", _write_v1()),
        ("~ unencoded", _write_v1(safe="~", safe_in_urls="~")),
        ("Java", _write_v1(safe=_JAVA_RAW)),
        # The Java client's URLEncoder also leaves * alone, and it never encodes names; plain ones
        # hold no separator.
        ("Java, * unencoded", _write_v1(safe=_JAVA_RAW + "*", safe_in_urls="*", raw_names=True)),
    ),
    "v2": (("canonical", _write_v2),),
}

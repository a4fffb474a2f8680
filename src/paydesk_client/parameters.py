"""Parameters of a request: nested values, read from and written as PHP-style form fields."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias, cast
from urllib.parse import quote_plus, unquote_to_bytes

Value: TypeAlias = "str | bool | int | Decimal | Mapping[str, Value] | Sequence[Value] | None"
"""What a parameter may hold; a JSON body and a form with PHP bracket names both fit.
Never a float."""

Parameters: TypeAlias = Mapping[str, Value]

MOST_FIELDS = 200
DEEPEST_NESTING = 5

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN = re.compile(r"[^&=%+;\[\]\s\x00-\x20\x7f-\xa0\u2028\u2029]+")
_LONGEST_NAME_SHOWN = 80


class MalformedForm(ValueError):
    """Raised for parameters that no reading fits beyond doubt; `field` is the name as it was sent,
    or "".
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value that is not nested: the names that lead to it, from the outside in,
    and what stands there.
    """

    path: tuple[str, ...]
    value: str | bool | int | Decimal | None

    @property
    def bracket_name(self) -> str:
        """The name that PHP gives it in a form: `a[b][c]`."""
        return self.path[0] + "".join(f"[{part}]" for part in self.path[1:])


def items(nested: Mapping[str, Value] | Sequence[Value]) -> list[tuple[str, Value]]:
    """Name the items of a mapping by their keys, those of a list by their positions,
    as PHP does.
    """
    if isinstance(nested, Mapping):
        return [(str(name), value) for name, value in nested.items()]
    return [(str(position), value) for position, value in enumerate(nested)]


def is_nested(value: Value) -> bool:
    """Tell a mapping or list from a single value (text and bytes are sequences only to Python)."""
    # Text first: nearly all is, and to ask whether something is a sequence takes far longer.
    return not isinstance(value, str | bytes | bytearray) and isinstance(value, Mapping | Sequence)


def leaf(path: tuple[str, ...], value: Value) -> Leaf:
    """Make a leaf of a single value.

    Raises: TypeError for a type without one agreed text form (a float, bytes, a date).
    """
    if value is None or isinstance(value, str | bool | int | Decimal):
        return Leaf(path, value)
    raise TypeError(
        f'parameter "{path[0]}" holds a {type(value).__name__}; give text, an int, a Decimal, a bool or None instead'
    )


def check_depth(path: tuple[str, ...]) -> None:
    """Refuse what is nested too deep, before recursion gets there.

    Raises: MalformedForm.
    """
    if len(path) > DEEPEST_NESTING + 1:
        raise MalformedForm(f'field "{_shown(path[0])}" is nested deeper than {DEEPEST_NESTING} levels', field=path[0])


def is_plain_name(name: str) -> bool:
    """Whether a name can be signed: no separators, brackets, spaces or controls,
    which another reading could use.
    """
    return _PLAIN.fullmatch(name) is not None


def check_names(parameters: Parameters) -> None:
    """Refuse a name that could be written like two names, or like a name and a value.

    Raises: MalformedForm, naming the field.
    """
    for one in leaves(parameters):
        for part in one.path:
            if not is_plain_name(part):
                raise MalformedForm(
                    f'the name "{_shown(one.bracket_name)}" can\'t be signed: it contains a space, a control character '
                    "or one of & = % + ; [ ]",
                    field=part,
                )


def leaves(parameters: Mapping[str, Value] | Sequence[Value], path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Walk nested parameters in the order that they stand in.

    Raises: MalformedForm if nested too deep; TypeError for a type that has no text form.
    """
    for name, value in items(parameters):
        here = (*path, name)
        check_depth(here)
        if is_nested(value):
            yield from leaves(cast("Mapping[str, Value] | Sequence[Value]", value), here)
        else:
            yield leaf(here, value)


def text(value: str | bool | int | Decimal | None) -> str:
    """Write one value as PHP's http_build_query does: true is 1, false is 0;
    a Decimal keeps its zeros.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Decimal) and abs(value.adjusted()) <= 30:
        return format(value, "f")
    return str(value)


def urlencode(plain: str, *, safe: str = "") -> str:
    """Percent-encode as PHP's RFC 1738 urlencode does (`~` too), but for the characters
    in `safe`.
    """
    encoded = quote_plus(plain, safe=safe, errors="surrogatepass")
    return encoded if "~" in safe else encoded.replace("~", "%7E")


def encode_form(value: Parameters) -> str:
    """Write parameters as a form body with PHP bracket names, without nulls (interface.md §4.4)."""
    return "&".join(
        f"{urlencode(one.bracket_name)}={urlencode(text(one.value))}" for one in leaves(value) if one.value is not None
    )


def parse_form(body: bytes) -> dict[str, Value]:
    """Read an application/x-www-form-urlencoded body with PHP bracket names;
    the order of fields is kept.

    Values are text, mappings, and lists (`a[]=` and `a[0]=&a[1]=`). Stricter than PHP, which
    silently picks one of several readings: what was hashed and what is read must be the same thing.

    Raises: MalformedForm for invalid UTF-8, a name given twice, `a=1&a[b]=2`, odd brackets, a
        control character in a name, more than 200 fields, or nesting deeper than 5.
    """
    fields = [field for field in body.split(b"&") if field]
    if len(fields) > MOST_FIELDS:
        raise MalformedForm(f"the form has {len(fields)} fields, at most {MOST_FIELDS} are accepted")
    form: dict[str, object] = {}
    for field in fields:
        raw_name, _, raw_value = field.partition(b"=")
        name = _decoded(raw_name, shown=raw_name)
        _place(form, name, _decoded(raw_value, shown=raw_name))
    return {name: _listed(value) for name, value in form.items()}


def _decoded(raw: bytes, *, shown: bytes) -> str:
    """Undo the percent-encoding of a name or value; `shown` is the raw name for the message."""
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        name = shown.decode("ascii", "backslashreplace")
        raise MalformedForm(f'field "{_shown(name)}" is not valid UTF-8', field=name) from None


def _place(form: dict[str, object], name: str, value: str) -> None:
    """Put one posted field where its bracket name says."""
    path = _path(name)
    node = form
    for part in path[:-1]:
        inner = node.setdefault(_key(node, part, name), {})
        if not isinstance(inner, dict):
            raise MalformedForm(f'field "{_shown(name)}" is given both as a value and as a list', field=name)
        node = inner
    key = _key(node, path[-1], name)
    if key in node:
        raise MalformedForm(f'field "{_shown(name)}" is given twice; send it once', field=name)
    node[key] = value


def _path(name: str) -> list[str]:
    """Split a bracket name: `a[b][]` is a, b and an empty part."""
    match = _NAME.fullmatch(name)
    if match is None or _CONTROL.search(name):
        raise MalformedForm(
            f'field name "{_shown(name)}" is malformed; expected name, name[part] or name[]', field=name
        )
    path = [match[1], *_BRACKETS.findall(match[2])]
    if not all(is_plain_name(part) for part in path if part):
        raise MalformedForm(
            f'field name "{_shown(name)}" is malformed: it contains a space or one of & = % + ;', field=name
        )
    check_depth(tuple(path))
    return path


def _key(node: dict[str, object], part: str, name: str) -> str:
    """Number the next item for `[]`, which may only follow items that are numbered
    without a gap.
    """
    if part:
        return part
    if not _is_numbered(node):
        raise MalformedForm(f'field "{_shown(name)}" mixes [] with named items', field=name)
    return str(len(node))


def _is_numbered(names: Iterable[str]) -> bool:
    return all(name == str(position) for position, name in enumerate(names))


def _listed(node: object) -> Value:
    """Turn items that are named 0, 1, … in this order into a list."""
    if not isinstance(node, dict):
        return cast("str", node)
    if _is_numbered(node):
        return [_listed(value) for value in node.values()]
    return {name: _listed(value) for name, value in node.items()}


def _shown(name: str) -> str:
    """Shorten and clean a name that a stranger sent, so that it can stand in a message."""
    short = name if len(name) <= _LONGEST_NAME_SHOWN else name[:_LONGEST_NAME_SHOWN] + "…"
    return _CONTROL.sub("?", short)

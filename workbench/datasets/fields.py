"""Parsers of log lines' fields: they define which fields are valid, and which values the fields have.

Most functions take the bytes of a field and return its value. They raise ValueError with a reason if the field is
invalid.
"""

import re
from datetime import UTC, datetime

_WHOLE = re.compile(rb"[0-9]{1,15}")
_DECIMAL = re.compile(rb"[+-]?[0-9]{1,12}([.,][0-9]{1,15})?([eE][+-]?[0-9]{1,2})?")
_GROUP = re.compile(rb"[0-9]{3}")
_EUI64 = re.compile(rb"[0-9a-f]{2}(-[0-9a-f]{2}){7}")
_DOTTED = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})_([0-9]{2})\.([0-9]{2})\.([0-9]{2})")


def join_groups(fields: list[bytes], count: int, index: int) -> list[bytes]:
    """Undo the splitting of a number such as "1 012" into two fields; return ``count`` fields.

    The blank between groups of three digits was taken for a separator. The groups from field ``index`` on are joined:
    with ``count=2`` and ``index=1``, [b"7", b"1", b"012"] becomes [b"7", b"1012"]. Raises ValueError if joining such
    groups does not give ``count`` fields.
    """
    excess_count = len(fields) - count
    if excess_count == 0:
        return fields
    group_fields = fields[index + 1 : index + 1 + excess_count]
    if (
        excess_count < 0
        or not re.fullmatch(rb"[0-9]{1,3}", fields[index])
        or not all(map(_GROUP.fullmatch, group_fields))
    ):
        raise ValueError(f"the line has {len(fields)} columns, not {count}")
    return [*fields[:index], b"".join((fields[index], *group_fields)), *fields[index + 1 + excess_count :]]


def exactly(fields: list[bytes], count: int) -> list[bytes]:
    """Return the fields if their number is ``count``. Raises ValueError otherwise."""
    if len(fields) != count:
        raise ValueError(f"the line has {len(fields)} columns, not {count}")
    return fields


def whole(field: bytes) -> int:
    """Return the field as a whole number, which has at most 15 digits and no sign."""
    if not _WHOLE.fullmatch(field):
        raise ValueError(f"{field[:40]!r} is not a whole number")
    return int(field)


def signed(field: bytes) -> int:
    """Return the field as a whole number, which may be negative."""
    return -whole(field[1:]) if field[:1] == b"-" else whole(field)


def node(field: bytes) -> int:
    """Return the field as the number of a node, from 0 to 2147483647."""
    number = whole(field)
    if number > 2**31 - 1:
        raise ValueError(f"{number} is not a node number; the largest is 2147483647")
    return number


def byte(field: bytes) -> int:
    """Return the field as a whole number from 0 to 255."""
    value = whole(field)
    if value > 255:
        raise ValueError(f"{value} is not a number from 0 to 255")
    return value


def decimal(field: bytes) -> float:
    """Return the field as a float; its decimal separator may be a point or a comma."""
    if not _DECIMAL.fullmatch(field):
        raise ValueError(f"{field[:40]!r} is not a number")
    return float(field.replace(b",", b"."))


def text(field: bytes) -> str:
    """Return the field as text, decoded from UTF-8."""
    try:
        return field.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{field[:40]!r} is not a text in UTF-8") from None


def eui64(field: bytes) -> str:
    """Return the field as text if it is an EUI-64, such as "14-15-92-00-12-91-cb-fd" (eight bytes in hex)."""
    if not _EUI64.fullmatch(field):
        raise ValueError(f"{field[:40]!r} is not an EUI-64 such as 14-15-92-00-12-91-cb-fd")
    return field.decode("ascii")


def milliseconds(field: bytes) -> float:
    """Convert Unix time in whole milliseconds to seconds."""
    return whole(field) / 1000


def moment(date: bytes, time: bytes) -> float:
    """Convert a date and a time in ISO 8601, taken as UTC, to Unix time in seconds."""
    iso_text = f"{date.decode('ascii')}T{time.decode('ascii')}"
    return datetime.fromisoformat(iso_text).replace(tzinfo=UTC).timestamp()


def iso(field: bytes) -> float:
    """Convert a time such as "2026-11-22T19:30:00.25+01:00" to Unix time in seconds; without an offset it is UTC."""
    parsed_time = datetime.fromisoformat(field.decode("ascii"))
    return (parsed_time if parsed_time.tzinfo else parsed_time.replace(tzinfo=UTC)).timestamp()


def dotted_moment(field: bytes) -> float:
    """Convert a time such as "2014-11-06_01.30.37", taken as UTC, to Unix time in seconds."""
    match = _DOTTED.fullmatch(field)
    if not match:
        raise ValueError(f"{field[:40]!r} is not a time such as 2014-11-06_01.30.37")
    return datetime(*map(int, match.groups()), tzinfo=UTC).timestamp()  # type: ignore[misc, arg-type]

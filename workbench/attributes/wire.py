"""Lists of attributes as bytes: the part of a frame that diffusion and flooding share.

Layout (little-endian, packed)
    attribute  key u8, operator u8, value i16
    blob       key u8, operator u8, length u8, that many bytes (the key decides whether it is a blob)

    Data (`encode_readings`, `decode_readings`) consists of IS attributes. It has attributes with other operators only
    if the protocol also compares these with the IS attributes of subscriptions.

This file runs on a mote too (MicroPython's subset of Python).
"""

import struct

from workbench.attributes.model import (
    APP,
    BLOB_OPERATORS,
    EQ_ANY,
    INTERVAL,
    IS,
    LAST_FILTER_KEY,
    Attribute,
    check,
    is_blob,
)
from workbench.errors import AttributeFormatError, DecodeError, EncodeError

ATTRIBUTE_B = 4
BLOB_HEADER_B = 3
_ATTRIBUTE = "<BBh"


def attributes_size(attributes):
    """Return the size of these attributes on the wire in bytes."""
    size = 0
    for attribute in attributes:
        size += BLOB_HEADER_B + len(attribute.value) if is_blob(attribute.key) else ATTRIBUTE_B
    return size


def encode_attributes(attributes):
    """Return the attributes' concatenated bytes. Raises EncodeError if an attribute is not valid."""
    encoded_attributes = []
    for attribute in attributes:
        try:
            check(attribute)
        except AttributeFormatError as error:
            raise EncodeError(str(error)) from None
        key, operator, value = attribute
        if is_blob(key):
            encoded_attributes.append(struct.pack("<BBB", key, operator, len(value)) + value)
        else:
            encoded_attributes.append(struct.pack(_ATTRIBUTE, key, operator, value))
    return b"".join(encoded_attributes)


def encode_readings(attributes, constraints=False):
    """Return the bytes of a reading's attributes.

    Raises EncodeError if an attribute is not valid, or if its operator is not IS. If ``constraints`` is true, other
    operators are allowed too: such an attribute is a constraint that a subscription's IS attributes must meet.
    """
    for attribute in attributes:
        if attribute.operator != IS and not constraints:
            raise EncodeError("data has the attribute %r; only IS attributes describe data" % (attribute,))
    return encode_attributes(attributes)


def decode_readings(frame, offset, count, constraints=False):
    """Return the ``count`` attributes of a reading, which fill the frame from the byte ``offset`` to its end.

    Raises DecodeError if an attribute is cut off or not valid, if bytes remain after the last attribute, or if an
    operator is not IS. If ``constraints`` is true and at least one attribute has IS, other operators are allowed too,
    but not for the key INTERVAL.
    """
    attributes = decode_attributes(frame, offset, count)
    has_value = False
    for attribute in attributes:
        has_value = has_value or attribute.operator == IS
        if attribute.operator != IS and (not constraints or attribute.key == INTERVAL):
            raise DecodeError("data has the attribute %r; only IS attributes describe data" % (attribute,))
    if attributes and not has_value:
        raise DecodeError(
            "data has only constraints, such as %r; it needs at least one IS attribute" % (attributes[0],)
        )
    return attributes


def decode_attributes(frame, offset, count):
    """Return the ``count`` attributes that fill the frame from the byte ``offset`` to its end.

    Raises DecodeError if an attribute is cut off, if its key or operator is not valid, or if bytes remain after the
    last attribute.
    """
    attributes = []
    frame_B = len(frame)
    for _ in range(count):
        if offset + BLOB_HEADER_B > frame_B:
            raise DecodeError("attribute %d of %d is cut off" % (len(attributes) + 1, count))
        key = frame[offset]
        has_blob = is_blob(key)
        attribute_end = offset + (BLOB_HEADER_B + frame[offset + 2] if has_blob else ATTRIBUTE_B)
        if attribute_end > frame_B:
            raise DecodeError("attribute %d of %d is cut off" % (len(attributes) + 1, count))
        if has_blob:
            attribute = Attribute(key, frame[offset + 1], bytes(frame[offset + BLOB_HEADER_B : attribute_end]))
        else:
            attribute = Attribute(*struct.unpack_from(_ATTRIBUTE, frame, offset))
        attributes.append(attribute)
        offset = attribute_end
    if offset != frame_B:
        raise DecodeError("%d bytes follow the last attribute, which must end the frame" % (frame_B - offset))
    # `model.check` is not used: its messages name keys, and a mote should not load these names because noise has
    # damaged a frame. The value cannot be wrong, as any 2 bytes are valid.
    for key, operator, _ in attributes:
        if not APP <= key <= LAST_FILTER_KEY:
            raise DecodeError("key is %d; it must be from 50 to 250" % key)
        if not IS <= operator <= EQ_ANY:
            raise DecodeError("key %d has operator %d; it must be from 1 to 8" % (key, operator))
        if operator not in BLOB_OPERATORS and is_blob(key):
            raise DecodeError("key %d has operator %d; a blob key allows only IS, EQ, NE and EQ_ANY" % (key, operator))
    return tuple(attributes)

"""The text form of attributes: "APP EQ Temperature, TEMP GE 25" <-> attributes.

Theory of operation
    Values are written in the unit of their key (keys.py) and operators by name or sign. `to_text` writes a normal
    form that `parse` reads back as the same attributes.

This file runs on a mote too (MicroPython's subset of Python), but nodes do not need it.
"""

from workbench.attributes.keys import BLOB, OPERATORS, key_of, make
from workbench.attributes.model import APP, EQ, EQ_ANY, GE, GT, IS, LE, LT, NE, OPERATOR_NAMES
from workbench.errors import AttributeFormatError

_OPERATOR_SIGNS = {"==": EQ, "!=": NE, ">": GT, ">=": GE, "<": LT, "<=": LE}

# Application types: values of the key APP, numbered and spelled as in the definition file.
APPLICATION_TYPES = {
    "NULL_SENSOR": 0,
    "Temperature": 1,
    "Humidity": 2,
    "Pressure": 3,
    "Leaf_Wetness": 4,
    "PAR": 5,
    "UV": 6,
    "Solar_Radiation": 7,
    "Rain_Level": 8,
    "Eye_LeveL_Light": 9,
    "Wind_Speed": 10,
    "Wind_Direction": 11,
    "Soil_Moisture": 12,
    "Temperature_Probe": 13,
    "BatteryVoltage": 14,
}
_APPLICATION_NAMES = {number: name for name, number in APPLICATION_TYPES.items()}
_APPLICATION_NUMBERS = {name.lower(): number for name, number in APPLICATION_TYPES.items()}
_SIGNS = "=!<>"
_DIGITS = "0123456789"


def parse(text):
    """Parse attributes from text: "APP EQ Temperature, TEMP GE 25". Commas, semicolons and new lines separate them.

    Each attribute is KEY OPERATOR VALUE. KEY is a registered name (TEMP or TEMP_KEY) or a number. OPERATOR is one of
    IS EQ NE GT GE LT LE EQ_ANY (no value) or == != > >= < <=. VALUE is a number in the key's unit, or an application
    type for APP. For blobs it is a "quoted text" or 0x and hex digits. Raises AttributeFormatError for
    any other text; its message describes the right form.

    >>> parse("TEMP GE 25")
    (Attribute(key=51, operator=5, value=2500),)
    """
    if not isinstance(text, str):
        raise AttributeFormatError('`text` is %r; it must be a text such as "TEMP GE 25"' % (text,))
    return tuple([_parse_attribute(part) for part in _split_attributes(text)])


def _split_attributes(text):
    """Split a text at commas, semicolons and new lines outside quotes; return the parts that are not empty."""
    attribute_texts = []
    is_quoted = False
    part_begin = 0
    for position, character in enumerate(text):
        if character == '"':
            is_quoted = not is_quoted
        elif not is_quoted and character in ",;\n":
            attribute_texts.append(text[part_begin:position])
            part_begin = position + 1
    if is_quoted:
        raise AttributeFormatError("%r has a quote that is not closed; add the closing quote" % text)
    attribute_texts.append(text[part_begin:])
    return [attribute_text.strip() for attribute_text in attribute_texts if attribute_text.strip()]


def _parse_attribute(text):
    attribute_words = _split_words(text)
    if len(attribute_words) < 2:
        hint = '; for a topic write TOPIC EQ "%s"' % text if "/" in text and '"' not in text else ""
        raise AttributeFormatError('%r is not an attribute; write KEY OPERATOR VALUE, as "TEMP GE 25"%s' % (text, hint))
    # Five digits: a longer number is not a key, and int() refuses both "²" and thousands of digits.
    key = key_of(
        int(attribute_words[0])
        if len(attribute_words[0]) <= 5 and _has_only(attribute_words[0], _DIGITS)
        else attribute_words[0]
    )
    operator = _OPERATOR_SIGNS.get(attribute_words[1], OPERATORS.get(attribute_words[1].upper()))
    if attribute_words[1] == "=":
        value_text = attribute_words[2] if len(attribute_words) > 2 else "25"
        raise AttributeFormatError(
            "%r has operator =; write %s IS %s in a publication, %s EQ %s in a subscription"
            % (text, key.name, value_text, key.name, value_text)
        )
    if operator is None:
        from workbench.suggestion import meant  # Imported only here: it takes memory on a mote.

        raise AttributeFormatError(
            "%r has operator %s%s; it must be one of IS EQ NE GT GE LT LE EQ_ANY"
            % (text, attribute_words[1], meant(attribute_words[1], sorted(OPERATORS)))
        )
    if operator == EQ_ANY:
        if len(attribute_words) > 2:
            raise AttributeFormatError("%r has a value, but EQ_ANY takes none; remove it" % text)
        return make(key.number, EQ_ANY)
    if len(attribute_words) < 3:
        raise AttributeFormatError("%r has no value; write KEY OPERATOR VALUE" % text)
    return make(key.number, operator, _parse_value(key, attribute_words[2].strip()))


def _split_words(text):
    """Split a text into [key, operator, value]; an operator such as >= needs no spaces around it."""
    sign_begin = 0
    while sign_begin < len(text) and text[sign_begin] not in _SIGNS:
        sign_begin += 1
    sign_end = sign_begin
    while sign_end < len(text) and text[sign_end] in _SIGNS:
        sign_end += 1
    key_words = text[:sign_begin].split()
    if sign_begin == sign_end or len(key_words) != 1:
        return text.split(None, 2)
    value_text = text[sign_end:].strip()
    return [key_words[0], text[sign_begin:sign_end]] + ([value_text] if value_text else [])


def _parse_value(key, word):
    if key.type == BLOB:
        return _parse_blob(key, word)
    if key.number == APP and word.lower() in _APPLICATION_NUMBERS:
        return _APPLICATION_NUMBERS[word.lower()]
    # int() and float() accept more than ordinary numbers: "1_0", "nan", digits of other scripts.
    if _has_only(word, _DIGITS + "+-.eE"):
        for convert in (int, float):
            try:
                return convert(word)
            except ValueError:
                pass
    from workbench.suggestion import meant  # Imported only here: it takes memory on a mote.

    hint = ""
    if " or" in word.lower():
        hint = "; alternatives are separate subscriptions"
    elif " and" in word.lower():
        hint = "; separate constraints by a comma, as in TEMP GE 20, TEMP LE 30"
    type_names = sorted(APPLICATION_TYPES) if key.number == APP else ()
    raise AttributeFormatError(
        "%s is %r%s; it must be a number%s%s"
        % (key.name, word, meant(word, type_names), " or an application type" if type_names else "", hint)
    )


def _has_only(word, characters):
    return all([character in characters for character in word])


def _parse_blob(key, word):
    if len(word) >= 2 and word[0] == '"' and word[-1] == '"' and '"' not in word[1:-1]:
        try:
            return word[1:-1].encode()
        except ValueError:
            pass  # Half of a surrogate pair, as JSON may carry one, has no bytes.
    if word[:2] == "0x" and len(word) % 2 == 0 and _has_only(word[2:], _DIGITS + "abcdefABCDEF"):
        return bytes([int(word[i : i + 2], 16) for i in range(2, len(word), 2)])
    example = "" if '"' in word or word[:2] == "0x" else ': "%s"' % word
    raise AttributeFormatError('%s is %s; write a blob as "text" or as 0x and hex digits%s' % (key.name, word, example))


def to_text(attributes):
    """Return the text form of attributes, which `parse` reads back: "APP EQ Temperature, TEMP GE 25"."""
    return ", ".join([_attribute_to_text(attribute) for attribute in attributes])


def _attribute_to_text(attribute):
    key = key_of(attribute.key)
    operator = _operator_name(attribute.operator)
    if attribute.operator == EQ_ANY:
        return "%s EQ_ANY" % key.name
    return "%s %s %s" % (key.name, operator, _value_to_text(key, attribute.value))


def _operator_name(number):
    return OPERATOR_NAMES[number] if IS <= number <= EQ_ANY else str(number)


def _value_to_text(key, value):
    if key.type == BLOB:
        if all([32 <= byte < 127 and byte != 34 for byte in value]):
            return '"%s"' % value.decode()
        return "0x" + "".join(["%02x" % byte for byte in value])
    if key.number == APP and value in _APPLICATION_NAMES:
        return _APPLICATION_NAMES[value]
    if key.steps == 1:
        return str(value)
    # One decimal more than the steps need: 1/3 written as 0.33 is read back as the same third.
    decimals = len(str(key.steps - 1)) + 1
    number_text = "%.*f" % (decimals, value / key.steps)
    return number_text.rstrip("0").rstrip(".")

"""The fields of flooding's frames; `workbench.protocols.field_tables` describes such tables."""

from workbench.protocols.field_tables import EVENT_ID, READINGS, TTL_MEANING, Message, Number
from workbench.protocols.flooding import wire

MESSAGES = {wire.TYPE: Message("flood", (*EVENT_ID, Number("ttl", "H", TTL_MEANING), *READINGS))}

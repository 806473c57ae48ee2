"""The workbench's exceptions.

Every message states the given value, the allowed values and the remedy. All exceptions are ``ValueError``s, so that
code without knowledge of the workbench can still catch bad input.
"""


class WorkbenchError(ValueError):
    """The base class of all errors that the workbench raises on purpose."""


class DecodeError(WorkbenchError):
    """Bytes that are not a valid message of the protocol that decodes them."""


class EncodeError(WorkbenchError):
    """A message that does not fit its wire format: a value out of range, or too many bytes for a frame."""


class AttributeFormatError(WorkbenchError):
    """An attribute (key, operator, value), or a part or the text of an attribute, that is not valid."""


class ParameterError(WorkbenchError):
    """A parameter of a protocol, radio, filter or topology that is outside its allowed values."""


class ScenarioError(WorkbenchError):
    """A scenario, sweep or scenario file that is invalid and cannot run."""


class DataError(WorkbenchError):
    """A data file that is missing or does not follow its format."""


class LinkError(WorkbenchError):
    """A mote, a DPS node on UDP, or a connection to one of them, that cannot be used.

    Examples: a mote that does not answer as its protocol requires, a serial line that cannot be opened, an invalid UDP
    address, a network interface without multicast.
    """


class FuzzError(WorkbenchError):
    """A fault of a protocol node that fuzzing found: an exception, or a next wake-up that is not in the future."""

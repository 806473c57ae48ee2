"""The workbench's exceptions: one small tree.

Every message is one sentence that says what was wrong, where, and what would be right. All of them are
``ValueError``s, so code that knows nothing of the workbench can still catch bad input.
"""


class WorkbenchError(ValueError):
    """Base of every error the workbench raises on purpose."""


class DecodeError(WorkbenchError):
    """Bytes from outside that are no message of the protocol they were read as."""


class EncodeError(WorkbenchError):
    """A message that its wire format cannot carry: a value out of range, too many bytes for a frame."""


class AttributeFormatError(WorkbenchError):
    """An attribute, key or attribute text that cannot be understood."""


class ParameterError(WorkbenchError):
    """A parameter of a protocol, radio, filter or topology outside what it allows."""


class ScenarioError(WorkbenchError):
    """A scenario, or a scenario file, that cannot be run as it stands."""


class DataError(WorkbenchError):
    """A data file that is missing or whose contents are not what its format says."""


class LinkError(WorkbenchError):
    """A mote, or the line to it, that does not answer as it should."""


class FuzzError(WorkbenchError):
    """A node did what no node may do: it raised, or asked again and again to be woken at once."""

"""A research workbench for publish/subscribe in sensor networks.

The public names are handed out lazily: ``import workbench`` loads nothing, and a name loads its module the
first time it is used. So the pieces that run on a mote stay free of numpy, networkx and the rest, and this
file runs there too (MicroPython's subset of Python).
"""

__version__ = "0.1.0"

# Public name -> the module that has it; a module's own name -> itself.
_HOME = {
    "Attribute": "attributes",
    "is_within": "attributes",
    "key_of": "attributes",
    "one_way_match": "attributes",
    "parse": "attributes",
    "register_key": "attributes",
    "to_text": "attributes",
    "two_way_match": "attributes",
    "AttributeFormatError": "errors",
    "DataError": "errors",
    "DecodeError": "errors",
    "EncodeError": "errors",
    "LinkError": "errors",
    "ParameterError": "errors",
    "ScenarioError": "errors",
    "WorkbenchError": "errors",
    "CodedDiffusion": "protocols.coded_diffusion",
    "Diffusion": "protocols.diffusion",
    "Filter": "protocols.filters",
    "register_filter": "protocols.filters",
    "Flooding": "protocols.flooding",
    "Gossip": "protocols.gossip",
    "SensorField": "sensor_field",
    "Radio": "sim.radio",
    "Run": "sim.run",
    "Scenario": "sim.scenario",
    "outage": "sim.workload",
    "publish": "sim.workload",
    "subscribe": "sim.workload",
    "LocalRunner": "sweeps",
    "SparkRunner": "sweeps",
    "Sweep": "sweeps",
    "attributes": "attributes",
    "datasets": "datasets",
    "draws": "draws",
    "errors": "errors",
    "fields": "fields",
    "motes": "motes",
    "rlnc": "rlnc",
    "topology": "topology",
    "views": "views",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError("module 'workbench' has no attribute %r" % name)
    module = __import__("workbench." + _HOME[name], None, None, ["__name__"])
    value = getattr(module, name) if name != _HOME[name] else module
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_HOME))

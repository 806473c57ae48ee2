"""The public names of the package, and where each is found: what `workbench/__init__.py` hands out.

It is the one table in which protocols are named.
"""

# The protocols that a scenario file names without a module -> the module, within the package, that has each.
PROTOCOLS = {
    "CodedDiffusion": "protocols.coded_diffusion",
    "DPS": "protocols.dps",
    "Diffusion": "protocols.diffusion",
    "Flooding": "protocols.flooding",
    "Gossip": "protocols.gossip",
    "PrintedTinyMQ": "protocols.tinymq.printed",
    "Pub2Sub": "protocols.tinymq.pub2sub",
    "TinyMQ": "protocols.tinymq",
}

# The one that a lab begins with.
FIRST_PROTOCOL = "Diffusion"

# The commands of ``workbench`` that a protocol brings -> the module whose ``add_parser(commands)`` adds it.
COMMANDS = {
    "dps": "protocols.dps.cli",
}

# The metrics of a single protocol that every run has, NaN where they mean nothing: files and tables rely on them.
# A metric that is new is in the runs of its protocol alone, and needs no line here.
METRICS = {
    "interest_coverage": "protocols.diffusion.metrics",
}

# Public name -> the module that has it, within the package; a module's name -> itself.
HOME = PROTOCOLS | {
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
    "FuzzError": "errors",
    "LinkError": "errors",
    "ParameterError": "errors",
    "ScenarioError": "errors",
    "WorkbenchError": "errors",
    "Filter": "protocols.diffusion.filters",
    "register_filter": "protocols.diffusion.filters",
    "take_apart": "protocols.dissection",
    "fuzz": "fuzzing",
    "lab": "widgets.laboratory",
    "random_outage": "sim.random_workload",
    "range_events": "sim.random_workload",
    "range_queries": "sim.random_workload",
    "SensorField": "sensor_field",
    "dps_mesh": "protocols.dps.processes",
    "dps_node": "protocols.dps.udp",
    "reproduce": "records.reproduction",
    "Radio": "sim.radio",
    "Readings": "sim.readings",
    "Run": "sim.run",
    "Scenario": "sim.scenario",
    "outage": "sim.workload",
    "publish": "sim.workload",
    "subscribe": "sim.workload",
    "LocalRunner": "sweeps",
    "ProcessRunner": "sweeps",
    "SparkRunner": "sweeps",
    "Sweep": "sweeps",
    "attributes": "attributes",
    "bloom": "protocols.dps.bloom",
    "datasets": "datasets",
    "draws": "draws",
    "errors": "errors",
    "lessons": "lessons",
    "fields": "coding.fields",
    "motes": "motes",
    "pipelines": "pipelines",
    "plans": "sweeps.plans",
    "replay": "pipelines.logs.replaying",
    "rlnc": "coding.rlnc",
    "topics": "protocols.dps.topics",
    "widgets": "widgets",
    "topology": "topology",
    "views": "views",
}

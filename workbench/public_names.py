"""The table of the package's public names, and the module of each. `workbench/__init__.py` and `extensions.py` use it.

It is the only table that lists the protocols.
"""

# The protocols that a scenario file names without a module -> the module of each, within the package.
PROTOCOLS = {
    "CodedDiffusion": "protocols.coded_diffusion",
    "DPS": "protocols.dps",
    "Diffusion": "protocols.diffusion",
    "Flooding": "protocols.flooding",
    "Gossip": "protocols.gossip",
    "PrintedTinyMQ": "protocols.tinymq",
    "Pub2Sub": "protocols.tinymq.pub2sub",
    "TinyMQ": "protocols.tinymq",
}

# The protocol that a new lab shows.
FIRST_PROTOCOL = "Diffusion"

# The commands of ``workbench`` that a protocol adds -> the module whose ``add_parser(commands)`` adds the command.
COMMANDS = {
    "dps": "protocols.dps.cli",
}

# The metrics of a single protocol that every run has, NaN for other protocols: files and tables rely on them.
# A new metric appears only in the runs of its protocol, and is not listed here.
METRICS = {
    "interest_coverage": "protocols.diffusion.metrics",
}

# Public name -> its module, within the package; a module's name -> itself.
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
    "dissect": "protocols.dissection",
    "fuzz": "fuzzing",
    "gallery": "gallery",
    "lab": "widgets.laboratory",
    "claim": "records.verdicts",
    "claims": "records.verdicts",
    "open_scenario": "records.opening",
    "memory": "analysis.node_memory",
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
    "crash": "sim.workload",
    "join": "sim.workload",
    "leave": "sim.workload",
    "partition": "sim.workload",
    "move": "sim.workload",
    "burst_loss": "sim.workload",
    "link_trace": "sim.workload",
    "LinkQualities": "sim.workload",
    "jam": "sim.workload",
    "reinforce": "sim.workload",
    "publish": "sim.workload",
    "subscribe": "sim.workload",
    "compare": "sweeps.comparison",
    "LocalRunner": "sweeps",
    "ProcessRunner": "sweeps",
    "SparkRunner": "sweeps",
    "Sweep": "sweeps",
    "coded_diffusion": "protocols.coded_diffusion",
    "dps": "protocols.dps",
    "tinymq": "protocols.tinymq",
    "attributes": "attributes",
    "captures": "captures",
    "datasets": "datasets",
    "draws": "draws",
    "errors": "errors",
    "mobility": "mobility",
    "motes": "motes",
    "pipelines": "pipelines",
    "plans": "sweeps.plans",
    "faults": "sweeps.faults",
    "radios": "sim.radios",
    "replay": "pipelines.logs.replaying",
    "widgets": "widgets",
    "topology": "topology",
    "views": "views",
}

# Class -> attributes that higher modules implement -> the function of each; its first parameter is `self`.
EXTENSIONS = {
    "analysis.energy.Energy": {"plot": "views.energy.plot", "map": "views.energy.lifetime_map"},
    "pipelines.live.following.Following": {"plot": "views.windows.plot", "chart": "views.windows.chart"},
    "protocols.dissection.Dissection": {"_repr_html_": "views.dissection.page"},
    "sim.run.Run": {
        "frames": "analysis.frames.frames",
        "explain": "analysis.explain.explain",
        "energy": "analysis.energy.energy",
        "stream": "pipelines.live.bridge.stream",
        "save": "records.record.save",
        "save_pcapng": "captures.writing.save_pcapng",
        "show": "views.notebook.show",
        "figure": "views.figure.figure",
        "plot": "views.deliveries.plot",
        "save_html": "views.export.save_html",
        "_repr_mimebundle_": "views.rich.bundle",
    },
    "motes.live.run.LiveRun": {"show": "views.notebook.show_motes"},
    "sim.scenario.Scenario": {"run": "sim.runner.run", "_repr_mimebundle_": "views.picture.of_scenario"},
    "sweeps.plans.search.SearchResult": {"plot": "views.sweeps.search.plot"},
    "sweeps.plans.sensitivity.SensitivityResult": {"plot": "views.sweeps.sensitivity.plot"},
    "sweeps.comparison.Comparison": {
        "plot": "views.sweeps.comparison.plot",
        "map": "views.sweeps.comparison.winner_map",
    },
    "sweeps.faults.FaultMatrix": {
        "plot": "views.sweeps.faults.plot",
        "_repr_mimebundle_": "views.sweeps.faults.bundle",
    },
    "sweeps.table.SweepTable": {
        "plot": "views.sweeps.summary.plot",
        "drawing": "views.sweeps.summary.drawing",
        "save_html": "views.sweeps.page.save_html",
    },
    "topology.graphs.Network": {"_repr_mimebundle_": "views.picture.of_network"},
}

# Names that changed after version 0.2: module, class or call ("Sweep.run") -> former attribute or parameter -> present
# name. Former names work for one more version, with a warning.
RENAMED: dict[str, dict[str, str]] = {
    "workbench": {"take_apart": "dissect"},
    "Compare": {"drop": "cancel", "glimpse": "preview"},
    "Filters": {"drop": "cancel", "told": "show_results"},
    "RunPanel": {"said": "message", "say": "show_message"},
    "PlayerView": {"glimpse": "preview"},
    "PlayerView.dissect": {"look": "check_cancelled"},
    "load_map": {"what": "metric"},
    "network_drawing": {"way": "message"},
    "DPSMesh": {"needed_most": "find_critical_node"},
    "Mesh": {"sights": "link_ends"},
    "Path": {"what": "publication"},
    "dps_node": {"tell": "on_event"},
    "route": {"what": "message"},
    "route_drawing": {"what": "message"},
    "route_slides": {"what": "message"},
    "Reproduction": {"what": "kind", "same": "identical_runs"},
    "LocalRunner.run": {"moving": "report_progress"},
    "ProcessRunner.run": {"moving": "report_progress"},
    "SparkRunner.run": {"moving": "report_progress"},
    "Difference": {"what": "subject", "was": "recorded", "here": "current"},
}

# Names of version 0.1 that have moved: their owner -> their present module -> the names. They work for one more
# version. Figures of a single lesson or paper are beside that notebook, so they need a checkout.
FORMER = {
    "workbench": {
        "protocols.dps": "bloom topics",
        "coding": "fields rlnc",
        "notebooks": "lessons",
    },
    "workbench.views": {
        "protocols.coded_diffusion.views": "coverage_chart decoding_maps",
        "protocols.dps.views": "fill_chart filters_slides inspect_message mesh_of publication_path publications",
        "protocols.dps.views.filters": "filters_drawing",
        "protocols.tinymq.views": "overlay_of overlay_slides paper_network PAPER_ROOTS PAPER_SEED route route_drawing "
        "route_slides",
        "protocols.tinymq.views.stills": "overlay_drawing",
        "notebooks.lessons.figures.chances": "completion_chart completion_probability completion_table "
        "innovation_probability",
        "notebooks.lessons.figures.decoding": "decoding_matrices decoding_steps step_through",
        "notebooks.lessons.figures.mapping": "mapping_drawing mapping_strings mapping_table",
        "notebooks.lessons.figures.pollution": "pollution_chart",
        "notebooks.lessons.figures.publications": "publication_drawing publication_slides",
        "notebooks.lessons.figures.repair": "repair_chart",
        "notebooks.lessons.figures.topics": "bits_drawing routing_steps topic_bits topic_explorer",
        "notebooks.lessons.figures.zones": "plane_drawing zones_drawing",
        "notebooks.papers.figures.beside": "beside_chart beside_table",
        "notebooks.papers.figures.facts": "paper_facts",
        "notebooks.papers.figures.false_positives": "false_positive_chart false_positive_table vain_chart vain_table",
        "notebooks.papers.figures.messages": "conversation message_explorer",
        "notebooks.papers.figures.processes": "outcome_table processes_drawing",
        "notebooks.papers.figures.trends": "printed_losses trees_chart trend_sentences trend_table",
    },
}

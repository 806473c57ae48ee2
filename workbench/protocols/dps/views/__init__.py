"""Views of DPS: filters, muted links, publications, messages, and what filters cost.

Of a run, out of ``mesh_of(run)``, of messages and of filters::

    run.show()                            the player: filters, muted links and the ways of publications (`layers`)
    filters_drawing(run, time_s=None)     how full filters are, of nodes and links; filters_slides(run, times_s)
    fill_chart(run)                       the fill of filters, and muted links, over the run
    publication_drawing(run, which)       a publication's way, with what was in vain; publication_slides(...) hop by
                                          hop, publication_path(run, which) is what they draw
    inspect_message(data, topics)         a message taken apart, whatever bytes it is: hex, CBOR, fields, bits, topics;
                                          message_explorer({name: data}) is a widget, conversation() has messages
    topic_bits(topic, ...)                a topic's items and their bits; bits_drawing({name: vector}) draws them
    routing_steps(topic, subscriptions)   from topics to a routing decision; topic_explorer() is a widget
    false_positive_table(lengths, ...)    how often filters say yes in vain, measured and by theory;
                                          false_positive_chart(table). vain_table(scenario, lengths), vain_chart(table):
                                          what went out in vain in a network
    processes_drawing(mesh, outcome)      a mesh of processes as it stands; outcome_table({name: outcome})
    beside_table({name: run})             one workload on several protocols; beside_chart({name: run})
"""

from workbench.views import palette

# Public view, `workbench.views.NAME` -> the module here that has it.
VIEWS = {
    "mesh_of": "mesh",
    "filters_drawing": "filters",
    "filters_slides": "filters",
    "fill_chart": "filters",
    "publications": "paths",
    "publication_path": "paths",
    "publication_drawing": "publications",
    "publication_slides": "publications",
    "inspect_message": "message",
    "conversation": "message",
    "message_explorer": "page",
    "save_message": "page",
    "topic_bits": "topic_bits",
    "bits_drawing": "topic_bits",
    "routing_steps": "steps",
    "topic_explorer": "steps",
    "false_positive_table": "false_positives",
    "false_positive_chart": "false_positives",
    "vain_table": "false_positives",
    "vain_chart": "false_positives",
    "processes_drawing": "processes",
    "outcome_table": "processes",
    "beside_table": "beside",
    "beside_chart": "beside",
}

# How its messages look, by their names in the trace.
MESSAGE_COLOURS = {
    "subscription": palette.INTEREST,
    "subscription ack": palette.LINK_GOOD,
    "publication": palette.DATA,
    "acknowledgement": palette.DELIVERED,
}
# What is sent with every subscription, and asks for nothing by itself.
QUIET_MESSAGES = ("subscription ack",)

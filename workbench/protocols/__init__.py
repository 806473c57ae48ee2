"""The protocols: one readable file each. `BUILT_IN` says where a protocol of a given name is found."""

# A scenario file names its protocol. Modules are imported when they are asked for, not before.
BUILT_IN = {
    "CodedDiffusion": "workbench.protocols.coded_diffusion",
    "DPS": "workbench.protocols.dps",
    "Diffusion": "workbench.protocols.diffusion",
    "Flooding": "workbench.protocols.flooding",
    "Gossip": "workbench.protocols.gossip",
    "Pub2Sub": "workbench.protocols.pub2sub",
    "TinyMQ": "workbench.protocols.tinymq",
}

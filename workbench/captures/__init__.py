"""Captures of frames for Wireshark and from real sniffers, in the formats pcapng and pcap.

    run.save_pcapng(path, node=None)      write the frames of a run, with the fate of each at every receiver
    save_dissector(path, protocols=None)  write a Lua dissector, by which Wireshark decodes the frames of the protocols
    read_capture(path)                    the frames of a capture of IEEE 802.15.4 as a table
    pan_id(protocol)                      the PAN id by which the dissector recognizes the protocol's frames

`docs/CAPTURES.md` shows how to open a run in Wireshark, and lists what is not modelled.
"""

from workbench.keywords import hand_out

# Public name -> the module that defines it, within this package. A module is loaded when its name is first used.
_HOME = {
    "pan_id": "ieee802154",
    "read_capture": "reading",
    "save_dissector": "lua",
    "save_pcapng": "writing",
}

__getattr__ = hand_out(__name__, _HOME)

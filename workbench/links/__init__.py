"""The same nodes over real bytes: motes on serial lines, virtual motes, and what drives a run on them; DPS over UDP."""

"""TinyMQ's rules in the kernel: those of `workbench.protocols.tinymq.rules`, compiled as they are."""

from workbench.protocols.tinymq import rules
from workbench.sim.fast.reference import inlined

may_be_parent = inlined(rules.may_be_parent)
is_better_parent = inlined(rules.is_better_parent)
longest_slot = inlined(rules.longest_slot)
is_better_way = inlined(rules.is_better_way)
is_late = inlined(rules.is_late)
is_awaited = inlined(rules.is_awaited)
is_silent = inlined(rules.is_silent)
is_cut_off = inlined(rules.is_cut_off)
is_in_doubt = inlined(rules.is_in_doubt)
is_info_due = inlined(rules.is_info_due)
most_named = inlined(rules.most_named)
namings_owed = inlined(rules.namings_owed)
is_repeated = inlined(rules.is_repeated)
retry_wait_us = inlined(rules.retry_wait_us)
longest_wait_us = inlined(rules.longest_wait_us)
most_frames = inlined(rules.most_frames)
join_pause_us = inlined(rules.join_pause_us)
is_given_up = inlined(rules.is_given_up)
next_round = inlined(rules.next_round)
is_newer_round = inlined(rules.is_newer_round)
lease_left_s = inlined(rules.lease_left_s)
asked_lease_s = inlined(rules.asked_lease_s)
is_too_old = inlined(rules.is_too_old)
last_string = inlined(rules.last_string)

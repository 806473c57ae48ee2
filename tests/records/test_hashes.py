"""The trace hashes of the golden scenarios, by name: a figure of theirs that somebody has made is found in them again.

Each hash is the same on the reference engine and on the fast one. The hashes below were taken on CPython 3.11 on both
engines; that hashes of golden scenarios are equal on CPython 3.11, 3.12 and 3.13 was measured before they were named
here. If a hash changes, records that travel with figures no longer come out: that is a change of results, which the
change log has to tell, and which is never made by the way. So this list is not renewed together with
tests/golden/digests.json.
"""

import pytest

from tests.golden import renew

HASHES = {
    "coded-diffusion-grid": "8a6aedf08a2ad087b24b60161ee4cbc2e45afce60a6db579fefc63878887b755",
    "diffusion-grid": "e2097d08ec5510c4bc57a5e8d8336cbab41e5760a16143c053def92b6514f243",
    "diffusion-lossy": "d883b6e17e300c5d620e90b6b1901d9eab7e173b312ce260478fbdc1d090c7ec",
    "diffusion-motes": "0f441febcc092014b10493710358e6d0f57c524b7a25f47ac390f9d380e72482",
    "dps-grid": "48da43a811b244c36d2baa32cf045091927a8a0c0ec4ea4d854806342e3add9b",
    "dps-retained": "363326b05af2ad48f4cab67748eb875428f76cb050f9bc1e533661be8db6c187",
    "flooding-disc": "64053ebbb8ea450b0f294da72bbb38b3898fa17569d152f2fbcd33ffdfaca068",
    "gossip-disc": "8501d4d96fedaa2c2402e8424cc67cfce17cd463379210051643f44e28363981",
    "gossip-pieces-disc": "3351183e7f7286c8e14d78efe20f83cc6ac99eb3a24b4b9d5b24d72e001081fc",
    "pub2sub-grid": "19132638f8cc81ff654ca310a336d0a8b1a01847d72388c3f8616529ec2bb74f",
    "tinymq-own": "90b75f27d77961ec4bc52928dbd14b5025fc089337d631a8a4e92f90ccffd83d",
    "tinymq-printed": "68b65eb844953267d642311e9ebb50ae2e8d0dc5c82dbc86861b6524fb519a3b",
    "tinymq-repair": "195b43d04c796dcc74910dc9c3efa7cf791264a2636a8b3fe9f9819726e370ae",
}
WITHOUT_TWIN = {"tinymq-printed"}


def test_every_golden_scenario_is_named():
    assert sorted(HASHES) == renew.NAMES


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("name", HASHES)
def test_golden_scenario_has_its_named_hash_on_both_engines(name, engine):
    if engine == "fast" and name in WITHOUT_TWIN:
        pytest.skip("the algorithms as printed have no fast twin")
    run = renew.scenario(name).run(engine=engine)
    assert run.engine == engine
    assert run.trace_hash == HASHES[name]

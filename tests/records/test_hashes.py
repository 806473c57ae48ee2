"""The trace hashes of the golden scenarios, by name, so that records in existing figures stay reproducible.

Each hash is the same on the reference engine and the fast engine, and on CPython 3.11, 3.12 and 3.13; `make
test-pythons` checks each installed version. If a hash changes, records in existing figures are no longer reproduced:
that is a change of results, which belongs into the change log. So this list is not renewed together with
tests/golden/digests.json.
"""

import json

import pytest

from tests.golden import renew

HASHES = {
    "coded-diffusion-grid": "fa1afa32bf8f788155b1563336132e5745c2e74370c59588c5a70e90a2c0a950",
    "coded-diffusion-partition": "0fa0b5e916e8e7a7d039f5e9ee5d9ad30b608bc58f8336c64a472473693f3d09",
    "diffusion-crashes": "507f9210a3cb1aa596d0d1c9ff1993f1ff7f76a2d6d7042bd638bc6baf4b5478",
    "diffusion-emitting": "c64106bd0135a0a85fda8a6499fa8241d7dfb1f5a7b8be4d8127898e7df7d1f3",
    "diffusion-grid": "6d66b47d28521e31d4724d75d7a663f3218f6bc8e4903473d2877b4a4154afba",
    "diffusion-lossy": "4d000262b82a33b459655982bba0ccceb0d5c2ca79bbc4e463bebed21571dfac",
    "diffusion-merged": "67ecd5f0149a6ad3f5c94c9adf52e4f5dfc7fee2893fc64b9c9e37fc39f42901",
    "diffusion-motes": "a9262913b61bf8d6b040d1d7cd2b9193dbede33160d772162f2ef1fbe0af3dff",
    "diffusion-paced-region": "a24e30732ce8741fc13e2cffbf65ba7c2bde061486502560816d7ee3c61a3c04",
    "diffusion-two-way": "4f2d45a395532ee760c8d645fb22c4fa3cf613bffe9a7182eb92f87c41c38787",
    "dps-grid": "1bd558558f7cf7e0a0ed22753bfe0512c7b30bdd476a539d6b8faf23546eeb2a",
    "dps-moving": "3c48e4d3d7a834a80591163b6354b2f64ae39b5eff31f1be08fe50b3c735f67c",
    "dps-retained": "54b7b1bdd88addb66ab04fbabcf40b9027681a2a27406a791d7522fd94d1e863",
    "flooding-disc": "64053ebbb8ea450b0f294da72bbb38b3898fa17569d152f2fbcd33ffdfaca068",
    "flooding-link-trace": "ad6d706f1c4962fb4e8bd9c68df388136d018141801f67fc4e96675be8afce55",
    "flooding-moving": "bb4009908659f400d590ee8a448d261c8c6643f8ad61b832f1c22ca7589731a8",
    "gossip-bursts": "b1a12c69e1c7094a453f865350144526973b0073daceefad11f59fe9fc38c5d5",
    "gossip-disc": "8501d4d96fedaa2c2402e8424cc67cfce17cd463379210051643f44e28363981",
    "gossip-pieces-disc": "3351183e7f7286c8e14d78efe20f83cc6ac99eb3a24b4b9d5b24d72e001081fc",
    "pub2sub-grid": "5fdf61cea2d3f295475df7d9692b3a16c6a1cf3f2274837f859acf5636f4ceb2",
    "pub2sub-leaving": "de42066cb4c185b72e071e0d2657781120684d28b71d19d68f492c92e67e2436",
    "tinymq-crashes": "cdc3ba7d911fb32880aba8923ad8443d50a0eb1020cc103a2a9923979e5bd8a6",
    "tinymq-own": "dcd4583fc4b99c387fa7bb1810939d0c29011e7bdaa78290d47732177bf8c32b",
    "tinymq-printed": "3aecc6b165e043e69e02476acd18b685ac8457eb1a1fe39b6c4b301c4b335260",
    "tinymq-repair": "ae21adc6eb47cb6097badec00aed8a3c532f2831d626d981555155e368413a78",
}
WITHOUT_TWIN = {"tinymq-printed"}


def test_list_has_every_golden_scenario_with_its_hash_on_the_reference_engine():
    recorded = json.loads(renew.DIGESTS.read_text(encoding="utf-8"))  # tests/sim/test_trace.py runs these scenarios
    assert {name: recorded[name]["trace_hash"] for name in renew.NAMES} == HASHES


@pytest.mark.parametrize("name", sorted(set(HASHES) - WITHOUT_TWIN))
def test_golden_scenario_has_the_listed_hash_on_the_fast_engine(name):
    run = renew.scenario(name).run(engine="fast")
    assert run.engine == "fast"
    assert run.trace_hash == HASHES[name]

#!/bin/sh
# Run quick tests of the core on every Python from 3.11 to 3.13 that is installed: frames, nodes, the simulator, and the
# trace hashes of the golden scenarios. Each Python has a small environment with the core's libraries.
set -eu
for version in 3.11 3.12 3.13; do
    if ! python=$(sh scripts/find_python.sh "$version"); then
        echo "make test-pythons: Python $version is not installed; its tests are skipped"
        continue
    fi
    venv=.venv/pythons/$version
    if [ ! -x "$venv/bin/pytest" ]; then
        "$python" -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
            'cbor2>=5.6' 'cloudpickle' 'hypothesis>=6.100' 'networkx>=3.3' 'numpy>=1.26' 'pandas>=2.2,<3' 'pyarrow>=18' 'pytest>=8.2'
    fi
    echo "Python $version"
    # tests/conftest.py needs Jupyter and a browser. Tests of captured messages need its fixtures, and tests/attributes
    # needs it to forget the keys that tests register.
    "$venv/bin/python" -m pytest -q --noconftest -p no:cacheprovider -k 'not captured and not envelopes' \
        tests/protocols/*/test_wire.py tests/protocols/*/test_node.py tests/sim/test_trace.py
done

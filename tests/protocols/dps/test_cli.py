"""The command `workbench dps`: processes that subscribe, publish and bridge."""

import json
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.protocols.dps.processes import WITHIN_S, Command
from tests.repository import REPOSITORY
from workbench import cli
from workbench.errors import DecodeError
from workbench.protocols.dps.cli import output

KEY = bytes(range(32))


def one_shot(*arguments, text=""):
    """Run a command that ends by itself; return (exit code, output, errors)."""
    command = [sys.executable, "-m", "workbench.cli", "dps", *arguments]
    ran = subprocess.run(
        command, cwd=REPOSITORY, input=text, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_two_processes_publish_and_acknowledge():
    with Command("subscribe", "a/+/c", "-a", "thanks") as subscriber:
        with Command("publish", "-p", subscriber.address, "a/b/c", "-m", "hello", "-a", "-n", "1") as publisher:
            publication = subscriber.expect("publication")
            assert (publication["data"], publication["hops"], publication["topics"]) == ("hello", 1, ["a/b/c"])
            answer = publisher.expect("acknowledgement")
            assert (answer["data"], answer["publication_id"]) == ("thanks", publication["publication_id"])
            assert publisher.process.wait(WITHIN_S) == 0
        subscriber.expect("link", state="gone", neighbor=publisher.address)
        assert subscriber.interrupt() == 0


def test_output_without_json_is_readable():
    with Command("subscribe", "a/+/c") as subscriber:
        code, printed, errors = one_shot("publish", "-p", subscriber.address, "a/b/c", "-m", "hello", "-a", "-n", "1")
    assert (code, errors) == (0, "")
    lines = printed.splitlines()
    assert lines[0].startswith("listening on 127.0.0.1:")
    assert lines[1] == f"linked to {subscriber.address}"
    assert lines[2].startswith("published ") and lines[2].endswith(" 1 on a/b/c")
    assert lines[3].endswith(f": This is an ACK from {subscriber.address}")
    assert lines[-1].startswith("4 datagrams sent, ") and lines[-1].endswith("dropped: none")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_node_ends_its_links(number):
    with Command("bridge") as second_bridge, Command("bridge", "-p", second_bridge.address) as node:
        node.expect("link", state="active")
        node.process.send_signal(number)
        assert node.process.wait(WITHIN_S) == 0
        second_bridge.expect("link", neighbor=node.address, state="gone")


def test_bridge_joins_its_incoming_and_outgoing_links():
    with (
        Command("subscribe", "a/#", "-n", "1") as subscriber,
        Command("bridge", "-p", subscriber.address) as bridge,
        Command("publish", "-p", bridge.address, "a/b", "-m", "over", "-a", "-n", "1") as publisher,
    ):
        assert subscriber.expect("publication", data="over")["hops"] == 2
        publisher.expect("acknowledgement")
        assert subscriber.process.wait(WITHIN_S) == 0


def test_publisher_reads_lines_and_reports_an_invalid_one():
    with (
        Command("subscribe", "a/b", "--expired") as subscriber,
        Command("publish", "-p", subscriber.address) as publisher,
    ):
        publisher.expect("link", state="active")
        for line in (
            "a/b -m 'two words' -a",
            "",
            "a/b -m",
            "a/+",
            "a/b -t -1",
            "a/b -a -t 100 -m kept",
            "a/b -a -t -1",
        ):
            publisher.write(line)
        first, retained, ended = [subscriber.expect("publication") for _ in range(3)]
        assert (first["data"], retained["data"], retained["sequence"]) == ("two words", "kept", 2)
        assert (ended["is_expiry"], ended["sequence"]) == (True, 3)
        publisher.expect("acknowledgement", sequence=2)
        publisher.end_input()
        lines = publisher.all_lines()
        wrong = [line["message"] for line in lines if line["event"] == "error"]
        assert "a line has the form: TOPIC" in wrong[0]
        assert "a/+" in wrong[1]
        assert "-t -1 ends a retained publication" in wrong[2]
        assert publisher.process.wait(WITHIN_S) == 0


def test_publisher_reads_lines_from_a_file(tmp_path):
    (tmp_path / "lines").write_text("a/b -m 1\n\na/b -m 2")
    command = [sys.executable, "-m", "workbench.cli", "dps", "publish"]
    with (tmp_path / "lines").open() as lines:
        ran = subprocess.run(
            command, cwd=REPOSITORY, stdin=lines, capture_output=True, text=True, timeout=WITHIN_S, check=True
        )
    assert [line.split()[2] for line in ran.stdout.splitlines() if line.startswith("published")] == ["1", "2"]


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain ü\t1", "plain ü\t1"),
        ("a\nlinked to 1.2.3.4:5", "a\\nlinked to 1.2.3.4:5"),
        ("\x1b[2J\0", "\\x1b[2J\\x00"),
        ("\udcff", "\\udcff"),
    ],
)
def test_received_data_is_printed_without_control_characters(text, shown):
    assert output.printable(text) == shown


@pytest.mark.parametrize(
    "data",
    [
        "82d81c6161d81d00",  # shared values: each level of such arrays doubles the printed text
        "82d9001c6161d81d00",
        "d9010082646c6f6e67d81900",  # references to texts
        "9f82d81c6161d81d00ff",
    ],
)
def test_cbor_with_references_to_earlier_values_is_not_printed(data):
    with pytest.raises(DecodeError, match="contain references"):
        output.json_of_data(bytes.fromhex(data))


def test_bytes_in_cbor_that_look_like_references_are_printed():
    assert output.json_of_data(bytes.fromhex("8342d81c62c39c9f01ff")) == '["d81c", "\\u00dc", [1]]'


def test_payloads_given_as_json_are_sent_as_cbor_in_both_directions():
    with Command("subscribe", "t", "-j") as subscriber:
        code, printed, _ = one_shot(
            "publish", "-p", subscriber.address, "t", "-j", '{"t": 21.5}', "-a", "-n", "1", "--cbor", "--json"
        )
        assert code == 0
        assert json.loads(subscriber.expect("publication")["data"]) == {"t": 21.5}
    answer = [json.loads(line) for line in printed.splitlines() if '"acknowledgement"' in line]
    assert json.loads(answer[0]["data"]) == {"msg": "ACK Message", "address": subscriber.address}


def test_several_topics_of_a_subscription_and_several_subscriptions_are_distinguished():
    with (
        Command("subscribe", "a/1", "a/2", "-s", "b", "-s", "c", "--no-ack", "-n", "2") as subscriber,
        Command("publish", "-p", subscriber.address) as publisher,
    ):
        for line in ("a/1", "a/1 a/2 -a", "b"):
            publisher.write(line)
        received = [subscriber.expect("publication")["subscription"] for _ in range(2)]
        assert sorted(received) == [["a/1", "a/2"], ["b"]]
        assert subscriber.process.wait(WITHIN_S) == 0


def test_shared_key_is_read_from_a_file_and_nodes_without_it_read_nothing(tmp_path):
    (tmp_path / "digits").write_text(KEY.hex() + "\n")
    (tmp_path / "bytes").write_bytes(KEY)
    (tmp_path / "wrong").write_bytes(bytes(32))
    with (
        Command("subscribe", "a", "--key", f"0x6b={tmp_path / 'digits'}") as knows,
        Command("subscribe", "a", "--key", f"k={tmp_path / 'wrong'}") as has_another,
        Command("subscribe", "a") as has_none,
    ):
        links = [option for subscriber in (knows, has_another, has_none) for option in ("-p", subscriber.address)]
        options = ("-x", "1", "--key", f"k={tmp_path / 'bytes'}")
        code, printed, _ = one_shot("publish", *links, "a", "-m", "secret", "-a", "-n", "1", *options, "--json")
        assert (code, printed.count('"acknowledgement"')) == (0, 1)
        assert knows.expect("publication")["data"] == "secret"
        for outsider in (has_another, has_none):
            *before, end = outsider.all_lines()
            assert end["drops"]["sealed"] == 1
            assert not [line for line in before if line["event"] == "publication"]


def test_key_pairs_encrypt_and_sign_in_both_directions(tmp_path):
    for name, password in (("Publisher", b"open sesame"), ("Subscriber", None)):
        write_key_pair(tmp_path, name, password)
    (tmp_path / "password").write_text("open sesame\n")
    publisher = ("--private", f"Publisher={tmp_path / 'Publisher.key'}", "--password-file", str(tmp_path / "password"))
    subscriber = ("--private", f"Subscriber={tmp_path / 'Subscriber.key'}")
    with Command("subscribe", "a", *subscriber, "--public", str(tmp_path / "Publisher.pem"), "-n", "2") as subscribed:
        for method in ("2", "3"):
            options = ("-x", method, *publisher, "--public", str(tmp_path / "Subscriber.pem"))
            code, printed, errors = one_shot(
                "publish", "-p", subscribed.address, "a", "-m", "secret", "-a", "-n", "1", *options, "--json"
            )
            assert (code, errors) == (0, "")
            publication = subscribed.expect("publication")
            assert (publication["data"], publication["sender"]) == ("secret", "Publisher")
            answers = [json.loads(line) for line in printed.splitlines() if '"acknowledgement"' in line]
            assert answers[0]["data"] == f"This is an ACK from {subscribed.address}"


def write_key_pair(folder, name, password):
    """Write a P-384 key, and a certificate of it with the given common name."""
    key = ec.generate_private_key(ec.SECP384R1())
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    encoded = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    (folder / f"{name}.key").write_bytes(encoded)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    begins = datetime(2020, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins.replace(year=2100))
        .sign(key, hashes.SHA384())
    )
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["subscribe"], "no topic is given"),
        (["subscribe", "a/#/b"], "a/#/b"),
        (["subscribe", "a", "-l", "nowhere"], "is not an address"),
        (["subscribe", "a", "-l", "192.0.2.77:0"], "cannot listen on 192.0.2.77:0"),
        (["subscribe", "a", "-p", "127.0.0.1:0"], "has port 0"),
        (["subscribe", "a", "--interface", "lo"], "without --multicast"),
        (["subscribe", "a", "-b", "100"], "multiple of 64"),
        (["subscribe", "a", "--key", "k"], "--key is given without a KID or a FILE"),
        (["subscribe", "a", "--key", "k=/no/such/file"], "/no/such/file cannot be read"),
        (["subscribe", "a", "--key", "0xzz=key"], "0x must be followed by hexadecimal digits"),
        (["subscribe", "a", "--public", __file__], "not a certificate with a common name"),
        (["subscribe", "a", "--private", f"k={__file__}"], "the private key"),
        (["subscribe", "a", "--key", f"k={__file__}"], "not a shared key"),
        (["publish", "a", "-j", "{"], "is not JSON"),
        (["publish", "a", "-t", "-1"], "-t -1 ends a retained publication"),
        (["publish", "a", "-x", "1"], "-x 1 needs keys"),
        (["publish", "a", "-x", "2", "--key", f"k={KEY.hex()}"], "-x 2 needs a key to sign with"),
    ],
)
def test_errors_are_one_sentence(arguments, sentence, capsys):
    assert cli.main(["dps", *arguments]) == cli.BAD_INPUT
    printed = capsys.readouterr()
    assert printed.err.startswith("workbench dps: ")
    assert sentence in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    "option, sentence",
    [
        (["-n", "0"], "argument -n/--count: '0' is not a whole number above 0"),
        (["-n", "many"], "argument -n/--count: 'many' is not a whole number above 0"),
        (["-w", "soon"], "argument -w/--wait: 'soon' is not a number of seconds from 0 to 999,999,999"),
        (["-w", "nan"], "argument -w/--wait: 'nan' is not a number of seconds from 0 to 999,999,999"),
    ],
)
def test_numbers_of_options_that_are_not_valid_are_refused_with_their_limits(option, sentence, capsys):
    with pytest.raises(SystemExit):
        cli.main(["dps", "subscribe", "a", *option])
    assert capsys.readouterr().err.splitlines()[-1].endswith(sentence)


def test_missing_neighbor_ends_a_publisher_with_a_sentence():
    with Command("bridge") as gone:
        address = gone.address
    code, _, errors = one_shot("publish", "-p", address, "a", "--update-ms", "20")
    assert (code, errors.startswith(f"workbench dps: {address} does not answer")) == (2, True)


def test_a_subscription_to_only_a_wildcard_warns_that_it_is_not_announced():
    code, _, errors = one_shot("subscribe", "#", "--for", "0.1")
    assert code == 0 and "gets only publications of this node" in errors and errors.count("\n") == 1


def test_missing_acknowledgements_give_an_exit_code():
    assert one_shot("publish", "a", "-a", "-n", "1", "--stay", "0.1")[0] == 1


def test_debug_output_names_dropped_messages_with_reasons():
    with Command("bridge", "-d") as node, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        host, _, port = node.address.rpartition(":")
        stranger.bind((host, 0))
        stranger.sendto(b"what is this?", (host, int(port)))
        source = f"{host}:{stranger.getsockname()[1]}"
        assert node.expect("debug", kind="Dropped", neighbor=source)["detail"] == "malformed"
        assert node.all_lines()[-1]["drops"] == {"malformed": 1}


def test_a_closed_output_pipe_ends_the_command():
    with Command("publish") as publisher:
        command = [sys.executable, "-m", "workbench.cli", "dps", "subscribe", "a", "-p", publisher.address]
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as subscriber:
            subscriber.stdout.readline()
            subscriber.stdout.close()
            assert subscriber.wait(WITHIN_S) == 0

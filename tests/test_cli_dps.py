"""``workbench dps``: processes that subscribe, publish and bridge."""

from dps_processes import Command


def test_two_processes_publish_and_acknowledge():
    with Command("subscribe", "a/+/c", "-a", "thanks") as subscriber:
        with Command("publish", "-p", subscriber.address, "a/b/c", "-m", "hello", "-a", "-n", "1") as publisher:
            assert subscriber.expect("publication")["data"] == "hello"
            assert publisher.expect("acknowledgement")["data"] == "thanks"
            assert publisher.process.wait(10) == 0
        subscriber.expect("link", state="gone", neighbor=publisher.address)
        assert subscriber.interrupt() == 0

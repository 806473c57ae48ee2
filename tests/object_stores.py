"""Object stores for tests: one in the memory of this process, and a server with the interface of S3 on loopback."""

import logging
import os
import threading
from contextlib import contextmanager

from tests.until import wait_until

BUCKET = "bucket"
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def s3_server():
    """Run moto's S3 on loopback with one bucket; yield the environment variables with which clients find it."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        environment = {**_CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        client = boto3.client(
            "s3",
            endpoint_url=environment["AWS_ENDPOINT_URL"],
            region_name=environment["AWS_REGION"],
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        client.create_bucket(Bucket=BUCKET)
        yield environment
    finally:
        server.stop()


def wait_for_answers(path):
    """Wait until the server of this process has answered all requests, also those of clients that were killed since.

    ``path`` is an object of the server. The server accepts connections in their order and has a thread for each
    request, so a request of our own shows that the earlier ones have their threads.
    """
    path.exists()
    wait_until(lambda: not any("process_request_thread" in thread.name for thread in threading.enumerate()))


@contextmanager
def variables(environment):
    """Set environment variables, and restore the former ones."""
    former = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

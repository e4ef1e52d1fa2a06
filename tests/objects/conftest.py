"""A real server of S3, moto's, which is spoken to over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Its address; there is a bucket `lab`."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    words = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **words).create_bucket(Bucket="lab")
    yield url
    server.stop()

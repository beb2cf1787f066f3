"""The example of a proxy in config/: TLS and passwords are its, pages and commits come through."""

import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests import needs
from tests.aggregator.console.small_fleet import make_fleet, serving
from tests.integration.conftest import free_port
from tests.processes import run_told

EXAMPLE = Path(__file__).parents[3] / "config" / "nginx-console.conf"
NAME = "console.example.net"
AROUND = """
user root;
daemon off;
error_log stderr;
pid {place}/nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    include {place}/site.conf;
}}
"""


@contextmanager
def proxied(place: Path, upstream: str, port: int) -> Iterator[ssl.SSLContext]:
    """Run nginx by the example, with files of this test; give what trusts its certificate."""
    nginx, openssl = needs.program("nginx"), needs.program("openssl")
    cert, key, users = (place / f"console.{end}" for end in ("pem", "key", "users"))
    made = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert)]
    named = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    subprocess.run([openssl, "req", "-x509", *made, *named], check=True, capture_output=True)
    hashed = [openssl, "passwd", "-apr1", "secret"]
    done = run_told(hashed, check=True)
    users.write_text(f"alice:{done.stdout}")
    text = EXAMPLE.read_text().replace("/etc/nginx/", f"{place}/")
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
    (place / "site.conf").write_text(text.replace("http://127.0.0.1:8420", upstream))
    (place / "nginx.conf").write_text(AROUND.format(place=place))
    process = subprocess.Popen([nginx, "-p", str(place), "-c", str(place / "nginx.conf")])
    try:
        yield ssl.create_default_context(cafile=str(cert))
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.slow
def test_the_example_of_a_proxy_lets_in_who_has_a_password(tmp_path: Path) -> None:
    sign_on = 'proxy = "127.0.0.1"\nuser = "X-Remote-User"\nroles = { alice = "viewer" }'
    fleet = make_fleet(tmp_path, console=f'hosts = ["{NAME}"]\n[console.sign_on]\n{sign_on}')
    port = free_port()
    with serving(fleet) as (address, _), proxied(tmp_path, address, port) as trusting:
        options = {"sni_hostname": NAME}
        base = f"https://127.0.0.1:{port}"
        with httpx.Client(verify=trusting, timeout=60, headers={"host": NAME}) as client:
            _wait_for(client, base, options)
            assert client.get(base, extensions=options).status_code == 401
            wrong = client.get(base, extensions=options, auth=("alice", "wrong"))
            assert wrong.status_code == 401
            client.auth = httpx.BasicAuth("alice", "secret")
            page = client.get(base, extensions=options)
            assert page.status_code == 200
            devices = client.get(f"{base}/devices", extensions=options)
            assert devices.status_code == 403  # a viewer's browser cannot say more than the proxy
            more = client.get(
                f"{base}/devices", extensions=options, headers={"x-remote-user": "root"}
            )
            assert more.status_code == 403
            assert page.headers["strict-transport-security"] == "max-age=31536000"
            assert page.headers["content-security-policy"].startswith("default-src 'none'")
            strange = client.get(base, extensions=options, headers={"host": "evil.example"})
            assert strange.status_code == 421
            events = client.stream("GET", f"{base}/events", extensions=options)
            with events as stream:  # what is told comes while more is to come
                assert next(stream.iter_text()).startswith("retry: ")


def _wait_for(client: httpx.Client, base: str, options: dict[str, str]) -> None:
    while True:  # the test's own limit ends it
        try:
            client.get(base, extensions=options)
        except httpx.ConnectError:
            time.sleep(0.1)
        else:
            return

"""Who is let in, and what is never handed out."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("fastapi", reason="the [web] extra is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from starlette.testclient import TestClient

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.web.rates import MOST_CLIENTS, Buckets
from gymnasium_solver.web.settings import Limits, Rate, Settings, require_safe
from tests.web.conftest import Connect

pytestmark = pytest.mark.integration

TOKEN = "correct-horse-battery"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "example.org"])
def test_other_addresses_need_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="GSOLVE_TOKEN"):
        require_safe(Settings(Path("runs"), host))
    require_safe(Settings(Path("runs"), host, token=TOKEN))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_this_machine_needs_none(host: str) -> None:
    require_safe(Settings(Path("runs"), host))


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "with spaces in between", "semicolon;semicolon"])
def test_a_weak_token_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="at least 16"):
        require_safe(Settings(Path("runs"), token=token))


def test_without_the_token_nothing_is_told(connect: Connect) -> None:
    client = connect(token=TOKEN, host="0.0.0.0")
    for path in ("/api/health", "/api/runs", "/api/openapi.json", "/api/events", f"/api/runs?token={TOKEN}"):
        response = client.get(path)
        assert response.status_code == 401, path
        assert response.json()["next"]
    wrong = {"Authorization": f"Bearer {TOKEN[:-1]}"}
    assert client.get("/api/runs", headers=wrong).status_code == 401
    assert client.post("/api/runs", json={}).status_code == 401
    assert client.get("/api/runs", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_page_turns_the_token_into_a_cookie(connect: Connect) -> None:
    client = connect(token=TOKEN)
    assert client.get("/").status_code == 200  # it asks for the token itself
    assert client.get("/?token=wrong", follow_redirects=False).status_code == 200
    assert client.get("/api/runs").status_code == 401
    response = client.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert "httponly" in response.headers["set-cookie"].lower()
    assert client.get("/api/runs").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", ""])
def test_a_name_that_was_rebound_to_this_machine_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8080", "[::1]:8080", "127.0.0.1"])
def test_names_of_this_machine_are_fine(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://[", ""])
def test_pages_of_other_origins_are_refused(client: TestClient, run: Run, origin: str) -> None:
    assert client.post(f"/api/runs/{run.run_id}/stop", headers={"Origin": origin}).status_code == 403
    assert client.get("/api/runs", headers={"Origin": origin}).status_code == 403


def test_the_own_page_may_ask(client: TestClient, run: Run) -> None:
    headers = {"Origin": "http://127.0.0.1:8080"}
    assert client.post(f"/api/runs/{run.run_id}/stop", headers=headers).status_code == 200
    for site, status in {"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200}.items():
        assert client.get("/api/runs", headers={"Sec-Fetch-Site": site}).status_code == status
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200  # a link from elsewhere


def test_a_read_only_server_changes_nothing(connect: Connect, run: Run) -> None:
    client = connect(read_only=True)
    for path in ("/api/runs", f"/api/runs/{run.run_id}/stop"):
        response = client.post(path, json={"config_id": "CartPole-v1:ppo"})
        assert response.status_code == 403
        assert "only reads" in response.json()["error"]
    assert client.get("/api/runs").status_code == 200


ESCAPES = ["..", "../..", "../../etc", "/etc", "~", "~root", ".", "a/b", "a\\b", "x\0y", "%2e%2e", "@../x", "-", "é"]


@pytest.mark.parametrize("ref", ESCAPES)
@pytest.mark.parametrize("encode", [str, lambda text: quote(text, safe="")])
def test_no_id_leads_out_of_the_directory(client: TestClient, ref: str, encode: object) -> None:
    assert callable(encode)
    try:
        answers = [client.get(f"/api/runs/{encode(ref)}{part}") for part in ("/metrics", "/logs", "/diagnosis")]
    except Exception as error:  # an address that the client itself cannot send
        pytest.skip(f"cannot be sent: {error}")
    assert {answer.status_code for answer in answers} <= {404, 307}
    assert client.get("/api/compare", params={"run_ids": f"{ref},@last"}).status_code == 404
    assert client.get("/api/events", params={"run_id": ref}).status_code == 404


def test_a_run_outside_is_not_served_by_its_path(client: TestClient, runs_dir: Path, run: Run) -> None:
    outside = runs_dir.parent / "elsewhere"
    run.path.rename(outside)
    for ref in (str(outside), "elsewhere", "../elsewhere"):
        assert client.get(f"/api/runs/{quote(ref, safe='')}/logs").status_code == 404


def test_a_link_out_of_the_directory_is_not_followed(client: TestClient, runs_dir: Path, run: Run) -> None:
    outside = runs_dir.parent / "outside"
    run.path.rename(outside)
    (runs_dir / "linked").symlink_to(outside)
    assert client.get("/api/runs/linked").status_code == 404
    assert client.get("/api/runs/linked/logs").status_code == 404
    assert client.post("/api/runs/linked/stop").status_code == 404
    assert client.get("/api/runs").json()["total"] == 2


PARTS = ("", "/metrics", "/logs", "/diagnosis", "/checkpoints", "/episode", "/files/report.md")


@pytest.mark.parametrize(
    "name",
    ["run.log", "config.json", "report.md", "plots/curve.svg", "checkpoints/best.safetensors", "checkpoints/best.json"],
)
def test_a_file_of_a_run_that_is_a_link_out_is_not_read(
    client: TestClient, runs_dir: Path, run: Run, name: str
) -> None:
    place, secret = run.path / name, runs_dir.parent / "secret"
    place.parent.mkdir(exist_ok=True)
    (run.path / "report.md").write_text("# Report")
    secret.write_text('{"env_id": "secret"}')
    assert client.get(f"/api/runs/{run.run_id}").status_code == 200
    place.unlink(missing_ok=True)
    place.symlink_to(secret)
    for part in PARTS:
        answer = client.get(f"/api/runs/{run.run_id}{part}")
        assert (answer.status_code, "secret" in answer.text) == (404, False), part
    assert client.get("/api/compare", params={"run_ids": f"{run.run_id},@last"}).status_code == 404


def test_a_link_within_a_run_is_followed(client: TestClient, run: Run) -> None:
    (run.path / "old.log").write_text("a line\n")
    (run.path / "run.log").symlink_to("old.log")
    assert client.get(f"/api/runs/{run.run_id}/logs").json()["lines"] == ["a line"]


@pytest.mark.parametrize("name", ["experiment.json", "trials.jsonl"])
def test_an_experiment_that_is_a_link_out_is_not_read(client: TestClient, runs_dir: Path, name: str) -> None:
    place, secret = runs_dir / "20260102-030405-solve-ab12", runs_dir.parent / "secret"
    place.mkdir()
    (place / "experiment.json").write_text('{"kind": "solve"}')
    secret.write_text('{"kind": "secret"}\n')
    (place / name).unlink(missing_ok=True)
    (place / name).symlink_to(secret)
    answers = [client.get(f"/api/experiments{part}") for part in ("", f"/{place.name}")]
    assert [answer.status_code for answer in answers] == [200, 404]
    assert not any('"secret"' in answer.text for answer in answers)


def test_a_group_with_a_run_that_is_a_link_out_is_not_compared(client: TestClient, runs_dir: Path, run: Run) -> None:
    group = runs_dir / "20260102-030405-seeds-ab12"
    group.mkdir()
    (group / "group.json").write_text('{"status": "completed"}')
    status = run.path / "status.json"
    status.write_text(json.dumps({**json.loads(status.read_text()), "group": group.name}))
    (runs_dir.parent / "secret").write_text("secret")
    (run.path / "run.log").unlink(missing_ok=True)
    (run.path / "run.log").symlink_to(runs_dir.parent / "secret")
    found = client.get("/api/compare", params={"run_ids": f"{group.name},@last"})
    assert (found.status_code, "run.log" in found.json()["error"]) == (404, True)


@pytest.mark.parametrize("name", ["~mine", "x" * 255, ".hidden"])
def test_every_run_in_the_list_can_be_opened(client: TestClient, runs_dir: Path, run: Run, name: str) -> None:
    run.path.rename(runs_dir / name)
    listed: list[str] = []
    deadline = time.monotonic() + 20  # the list may be older than the renaming
    while name not in listed and time.monotonic() < deadline:
        listed = [row["run_id"] for row in client.get("/api/runs").json()["runs"]]
    assert name in listed
    assert {client.get(f"/api/runs/{quote(ref)}").status_code for ref in listed} == {200}
    assert client.get("/api/compare", params={"run_ids": ",".join(listed)}).status_code == 200


@pytest.mark.parametrize("name", ["x" * 256, "é" * 200, "~nobody-of-this-name"])
def test_names_that_no_run_can_have(client: TestClient, name: str) -> None:
    assert client.get(f"/api/runs/{quote(name)}").status_code == 404
    assert client.get(f"/api/experiments/{quote(name)}").status_code == 404


def test_only_the_report_and_its_pictures_are_files(client: TestClient, run: Run) -> None:
    (run.path / "report.md").write_text("# Report")
    (run.path / "plots").mkdir()
    for name in ("curve.svg", "curve.html"):
        (run.path / "plots" / name).write_text("<script>alert(1)</script>")
    files = f"/api/runs/{run.run_id}/files/"
    report = client.get(f"{files}report.md")
    assert (report.status_code, report.text) == (200, "# Report")
    assert report.headers["content-type"].startswith("text/markdown")
    drawing = client.get(f"{files}plots/curve.svg").headers  # opened by itself, it is a document
    assert drawing["content-type"] == "image/svg+xml"
    assert "sandbox" in drawing["content-security-policy"]
    assert "script-src" not in drawing["content-security-policy"]
    for path in (
        "config.json",
        "plots/none.svg",
        "plots/curve.html",
        "plots/../config.json",
        "plots/%2e%2e/config.json",
        "/etc/passwd",
    ):
        assert client.get(files + path).status_code == 404, path
    assert client.get(f"{files}plots%2f..%2fconfig.json").status_code == 404


def test_reading_a_configuration_runs_no_code(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\nclass Env: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert client.get("/api/configs/trap:Env:ppo").status_code == 422
    assert not (tmp_path / "sprung").exists()


def test_bodies_are_bounded(client: TestClient) -> None:
    large = b'{"config_id": "' + b"x" * 300_000 + b'"}'
    assert client.post("/api/runs", content=large).status_code == 413
    pieces = (large[at : at + 1000] for at in range(0, len(large), 1000))
    assert client.post("/api/runs", content=pieces).status_code == 413  # no Content-Length
    nested = b'{"config_id": "x", "overrides": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001
    headers = {"content-type": "application/json"}
    assert client.post("/api/runs", content=nested, headers=headers).status_code in (400, 422)


def test_rates_are_bounded(connect: Connect) -> None:
    limits = Limits(reads=Rate(1, 3), local_reads=Rate(1, 5), writes=Rate(1, 2))
    stranger = connect("203.0.113.5", host="0.0.0.0", token=TOKEN, limits=limits)
    stranger.headers["Authorization"] = f"Bearer {TOKEN}"
    codes = [stranger.get("/api/health") for _ in range(6)]
    assert [code.status_code for code in codes] == [200] * 3 + [429] * 3
    assert codes[-1].headers["retry-after"] == "1"
    local = connect(limits=limits)
    assert [local.get("/api/health").status_code for _ in range(7)] == [200] * 5 + [429] * 2
    assert [local.post("/api/runs/x/stop").status_code for _ in range(3)] == [404, 404, 429]


def test_guessing_tokens_is_slow(connect: Connect) -> None:
    client = connect(token=TOKEN, limits=Limits(refusals=Rate(0.1, 3)))
    codes = [client.get("/api/runs", headers={"Authorization": f"Bearer {index}"}).status_code for index in range(5)]
    assert codes == [401, 401, 401, 429, 429]


def test_buckets_fill_again_and_do_not_grow_without_end() -> None:
    now = [0.0]
    buckets = Buckets(lambda: now[0])
    rate = Rate(2, 2)
    assert [buckets.wait("a", rate) for _ in range(3)] == [0, 0, 0.5]
    now[0] += 0.5
    assert buckets.wait("a", rate) == 0
    for client in range(2 * MOST_CLIENTS):
        buckets.wait(str(client), rate)
    assert len(buckets._state) <= MOST_CLIENTS


@pytest.mark.parametrize("path", ["/", "/api/health", "/api/nope", "/static/nope.js"])
def test_every_answer_is_guarded(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe-eval" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"

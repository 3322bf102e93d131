"""The manifests: right by the schemas of Kubernetes, old and new, and in step with what a worker reads and serves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from loopwarden.client.properties import client_properties
from loopwarden.client.security import security_given
from loopwarden.worker import Settings

OLDEST = "1.27.0"
"""As the README says: the PodDisruptionBudget has a field that is not known before."""

A_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUShEr55D0Q9Niq4MPDJj1A3AjoXQwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMzAxNjM3NTRaGA8yMTI2MTEwNjE2Mzc1
NFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOHW
I15yykTjCYIJslnfn++MRpsITbEJlEU6EG0YxeMKMfpaMqtNwdyt0x86b4VkjkBg
45iaHn5LIPt2UkGI4f+jUzBRMB0GA1UdDgQWBBQglCLHvzizc8G3JWg+NRMRT8F2
bjAfBgNVHSMEGDAWgBQglCLHvzizc8G3JWg+NRMRT8F2bjAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIQDTeR3z1NKoOzeTzH6pWottHsqgSx7SqS/t
e5KeeLUNAgIgC2pHFBPKoW0lMhTU+TBiv7VzaT2sboFXaOTHoQ8kn/Q=
-----END CERTIFICATE-----
"""
"""Of nobody, for a hundred years."""

Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def folder(infra: Path) -> Path:
    return infra / "kubernetes"


@pytest.fixture(scope="module")
def manifests(folder: Path) -> dict[str, Manifest]:
    """By kind."""
    files = [*yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"], "secret.example.yaml"]
    documents = [each for file in files for each in yaml.safe_load_all((folder / file).read_text())]
    assert len({each["kind"] for each in documents}) == len(documents)
    return {each["kind"]: each for each in documents}


@pytest.fixture(scope="module")
def pod(manifests: dict[str, Manifest]) -> Manifest:
    found: Manifest = manifests["StatefulSet"]["spec"]["template"]
    return found


@pytest.fixture(scope="module")
def container(pod: Manifest) -> Manifest:
    [found] = pod["spec"]["containers"]
    return dict(found)


@pytest.fixture(scope="module")
def environment(container: Manifest) -> dict[str, str]:
    return {each["name"]: each.get("value", "loopwarden-worker-0") for each in container["env"]}


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_every_manifest_is_right_by_the_schema_of_its_kind(manifests: dict[str, Manifest], version: str) -> None:
    for manifest in manifests.values():
        kubernetes_validate.validate(manifest, version, strict=True)


def test_a_misspelt_field_would_not_pass(manifests: dict[str, Manifest]) -> None:
    wrong = {**manifests["PodDisruptionBudget"], "spec": {"maxUnavailible": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, OLDEST, strict=True)


def test_nothing_lies_in_the_folder_that_is_not_applied(folder: Path) -> None:
    applied = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    assert {path.name for path in folder.glob("*.yaml")} == {*applied, "kustomization.yaml", "secret.example.yaml"}


def test_everything_selects_the_pods_of_the_stateful_set(manifests: dict[str, Manifest], pod: Manifest) -> None:
    stateful_set = manifests["StatefulSet"]
    labels = pod["metadata"]["labels"]
    selectors = [
        stateful_set["spec"]["selector"]["matchLabels"],
        manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        manifests["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        manifests["Service"]["spec"]["selector"],
        *[each["labelSelector"]["matchLabels"] for each in pod["spec"]["topologySpreadConstraints"]],
    ]
    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    assert stateful_set["spec"]["serviceName"] == manifests["Service"]["metadata"]["name"]
    assert pod["spec"]["serviceAccountName"] == manifests["ServiceAccount"]["metadata"]["name"]


def test_the_worker_takes_the_settings_as_they_stand(environment: dict[str, str], container: Manifest) -> None:
    # The secret is not here; its example is taken below.
    settings = Settings.from_environment({**environment, "LOOPWARDEN_CLIENT_PROPERTIES": ""})
    client = environment["LOOPWARDEN_CLIENT_PROPERTIES"]
    assert settings.group_instance_id == "loopwarden-worker-0"
    assert settings.metrics_port == 9400
    assert settings.log_format == "json"
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(settings.data_dir), str(Path(client).parent), "/tmp"} == mounted


def test_no_setting_is_one_that_the_worker_does_not_know(environment: dict[str, str]) -> None:
    source = Path(__file__).parents[2] / "streams/loopwarden"
    known = set()
    for module in ("worker/settings.py", "client/settings.py", "client/properties.py"):
        known |= set(re.findall(r"LOOPWARDEN_[A-Z_]+", (source / module).read_text()))
    assert environment.keys() <= known


def test_each_pod_s_name_is_its_name_in_the_group(container: Manifest) -> None:
    [instance] = [each for each in container["env"] if each["name"] == "LOOPWARDEN_GROUP_INSTANCE_ID"]
    assert instance["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_the_probes_ask_what_the_worker_serves_where_it_serves_it(
    container: Manifest, environment: dict[str, str], manifests: dict[str, Manifest]
) -> None:
    paths = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    [port] = container["ports"]
    assert str(port["containerPort"]) == environment["LOOPWARDEN_METRICS_PORT"]
    asked = {container[name]["httpGet"]["port"] for name in paths}
    [served] = manifests["Service"]["spec"]["ports"]
    assert asked == {port["name"]} == {served["targetPort"]}
    assert manifests["NetworkPolicy"]["spec"]["ingress"] == [{"ports": [{"port": port["name"]}]}]


def test_a_pod_may_do_nothing_that_it_does_not_need(pod: Manifest, container: Manifest) -> None:
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert pod["spec"]["securityContext"]["runAsUser"] > 0
    assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]


def test_the_pod_runs_as_the_user_of_the_image_and_writes_where_it_may(
    infra: Path, pod: Manifest, environment: dict[str, str]
) -> None:
    dockerfile = (infra / "Dockerfile").read_text()
    security = pod["spec"]["securityContext"]
    assert f"USER {security['runAsUser']}:{security['runAsGroup']}\n" in dockerfile
    assert security["fsGroup"] == security["runAsGroup"]
    assert f"LOOPWARDEN_DATA_DIR={environment['LOOPWARDEN_DATA_DIR']}\n" in dockerfile


def test_the_session_outlasts_a_pod_that_comes_back(pod: Manifest, environment: dict[str, str]) -> None:
    assert float(environment["LOOPWARDEN_SESSION_SECONDS"]) > pod["spec"]["terminationGracePeriodSeconds"]


def test_the_example_of_the_secret_is_one_that_the_worker_takes(
    manifests: dict[str, Manifest], pod: Manifest, environment: dict[str, str], tmp_path: Path
) -> None:
    secret = manifests["Secret"]
    [volume] = [each for each in pod["spec"]["volumes"] if "secret" in each]
    assert volume["secret"]["secretName"] == secret["metadata"]["name"]
    mounted = Path(environment["LOOPWARDEN_CLIENT_PROPERTIES"])
    for name, text in secret["stringData"].items():
        (tmp_path / name).write_text(text.replace(str(mounted.parent), str(tmp_path)))
    (tmp_path / "ca.pem").write_text(A_CERTIFICATE)
    given = client_properties(str(tmp_path / mounted.name), {})
    security = security_given(given)
    assert given["bootstrap.servers"].value
    assert security.protocol == "SASL_SSL"
    assert security.password == "REPLACE-ME"
    assert security.truststore == str(tmp_path / "ca.pem")

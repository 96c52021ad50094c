#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders deploy/kubernetes with `kubectl kustomize` and checks the manifests.

usage: kubernetes_test.py CROUTD

Requires kubectl and the package kubernetes-validate.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import jsonschema
import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
MANIFESTS = ROOT / "deploy" / "kubernetes"
PAGE = ROOT / "docs" / "operations" / "containers.md"
# The oldest version in support when this was written, and the newest that kubernetes-validate has.
VERSIONS = "1.33", kubernetes_validate.latest_version()
CUSTOM_RESOURCES = {"ServiceMonitor": json.loads(pathlib.Path(__file__).with_name("servicemonitor_schema.json").read_text())}
TIMEOUT = 60
CROUTD = None


def seconds(duration):
    number, unit = re.fullmatch(r"(\d+)(s|m|h)", duration).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


class KubernetesTest(unittest.TestCase):
    def render(self, directory):
        """Returns {(kind, name): resource} of the validated resources of a kustomization."""
        done = subprocess.run(["kubectl", "kustomize", directory], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        resources = list(yaml.safe_load_all(done.stdout))
        for resource in resources:
            if schema := CUSTOM_RESOURCES.get(resource["kind"]):
                jsonschema.validate(resource, schema)
                continue
            for version in VERSIONS:
                kubernetes_validate.validate(resource, version, strict=True)
        return {(resource["kind"], resource["metadata"]["name"]): resource for resource in resources}

    def pod_of(self, resources):
        return resources["StatefulSet", "crout"]["spec"]["template"]

    def container_of(self, resources):
        container, = self.pod_of(resources)["spec"]["containers"]
        return container

    def environment_of(self, resources):
        return {entry["name"]: entry.get("value") for entry in self.container_of(resources)["env"]}

    def test_the_validation_finds_errors(self):
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(
                {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"prots": []}},
                VERSIONS[0], strict=True)

    def test_the_base(self):
        resources = self.render(MANIFESTS / "base")
        self.assertEqual(set(resources), {
            ("StatefulSet", "crout"), ("Service", "crout"), ("Service", "crout-pods"), ("PodDisruptionBudget", "crout"),
            ("NetworkPolicy", "crout")})
        stateful_set = resources["StatefulSet", "crout"]["spec"]
        labels = self.pod_of(resources)["metadata"]["labels"].items()
        for selector in (stateful_set["selector"]["matchLabels"], resources["Service", "crout"]["spec"]["selector"],
                         resources["Service", "crout-pods"]["spec"]["selector"],
                         resources["PodDisruptionBudget", "crout"]["spec"]["selector"]["matchLabels"],
                         resources["NetworkPolicy", "crout"]["spec"]["podSelector"]["matchLabels"]):
            self.assertLessEqual(selector.items(), labels)
        self.assertEqual(stateful_set["serviceName"], "crout-pods")
        ports = {port["name"]: port["containerPort"] for port in self.container_of(resources)["ports"]}
        self.assertEqual(ports, {"grpc": 50051, "metrics": 9464})
        for name in "crout", "crout-pods":
            for port in resources["Service", name]["spec"]["ports"]:
                self.assertEqual(ports[port["targetPort"]], port["port"])
        for rule in resources["NetworkPolicy", "crout"]["spec"]["ingress"]:
            self.assertIn(rule["ports"][0]["port"], ports)
        user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "deploy/Dockerfile").read_text(), re.M)
        security = self.pod_of(resources)["spec"]["securityContext"]
        self.assertEqual((security["runAsUser"], security["runAsGroup"]), (int(user[1]), int(user[2])))
        mounted = {mount["mountPath"]: mount["name"] for mount in self.container_of(resources)["volumeMounts"]}
        self.assertIn(self.environment_of(resources)["CROUT_STATE_DIR"], mounted)
        self.assertEqual(set(mounted.values()), {volume["name"] for volume in self.pod_of(resources)["spec"]["volumes"]})

    def test_the_daemon_of_the_base(self):
        """Runs the daemon with the settings of the manifest and sends the requests of the probes."""
        resources = self.render(MANIFESTS / "base")
        settings = self.environment_of(resources)
        with tempfile.TemporaryDirectory() as directory:
            tls = pathlib.Path(directory) / "tls"
            subprocess.run([ROOT / "deploy/tls/make-certificates.sh", tls, "localhost"], check=True, capture_output=True)
            mounts = {"/etc/crout/tls/tls": str(tls / "server"), "/var/lib/crout": directory, "0.0.0.0:50051": "127.0.0.1:0",
                      "0.0.0.0:9464": "127.0.0.1:0"}
            env = {name: value for name, value in os.environ.items() if not name.startswith("CROUT_")}
            for name, value in settings.items():
                value = "2" if value is None else value
                for old, new in mounts.items():
                    value = value.replace(old, new)
                env[name] = value
            env["CROUT_DRAIN_GRACE"] = "0s"
            daemon = subprocess.Popen([CROUTD], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                ready = re.match(r"croutd ready listen=\S+ metrics=(\S+)", daemon.stdout.readline())
                self.assertTrue(ready, "the daemon does not start")
                for probe in "startupProbe", "livenessProbe", "readinessProbe":
                    path = self.container_of(resources)[probe]["httpGet"]["path"]
                    with urllib.request.urlopen(f"http://{ready[1]}{path}", timeout=TIMEOUT) as reply:
                        self.assertEqual(reply.status, 200)
            finally:
                daemon.terminate()
                log = daemon.communicate(timeout=TIMEOUT)[1]
        started = json.loads(next(line for line in log.splitlines() if "daemon_started" in line))
        self.assertTrue(started["tls"])
        self.assertEqual(started["drain_limit_seconds"], seconds(settings["CROUT_DRAIN_LIMIT"]))
        drained = seconds(settings["CROUT_DRAIN_GRACE"]) + seconds(settings["CROUT_DRAIN_LIMIT"]) + 5
        self.assertGreater(self.pod_of(resources)["spec"]["terminationGracePeriodSeconds"], drained)

    def check_gpu(self, resources):
        container = self.container_of(resources)
        self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], "1")
        self.assertEqual(self.environment_of(resources)["CROUT_DEVICES"], "cuda")
        self.assertEqual(self.environment_of(resources)["CROUT_TLS_CERT"], "/etc/crout/tls/tls.crt")
        self.assertNotIn("state", [volume["name"] for volume in self.pod_of(resources)["spec"]["volumes"]])
        claim, = resources["StatefulSet", "crout"]["spec"]["volumeClaimTemplates"]
        self.assertEqual(claim["metadata"]["name"], "state")
        return container

    def test_the_gpu_variant(self):
        self.assertEqual(self.check_gpu(self.render(MANIFESTS / "gpu"))["image"], "crout:gpu")

    def test_the_service_monitor(self):
        monitor = self.render(MANIFESTS / "monitoring")["ServiceMonitor", "crout"]
        service = self.render(MANIFESTS / "base")["Service", "crout-pods"]
        labels = service["metadata"]["labels"]
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), labels.items())
        # The alerts read up{job="crout"}.
        self.assertEqual(labels[monitor["spec"]["jobLabel"]], "crout")
        ports = {port["name"] for port in service["spec"]["ports"]}
        self.assertLessEqual({endpoint["port"] for endpoint in monitor["spec"]["endpoints"]}, ports)

    def test_the_overlay_of_the_page(self):
        """Renders the kustomization of docs/operations/containers.md beside deploy/kubernetes."""
        blocks = re.findall(r"^# ([\w./]+\.yaml)\n(.*?)^```", PAGE.read_text(), re.M | re.S)
        self.assertEqual(len(blocks), 2)
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "deploy").mkdir()
            subprocess.run(["cp", "-r", MANIFESTS, f"{directory}/deploy/kubernetes"], check=True)
            for name, text in blocks:
                path = pathlib.Path(directory, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            resources = self.render(path.parent)
        container = self.check_gpu(resources)
        self.assertEqual(container["image"], "registry.example.org/crout:0.1.0-gpu")
        self.assertEqual({resource["metadata"]["namespace"] for resource in resources.values()}, {"solvers"})
        path = self.environment_of(resources)["CROUT_IDENTITIES"]
        self.assertIn(str(pathlib.PurePath(path).parent), {mount["mountPath"] for mount in container["volumeMounts"]})


if __name__ == "__main__":
    CROUTD = os.path.abspath(sys.argv.pop(1))
    unittest.main()

/**
 * The root CA certificate publisher: publishes the CA of the API server in the ConfigMap kube-root-ca.crt of each
 * namespace.
 */

import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { ControllerDeps } from "../controller.ts";
import { ensureInNamespaces } from "./ensure-in-namespaces.ts";

/** As in Kubernetes. */
const DESCRIPTION = {
  "kubernetes.io/description":
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints " +
    "such as the internal service IP or kubernetes.default.svc. No other usage " +
    "is guaranteed across distributions of Kubernetes clusters.",
};

export async function runRootCaCertPublisher(deps: ControllerDeps): Promise<void> {
  const { clusterCa, log, signal } = deps;
  if (clusterCa === undefined) {
    log.info("Not publishing a root CA: none is configured");
    await waitForAbort(signal);
    return;
  }
  const data = { "ca.crt": clusterCa };
  const registry = deps.registry ?? new MetricRegistry();
  const labels = ["code"];
  const stability = "ALPHA";
  const syncs = registry.counter({
    name: "root_ca_cert_publisher_sync_total",
    help: "Syncs of namespaces by status code.",
    stability,
    labels,
  });
  const durations = registry.histogram(
    {
      name: "root_ca_cert_publisher_sync_duration_seconds",
      help: "How long syncs of namespaces take, by status code.",
      stability,
      labels,
    },
    exponentialBuckets(0.001, 2, 15),
  );
  await ensureInNamespaces<ConfigMap>(deps, {
    kind: configMapKind,
    name: "kube-root-ca.crt",
    queueName: "root_ca_cert_publisher",
    onSynced: (seconds, code) => {
      syncs.with(String(code)).inc();
      durations.with(String(code)).observe(seconds);
    },
    desired: (found) => {
      if (found === undefined) return { metadata: { annotations: DESCRIPTION }, data };
      const { annotations } = found.metadata ?? {};
      const isDescribed = Object.keys(DESCRIPTION).every((key) => Boolean(annotations?.[key]));
      if (deepEqual(found.data, data) && isDescribed) return undefined;
      return { ...found, metadata: { ...found.metadata, annotations: { ...annotations, ...DESCRIPTION } }, data };
    },
  });
}

/**
 * Plays what Kubernetes 1.33's controllers did: final objects, events, and transitions in the order that several
 * recordings of a scenario had in common.
 * `testdata/recorded-differences/controllers.json` lists the scenarios that differ by reason; no scenario may be added.
 * All others must go as recorded in one of several attempts: when pods become ready together, and which controller is
 * first, depends on the load of this machine too.
 *
 *     SVC_SCENARIO=dep-roll node src/acceptance/controllers/recorded/recorded-controllers.test.ts   prints differences
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import type { ApiServerConfig } from "../../../apiserver/config/config.ts";
import { defaultConfig } from "../../../apiserver/config/default-config.ts";
import { createCa } from "../../../auth/pki/certificate-authority.ts";
import { writeKeyPair } from "../../../auth/pki/key-pair.ts";
import { defaultControllerOptions } from "../../../controllers/controller-options.ts";
import { singleAuthority } from "../../../controllers/signing-authorities.ts";
import { startInMemoryCluster } from "../../../testing/apiserver/in-memory-cluster.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { fileDirectory } from "../../../testing/std/file-directory.ts";
import { playScenarios } from "./player.ts";
import { readScenarios, type Scenario } from "./scenario.ts";

const DAY_MS = 86_400_000;
/** Which of three equal pods is deleted is random, also upstream: 30 attempts miss it once in 190,000 runs. */
const ATTEMPTS_MAX = 30;
const NAMESPACES = ["garbage-collector", "namespace", "serviceaccount"];
const DEPLOYMENTS = ["deployment", "replicaset", "replicationcontroller"];

interface Area {
  readonly controllers: readonly string[];
  /** The kinds that are compared. */
  readonly kinds: readonly string[];
  /** The time of day, in milliseconds since 1970. */
  readonly startAt?: number;
  readonly config?: Partial<ApiServerConfig>;
}

const AREAS: Readonly<Record<string, Area>> = {
  replicaset: {
    controllers: [...DEPLOYMENTS, "resourcequota"],
    kinds: ["Pod", "ReplicaSet", "ReplicationController"],
  },
  deployment: { controllers: DEPLOYMENTS, kinds: ["Deployment", "Pod", "ReplicaSet"] },
  daemonset: {
    controllers: ["daemonset", "node-lifecycle"],
    kinds: ["ControllerRevision", "DaemonSet", "Pod"],
  },
  statefulset: {
    controllers: ["persistentvolume-binder", "pvc-protection", "statefulset"],
    kinds: ["ControllerRevision", "PersistentVolumeClaim", "Pod", "StatefulSet"],
  },
  volumes: {
    controllers: [
      "attachdetach",
      "ephemeral-volume",
      "node-lifecycle",
      "persistentvolume-binder",
      "persistentvolume-expander",
      "pv-protection",
      "pvc-protection",
    ],
    kinds: ["PersistentVolume", "PersistentVolumeClaim", "Pod", "StorageClass", "VolumeAttachment"],
  },
  job: { controllers: ["job", "ttl-after-finished"], kinds: ["Job", "Pod"] },
  cronjob: {
    controllers: ["cronjob", "job"],
    kinds: ["CronJob", "Job", "Pod"],
    // In an odd minute, as in the recordings, and not on New Year's Day, when a yearly run is due.
    startAt: Date.UTC(2026, 0, 5, 10, 3, 10),
  },
  endpoints: {
    controllers: [...DEPLOYMENTS, "endpoint", "endpointslice", "endpointslicemirroring"],
    kinds: ["Deployment", "EndpointSlice", "Endpoints", "Pod", "ReplicaSet"],
  },
  nodes: {
    controllers: [...DEPLOYMENTS, "daemonset", "job", "node-lifecycle", "podgc", "statefulset", "ttl"],
    kinds: ["ControllerRevision", "DaemonSet", "Deployment", "Job", "Node", "Pod", "ReplicaSet", "StatefulSet"],
  },
  hpa: {
    controllers: [...DEPLOYMENTS, "horizontalpodautoscaling"],
    kinds: ["Deployment", "HorizontalPodAutoscaler", "Pod", "ReplicaSet"],
    // The recorded server had no metrics server.
    config: { apis: { ...defaultConfig.apis, runtimeConfig: { "metrics.k8s.io/v1beta1": "false" } } },
  },
  vap: {
    controllers: ["validatingadmissionpolicy-status-controller"],
    kinds: ["ValidatingAdmissionPolicy"],
  },
  gc: { controllers: [], kinds: ["ClusterRole", "ConfigMap"] },
  namespace: {
    controllers: [...DEPLOYMENTS, "job", "root-ca-certificate-publisher"],
    kinds: ["ConfigMap", "Deployment", "Job", "Namespace", "Pod", "ReplicaSet"],
  },
  quota: {
    // The volume controller records events about claims.
    controllers: ["persistentvolume-binder", "resourcequota"],
    kinds: ["ConfigMap", "PersistentVolumeClaim", "Pod", "ResourceQuota", "Service"],
  },
  serviceaccount: {
    controllers: ["root-ca-certificate-publisher", "serviceaccount-token"],
    kinds: ["ConfigMap", "Secret", "ServiceAccount"],
  },
  csr: { controllers: ["csrapproving", "csrcleaner", "csrsigning"], kinds: ["CertificateSigningRequest"] },
  servicecidr: { controllers: ["service-cidr-controller"], kinds: ["ServiceCIDR"] },
  aggregate: { controllers: ["clusterrole-aggregation"], kinds: ["ClusterRole"] },
  pdb: {
    controllers: [...DEPLOYMENTS, "disruption"],
    kinds: ["Deployment", "Pod", "PodDisruptionBudget", "ReplicaSet"],
  },
};
/** As the flags of the controller manager that was recorded. */
const OPTIONS = {
  claimBinderSyncPeriodMs: 5_000,
  nodeMonitorGracePeriodMs: 12_000,
  autoscaler: { ...defaultControllerOptions.autoscaler, syncPeriodMs: 5_000 },
};
const wanted = process.env.SVC_SCENARIO;
const list = fileURLToPath(new URL("../../../../testdata/recorded-differences/controllers.json", import.meta.url));
const reasons = Object.entries(JSON.parse(readFileSync(list, "utf8")) as Record<string, readonly string[]>);
const known = reasons.flatMap(([, ids]) => ids);

const directory = fileDirectory(t);
const ca = await createCa("test-ca", 10, Date.now());
await writeKeyPair({ certFile: join(directory, "ca.crt"), keyFile: join(directory, "ca.key") }, ca);

t.setTimeout(300_000);

for (const [area, { controllers, kinds, startAt, config = {} }] of Object.entries(AREAS)) {
  t.test(`the controllers do as recorded: ${area}`, { timeout: 300_000 }, async (t) => {
    const embeddedControllers = [...NAMESPACES, ...controllers];
    const files = { certFile: join(directory, "ca.crt"), keyFile: join(directory, "ca.key") };
    const signing = singleAuthority(files, DAY_MS);
    // A generated key takes long.
    const serviceAccounts = { ...defaultConfig.authentication.serviceAccounts, signingKeyFile: files.keyFile };
    const authentication = { ...defaultConfig.authentication, serviceAccounts };
    const common = { controllerOptions: OPTIONS, clusterCa: ca.cert, signing, authentication };
    const whole = { embeddedControllers, ...common, ...config };
    const play = async (scenarios: readonly Scenario[]): Promise<readonly (readonly string[])[]> => {
      const clock = new FakeClock(startAt);
      const client = await startInMemoryCluster(t, whole, clock);
      await clock.advance(1000);
      return await playScenarios(client, clock, scenarios, kinds);
    };
    let left = readScenarios(area).filter(({ id }) => wanted === undefined || id.startsWith(wanted));
    for (let attempt = 1; left.length > 0 && attempt <= ATTEMPTS_MAX; attempt++) {
      const results = await play(left);
      left = left.filter(({ id, title }, index) => {
        const differences = results[index] ?? [];
        if (wanted !== undefined) for (const difference of differences) t.comment(`${id}: ${difference}`);
        if (known.includes(id)) t.ok(differences.length > 0, `${id}: ${title}`);
        else {
          if (differences.length > 0 && attempt < ATTEMPTS_MAX) return true;
          t.same(differences, [], `${id}: ${title}`);
        }
        return false;
      });
    }
  });
}

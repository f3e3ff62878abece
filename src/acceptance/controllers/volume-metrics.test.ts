import t from "tap";
import { builtinScheme } from "../../api/builtin.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { storageClassKind } from "../../api/storage/storage-class/kind.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { createApiServer } from "../../apiserver/server.ts";
import { createClient } from "../../client/api-client.ts";
import { startControllers } from "../../controllers/controller-manager.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { systemClock } from "../../std/time/clock.ts";
import { until } from "../../testing/std/until.ts";

const CONTROLLERS = ["ephemeral-volume", "nodeipam", "persistentvolume-binder"];

t.test("the controllers of volumes and of node CIDRs have Kubernetes' metrics", async (t) => {
  const config = { ...defaultConfig, authorizationModes: ["Node", "RBAC"] };
  const { server } = await createApiServer(config, { clock: systemClock, log: silentLogger }, () => "");
  t.teardown(() => server[Symbol.asyncDispose]());
  const registry = new MetricRegistry();
  const running = startControllers(CONTROLLERS, {
    clientFor: (user) =>
      createClient({ transport: server.handler, headers: { authorization: `Bearer ${server.loopbackToken(user)}` } }),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    kinds: builtinScheme().kinds(),
    registry,
    options: { clusterCidrs: ["10.1.0.0/22"] },
  });
  t.teardown(() => running[Symbol.asyncDispose]());
  const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const client = createClient({ transport: server.handler, headers: { authorization: `Bearer ${token}` } });
  const namespace = "default";
  const modes = ["ReadWriteOnce" as const];
  const spec = { accessModes: modes, resources: { requests: { storage: "1Gi" } } };
  await client.create(nodeKind, { metadata: { name: "n" } });
  await client.create(persistentVolumeKind, {
    metadata: { name: "a" },
    spec: {
      accessModes: modes,
      capacity: { storage: "1Gi" },
      storageClassName: "c",
      hostPath: { path: "/x", type: "" },
    },
  });
  await client.create(persistentVolumeClaimKind, {
    metadata: { name: "bound", namespace },
    spec: { ...spec, storageClassName: "c" },
  });
  await client.create(persistentVolumeClaimKind, { metadata: { name: "late", namespace }, spec });
  await client.create(podKind, {
    metadata: { name: "p", namespace },
    spec: {
      containers: [{ name: "c", image: "img:1" }],
      volumes: [{ name: "v", ephemeral: { volumeClaimTemplate: { spec: { ...spec, storageClassName: "none" } } } }],
    },
  });
  await client.create(storageClassKind, {
    metadata: { name: "d", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
    provisioner: "disk.example.com",
  });
  const wanted = [
    'pv_collector_bound_pv_count{storage_class="c"} 1',
    'pv_collector_total_pv_count{plugin_name="kubernetes.io/host-path",volume_mode="Filesystem"} 1',
    'pv_collector_bound_pvc_count{namespace="default",storage_class="c",volume_attributes_class=""} 1',
    'pv_collector_unbound_pvc_count{namespace="default",storage_class="d",volume_attributes_class=""} 1',
    'pv_collector_unbound_pvc_count{namespace="default",storage_class="none",volume_attributes_class=""} 1',
    "retroactive_storageclass_total 1",
    "ephemeral_volume_controller_create_total 1",
    "ephemeral_volume_controller_create_failures_total 0",
    'node_ipam_controller_cidrset_cidrs_allocations_total{clusterCIDR="10.1.0.0/22"} 1',
    'node_ipam_controller_cidrset_usage_cidrs{clusterCIDR="10.1.0.0/22"} 0.25',
    'node_ipam_controller_cirdset_max_cidrs{clusterCIDR="10.1.0.0/22"} 4',
    'node_ipam_controller_cidrset_allocation_tries_per_request_count{clusterCIDR="10.1.0.0/22"} 1',
  ];
  const missing = (): readonly string[] => {
    const lines = formatMetrics([registry], "prometheus").split("\n");
    return wanted.filter((line) => !lines.includes(line));
  };
  await until(
    () => `these metrics exist: ${missing().join("; ")}`,
    async () => missing().length === 0 || undefined,
  );
  t.same(missing(), []);
});

import t from "tap";
import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { createApiServer } from "../../apiserver/server.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { until } from "../../testing/std/until.ts";

/** Resolves when `look` finds nothing. */
async function gone(look: () => Promise<unknown>): Promise<void> {
  await until("the object is gone", () =>
    look().then(
      () => false,
      () => true,
    ),
  );
}

t.test("deleted claims and volumes stay until they are unused", async (t) => {
  const config = {
    ...defaultConfig,
    authorizationModes: ["Node", "RBAC"],
    embeddedControllers: ["pv-protection", "pvc-protection"],
  };
  const { server } = await createApiServer(config, { clock: systemClock, log: silentLogger }, () => "");
  t.teardown(() => server[Symbol.asyncDispose]());
  const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const headers = { authorization: `Bearer ${token}` };
  const client: Client = createClient({ transport: server.handler, headers });

  const accessModes = ["ReadWriteOnce"] as const;
  const claim = { name: "c", namespace: "default" };
  const resources = { requests: { storage: "1Gi" } };
  await client.create(persistentVolumeClaimKind, { metadata: claim, spec: { accessModes, resources } });
  const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "c" } }];
  const pod = { name: "p", namespace: "default" };
  await client.create(podKind, {
    metadata: pod,
    spec: { nodeName: "n", containers: [{ name: "c", image: "i" }], volumes },
  });
  const { metadata } = await client.get(persistentVolumeClaimKind, claim);
  t.same(metadata?.finalizers, ["kubernetes.io/pvc-protection"]);
  await client.delete(persistentVolumeClaimKind, claim);
  t.ok((await client.get(persistentVolumeClaimKind, claim)).metadata?.deletionTimestamp, "the claim is in use");
  await client.delete(podKind, pod, { gracePeriodSeconds: 0 });
  await gone(() => client.get(persistentVolumeClaimKind, claim));

  const spec = { accessModes, capacity: { storage: "1Gi" }, hostPath: { path: "/data" } };
  await client.create(persistentVolumeKind, { metadata: { name: "v" }, spec });
  await client.delete(persistentVolumeKind, { name: "v" });
  await gone(() => client.get(persistentVolumeKind, { name: "v" }));
});

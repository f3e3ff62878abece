import t from "tap";
import { createTestAgent } from "../../../testing/agent/flag-harness.ts";

const UNIQUE = "kubernetes.io/csi/disks.example.com^vol-1";

t.test("Attachments.inUse has the volumes of pods until they are torn down", async (t) => {
  await using agent = await createTestAgent("flag", {});
  const { api } = agent;
  await agent.start();
  const claimRef = { uid: "uid-claim", name: "data", namespace: "default" };
  api.put("/api/v1/namespaces/default/persistentvolumeclaims/data", {
    kind: "PersistentVolumeClaim",
    metadata: { name: "data", namespace: "default", uid: "uid-claim" },
    spec: { volumeName: "pv1" },
    status: { phase: "Bound" },
  });
  api.put("/api/v1/persistentvolumes/pv1", {
    kind: "PersistentVolume",
    metadata: { name: "pv1" },
    spec: { claimRef, csi: { driver: "disks.example.com", volumeHandle: "vol-1" } },
  });
  agent.createPod("p", { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] });
  const inUse = () => (agent.getNode().status as { volumesInUse?: readonly string[] }).volumesInUse ?? [];
  await agent.until("the volume is in use", () => inUse().includes(UNIQUE));
  const path = "/api/v1/namespaces/default/pods/p";
  const found = api.objects.get(path)!;
  const deletion = { deletionTimestamp: new Date(agent.clock.now()).toISOString(), deletionGracePeriodSeconds: 0 };
  api.put(path, { ...found, metadata: { ...found.metadata, ...deletion } });
  await agent.until("it is no longer", () => inUse().length === 0);
  t.same(inUse(), []);
});

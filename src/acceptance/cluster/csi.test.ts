/** A CSI driver on real containers, with its provisioner, attacher and resizer played: claims get volumes that grow. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { systemMounter } from "../../agent/volumes/mount/mounter.ts";
import { startFakeDriver } from "../../testing/agent/fake-csi-driver.ts";
import { until } from "../../testing/std/until.ts";
import { CheckedKubectl } from "./checked-kubectl.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();
const DRIVER = "pool.example.com";
const ZONE = "topology.pool.example.com/zone";
const PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer";

const claim = `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: { name: ${DRIVER} }
spec: { attachRequired: true, fsGroupPolicy: File }
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: pool }
provisioner: ${DRIVER}
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec: { accessModes: [ReadWriteOnce], storageClassName: pool, resources: { requests: { storage: 1Gi } } }
`;

/** Has what drivers need: the directory of plugins, and mounts that reach the node. */
const podOf = (rootDir: string) => `
apiVersion: v1
kind: Pod
metadata: { name: writer }
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: c
      image: svc.local/examples/hello:1
      imagePullPolicy: IfNotPresent
      command: [sh, -c, "trap 'exit 0' TERM; echo started >> /data/log; while :; do sleep 1 & wait $!; done"]
      securityContext: { privileged: true }
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: plugins, mountPath: /plugins, mountPropagation: Bidirectional }
  volumes:
    - { name: data, persistentVolumeClaim: { claimName: data } }
    - { name: plugins, hostPath: { path: "${rootDir}/plugins", type: Directory } }
`;

t.setTimeout(180_000);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("a CSI driver provisions, mounts, grows and deletes the volume of a claim", async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle });
    await cluster.start("--stop-pods");
    const storage = join(cluster.dataDir, "pool");
    await using driver = await startFakeDriver({
      name: DRIVER,
      socket: join(cluster.dataDir, "agent", "plugins_registry", "pool.sock"),
      storage,
      mounter: systemMounter,
      capabilities: ["STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"],
      topology: { [ZONE]: "a" },
    });
    const kubectl = new Kubectl(t, cluster);
    await until("the driver's topology", async () =>
      (await kubectl.read("node e2e", ".metadata.labels")).includes(ZONE),
    );
    await kubectl.run("apply -f -", claim);
    t.equal(await kubectl.read("pvc data", ".status.phase"), "Pending");
    const waiting = await kubectl.waitForEvent("WaitForFirstConsumer");
    t.equal(waiting, "waiting for first consumer to be created before binding");
    await kubectl.run("apply -f -", podOf(join(cluster.dataDir, "agent")));

    const volume = await provision(t, kubectl);
    await kubectl.run("wait pvc/data --for=jsonpath={.status.phase}=Bound --timeout=30s");
    await attach(kubectl);
    await kubectl.run("wait pod/writer --for=condition=Ready --timeout=60s");
    t.equal(readFileSync(join(storage, "handle-1", "log"), "utf8"), "started\n");

    await resize(t, kubectl, volume);
    t.ok(driver.volumeCalls.includes("expandVolume"));

    await kubectl.run("delete pvc data --wait=false");
    t.match(await kubectl.read("pvc data", ".metadata.finalizers"), /kubernetes\.io\/pvc-protection/, "it is in use");
    await kubectl.run("delete pod writer");
    await kubectl.run(`wait pv/${volume} --for=jsonpath={.status.phase}=Released --timeout=60s`);
    await until("the volume is detached", async () => (await kubectl.run("get volumeattachments -o name")) === "");
    t.same(
      driver.volumeCalls.filter((method) => method !== "expandVolume" && method !== "getVolumeStats"),
      ["stageVolume", "publishVolume", "unpublishVolume", "unstageVolume"],
    );
    t.same(readdirSync(storage), ["handle-1"], "the agent deletes nothing of the driver's");
    // The provisioner deletes the volume, then its object.
    await kubectl.run(`delete pv ${volume} --wait=false`);
    await kubectl.run(`patch pv ${volume} --type=merge -p {"metadata":{"finalizers":null}}`);
    await kubectl.run(`wait pv/${volume} --for=delete --timeout=30s`);
    t.equal(await cluster.stop(), 0);
    t.same(await cluster.remains(), []);
  });
}

class Kubectl extends CheckedKubectl {
  read(object: string, path: string): Promise<string> {
    return this.run(`get ${object} -o jsonpath={${path}}`);
  }

  async waitForEvent(reason: string): Promise<string> {
    const query = `get events --field-selector reason=${reason} -o jsonpath={.items[0].message}`;
    const read = async () => (await this.cluster.kubectl(query.split(" "))).stdout || undefined;
    return await until(`the event ${reason}`, read);
  }
}

/** As the external provisioner, for a claim of a pod that has been assigned to a node. */
async function provision(t: Test, kubectl: Kubectl): Promise<string> {
  const annotation = (name: string) => kubectl.read("pvc data", `.metadata.annotations.${name.replaceAll(".", "\\.")}`);
  const selected = await until(
    "the selected node",
    async () => (await annotation("volume.kubernetes.io/selected-node")) || undefined,
  );
  t.equal(selected, "e2e");
  t.equal(await annotation("volume.kubernetes.io/storage-provisioner"), DRIVER);
  t.equal(await annotation("volume.beta.kubernetes.io/storage-provisioner"), DRIVER);
  t.equal(
    await kubectl.waitForEvent("ExternalProvisioning"),
    `Waiting for a volume to be created either by the external provisioner '${DRIVER}' or manually by the system ` +
      "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly " +
      "registered.",
  );
  const uid = await kubectl.read("pvc data", ".metadata.uid");
  const name = `pvc-${uid}`;
  const volume = {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      name,
      annotations: { "pv.kubernetes.io/provisioned-by": DRIVER },
      finalizers: [PROVISIONER_FINALIZER],
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "pool",
      claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace: "default", name: "data", uid },
      csi: { driver: DRIVER, volumeHandle: "handle-1", fsType: "ext4" },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: ZONE, operator: "In", values: ["a"] }] }] },
      },
    },
  };
  await kubectl.run("apply -f -", JSON.stringify(volume));
  return name;
}

/** As the external attacher. */
async function attach(kubectl: Kubectl): Promise<void> {
  const name = await until(
    "the attachment",
    async () => (await kubectl.run("get volumeattachments -o jsonpath={.items[*].metadata.name}")) || undefined,
  );
  await kubectl.run(`patch volumeattachment ${name} --subresource=status --type=merge -p {"status":{"attached":true}}`);
}

/** As the external resizer; the agent grows the file system. */
async function resize(t: Test, kubectl: Kubectl, volume: string): Promise<void> {
  await kubectl.run(`patch pvc data -p {"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`);
  const expanding = await kubectl.waitForEvent("ExternalExpanding");
  t.equal(expanding, "waiting for an external controller to expand this PVC");
  await kubectl.run(`patch pv ${volume} -p {"spec":{"capacity":{"storage":"2Gi"}}}`);
  const status = '{"status":{"conditions":[{"type":"FileSystemResizePending","status":"True"}]}}';
  await kubectl.run(`patch pvc data --subresource=status -p ${status}`);
  await kubectl.run("wait pvc/data --for=jsonpath={.status.capacity.storage}=2Gi --timeout=120s");
  t.equal(await kubectl.read("pvc data", ".status.conditions"), "");
}

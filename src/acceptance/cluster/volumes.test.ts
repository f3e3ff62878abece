/** Claims on real containers: volumes of the default class keep their data, grow, and are reclaimed. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { systemMounter } from "../../agent/volumes/mount/mounter.ts";
import { startFakeDriver } from "../../testing/agent/fake-csi-driver.ts";
import { until } from "../../testing/std/until.ts";
import { CheckedKubectl } from "./checked-kubectl.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();

t.setTimeout(120_000);

/** Appends a line to a file of the volume at each start. */
const container = `
      terminationGracePeriodSeconds: 1
      containers:
        - name: c
          image: svc.local/examples/hello:1
          imagePullPolicy: IfNotPresent
          command: [sh, -c, "trap 'exit 0' TERM; echo started >> /data/log; while :; do sleep 1 & wait $!; done"]
          volumeMounts: [{ name: data, mountPath: /data }]`;

const statefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  serviceName: db
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db } }
    spec:${container}
  volumeClaimTemplates:
    - metadata: { name: data }
      spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 64Mi } } }
`;

const deployment = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: kept }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 64Mi } } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  strategy: { type: Recreate }
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:${container}
      volumes: [{ name: data, persistentVolumeClaim: { claimName: kept } }]
`;

const ephemeral = `
apiVersion: v1
kind: Pod
metadata: { name: scratch }
spec:${container.replaceAll(/^ {4}/gm, "")}
  volumes:
    - name: data
      ephemeral:
        volumeClaimTemplate:
          spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 16Mi } } }
`;

const DRIVER = "disk.example.com";
const csi = `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: { name: ${DRIVER} }
spec: { attachRequired: true }
---
apiVersion: v1
kind: PersistentVolume
metadata: { name: disk }
spec:
  accessModes: [ReadWriteOnce]
  capacity: { storage: 1Gi }
  storageClassName: disks
  csi: { driver: ${DRIVER}, volumeHandle: disk-1 }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: disk }
spec: { accessModes: [ReadWriteOnce], storageClassName: disks, resources: { requests: { storage: 1Gi } } }
---
apiVersion: v1
kind: Pod
metadata: { name: reader }
spec:${container.replaceAll(/^ {4}/gm, "")}
  volumes: [{ name: data, persistentVolumeClaim: { claimName: disk } }]
`;

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("volumes of claims keep their data, grow and are reclaimed", { timeout: 120_000 }, async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle });
    await cluster.start("--stop-pods");
    const at = new Volumes(t, cluster);
    await at.run("apply -f -", `${statefulSet}---${deployment}---${ephemeral}`);
    await t.test("pods share no volume, and a volume survives its pod", (t) => testSurvival(t, at));
    await t.test("a claim that requests more gets more", (t) => testGrowth(t, at));
    await t.test("a volume is removed with its claim, unless it is retained", (t) => testReclaim(t, at));
    await t.test("a volume of a CSI driver is attached to the node of its pod", (t) => testCsi(t, at));
    t.equal(await cluster.stop(), 0);
    t.same(await cluster.remains(), []);
  });
}

class Volumes extends CheckedKubectl {
  get dataDir(): string {
    return this.cluster.dataDir;
  }

  /** How often a container has been started on the volume. */
  async starts(target: string): Promise<number> {
    return (await this.run(`exec ${target} -- cat /data/log`)).split("\n").length;
  }

  volumeOf(claim: string): Promise<string> {
    return this.run(`get pvc ${claim} -o jsonpath={.spec.volumeName}`);
  }

  /** The directories of volumes on this node. */
  get directories(): readonly string[] {
    const root = join(this.cluster.dataDir, "agent", "local-volumes");
    return existsSync(root) ? readdirSync(root) : [];
  }
}

async function testSurvival(t: Test, at: Volumes): Promise<void> {
  await at.run("rollout status statefulset/db --timeout=60s");
  await at.run("rollout status deployment/web --timeout=60s");
  await at.run("wait pod/scratch --for=condition=Ready --timeout=60s");
  t.equal(at.directories.length, 3);
  await at.run("delete pod db-0");
  await at.run("rollout restart deployment/web");
  await at.run("rollout status deployment/web --timeout=60s");
  await at.run("rollout status statefulset/db --timeout=60s");
  t.equal(await at.starts("db-0"), 2, "the new pod has the data of the old one");
  t.equal(await at.starts("deployment/web"), 2, "the new pod has the data of the old one");
  t.equal(await at.starts("scratch"), 1);
  const volume = await at.volumeOf("data-db-0");
  t.match(await at.run(`get pv ${volume} -o jsonpath={.spec.nodeAffinity}`), /kubernetes\.io\/hostname.*e2e/);
}

async function testGrowth(t: Test, at: Volumes): Promise<void> {
  await at.run(`patch pvc data-db-0 -p {"spec":{"resources":{"requests":{"storage":"128Mi"}}}}`);
  await at.run("wait pvc/data-db-0 --for=jsonpath={.status.capacity.storage}=128Mi --timeout=30s");
  const volume = await at.volumeOf("data-db-0");
  t.equal(await at.run(`get pv ${volume} -o jsonpath={.spec.capacity.storage}`), "128Mi");
}

async function testReclaim(t: Test, at: Volumes): Promise<void> {
  const [removed, kept, scratch] = [
    await at.volumeOf("data-db-0"),
    await at.volumeOf("kept"),
    await at.volumeOf("scratch-data"),
  ];
  await at.run(`patch pv ${kept} -p {"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`);
  await at.run("delete pvc kept --wait=false");
  t.ok(at.directories.includes(kept), "the claim is in use");
  await at.run("delete statefulset/db deployment/web pod/scratch");
  await at.run("delete pvc data-db-0");
  await at.run(`wait pv/${removed} pv/${scratch} --for=delete --timeout=30s`);
  await until("the directories of the other volumes are removed", async () => at.directories.length === 1 || undefined);
  t.same(at.directories, [kept]);
  await at.run(`wait pv/${kept} --for=jsonpath={.status.phase}=Released --timeout=30s`);
}

/** Plays the attacher of the driver; its node service runs in this process. */
async function testCsi(t: Test, at: Volumes): Promise<void> {
  const storage = join(at.dataDir, "disks");
  await using driver = await startFakeDriver({
    name: DRIVER,
    socket: join(at.dataDir, "agent", "plugins_registry", "disk.sock"),
    storage,
    mounter: systemMounter,
    capabilities: ["STAGE_UNSTAGE_VOLUME"],
  });
  await until("the node has the driver", async () => (await at.run("get csinode e2e -o name")) !== "" || undefined);
  await at.run("apply -f -", csi);
  const attachment = await until(
    "the controller attaches the volume",
    async () => (await at.run("get volumeattachments -o jsonpath={.items[*].metadata.name}")) || undefined,
  );
  t.match(attachment, /^csi-[0-9a-f]{64}$/);
  t.same(driver.volumeCalls, [], "it is not mounted before");
  await at.run(
    `patch volumeattachment ${attachment} --subresource=status --type=merge -p {"status":{"attached":true}}`,
  );
  await at.run("wait pod/reader --for=condition=Ready --timeout=60s");
  t.equal(await at.starts("reader"), 1);
  t.same(readdirSync(join(storage, "disk-1")), ["log"]);
  const unique = `kubernetes.io/csi/${DRIVER}^disk-1`;
  t.equal(await at.run("get node e2e -o jsonpath={.status.volumesAttached[*].name}"), unique);
  await at.run("delete pod reader");
  await at.run(`wait volumeattachment/${attachment} --for=delete --timeout=60s`);
  t.equal(await at.run("get node e2e -o jsonpath={.status.volumesAttached[*].name}"), "");
  t.same(driver.volumeCalls, ["stageVolume", "publishVolume", "unpublishVolume", "unstageVolume"]);
  await at.run("delete pvc disk");
  await at.run("wait pv/disk --for=jsonpath={.status.phase}=Released --timeout=30s");
}

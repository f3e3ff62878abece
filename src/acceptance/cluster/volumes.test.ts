/** Claims on real containers: volumes of the default class keep their data, grow, and are reclaimed. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();

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
    t.equal(await cluster.stop(), 0);
    t.same(await cluster.remains(), []);
  });
}

class Volumes {
  readonly #t: Test;
  readonly #cluster: TestCluster;

  constructor(t: Test, cluster: TestCluster) {
    this.#t = t;
    this.#cluster = cluster;
  }

  async run(args: string, input?: string): Promise<string> {
    const { code, stdout, stderr } = await this.#cluster.kubectl(args.split(" "), input === undefined ? {} : { input });
    this.#t.equal(code, 0, `kubectl ${args}: ${stderr}`);
    return stdout.trim();
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
    const root = join(this.#cluster.dataDir, "agent", "local-volumes");
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

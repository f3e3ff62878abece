/** A StatefulSet of Debian's PostgreSQL with a claim: its data survive kill -9, deletion, a drain and a restart. */
import { globSync, readFileSync } from "node:fs";
import t, { type Test } from "tap";
import { until } from "../../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "../cluster.ts";
import { Commands } from "./commands.ts";
import { findPostgres, ImageDirectory, makePostgresImage } from "./images.ts";

const missing = findMissingRequirement() ?? (findPostgres() === undefined ? "postgresql not installed" : undefined);

const manifest = `
apiVersion: v1
kind: Service
metadata: { name: db }
spec:
  clusterIP: None
  selector: { app: db }
  ports: [{ name: postgres, port: 5432 }]
---
apiVersion: v1
kind: Service
metadata: { name: db-primary }
spec:
  selector: { app: db }
  ports: [{ name: postgres, port: 5432 }]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  serviceName: db
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db } }
    spec:
      terminationGracePeriodSeconds: 20
      securityContext: { runAsUser: 999, runAsGroup: 999, fsGroup: 999 }
      containers:
        - name: postgres
          image: svc.local/examples/postgres:1
          env: [{ name: PGDATA, value: /data/pg }]
          ports: [{ name: postgres, containerPort: 5432 }]
          readinessProbe: { periodSeconds: 1, exec: { command: [pg_isready, -h, localhost] } }
          volumeMounts: [{ name: data, mountPath: /data }]
  volumeClaimTemplates:
    - metadata: { name: data }
      spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 256Mi } } }
---
apiVersion: v1
kind: Pod
metadata: { name: client }
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: svc.local/examples/postgres:1
      command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"]
`;

t.setTimeout(300_000);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("PostgreSQL on svc up", { timeout: 300_000 }, async (t) => {
    using images = new ImageDirectory([makePostgresImage]);
    await using cluster = await TestCluster.create({ program: programs.bundle, imageDir: images.path });
    await cluster.start("--stop-pods");
    const database = new Database(t, new Commands(t, cluster));
    const { commands } = database;
    await commands.kubectl("apply -f -", manifest);
    await commands.kubectl("rollout status statefulset/db --timeout=120s");
    await commands.kubectl("wait --for=condition=Ready pod/client --timeout=60s");
    t.match(await commands.kubectl("get persistentvolumeclaim data-db-0"), "Bound");
    await database.query("create table log (id serial primary key, entry text)");
    await database.expectKept("its first start", async () => {});
    await database.expectKept("kill -9 of all its processes", async () => {
      for (const pid of databaseProcesses()) process.kill(pid, "SIGKILL");
      const restarts = ".status.containerStatuses[0].restartCount";
      await until("a restart of the container", async () => (await commands.value("pod/db-0", restarts)) === "1");
    });
    await database.expectKept("its pod's deletion", async () => {
      await commands.kubectl("delete pod db-0 --timeout=60s");
    });
    await database.expectKept("its pod's deletion without grace", async () => {
      await commands.kubectl("delete pod db-0 --grace-period=0 --force");
    });
    await database.expectKept("a drain", async () => {
      await commands.kubectl("drain e2e --pod-selector=app=db --timeout=60s");
      await commands.kubectl("uncordon e2e");
    });
    await database.expectKept("a restart of svc up with its pods", async () => {
      t.equal(await cluster.stop(), 0);
      await cluster.start("--stop-pods");
      await commands.kubectl("wait --for=condition=Ready pod/client --timeout=60s");
    });
    await database.expectKept("its StatefulSet's deletion", async () => {
      await commands.kubectl("delete statefulset db --cascade=foreground --timeout=60s");
      await commands.kubectl("apply -f -", manifest);
    });
  });
}

/** The processes of the container, which this machine sees too. */
function databaseProcesses(): readonly number[] {
  return globSync("/proc/[0-9]*/environ").flatMap((path) => {
    try {
      const isDatabase = readFileSync(path, "latin1").split("\0").includes("PGDATA=/data/pg");
      return isDatabase ? [Number(path.split("/")[2])] : [];
    } catch {
      // It has ended.
      return [];
    }
  });
}

class Database {
  readonly commands: Commands;
  readonly #t: Test;
  readonly #entries: string[] = [];

  constructor(t: Test, commands: Commands) {
    this.#t = t;
    this.commands = commands;
  }

  /** Runs a statement as a client that finds the database by a name of a service. */
  async query(statement: string, host = "db-primary"): Promise<string> {
    const psql = ["psql", "-h", host, "-U", "postgres", "-At", "-v", "ON_ERROR_STOP=1", "-c", statement];
    return await this.commands.kubectl(["exec", "client", "--", ...psql]);
  }

  /** All entries are there after the event, and one more can be added. */
  async expectKept(event: string, run: () => Promise<void>): Promise<void> {
    await run();
    await this.commands.kubectl("wait --for=create pod/db-0 --timeout=60s");
    await this.commands.kubectl("rollout status statefulset/db --timeout=90s");
    await this.commands.kubectl("wait --for=condition=Ready pod/db-0 --timeout=90s");
    const kept = await this.query("select entry from log order by id", "db-0.db.default.svc.cluster.local");
    this.#t.same(
      kept.split("\n").filter((line) => line !== ""),
      this.#entries,
      `the data are there after ${event}`,
    );
    await this.query(`insert into log (entry) values ('${event.replaceAll("'", "")}')`);
    this.#entries.push(event.replaceAll("'", ""));
  }
}

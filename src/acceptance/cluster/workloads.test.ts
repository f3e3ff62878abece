/** Deployments, stateful sets and daemon sets on real containers, with kubectl's rollout, scale and wait commands. */
import t, { type Test } from "tap";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();

t.setTimeout(180_000);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("svc up runs workloads", async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle });
    await cluster.start("--stop-pods");
    const kubectl = new Kubectl(t, cluster);
    t.jobs = 3;
    // At the same time, in a namespace each.
    await Promise.all([
      t.test("deployment", { buffered: true }, (t) => testDeployment(t, kubectl.in(t, "web"))),
      t.test("stateful set", { buffered: true }, (t) => testStatefulSet(t, kubectl.in(t, "db"))),
      t.test("daemon set", { buffered: true }, (t) => testDaemonSet(t, kubectl.in(t, "logs"))),
    ]);
    await t.test("rollouts go on after svc up was killed", (t) => testKill(t, cluster, kubectl.in(t, "killed")));
    t.equal(await cluster.stop(), 0, "a clean stop");
    t.same(await cluster.remains(), [], "no remains");
  });
}

/** kubectl in one namespace. */
class Kubectl {
  readonly #t: Test;
  readonly #cluster: TestCluster;
  readonly #namespace: string;
  readonly #binary = kubectlPaths()[0] ?? "kubectl";

  constructor(t: Test, cluster: TestCluster, namespace = "default") {
    this.#t = t;
    this.#cluster = cluster;
    this.#namespace = namespace;
  }

  in(t: Test, namespace: string): Kubectl {
    return new Kubectl(t, this.#cluster, namespace);
  }

  /** Expects success; resolves with stdout. */
  async run(args: string, input?: string): Promise<string> {
    const { code, stdout, stderr } = await this.#call(args, input);
    this.#t.equal(code, 0, `kubectl ${args}${code === 0 ? "" : `: ${stderr}${stdout}`}`);
    return stdout;
  }

  /** Expects a failure; resolves with stderr. */
  async fail(args: string): Promise<string> {
    const { code, stderr } = await this.#call(args);
    this.#t.not(code, 0, `kubectl ${args} fails`);
    return stderr;
  }

  #call(args: string, input?: string) {
    const words = ["--namespace", this.#namespace, ...args.split(" ")];
    return this.#cluster.kubectl(words, { binary: this.#binary, ...(input !== undefined && { input }) });
  }

  /** The values that a JSONPath selects, sorted. */
  async values(what: string, path: string): Promise<readonly string[]> {
    const stdout = await this.run(`get ${what} -o jsonpath={${path}}`);
    return stdout
      .split(" ")
      .filter((word) => word !== "")
      .sort();
  }

  async rolledOut(what: string): Promise<void> {
    await this.run(`rollout status ${what} --timeout=60s`);
  }

  /** The revisions that the history lists. */
  async revisions(what: string): Promise<readonly number[]> {
    const history = await this.run(`rollout history ${what}`);
    return [...history.matchAll(/^(\d+) /gm)].map(([, revision]) => Number(revision));
  }

  async expectVersions(what: string, versions: readonly string[]): Promise<void> {
    const path = ".items[*].spec.containers[0].env[0].value";
    await until(`pods with versions ${versions}`, async () => {
      const found = await this.values(`pods -l app=${what} --field-selector=status.phase=Running`, path);
      return found.join() === versions.join() || undefined;
    });
    this.#t.pass(`the pods have versions ${versions}`);
  }
}

function manifest(kind: string, name: string, spec: object): string {
  const script = "trap 'exit 0' TERM; echo $HOSTNAME $VERSION; while :; do sleep 1 & wait $!; done";
  const container = {
    name: "main",
    image: "svc.local/examples/hello:1",
    imagePullPolicy: "IfNotPresent",
    command: ["sh", "-c", script],
    env: [{ name: "VERSION", value: "1" }],
  };
  return JSON.stringify({
    apiVersion: "apps/v1",
    kind,
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { terminationGracePeriodSeconds: 5, containers: [container] },
      },
      ...spec,
    },
  });
}

async function testDeployment(t: Test, kubectl: Kubectl): Promise<void> {
  await kubectl.run("create namespace web");
  await kubectl.run("apply -f -", manifest("Deployment", "web", { replicas: 2 }));
  await kubectl.rolledOut("deployment/web");
  await kubectl.run("wait --for=condition=Available deployment/web --timeout=10s");
  await kubectl.run("scale deployment/web --replicas=3");
  await kubectl.run("wait --for=jsonpath={.status.readyReplicas}=3 deployment/web --timeout=30s");
  t.match(await kubectl.run("get deployment web"), /web +3\/3 +3 +3 /);
  await kubectl.run("set env deployment/web VERSION=2");
  await kubectl.run("annotate deployment/web kubernetes.io/change-cause=second");
  await kubectl.rolledOut("deployment/web");
  await kubectl.expectVersions("web", ["2", "2", "2"]);
  t.match(await kubectl.run("rollout history deployment/web"), /^1 +<none>\n2 +second$/m);
  t.match(await kubectl.run("rollout history deployment/web --revision=2"), /VERSION:\s+2/);
  t.equal(await kubectl.run("rollout undo deployment/web"), "deployment.apps/web rolled back\n");
  await kubectl.rolledOut("deployment/web");
  await kubectl.expectVersions("web", ["1", "1", "1"]);
  t.same(await kubectl.revisions("deployment/web"), [2, 3]);
  t.match(await kubectl.run("rollout undo deployment/web --to-revision=3"), "skipped rollback");
  t.match(await kubectl.fail("rollout undo deployment/web --to-revision=9"), "unable to find specified revision 9");
  await kubectl.run("rollout pause deployment/web");
  await kubectl.run("set env deployment/web VERSION=4");
  t.match(await kubectl.fail("rollout undo deployment/web"), "you cannot rollback a paused deployment");
  t.match(await kubectl.fail("rollout status deployment/web --timeout=1s"), "timed out");
  await kubectl.expectVersions("web", ["1", "1", "1"]);
  await kubectl.run("rollout resume deployment/web");
  await kubectl.rolledOut("deployment/web");
  await kubectl.expectVersions("web", ["4", "4", "4"]);
  const names = (): Promise<readonly string[]> => kubectl.values("pods -l app=web", ".items[*].metadata.name");
  const before = await names();
  await kubectl.run("rollout restart deployment/web");
  await kubectl.rolledOut("deployment/web");
  const after = await until("only pods that are new after the restart", async () => {
    const found = await names();
    return found.some((name) => before.includes(name)) ? undefined : found;
  });
  await kubectl.run(`delete pod ${after[0]} --wait=false`);
  await kubectl.run(`wait --for=delete pod/${after[0]} --timeout=30s`);
  await kubectl.run("wait --for=jsonpath={.status.readyReplicas}=3 deployment/web --timeout=30s");
  // An image that does not exist: the rollout halts, and the pods that serve stay.
  await kubectl.run("set image deployment/web main=svc.local/examples/none:1");
  t.match(await kubectl.fail("rollout status deployment/web --timeout=2s"), "timed out");
  t.match(await kubectl.run("get deployment web"), /web +3\/3 +1 +3 /);
  await kubectl.run("rollout undo deployment/web");
  await kubectl.rolledOut("deployment/web");
  await kubectl.run("delete deployment web --cascade=foreground --timeout=30s");
  t.same(await kubectl.values("replicasets,pods", ".items[*].metadata.name"), [], "its replica sets and pods are gone");
}

async function testStatefulSet(t: Test, kubectl: Kubectl): Promise<void> {
  await kubectl.run("create namespace db");
  await kubectl.run("apply -f -", manifest("StatefulSet", "db", { replicas: 3, serviceName: "db" }));
  await kubectl.rolledOut("statefulset/db");
  for (const [name, previous] of [
    ["db-1", "db-0"],
    ["db-2", "db-1"],
  ] as const) {
    const [created = ""] = await kubectl.values(`pod ${name}`, ".metadata.creationTimestamp");
    const ready = '.status.conditions[?(@.type=="Ready")].lastTransitionTime';
    const [since = "z"] = await kubectl.values(`pod ${previous}`, ready);
    t.ok(since <= created, `${name} was created when ${previous} was ready`);
  }
  t.equal(await kubectl.run("logs db-2"), "db-2 1\n", "the host name is the pod's name");
  const [uid] = await kubectl.values("pod db-1", ".metadata.uid");
  await kubectl.run("delete pod db-1");
  await kubectl.rolledOut("statefulset/db");
  t.not((await kubectl.values("pod db-1", ".metadata.uid"))[0], uid, "a deleted pod comes back with its name");
  const partition = (value: number): string =>
    `patch statefulset db -p {"spec":{"updateStrategy":{"rollingUpdate":{"partition":${value}}}}}`;
  await kubectl.run(partition(2));
  await kubectl.run("set env statefulset/db VERSION=2");
  t.match(
    await kubectl.run("rollout status statefulset/db --timeout=30s"),
    "partitioned roll out complete: 1 new pods",
  );
  await kubectl.expectVersions("db", ["1", "1", "2"]);
  await kubectl.run(partition(0));
  await kubectl.rolledOut("statefulset/db");
  await kubectl.run("wait --for=jsonpath={.status.updatedReplicas}=3 statefulset/db --timeout=30s");
  await kubectl.expectVersions("db", ["2", "2", "2"]);
  t.same(await kubectl.revisions("statefulset/db"), [1, 2]);
  t.match(await kubectl.run("rollout undo statefulset/db --to-revision=2"), "skipped rollback");
  t.equal(await kubectl.run("rollout undo statefulset/db"), "statefulset.apps/db rolled back\n");
  await kubectl.rolledOut("statefulset/db");
  await kubectl.expectVersions("db", ["1", "1", "1"]);
  t.same(await kubectl.revisions("statefulset/db"), [2, 3]);
  t.match(await kubectl.fail("rollout pause statefulset/db"), "pausing is not supported");
  await kubectl.run("scale statefulset/db --replicas=1");
  await kubectl.run("wait --for=jsonpath={.status.replicas}=1 statefulset/db --timeout=30s");
  t.same(await kubectl.values("pods", ".items[*].metadata.name"), ["db-0"]);
  await kubectl.run("rollout restart statefulset/db");
  await kubectl.rolledOut("statefulset/db");
  const [kept] = await kubectl.values("pod db-0", ".metadata.uid");
  await kubectl.run("delete statefulset db --cascade=orphan");
  await kubectl.run("wait --for=jsonpath={.status.phase}=Running pod/db-0 --timeout=10s");
  const adopting = manifest("StatefulSet", "db", {
    replicas: 1,
    serviceName: "db",
    updateStrategy: { type: "OnDelete" },
  });
  await kubectl.run("apply -f -", adopting);
  await kubectl.run("wait --for=jsonpath={.status.readyReplicas}=1 statefulset/db --timeout=30s");
  t.equal((await kubectl.values("pod db-0", ".metadata.uid"))[0], kept, "the orphan is adopted");
  await kubectl.run("delete statefulset db --cascade=foreground --timeout=30s");
}

async function testDaemonSet(t: Test, kubectl: Kubectl): Promise<void> {
  await kubectl.run("create namespace logs");
  await kubectl.run("apply -f -", manifest("DaemonSet", "logs", {}));
  await kubectl.rolledOut("daemonset/logs");
  t.same(await kubectl.values("pods", ".items[*].spec.nodeName"), ["e2e"]);
  await kubectl.run("set env daemonset/logs VERSION=2");
  await kubectl.rolledOut("daemonset/logs");
  await kubectl.expectVersions("logs", ["2"]);
  t.match(await kubectl.run("rollout undo daemonset/logs --to-revision=2"), "skipped rollback");
  t.equal(await kubectl.run("rollout undo daemonset/logs"), "daemonset.apps/logs rolled back\n");
  await kubectl.rolledOut("daemonset/logs");
  await kubectl.expectVersions("logs", ["1"]);
  t.same(await kubectl.revisions("daemonset/logs"), [2, 3]);
  await kubectl.run("rollout restart daemonset/logs");
  await kubectl.rolledOut("daemonset/logs");
  const selector = (role: string): string =>
    `patch daemonset logs -p {"spec":{"template":{"spec":{"nodeSelector":{"role":"${role}"}}}}}`;
  await kubectl.run(selector("logs"));
  await kubectl.run("wait --for=jsonpath={.status.desiredNumberScheduled}=0 daemonset/logs --timeout=30s");
  await kubectl.run("wait --for=delete pod -l app=logs --timeout=30s");
  await kubectl.run("label node e2e role=logs");
  await kubectl.run("wait --for=jsonpath={.status.numberReady}=1 daemonset/logs --timeout=30s");
  // The new pod runs beside the old one until it is ready.
  const surge = '{"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}}}';
  await kubectl.run(`patch daemonset logs -p ${surge}`);
  await kubectl.run("set env daemonset/logs VERSION=5");
  await kubectl.rolledOut("daemonset/logs");
  await kubectl.expectVersions("logs", ["5"]);
  await kubectl.run("delete daemonset logs --timeout=30s");
  await kubectl.run("wait --for=delete pod -l app=logs --timeout=30s");
  t.same(await kubectl.values("controllerrevisions", ".items[*].metadata.name"), [], "its revisions are gone");
}

/** Kills svc up in the middle of three rollouts. */
async function testKill(t: Test, cluster: TestCluster, kubectl: Kubectl): Promise<void> {
  const owners = ["deployment/web", "statefulset/db", "daemonset/logs"];
  await kubectl.run("create namespace killed");
  await kubectl.run("apply -f -", manifest("Deployment", "web", { replicas: 2 }));
  await kubectl.run("apply -f -", manifest("StatefulSet", "db", { replicas: 2, serviceName: "db" }));
  await kubectl.run("apply -f -", manifest("DaemonSet", "logs", {}));
  await Promise.all(owners.map((owner) => kubectl.rolledOut(owner)));
  await Promise.all(owners.map((owner) => kubectl.run(`set env ${owner} VERSION=2`)));
  t.equal(await cluster.stop("SIGKILL"), "SIGKILL");
  await cluster.start("--stop-pods");
  await Promise.all(owners.map((owner) => kubectl.rolledOut(owner)));
  await kubectl.expectVersions("web", ["2", "2"]);
  await kubectl.expectVersions("db", ["2", "2"]);
  await kubectl.expectVersions("logs", ["2"]);
}

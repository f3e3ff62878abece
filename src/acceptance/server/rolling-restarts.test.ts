/**
 * Rolling restarts and upgrades of two API servers on one etcd behind a load balancer, while kubectl and informers of
 * Kubernetes' JavaScript client write and watch: no request fails, no event is missing or comes twice.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { CoreV1Api, KubeConfig, makeInformer, type V1ConfigMap } from "@kubernetes/client-node";
import t, { type Test } from "tap";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { LoadBalancer } from "../../testing/apiserver/load-balancer.ts";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { until } from "../../testing/std/until.ts";
import { type EtcdCluster, findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";

t.setTimeout(600_000);

const ROUNDS = Number(process.env.SVC_RESTART_ROUNDS ?? 1);
const WRITERS = 4;
const INFORMERS = 3;
const UPDATES = 5;
const NAMESPACE = "default";
const MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const COLUMNS = "custom-columns=NAME:.metadata.name,VERSION:.metadata.resourceVersion";
const SELECTOR = "writer";

function homeOf(t: Test): string {
  const home = mkdtempSync(join(tmpdir(), "svc-rolling-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

async function startServer(t: Test, etcd: EtcdCluster, flags: readonly string[]): Promise<ServerProcess> {
  const server = await startServerProcess({ home: homeOf(t), store: etcd.urls.join(","), flags });
  t.teardown(() => server[Symbol.asyncDispose]());
  return server;
}

/** The revisions of acknowledged writes of objects, and of events, by the name of the object. */
class Revisions {
  readonly #byName = new Map<string, number[]>();

  add(name: string, revision: string | undefined): void {
    const revisions = this.#byName.get(name) ?? [];
    revisions.push(Number(revision));
    this.#byName.set(name, revisions);
  }

  of(name: string): readonly number[] {
    return this.#byName.get(name) ?? [];
  }

  get count(): number {
    return this.#byName.values().reduce((sum, revisions) => sum + revisions.length, 0);
  }

  get latest(): number {
    return Math.max(0, ...[...this.#byName.values()].flat());
  }

  /** Those of `expected` that are not here, from a revision to another. */
  missing(expected: Revisions, after: number, last: number): readonly string[] {
    return [...expected.#byName].flatMap(([name, revisions]) =>
      revisions
        .filter((revision) => revision > after && revision <= last && !this.of(name).includes(revision))
        .map((revision) => `${name}@${revision}`),
    );
  }

  /** Those that do not follow an older one. */
  repeated(): readonly string[] {
    return [...this.#byName].flatMap(([name, revisions]) =>
      revisions
        .filter((revision, i) => i > 0 && revision <= revisions[i - 1]!)
        .map((revision) => `${name}@${revision}`),
    );
  }
}

/** Creates, updates and deletes ConfigMaps one after the other. */
class Writer {
  readonly failures: string[] = [];
  readonly acknowledged = new Revisions();
  retries = 0;
  readonly #api: CoreV1Api;
  readonly #name: string;

  constructor(api: CoreV1Api, name: string) {
    this.#api = api;
    this.#name = name;
  }

  async run(isOver: () => boolean): Promise<void> {
    for (let round = 0; !isOver(); round++) await this.#writeObject(`${this.#name}-${round}`);
  }

  async #writeObject(name: string): Promise<void> {
    const metadata = { name, labels: { [SELECTOR]: "yes" } };
    const body = (n: number): V1ConfigMap => ({ metadata, data: { n: String(n) } });
    const place = { namespace: NAMESPACE, name };
    const written: (V1ConfigMap | undefined)[] = [];
    const create = () => this.#api.createNamespacedConfigMap({ namespace: NAMESPACE, body: body(0) });
    written.push(await this.#retry(`create ${name}`, create, 409));
    for (let n = 1; n <= UPDATES; n++) {
      await sleep(10);
      const replace = () => this.#api.replaceNamespacedConfigMap({ ...place, body: body(n) });
      written.push(await this.#retry(`update ${name}`, replace));
    }
    for (const map of written) if (map !== undefined) this.acknowledged.add(name, map.metadata?.resourceVersion);
    await this.#retry(`delete ${name}`, () => this.#api.deleteNamespacedConfigMap(place), 404);
  }

  /**
   * As Kubernetes' clients: retries a request whose connection ended, or that the server sent to another one. Such a
   * request may have had its effect: then the retry gets the status `done`.
   */
  async #retry<T>(what: string, call: () => Promise<T>, done?: number): Promise<T | undefined> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        const { code, body } = error as { code?: unknown; body?: unknown };
        if (attempt > 1 && code === done) return undefined;
        const isRetriable = typeof code !== "number" || code === 429 || code === 503 || code === 504;
        if (!isRetriable || attempt === 20) {
          this.failures.push(`${what}: ${String(code)} ${String(body ?? error)}`);
          return undefined;
        }
        this.retries++;
        await sleep(50);
      }
    }
  }
}

/** What an informer reports. */
class ObservedInformer {
  readonly events = new Revisions();
  readonly deleted: string[] = [];
  readonly #informer: ReturnType<typeof makeInformer<V1ConfigMap>>;
  lists = 0;
  #isStopped = false;

  constructor(config: KubeConfig, api: CoreV1Api) {
    const labelSelector = SELECTOR;
    const list = () => {
      this.lists++;
      return api.listNamespacedConfigMap({ namespace: NAMESPACE, labelSelector });
    };
    this.#informer = makeInformer<V1ConfigMap>(config, MAPS, list, labelSelector);
    const record = ({ metadata }: V1ConfigMap): void =>
      this.events.add(metadata?.name ?? "", metadata?.resourceVersion);
    this.#informer.on("add", record);
    this.#informer.on("update", record);
    this.#informer.on("delete", ({ metadata }) => this.deleted.push(metadata?.name ?? ""));
    // As its documentation recommends.
    this.#informer.on("error", () => void sleep(50).then(() => this.start()));
  }

  async start(): Promise<void> {
    if (!this.#isStopped) await this.#informer.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#informer.stop();
  }

  get size(): number {
    return this.#informer.list(NAMESPACE).length;
  }
}

interface WatchSession {
  readonly events: Revisions;
  /** From this revision on each change is an event. */
  firstChange: number;
}

/** `kubectl get --watch`, started again when the server ends the watch. */
class KubectlWatch {
  /** The events of each watch. */
  readonly sessions: WatchSession[] = [];
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(flags: readonly string[]) {
    this.#flags = flags;
  }

  start(kubectl: string): void {
    this.#running = this.#run(kubectl);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#child?.kill();
    await this.#running;
  }

  async #run(kubectl: string): Promise<void> {
    const words = ["get", "configmaps", `--selector=${SELECTOR}`, "--watch", "--no-headers", "-o", COLUMNS];
    while (!this.#isStopped) {
      const session: WatchSession = { events: new Revisions(), firstChange: Infinity };
      this.sessions.push(session);
      this.#child = spawn(kubectl, [...this.#flags, ...words, "--output-watch-events"], {
        stdio: ["ignore", "pipe", 2],
      });
      let rest = "";
      this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          const [type, name = "", revision] = line.trim().split(/\s+/);
          if (type === "DELETED") continue;
          session.events.add(name, revision);
          // Objects of the list come as ADDED too.
          if (type === "MODIFIED") session.firstChange = Math.min(session.firstChange, Number(revision));
        }
      });
      await once(this.#child, "close");
    }
  }
}

const execute = promisify(execFile);

/** Runs kubectl's commands one after the other; resolves with those that failed. */
async function runCommands(
  kubectl: string,
  flags: readonly string[],
  isOver: () => boolean,
): Promise<readonly string[]> {
  const failures: string[] = [];
  const run = async (...words: readonly string[]): Promise<void> => {
    await execute(kubectl, [...flags, ...words]).catch((error: unknown) => {
      failures.push(`${words.join(" ")}: ${String(error)}`);
    });
  };
  for (let round = 0; !isOver(); round++) {
    const name = `kubectl-${round}`;
    await run("create", "configmap", name, "--from-literal=n=0");
    await run("annotate", "configmap", name, "a=b");
    await run("wait", "configmap", name, "--for=jsonpath={.data.n}=0");
    await run("get", "configmap", name, "-o", "yaml");
    await run("delete", "configmap", name);
  }
  return failures;
}

interface Rolling {
  readonly from: readonly string[];
  readonly to: readonly string[];
}

async function checkRolling(t: Test, { from, to }: Rolling): Promise<void> {
  await using etcd = await startEtcd();
  let servers: readonly ServerProcess[] = await Promise.all([startServer(t, etcd, from), startServer(t, etcd, from)]);
  await using balancer = new LoadBalancer();
  await balancer.listen();
  balancer.use(servers);
  const address = `https://127.0.0.1:${balancer.port}`;
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: "c", server: address, skipTLSVerify: true }, { name: "u", token: "secret" });
  const api = config.makeApiClient(CoreV1Api);
  const kubectl = kubectlPaths()[0];
  const kubectlFlags = [
    `--server=${address}`,
    "--token=secret",
    "--insecure-skip-tls-verify",
    "--kubeconfig=/dev/null",
  ];

  const informers = Array.from({ length: INFORMERS }, () => new ObservedInformer(config, api));
  await Promise.all(informers.map((informer) => informer.start()));
  const watch = new KubectlWatch(kubectlFlags);
  if (kubectl === undefined) t.comment("kubectl is not installed: it is left out");
  else watch.start(kubectl);
  let isOver = false;
  const writers = Array.from({ length: WRITERS }, (_, i) => new Writer(api, `writer-${i}`));
  const writing = writers.map((writer) => writer.run(() => isOver));
  const commands = kubectl === undefined ? [] : runCommands(kubectl, kubectlFlags, () => isOver);

  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, old] of servers.entries()) {
      await sleep(1000);
      servers = servers.with(index, await startServer(t, etcd, to));
      balancer.use(servers);
      old.child.kill("SIGTERM");
      t.equal(await old.ended, 0, "the server ends by itself");
    }
  }
  await sleep(1000);
  isOver = true;
  await Promise.all(writing);
  t.same(await commands, [], "each command of kubectl succeeds");
  t.same(
    writers.flatMap(({ failures }) => failures),
    [],
    "no request fails",
  );
  const retries = writers.reduce((sum, each) => sum + each.retries, 0);
  const count = writers.reduce((sum, { acknowledged }) => sum + acknowledged.count, 0);
  await until("the informers have seen all deletions", () => informers.every(({ size }) => size === 0));
  for (const { events, deleted, lists } of informers) {
    for (const { acknowledged } of writers)
      t.same(events.missing(acknowledged, 0, Infinity), [], "no event is missing");
    t.same(events.repeated(), [], "no event comes twice");
    t.equal(new Set(deleted).size, deleted.length, "no deletion comes twice");
    t.comment(`${events.count} events, ${deleted.length} deletions, ${lists} lists`);
  }
  await Promise.all(informers.map((informer) => informer.stop()));
  await watch.stop();
  for (const { events, firstChange } of watch.sessions) {
    t.same(events.repeated(), [], "no event of a watch of kubectl comes twice");
    for (const { acknowledged } of writers)
      t.same(events.missing(acknowledged, firstChange, events.latest), [], "none is missing");
  }
  t.comment(`${count} writes, ${retries} retries, ${watch.sessions.length} watches of kubectl`);
}

const skip = findEtcdProblem() ?? false;

t.test("clients miss no event and fail in no request through a rolling restart", { skip }, async (t) => {
  await checkRolling(t, { from: [], to: [] });
});

t.test("the same through a rolling upgrade, to two threads", { skip }, async (t) => {
  await checkRolling(t, { from: ["--emulated-version=1.32"], to: ["--workers=2"] });
});

/** Kubernetes' JavaScript client: informers across restarts, paginated lists, and every resource. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CoreV1Api,
  KubeConfig,
  type KubernetesObject,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  type V1APIGroupList,
  type V1APIResource,
  type V1APIResourceList,
  type V1ConfigMap,
} from "@kubernetes/client-node";
import t, { type Test } from "tap";
import { parseApiVersion, svcGroup } from "../../api/scheme.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { startApiServer } from "../../apiserver/server.ts";
import { readAll } from "../../client/response.ts";
import { makeRequest } from "../../http/request.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";
import { recordedCases } from "../recorded-answers/cases.ts";

const WAIT_MS_MAX = 30_000;
t.setTimeout(4 * WAIT_MS_MAX);

async function directory(t: Test): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "svc-client-node-"));
  t.teardown(() => rm(dir, { recursive: true }));
  await writeFile(join(dir, "tokens"), 'secret,admin,1,"system:masters"\n');
  return dir;
}

async function configOf(dir: string, port: number): Promise<KubeConfig> {
  const config = new KubeConfig();
  const caData = Buffer.from(await readFile(join(dir, "apiserver.crt"))).toString("base64");
  const cluster = { name: "c", server: `https://127.0.0.1:${port}`, caData, skipTLSVerify: false };
  config.loadFromClusterAndUser(cluster, { name: "u", token: "secret" });
  return config;
}

/** A server in a separate process, which the test can kill. */
async function serverProcess(t: Test, dir: string, port: number): Promise<ChildProcess> {
  const main = new URL("../../main.ts", import.meta.url).pathname;
  const flags = {
    "kvstore-servers": `level://${join(dir, "kvstore")}`,
    "token-auth-file": join(dir, "tokens"),
    "authorization-mode": "RBAC",
    "cert-dir": dir,
    "secure-port": port,
    "bind-address": "127.0.0.1",
  };
  const words = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const env = { ...process.env, NODE_OPTIONS: "" };
  const child = spawn(process.execPath, [main, "apiserver", ...words], { env, stdio: ["ignore", "ignore", "pipe"] });
  t.teardown(() => child.kill("SIGKILL"));
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  await until("the server is ready", async () => {
    if (child.exitCode !== null) throw new Error(`The server ended: ${log}`);
    const config = await configOf(dir, port).catch(() => undefined);
    const listed = config?.makeApiClient(CoreV1Api).listNamespacedConfigMap({ namespace: "default" });
    return (await listed?.then(() => true).catch(() => false)) ?? false;
  });
  return child;
}

t.test(
  "informers of @kubernetes/client-node have the current objects after the server is killed and restarted",
  async (t) => {
    const dir = await directory(t);
    const port = await freePort();
    let server = await serverProcess(t, dir, port);
    const config = await configOf(dir, port);
    const api = config.makeApiClient(CoreV1Api);
    const namespace = "default";
    const list = () => api.listNamespacedConfigMap({ namespace });
    const informer = makeInformer<V1ConfigMap>(config, `/api/v1/namespaces/${namespace}/configmaps`, list);
    let stopped = false;
    // As its documentation recommends.
    informer.on("error", () => void systemClock.sleep(100).then(() => (stopped ? undefined : start())));
    t.teardown(() => {
      stopped = true;
      return informer.stop();
    });
    const start = (): Promise<void> =>
      informer.start().catch(() => (stopped ? undefined : systemClock.sleep(100).then(start)));
    await start();
    const state = (items: readonly V1ConfigMap[]): string =>
      items
        .map(({ metadata }) => `${metadata?.name}@${metadata?.resourceVersion}`)
        .sort()
        .join(" ");
    const agrees = async (): Promise<boolean> => {
      const { items } = await list();
      return state(informer.list(namespace)) === state(items);
    };
    const put = (name: string) => api.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 10; i++) await put(`map-${round}-${i}`);
      await api.deleteNamespacedConfigMap({ namespace, name: `map-${round}-0` });
      await until(`round ${round}`, agrees);
      server.kill(round === 0 ? "SIGTERM" : "SIGKILL");
      await once(server, "exit");
      server = await serverProcess(t, dir, port);
      // The informer may still be reconnecting.
      await put(`late-${round}`);
      await api.deleteNamespacedConfigMap({ namespace, name: `map-${round}-1` });
      await until(`after restart ${round}`, agrees);
    }
    t.equal((await list()).items.length, 2 * (10 - 2 + 1));
    let pages = 0;
    const paged: V1ConfigMap[] = [];
    let _continue: string | undefined;
    do {
      const page = await api.listNamespacedConfigMap({ namespace, limit: 5, ...(_continue ? { _continue } : {}) });
      if (pages === 0) t.equal(page.metadata?.remainingItemCount, 13);
      paged.push(...page.items);
      _continue = page.metadata?._continue;
      pages++;
    } while (_continue);
    t.equal(pages, 4);
    t.equal(state(paged), state((await list()).items));
  },
);

const ALIAS = /\.k8s\.io(?=\/|$)/;

/** A valid object of each `group/version/kind`, as recorded from requests to a Kubernetes server. */
function samples(): ReadonlyMap<string, KubernetesObject> | undefined {
  const recorded = recordedCases();
  if (recorded === undefined) return undefined;
  const found = new Map<string, KubernetesObject>();
  for (const { method, setup, expect, body, query = "" } of recorded) {
    if (method !== "POST" || setup !== undefined || expect.code !== 201 || !query.includes("Strict")) continue;
    const { apiVersion = "", kind = "", metadata } = (body ?? {}) as KubernetesObject;
    const key = `${canonical(apiVersion)}/${kind}`;
    if (metadata?.name !== undefined && !found.has(key)) found.set(key, body as KubernetesObject);
  }
  return found;
}

function canonical(apiVersion: string): string {
  const { group = "", version = "" } = parseApiVersion(apiVersion) ?? {};
  return `${svcGroup(group)}/${version}`;
}

interface Named extends V1APIResource {
  readonly apiVersion: string;
}

async function everyResource(get: (path: string) => Promise<unknown>): Promise<readonly Named[]> {
  const { groups } = (await get("/apis")) as V1APIGroupList;
  const listed = groups.flatMap((group) => group.versions.map(({ groupVersion }) => groupVersion));
  // Discovery lists one name of each group; the other is served.
  const others = listed.filter((name) => ALIAS.test(name)).map((name) => name.replace("k8s.io/", "svc.io/"));
  const versions = ["v1", ...listed, ...others];
  const found: Named[] = [];
  for (const apiVersion of versions) {
    const path = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
    const { resources } = (await get(path)) as V1APIResourceList;
    for (const resource of resources) if (!resource.name.includes("/")) found.push({ ...resource, apiVersion });
  }
  return found;
}

t.test(
  "KubernetesObjectApi creates, reads, updates and deletes an object of every resource, under both group aliases",
  async (t) => {
    const bodies = samples();
    if (bodies === undefined) {
      t.comment("The recorded answers are not on this machine: every resource is left out");
      return;
    }
    const dir = await directory(t);
    await using server = await startApiServer(
      {
        ...defaultConfig,
        serving: { ...defaultConfig.serving, certDir: dir },
        authentication: { ...defaultConfig.authentication, tokenFile: join(dir, "tokens") },
      },
      { clock: systemClock, log: silentLogger },
    );
    const config = await configOf(dir, server.address.port);
    const api = KubernetesObjectApi.makeApiClient(config);
    const get = async (path: string): Promise<unknown> => {
      const headers = { authorization: "Bearer secret", accept: "application/json" };
      const { body } = await server.handler(makeRequest({ path, headers }));
      return JSON.parse((await readAll(body)).toString());
    };
    const without: string[] = [];
    const tried = new Set<string>();
    for (const { name, kind, verbs, apiVersion } of await everyResource(get)) {
      if (!["create", "get", "patch", "delete"].every((verb) => verbs.includes(verb))) continue;
      const body = bodies.get(`${canonical(apiVersion)}/${kind}`);
      if (body === undefined) {
        without.push(`${apiVersion}/${name}`);
        continue;
      }
      const where = `${apiVersion} ${kind}`;
      const spec = { ...body, apiVersion, metadata: { ...body.metadata, name: body.metadata?.name ?? "" } };
      const header = { apiVersion, kind, metadata: spec.metadata };
      const created = await api.create(spec).catch((error: unknown) => t.fail(`create ${where}: ${String(error)}`));
      if (typeof created === "boolean") continue;
      t.match(created, { apiVersion, kind, metadata: { name: spec.metadata.name } }, `create ${where}`);
      t.match(await api.read(header), { apiVersion, kind, metadata: { uid: created.metadata?.uid } }, `read ${where}`);
      const labelled = { ...header, metadata: { ...spec.metadata, labels: { tried: "yes" } } };
      const patched = await api.patch(labelled, undefined, undefined, "t", undefined, PatchStrategy.MergePatch);
      t.match(patched, { apiVersion, metadata: { labels: { tried: "yes" } } }, `patch ${where}`);
      const { items } = await api.list(
        apiVersion,
        kind,
        undefined,
        undefined,
        undefined,
        undefined,
        undefined,
        "tried",
      );
      t.match(items, [{ metadata: { uid: created.metadata?.uid } }], `list ${where}`);
      await api.delete(header, undefined, undefined, 0);
      tried.add(where);
      // Removes the finalizers.
      const left = await api.read(header).catch(() => undefined);
      if (left?.metadata?.finalizers !== undefined) {
        const free = { ...header, metadata: { ...spec.metadata, finalizers: [] } };
        await api.patch(free, undefined, undefined, "t", undefined, PatchStrategy.MergePatch).catch(() => {});
      }
    }
    const aliases = [...tried].filter((where) => ALIAS.test(where.split(" ")[0] ?? ""));
    const originals = aliases.map((where) => where.replace("k8s.io/", "svc.io/"));
    t.same(
      originals.filter((where) => !tried.has(where)),
      [],
      "each under both group aliases",
    );
    t.same(without, [], "each resource has an object to try");
  },
);

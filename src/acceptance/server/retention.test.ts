/** What a whole server keeps in memory of what is gone: objects, namespaces and watches; and after a quiet minute. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { readLines, startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { bytesLeftPerCall, LEAK_ROUNDS } from "../../testing/std/heap-growth.ts";

t.setTimeout(900_000);

/** Any copy of an object is larger than what may be left: its changes in the history, without values. */
const OBJECT_BYTES = 64 * 1024;
const LEFT_MAX = 16 * 1024;

const text = (call: number): string => String(call).padEnd(OBJECT_BYTES, "x");

async function send(server: TestServer, line: string, body?: unknown): Promise<void> {
  const { status, text: answer } = await server.send(line, { body });
  if (status >= 300) throw new Error(`${line} answered ${status}: ${answer}`);
}

async function compact(server: TestServer): Promise<void> {
  const { json } = await server.send("GET /api/v1/namespaces?limit=1");
  await server.compact(Number(json.metadata.resourceVersion));
}

t.test("an object that is written, read in every form and deleted leaves nothing", async (t) => {
  await using server = await startTestServer();
  const maps = "/api/v1/namespaces/default/configmaps";
  const forms = [
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
  ];
  const left = await bytesLeftPerCall(async (call) => {
    const path = `${maps}/m${call}`;
    await send(server, `POST ${maps}`, { metadata: { name: `m${call}` }, data: { text: text(call) } });
    await send(server, `PUT ${path}`, { metadata: { name: `m${call}` }, data: { text: text(call), more: "1" } });
    for (const accept of forms) {
      await server.send(`GET ${path}`, { headers: { accept } });
      await server.send(`GET ${maps}`, { headers: { accept } });
    }
    await send(server, `DELETE ${path}`);
    await compact(server);
  });
  t.ok(left < LEFT_MAX, `${left} bytes for each object`);
});

t.test("a namespace that was used and deleted leaves nothing", async (t) => {
  await using server = await startTestServer();
  const left = await bytesLeftPerCall(async (call) => {
    const name = `ns-${call}`;
    const path = `/api/v1/namespaces/${name}`;
    await send(server, "POST /api/v1/namespaces", { metadata: { name, annotations: { text: text(call) } } });
    await send(server, `POST ${path}/secrets`, { metadata: { name: "s" }, stringData: { text: text(call) } });
    await send(server, `GET ${path}/secrets`);
    await send(server, `DELETE ${path}/secrets/s`);
    await send(server, `DELETE ${path}`);
    await send(server, `PUT ${path}/finalize`, { metadata: { name }, spec: { finalizers: [] } });
    const { status } = await server.send(`GET ${path}`);
    if (status !== 404) throw new Error(`the namespace is still there: ${status}`);
    await compact(server);
  });
  t.ok(left < LEFT_MAX, `${left} bytes for each namespace`);
});

t.test("a watch that ends leaves nothing", async (t) => {
  await using server = await startTestServer();
  const secrets = "/api/v1/namespaces/default/secrets";
  await send(server, `POST ${secrets}`, { metadata: { name: "s" }, stringData: { text: text(0) } });
  const left = await bytesLeftPerCall(async (call) => {
    const leaving = new AbortController();
    const { signal } = leaving;
    const headers = { accept: call % 2 === 0 ? "application/json" : "application/json;as=Table;v=v1;g=meta.k8s.io" };
    const watch = await server.open(`GET ${secrets}?watch=1&allowWatchBookmarks=1`, { signal, headers });
    await readLines(watch, 1);
    leaving.abort();
    await new Promise((resolve) => setImmediate(resolve));
  });
  t.ok(left < LEFT_MAX, `${left} bytes for each watch`);
});

/** Calls `work` for 0…count-1, four at a time. */
async function inParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
}

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

function definition(group: string) {
  const fields = Array.from({ length: 60 }, (_, index) => [
    `field${index}`,
    { type: "string", maxLength: 1000, description: "A field of the specification, with a text. ".repeat(3) },
  ]);
  const spec = { type: "object", properties: Object.fromEntries(fields) };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
  const versions = [{ name: "v1", served: true, storage: true, schema }];
  const names = { plural: "crontabs", kind: "CronTab" };
  return { metadata: { name: `crontabs.${group}` }, spec: { group, scope: "Namespaced", names, versions } };
}

/** Sends a request; resolves with the bytes of the response. */
async function call(server: ServerProcess, method: string, path: string, body?: unknown): Promise<number> {
  const { status, json } = await server.send(method, path, body, { ignoreBody: true });
  if (status >= 300) throw new Error(`${method} ${path} answered ${status}`);
  return json;
}

/** Definitions and namespaces come, are used in all ways, and most of them go. */
async function useServer(server: ServerProcess, run: string, definitions: number, namespaces: number): Promise<void> {
  await inParallel(definitions, async (index) => {
    const group = `g${index}.${run}.example.com`;
    const path = `/apis/${group}/v1/namespaces/default/crontabs`;
    await call(server, "POST", DEFINITIONS, definition(group));
    while ((await server.send("GET", path)).status !== 200) await sleep(20);
    for (const name of ["a", "b", "c"]) {
      const spec = { field0: "x".repeat(500) };
      await call(server, "POST", path, { apiVersion: `${group}/v1`, kind: "CronTab", metadata: { name }, spec });
    }
    await call(server, "GET", `/openapi/v3/apis/${group}/v1`);
  });
  await inParallel(namespaces, async (index) => {
    const name = `${run}-${index}`;
    const path = `/api/v1/namespaces/${name}`;
    await call(server, "POST", "/api/v1/namespaces", { metadata: { name } });
    for (let map = 0; map < 10; map++) {
      const data = { text: "x".repeat(3000) };
      await call(server, "POST", `${path}/configmaps`, { metadata: { name: `m${map}` }, data });
      await call(server, "PUT", `${path}/configmaps/m${map}`, {
        metadata: { name: `m${map}` },
        data: { ...data, a: "b" },
      });
    }
    await call(server, "GET", `${path}/configmaps`);
    for (let map = 0; map < 9; map++) await call(server, "DELETE", `${path}/configmaps/m${map}`);
  });
  await call(server, "GET", "/openapi/v2");
  await inParallel(definitions, async (index) => {
    if (index % 10 !== 0) await call(server, "DELETE", `${DEFINITIONS}/crontabs.g${index}.${run}.example.com`);
  });
}

const program = new URL("../../../dist/svc", import.meta.url).pathname;
/** `make leaks`: it takes minutes. */
const skip = LEAK_ROUNDS < 1000 || !existsSync(program);

t.test("a quiet minute after a load, a server needs little more memory than before it", { skip }, async (t) => {
  const home = mkdtempSync(join(tmpdir(), "svc-quiet-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  await using server = await startServerProcess({ home, store: join(home, "store"), program: [program] });
  const empty = server.residentMemory();
  // The code that a load compiles stays, whatever its size.
  await useServer(server, "first", 5, 5);
  await sleep(40_000);
  const base = server.residentMemory();
  await useServer(server, "load", 100, 300);
  const loaded = server.residentMemory();
  await sleep(60_000);
  const quiet = server.residentMemory();
  const lists = ["/api/v1/configmaps", "/api/v1/namespaces", DEFINITIONS];
  const stored = (await Promise.all(lists.map((path) => call(server, "GET", path)))).reduce((a, b) => a + b) / 2 ** 20;
  const figures = Object.entries({ empty, base, loaded, quiet, stored }).map(
    ([name, mebibytes]) => `${name} ${Math.round(mebibytes)}`,
  );
  console.error(`# MiB: ${figures.join(", ")}`);
  t.ok(quiet < 1.5 * (base + stored), figures.join(", "));
});

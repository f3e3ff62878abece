/**
 * Extension servers whose documents are as large as the limits admit, of more values, in chunks of a byte, or without
 * end: the longest turn of the event loop and the memory of a server with a small heap that reads and merges them.
 * `SVC_ATTACKS=all` (`make attacks`) sends all and prints a table; otherwise some.
 */
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { makeCertificate, SERVER_AUTH, type TestCertificate } from "../../testing/http/test-certificates.ts";
import { until } from "../../testing/std/until.ts";
import { type MeasuredServer, startMeasuredServer } from "./measured-server.ts";

const API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const JSON_TYPE = "application/json";
const all = process.env.SVC_ATTACKS === "all";
/** Several times what is measured, and less than documents without a bound take. */
const TURN_MS_MAX = 250;
const HEAP_MIB_MAX = 80;
/** Until the discovery of a new API service has been read. */
const SETTLE_MS = all ? 2500 : 500;

t.setTimeout(300_000);

/** A response: its chunks are written one by one. */
interface Document {
  readonly type?: string;
  readonly chunks: Iterable<string>;
}

/** The documents of a server by path; `GV` is the path of the group version. */
type Documents = Readonly<Record<string, Document>>;

function many<T>(count: number, create: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => create(index));
}

function members<T>(count: number, create: (index: number) => readonly [string, T]): Readonly<Record<string, T>> {
  return Object.fromEntries(many(count, create));
}

const json = (value: unknown): Document => ({ chunks: [JSON.stringify(value)] });
const discovery = (items: readonly object[]): Document => ({ type: AGGREGATED, ...json({ items }) });
const resource = (more: object) => ({ resource: "r", responseKind: {}, scope: "Namespaced", verbs: [], ...more });
const version = (group: string, resources: readonly object[]) =>
  discovery([{ metadata: { name: group }, versions: [{ version: "v1", resources }] }]);
const spec = (paths: object, definitions: object = {}) => ({
  "/openapi/v2": json({ swagger: "2.0", paths, definitions }),
});
const references = (count: number) => many(count, (index) => ({ $ref: `#/definitions/d${index}` }));

function* spaces(count: number): Generator<string> {
  for (let index = 0; index < count; index++) yield " ";
}

const cases: Readonly<Record<string, (group: string) => Documents>> = {
  "legacy discovery of 60,000 subresources": () => ({
    GV: json({ resources: many(60_000, (index) => ({ name: `a/${index}` })) }),
  }),
  "discovery of 49,000 subresources": (group) => ({
    "/apis": version(group, [resource({ subresources: many(49_000, () => ({})) })]),
  }),
  "OpenAPI of 50,000 paths": (group) =>
    spec(members(50_000, (index) => [`/apis/${group}/v1/x${index}`, { get: { responses: {} } }])),
  "OpenAPI of 9,500 definitions, one of which is renamed": (group) =>
    spec(
      { [`/apis/${group}/v1/x`]: { get: [...references(9500), { $ref: "#/definitions/io.k8s.api.core.v1.Pod" }] } },
      {
        ...members(9500, (index) => [`d${index}`, { type: "object", items: references(2) }]),
        "io.k8s.api.core.v1.Pod": { type: "object" },
      },
    ),
  "documents in chunks of a byte": () => ({
    "/apis": { type: AGGREGATED, chunks: spaces(100_000) },
    "/openapi/v2": { chunks: spaces(200_000) },
    "/openapi/v3": { chunks: spaces(200_000) },
  }),
  "discovery of 2,000 resources": (group) => ({
    "/apis": version(
      group,
      many(2000, (index) => resource({ resource: `r${index}`, singularResource: "x".repeat(500) })),
    ),
  }),
  "discovery of 500,000 verbs": (group) => ({
    "/apis": version(group, [resource({ verbs: many(500_000, () => "") })]),
  }),
  "discovery of 500,000 groups": () => ({ "/apis": discovery(many(500_000, () => ({}))) }),
  "OpenAPI of 190,000 values": (group) => spec({ [`/apis/${group}/v1/x`]: many(95_000, () => ({})) }),
  "OpenAPI of 1,300,000 values": (group) => spec({ [`/apis/${group}/v1/x`]: many(1_300_000, () => ({})) }),
  "OpenAPI of 9,500 paths": (group) =>
    spec(members(9500, (index) => [`/apis/${group}/v1/x${index}`, { get: { a: "x".repeat(300) } }])),
  "OpenAPI of 40,000 kinds of a definition": (group) =>
    spec(
      { [`/apis/${group}/v1/x`]: { get: [{ $ref: "#/definitions/k" }] } },
      {
        k: {
          "x-kubernetes-group-version-kind": many(40_000, (index) => ({ group, version: "v1", kind: `K${index}` })),
        },
      },
    ),
  "list of 40,000 OpenAPI v3 documents": () => ({
    "/openapi/v3": json({ paths: members(40_000, (index) => [`apis/x${index}/v1`, { serverRelativeURL: "/x" }]) }),
  }),
};

interface HostileExtension extends Disposable {
  readonly port: number;
  documents: Documents;
}

async function startHostileExtension(certificate: TestCertificate): Promise<HostileExtension> {
  const server: Server = createServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
    const [path = ""] = (request.url ?? "").split("?");
    const document = extension.documents[path.startsWith("/apis/") ? "GV" : path];
    response.on("error", () => {});
    if (document === undefined) {
      response.writeHead(path.startsWith("/apis/") ? 200 : 404, { "content-type": JSON_TYPE });
      response.end(path.startsWith("/apis/") ? '{"resources":[]}' : "");
      return;
    }
    response.writeHead(200, { "content-type": document.type ?? JSON_TYPE });
    const chunks = document.chunks[Symbol.iterator]();
    const write = (): void => {
      for (let next = chunks.next(); ; next = chunks.next()) {
        if (next.done === true) return void response.end();
        if (!response.write(next.value)) return;
      }
    };
    response.on("drain", write);
    write();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const extension = {
    port: (server.address() as AddressInfo).port,
    documents: {} as Documents,
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return extension;
}

async function register(server: MeasuredServer, group: string, caBundle: string, port: number): Promise<string> {
  const service = { namespace: "default", name: "extension", port };
  const own = { group, version: "v1", groupPriorityMinimum: 2000, versionPriority: 200, caBundle, service };
  await server.create(API_SERVICES, { metadata: { name: `v1.${group}` }, spec: own });
  const line = `GET ${API_SERVICES}/v1.${group}`;
  await until("the API service is available", async () => {
    const { status } = JSON.parse((await server.send({ line }, "admin")).text);
    return status?.conditions?.[0]?.status === "True" ? true : undefined;
  });
  return `${API_SERVICES}/v1.${group}`;
}

t.test("documents of extension servers take short turns and little memory", async (t) => {
  const directory = t.testdir();
  const ca = await makeCertificate({ subject: [{ CN: ["ca"] }], authority: {} });
  const names = ["extension.default.svc"];
  const certificate = await makeCertificate({ subject: [{ CN: names }], issuer: ca, usages: [SERVER_AUTH], names });
  const proxy = await makeCertificate({ subject: [{ CN: ["proxy"] }], issuer: ca });
  const [certFile, keyFile] = [join(directory, "proxy.crt"), join(directory, "proxy.key")];
  writeFileSync(certFile, proxy.cert);
  writeFileSync(keyFile, proxy.key);
  using extension = await startHostileExtension(certificate);
  const flags = [`--proxy-client-cert-file=${certFile}`, `--proxy-client-key-file=${keyFile}`];
  await using server = await startMeasuredServer(directory, flags);
  await server.create("/api/v1/namespaces/default/services", {
    metadata: { name: "extension" },
    spec: { type: "ExternalName", externalName: "localhost", ports: [{ port: extension.port }] },
  });
  const caBundle = Buffer.from(ca.cert).toString("base64");
  const rows: string[] = [];
  const run = async (what: string, documents: Documents, group: string): Promise<void> => {
    extension.documents = documents;
    const [path, { ms, heapMiB }] = await server.measure(async () => {
      const registered = await register(server, group, caBundle, extension.port);
      await sleep(SETTLE_MS);
      for (const line of ["GET /apis", "GET /openapi/v2", "GET /openapi/v3", `GET /openapi/v3/apis/${group}/v1`]) {
        const { status } = await server.send({ line, accept: line === "GET /apis" ? AGGREGATED : JSON_TYPE }, "admin");
        t.ok(status === 200 || status === 404, `${what}: ${line}: ${status}`);
      }
      return registered;
    });
    await server.send({ line: `DELETE ${path}` }, "admin");
    if (what === "") return;
    t.ok(ms < TURN_MS_MAX, `${what}: ${Math.round(ms)} ms`);
    t.ok(heapMiB < HEAP_MIB_MAX, `${what}: ${Math.round(heapMiB)} MiB`);
    rows.push(`| ${what} | ${Math.round(ms)} | ${Math.round(heapMiB)} |`);
  };
  // The code is compiled, and the own documents are created.
  await run("", {}, "first.example.com");
  for (const [index, [what, create]] of Object.entries(cases)
    .slice(0, all ? undefined : 5)
    .entries()) {
    const group = `g${index}.example.com`;
    await run(what, create(group), group);
  }
  if (all) console.error(`| documents | longest turn, ms | heap, MiB |\n|---|---|---|\n${rows.join("\n")}`);
});

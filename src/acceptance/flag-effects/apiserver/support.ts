/** Helpers for the tests of the API server's flags. */

import type { IncomingHttpHeaders } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { connect as connectTls, type TLSSocket } from "node:tls";
import t, { type Test } from "tap";
import { apiServerOptions } from "../../../apiserver/config/options.ts";
import { type apiserverFlags, apiserverProgram } from "../../../apiserver/flags/flags.ts";
import { type RunningApiServer, startApiServer } from "../../../apiserver/server.ts";
import { logOptions } from "../../../flags/log-options.ts";
import type { HttpRequest } from "../../../http/message.ts";
import { makeRequest } from "../../../http/request.ts";
import { textResponse } from "../../../http/respond.ts";
import { listen } from "../../../http/server/server.ts";
import { createLogger, type Logger, silentLogger } from "../../../std/log/logger.ts";
import { createMemoryStore } from "../../../storage/memory.ts";
import type { Range, Store, WriteOptions } from "../../../storage/store.ts";
import { conditionTimeout, invokeMutant } from "../../../testing/flags/mutant.ts";
import { CLIENT_AUTH, makeCertificate, makeServerCertificate } from "../../../testing/http/test-certificates.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { fileDirectory } from "../../../testing/std/file-directory.ts";
import { freePort } from "../../../testing/std/free-port.ts";
import { until } from "../../../testing/std/until.ts";

export type Name = keyof typeof apiserverFlags;

export type Settings = Readonly<Partial<Record<Name, string>>>;

export type Effect = (t: Test) => Promise<void>;

export const { ca, server: pair } = await makeServerCertificate();

export const user = await makeCertificate({ subject: [{ CN: ["jo"] }], issuer: ca, usages: [CLIENT_AUTH] });

export const files = fileDirectory(t, {
  "ca.crt": ca.cert,
  "server.crt": pair.cert,
  "server.key": pair.key,
  "user.crt": user.cert,
  "user.key": user.key,
  tokens: 'sesame,ali,1,"thieves"\n',
  "policy.jsonl": ["system:authenticated", "system:unauthenticated"].map(allowAllPolicy).join(""),
});

export const file = (name: string): string => join(files, name);

export function allowAllPolicy(group: string): string {
  const spec = { group, namespace: "*", resource: "*", apiGroup: "*", nonResourcePath: "*" };
  return `${JSON.stringify({ apiVersion: "abac.authorization.kubernetes.io/v1beta1", kind: "Policy", spec })}\n`;
}

/** An ABAC policy that allows all users everything, unless the test sets flags for authorization. */
export function allowAllByDefault(settings: Settings): Settings {
  if (Object.keys(settings).some((name) => name.startsWith("authorization-"))) return {};
  return { "authorization-mode": "ABAC", "authorization-policy-file": file("policy.jsonl") };
}

/** Flags of every server; those of the test override them. */
export const baseSettings: Settings = {
  "bind-address": "127.0.0.1",
  "kvstore-servers": "memory://",
  "cert-dir": file("pki"),
  "tls-cert-file": file("server.crt"),
  "tls-private-key-file": file("server.key"),
  // Most servers run without the controllers that create service accounts.
  "disable-admission-plugins": "ServiceAccount",
};

/** `baseline`: flags of the harness, to which a mutant falls back. */
export function parseFlags(settings: Settings, baseline: Settings = {}) {
  const words = (of: Settings) => Object.entries(of).map(([name, value]) => `--${name}=${value}`);
  const invocation = invokeMutant(apiserverProgram, words(settings), { version: "v1.33.0" }, words(baseline));
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  return invocation;
}

export interface TestResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of all kinds
  readonly json: any;
}

export interface TestServer extends AsyncDisposable {
  readonly running: RunningApiServer;
  readonly port: number;
  readonly clock: FakeClock;
  /** The headers of an administrator. */
  readonly admin: Readonly<Record<string, string>>;
  /** Create calls that the store received. */
  readonly writes: { readonly key: string; readonly value: Uint8Array; readonly options: WriteOptions | undefined }[];
  /** Sends a request such as `GET /api/v1/pods`, in group `system:masters` unless headers are given. */
  send(line: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<TestResponse>;
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
}

export async function startServer(
  settings: Settings = {},
  change: Partial<Store> = {},
  makeLog: (flags: ReturnType<typeof parseFlags>["flags"], clock: FakeClock) => Logger = () => silentLogger,
): Promise<TestServer> {
  const clock = new FakeClock(Date.now());
  const baseline = { "secure-port": String(await freePort()), ...baseSettings, ...allowAllByDefault(settings) };
  const { flags, gates, version, given: options } = parseFlags({ ...baseline, ...settings }, baseline);
  const config = apiServerOptions(flags, gates, version, options);
  const writes: { key: string; value: Uint8Array; options: WriteOptions | undefined }[] = [];
  const deps = { clock, log: makeLog(flags, clock) };
  const store =
    config.storage.urls[0] === "memory://"
      ? recordWrites(createMemoryStore({ ...deps, ...config.storage }), writes, change)
      : undefined;
  const running = await startApiServer(config, { ...deps, store });
  const token = running.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const admin = { authorization: `Bearer ${token}` };
  return {
    running,
    port: running.address.port,
    clock,
    writes,
    admin,
    async send(line, body, headers = admin) {
      const [method = "GET", target = "/"] = line.split(" ");
      const [path = "", query = ""] = target.split("?");
      const sent = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
      const all = { "content-type": "application/json", ...headers };
      const response = await running.handler(makeRequest({ method, path, query, headers: all, ...sent }));
      const chunks: Uint8Array[] = [];
      const parts = response.body instanceof Uint8Array ? [response.body] : response.body;
      for await (const part of parts) chunks.push(part);
      const message = Buffer.concat(chunks).toString();
      return {
        status: response.status,
        headers: response.headers,
        json: message.startsWith("{") ? JSON.parse(message) : message,
      };
    },
    until: (what, holds) => advanceUntil(clock, what, holds),
    async [Symbol.asyncDispose]() {
      let closed = false;
      const closing = running.close().finally(() => {
        closed = true;
      });
      await advanceUntil(clock, "the server has stopped", () => closed, TIMEOUT_MS);
      await closing;
    },
  };
}

/** For servers that must not start: one that starts nevertheless is closed. */
export async function startAndClose(settings: Settings): Promise<void> {
  await using _server = await startServer(settings);
}

export function recordWrites(store: Store, writes: TestServer["writes"], change: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const replaced = change[name as keyof Store];
      if (replaced !== undefined) return replaced;
      if (name === "create") {
        return (key: string, value: Uint8Array, options?: WriteOptions) => {
          writes.push({ key, value, options });
          return target.create(key, value, options);
        };
      }
      const member = target[name as keyof Store];
      return typeof member === "function" ? (member as () => unknown).bind(target) : member;
    },
  });
}

/** The number of reads and watches of the store for three reads by clients, after a first list. */
export async function countStoreReads(settings: Settings, path: string): Promise<number> {
  let reads = 0;
  const clock = new FakeClock(Date.now());
  const inner = createMemoryStore({ clock });
  const counted = <A extends unknown[], R>(call: (...args: A) => R, keyOf: (first: A[0]) => string) => {
    return (...args: A): R => {
      if (keyOf(args[0]).includes(`/${path.split("/").at(-1)}/`)) reads++;
      return call(...args);
    };
  };
  const from = (range: unknown): string => (range as Range).from;
  await using server = await startServer(settings, {
    get: counted(inner.get.bind(inner), String),
    list: counted(inner.list.bind(inner), from),
    scan: counted(inner.scan.bind(inner), from),
    readVersion: inner.readVersion.bind(inner),
    watch: counted(inner.watch.bind(inner), from),
    create: inner.create.bind(inner),
    update: inner.update.bind(inner),
    delete: inner.delete.bind(inner),
    current: inner.current.bind(inner),
  });
  await server.send(`GET ${path}`);
  reads = 0;
  await server.send(`GET ${path}/none`);
  await server.send(`GET ${path}`);
  let over = false;
  const watching = server.send(`GET ${path}?watch=true&timeoutSeconds=1`).then(() => {
    over = true;
  });
  await server.until("the watch has ended", () => over);
  await watching;
  return reads;
}

/** For what happens with a mutant too. */
export const TIMEOUT_MS = 10_000;

/** Advances the clock until the condition holds. */
export async function advanceUntil(
  clock: FakeClock,
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = conditionTimeout(TIMEOUT_MS),
): Promise<void> {
  const wait = async (): Promise<void> => {
    await setTimeout(1);
    await clock.advance(100);
  };
  await until(what, holds, { timeoutMs, wait });
}

/** Requests a list of pods over the network. */
export function fetchStatus(
  port: number,
  options: Readonly<Record<string, unknown>> = {},
): Promise<{ status: number; socket: TLSSocket; headers: IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const all = { host: "127.0.0.1", port, path: "/api/v1/pods", rejectUnauthorized: false, agent: false, ...options };
    const sent = request(all, (response) => {
      const socket = response.socket as TLSSocket;
      response.resume();
      resolve({ status: response.statusCode ?? 0, socket, headers: response.headers });
    });
    sent.on("error", reject).end();
  });
}

/** Connects with TLS and returns the negotiated parameters. */
export function handshake(port: number, options: Readonly<Record<string, unknown>> = {}) {
  return new Promise<{ alpn: string | false | null; protocol: string | null; cipher: string; fingerprint: string }>(
    (resolve, reject) => {
      const socket = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options }, () => {
        const found = {
          alpn: socket.alpnProtocol,
          protocol: socket.getProtocol(),
          cipher: socket.getCipher().standardName,
          fingerprint: socket.getPeerCertificate().fingerprint256,
        };
        socket.destroy();
        resolve(found);
      });
      socket.on("error", reject);
    },
  );
}

export const pod = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "i", ...("container" in spec ? (spec.container as object) : {}) }] },
});

export const PODS = "/api/v1/namespaces/default/pods";

/** Starts an agent that responds to log requests, and a server with a pod on its node. */
export async function withAgent(
  settings: Settings,
  check: (server: TestServer, seen: HttpRequest[]) => Promise<void>,
  response: () => Promise<ReturnType<typeof textResponse>> = async () => textResponse(200, "line\n"),
): Promise<void> {
  const seen: HttpRequest[] = [];
  const clock = new FakeClock();
  await using agent = await listen({
    handler: (request) => {
      seen.push(request);
      return response();
    },
    log: silentLogger,
    clock,
    host: "127.0.0.2",
    tls: { cert: pair.cert, key: pair.key, requestCert: true },
  });
  await using server = await startServer(settings);
  const node = { metadata: { name: "n1" } };
  const addresses = [
    { type: "InternalIP", address: "127.0.0.3" },
    { type: "ExternalIP", address: "127.0.0.2" },
  ];
  await server.send("POST /api/v1/nodes", node);
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: agent.port } } };
  await server.send(
    "PATCH /api/v1/nodes/n1/status",
    { status },
    {
      authorization: `Bearer ${server.running.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} })}`,
      "content-type": "application/merge-patch+json",
    },
  );
  const created = pod("web");
  await server.send(`POST ${PODS}`, { ...created, spec: { ...created.spec, nodeName: "n1" } });
  await check(server, seen);
}

/** The statuses of a read and a write while another write is blocked in the store. */
export async function requestWithBlockedStore(settings: Settings): Promise<{ reads: number; writes: number }> {
  const store: { create?: Store["create"] } = {};
  await using server = await startServer({ "request-timeout": "3s", ...settings }, store);
  store.create = () => new Promise<never>(() => {});
  void server.send(`POST ${PODS}`, pod("a"), {});
  await setTimeout(5);
  let reads = 0;
  let writes = 0;
  void server.send(`GET ${PODS}`, undefined, {}).then(({ status }) => {
    reads = status;
  });
  void server.send(`POST ${PODS}`, pod("b"), {}).then(({ status }) => {
    writes = status;
  });
  await server.until("the responses", () => reads !== 0 && writes !== 0);
  return { reads, writes };
}

export const externalAddresses: Settings = { "svclet-preferred-address-types": "ExternalIP" };

/** The lines of one metric in /metrics. */
export async function metricLines(server: TestServer, name: string): Promise<readonly string[]> {
  const { json } = await server.send("GET /metrics");
  return (json as string).split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

export const splitStreams: Settings = { "log-text-split-stream": "true", "feature-gates": "LoggingAlphaOptions=true" };

export function captureLog(settings: Settings) {
  const clock = new FakeClock();
  const lines: { readonly out: string[]; readonly err: string[] } = { out: [], err: [] };
  let flushes = 0;
  const sink = (kept: string[]) => ({
    write: (line: string) => kept.push(line),
    flushSync: () => {
      flushes += 1;
    },
  });
  const sinks = { stdout: sink(lines.out), stderr: sink(lines.err) };
  const log = createLogger(logOptions(parseFlags(settings).flags), { clock, ...sinks });
  log.info("hello");
  log.v(3)?.info("three");
  log.child("store").v(5)?.info("five");
  log.error("oh");
  return { clock, out: lines.out.join(""), err: lines.err.join(""), flushes: () => flushes };
}

/** What a server with the flags logs of a request. */
export async function captureServerLog(settings: Settings): Promise<string> {
  const lines: string[] = [];
  const sink = { write: (line: string) => lines.push(line), flushSync: () => {} };
  await using server = await startServer(settings, {}, (flags, clock) =>
    createLogger(logOptions(flags), { clock, stdout: sink, stderr: sink }),
  );
  await server.send(`GET ${PODS}`);
  return lines.join("");
}

/** The status of a health endpoint while the store is blocked, and whether it came within 2.9 s. */
export async function probeBlockedStore(settings: Settings, path: string): Promise<{ early: boolean; status: number }> {
  const store: { list?: Store["list"] } = {};
  await using server = await startServer(settings, store);
  store.list = () => new Promise<never>(() => {});
  let status = 0;
  void server.send(`GET ${path}`).then((response) => {
    status = response.status;
  });
  await server.clock.advance(2900);
  const early = status !== 0;
  await server.until("the response", () => status !== 0);
  return { early, status };
}

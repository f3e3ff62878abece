/** What the effect tests of flags share. */

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
import { invoke } from "../../../flags/program.ts";
import type { HttpRequest } from "../../../http/message.ts";
import { makeRequest } from "../../../http/request.ts";
import { textResponse } from "../../../http/respond.ts";
import { listen } from "../../../http/server/server.ts";
import { createLogger, silentLogger } from "../../../std/log/logger.ts";
import { createMemoryStore } from "../../../storage/memory.ts";
import type { Range, Store, WriteOptions } from "../../../storage/store.ts";
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
  everybody: ["system:authenticated", "system:unauthenticated"].map(everythingFor).join(""),
});

export const file = (name: string): string => join(files, name);

export function everythingFor(group: string): string {
  const spec = { group, namespace: "*", resource: "*", apiGroup: "*", nonResourcePath: "*" };
  return `${JSON.stringify({ apiVersion: "abac.authorization.kubernetes.io/v1beta1", kind: "Policy", spec })}\n`;
}

/** With `AlwaysAllow`, nobody in particular could ask anything. Only for tests that say nothing of authorization. */
export function openToAll(settings: Settings): Settings {
  if (Object.keys(settings).some((name) => name.startsWith("authorization-"))) return {};
  return { "authorization-mode": "ABAC", "authorization-policy-file": file("everybody") };
}

/** What every server of these tests is told, unless the test says otherwise. */
export const base: Settings = {
  "bind-address": "127.0.0.1",
  "kvstore-servers": "memory://",
  "tls-cert-file": file("server.crt"),
  "tls-private-key-file": file("server.key"),
  // Most have no controllers that would make the accounts of pods.
  "disable-admission-plugins": "ServiceAccount",
};

export function invoked(settings: Settings) {
  const words = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  const invocation = invoke(apiserverProgram, words, { version: "v1.33.0" });
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  return invocation;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every kind are looked into
  readonly json: any;
}

export interface TestServer extends AsyncDisposable {
  readonly running: RunningApiServer;
  readonly port: number;
  readonly clock: FakeClock;
  /** Writes as the store saw them. */
  readonly writes: { readonly key: string; readonly value: Uint8Array; readonly options: WriteOptions | undefined }[];
  /** As `system:masters`, unless there are other headers: `GET /api/v1/pods`. */
  send(line: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
}

export async function serve(settings: Settings = {}, change: Partial<Store> = {}): Promise<TestServer> {
  const clock = new FakeClock(Date.now());
  const {
    flags,
    gates,
    version,
    given: options,
  } = invoked({
    "secure-port": String(await freePort()),
    ...base,
    ...openToAll(settings),
    ...settings,
  });
  const config = apiServerOptions(flags, gates, version, options);
  const writes: { key: string; value: Uint8Array; options: WriteOptions | undefined }[] = [];
  const deps = { clock, log: silentLogger };
  const store =
    config.storage.url === "memory://"
      ? watched(createMemoryStore({ ...deps, ...config.storage }), writes, change)
      : undefined;
  const running = await startApiServer(config, { ...deps, store });
  const token = running.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  return {
    running,
    port: running.address.port,
    clock,
    writes,
    async send(line, body, headers = { authorization: `Bearer ${token}` }) {
      const [method = "GET", target = "/"] = line.split(" ");
      const [path = "", query = ""] = target.split("?");
      const sent = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
      const all = { "content-type": "application/json", ...headers };
      const answer = await running.handler(makeRequest({ method, path, query, headers: all, ...sent }));
      const chunks: Uint8Array[] = [];
      const pieces = answer.body instanceof Uint8Array ? [answer.body] : answer.body;
      for await (const piece of pieces) chunks.push(piece);
      const message = Buffer.concat(chunks).toString();
      return {
        status: answer.status,
        headers: answer.headers,
        json: message.startsWith("{") ? JSON.parse(message) : message,
      };
    },
    until: (what, holds) => advanceUntil(clock, what, holds),
    async [Symbol.asyncDispose]() {
      let closed = false;
      const closing = running.close().finally(() => {
        closed = true;
      });
      await advanceUntil(clock, "the server has stopped", () => closed);
      await closing;
    },
  };
}

export function watched(store: Store, writes: TestServer["writes"], change: Partial<Store>): Store {
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

/** How often the store is read or watched for three reads by clients, once the server has warmed up. */
export async function readsOfStore(settings: Settings, path: string): Promise<number> {
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
  await using server = await serve(settings, {
    get: counted(inner.get.bind(inner), String),
    list: counted(inner.list.bind(inner), from),
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

const TIMEOUT_MS = 10_000;

/** Advances the clock until the condition holds. */
export async function advanceUntil(
  clock: FakeClock,
  what: string,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const wait = async (): Promise<void> => {
    await setTimeout(1);
    await clock.advance(100);
  };
  await until(what, holds, { timeoutMs: TIMEOUT_MS, wait });
}

/** Over the network. */
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

/** What a handshake comes to. */
export function shake(port: number, options: Readonly<Record<string, unknown>> = {}) {
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

/** An agent that answers logs, and a pod of its node. */
export async function withAgent(
  settings: Settings,
  look: (server: TestServer, seen: HttpRequest[]) => Promise<void>,
  answer: () => Promise<ReturnType<typeof textResponse>> = async () => textResponse(200, "line\n"),
): Promise<void> {
  const seen: HttpRequest[] = [];
  const clock = new FakeClock();
  await using agent = await listen({
    handler: (request) => {
      seen.push(request);
      return answer();
    },
    log: silentLogger,
    clock,
    host: "127.0.0.2",
    tls: { cert: pair.cert, key: pair.key, requestCert: true },
  });
  await using server = await serve(settings);
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
  const made = pod("web");
  await server.send(`POST ${PODS}`, { ...made, spec: { ...made.spec, nodeName: "n1" } });
  await look(server, seen);
}

/** What a read and a write are answered while the store has another write that does not end. */
export async function crowd(settings: Settings): Promise<{ reads: number; writes: number }> {
  const store: { create?: Store["create"] } = {};
  await using server = await serve({ "request-timeout": "3s", ...settings }, store);
  store.create = () => new Promise<never>(() => {});
  void server.send(`POST ${PODS}`, pod("a"), {});
  await setTimeout(5);
  const reads = (await server.send(`GET ${PODS}`, undefined, {})).status;
  let writes = 0;
  void server.send(`POST ${PODS}`, pod("b"), {}).then(({ status }) => {
    writes = status;
  });
  await server.until("the write is answered", () => writes !== 0);
  return { reads, writes };
}

export const external: Settings = { "svclet-preferred-address-types": "ExternalIP" };

/** The lines of one metric. */
export async function shown(server: TestServer, name: string): Promise<readonly string[]> {
  const { json } = await server.send("GET /metrics");
  return (json as string).split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

export const split: Settings = { "log-text-split-stream": "true", "feature-gates": "LoggingAlphaOptions=true" };

export function logged(settings: Settings) {
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
  const log = createLogger(logOptions(invoked(settings).flags), { clock, ...sinks });
  log.info("hello");
  log.v(3)?.info("three");
  log.child("store").v(5)?.info("five");
  log.error("oh");
  return { clock, out: lines.out.join(""), err: lines.err.join(""), flushes: () => flushes };
}

/** What a health endpoint says, and whether before three seconds, when the store has stopped to answer. */
export async function silentStore(settings: Settings, path: string): Promise<{ early: boolean; status: number }> {
  const store: { list?: Store["list"] } = {};
  await using server = await serve(settings, store);
  store.list = () => new Promise<never>(() => {});
  let status = 0;
  void server.send(`GET ${path}`).then((answer) => {
    status = answer.status;
  });
  await server.clock.advance(2900);
  const early = status !== 0;
  await server.until("it answers", () => status !== 0);
  return { early, status };
}

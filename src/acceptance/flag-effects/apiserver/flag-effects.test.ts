/** Every flag of `svc apiserver` that is marked effective, with what it changes in a server in this process. */
import { X509Certificate } from "node:crypto";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingHttpHeaders, type IncomingMessage, request as requestPlain } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { connect as connectTls, type TLSSocket } from "node:tls";
import t, { type Test } from "tap";
import { apiserverFlags, apiserverProgram } from "../../../apiserver/flags/flags.ts";
import { apiServerOptions } from "../../../apiserver/config/options.ts";
import { type RunningApiServer, startApiServer } from "../../../apiserver/server.ts";
import { logOptions } from "../../../flags/log-options.ts";
import { invoke } from "../../../flags/program.ts";
import type { HttpRequest } from "../../../http/message.ts";
import { makeRequest } from "../../../http/request.ts";
import { text } from "../../../http/respond.ts";
import { listen } from "../../../http/server/server.ts";
import { fileDirectory } from "../../../testing/std/file-directory.ts";
import { createLogger, silentLogger } from "../../../std/log/logger.ts";
import { createMemoryStore } from "../../../storage/memory.ts";
import type { Range, Store, WriteOptions } from "../../../storage/store.ts";
import { CLIENT_AUTH, makeCertificate, makeServerCertificate } from "../../../testing/http/test-certificates.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { admissionEffects } from "./admission-effects.ts";
import { authenticationEffects } from "./authentication-effects.ts";
import { authorizationEffects } from "./authorization-effects.ts";
import { certificateEffects } from "./certificate-effects.ts";
import { serviceAccountEffects } from "./service-account-effects.ts";

type Name = keyof typeof apiserverFlags;
type Settings = Readonly<Partial<Record<Name, string>>>;
type Effect = (t: Test) => Promise<void>;

const { ca, server: pair } = await makeServerCertificate();
const user = await makeCertificate({ subject: [{ CN: ["jo"] }], issuer: ca, usages: [CLIENT_AUTH] });
const files = fileDirectory(t, {
  "ca.crt": ca.cert,
  "server.crt": pair.cert,
  "server.key": pair.key,
  "user.crt": user.cert,
  "user.key": user.key,
  tokens: 'sesame,ali,1,"thieves"\n',
  everybody: ["system:authenticated", "system:unauthenticated"].map(everythingFor).join(""),
});
const file = (name: string): string => join(files, name);

function everythingFor(group: string): string {
  const spec = { group, namespace: "*", resource: "*", apiGroup: "*", nonResourcePath: "*" };
  return `${JSON.stringify({ apiVersion: "abac.authorization.kubernetes.io/v1beta1", kind: "Policy", spec })}\n`;
}

/** With `AlwaysAllow`, nobody in particular could ask anything. Only for tests that say nothing of authorization. */
function openToAll(settings: Settings): Settings {
  if (Object.keys(settings).some((name) => name.startsWith("authorization-"))) return {};
  return { "authorization-mode": "ABAC", "authorization-policy-file": file("everybody") };
}

/** What every server of these tests is told, unless the test says otherwise. */
const base: Settings = {
  "bind-address": "127.0.0.1",
  "kvstore-servers": "memory://",
  "tls-cert-file": file("server.crt"),
  "tls-private-key-file": file("server.key"),
  // Most have no controllers that would make the accounts of pods.
  "disable-admission-plugins": "ServiceAccount",
};

async function freePort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return String(typeof address === "object" ? address?.port : 0);
}

function invoked(settings: Settings) {
  const words = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  const invocation = invoke(apiserverProgram, words, { version: "v1.33.0" });
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  return invocation;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every kind are looked into
  readonly json: any;
}

interface TestServer extends AsyncDisposable {
  readonly running: RunningApiServer;
  readonly port: number;
  readonly clock: FakeClock;
  /** Writes as the store saw them. */
  readonly writes: { readonly key: string; readonly value: Uint8Array; readonly options: WriteOptions | undefined }[];
  /** As `system:masters`, unless there are other headers: `GET /api/v1/pods`. */
  ask(line: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
}

async function serve(settings: Settings = {}, change: Partial<Store> = {}): Promise<TestServer> {
  const clock = new FakeClock(Date.now());
  const { flags, gates, version, given } = invoked({
    "secure-port": await freePort(),
    ...base,
    ...openToAll(settings),
    ...settings,
  });
  const config = apiServerOptions(flags, gates, version, given);
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
    async ask(line, body, headers = { authorization: `Bearer ${token}` }) {
      const [method = "GET", target = "/"] = line.split(" ");
      const [path = "", query = ""] = target.split("?");
      const sent = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
      const all = { "content-type": "application/json", ...headers };
      const answer = await running.handler(makeRequest({ method, path, query, headers: all, ...sent }));
      const chunks: Uint8Array[] = [];
      const pieces = answer.body instanceof Uint8Array ? [answer.body] : answer.body;
      for await (const piece of pieces) chunks.push(piece);
      const said = Buffer.concat(chunks).toString();
      return { status: answer.status, headers: answer.headers, json: said.startsWith("{") ? JSON.parse(said) : said };
    },
    until: (what, holds) => until(clock, what, holds),
    async [Symbol.asyncDispose]() {
      let closed = false;
      const closing = running.close().finally(() => {
        closed = true;
      });
      await until(clock, "the server has stopped", () => closed);
      await closing;
    },
  };
}

function watched(store: Store, writes: TestServer["writes"], change: Partial<Store>): Store {
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
async function readsOfStore(settings: Settings, path: string): Promise<number> {
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
  await server.ask(`GET ${path}`);
  reads = 0;
  await server.ask(`GET ${path}/none`);
  await server.ask(`GET ${path}`);
  let over = false;
  const watching = server.ask(`GET ${path}?watch=true&timeoutSeconds=1`).then(() => {
    over = true;
  });
  await server.until("the watch has ended", () => over);
  await watching;
  return reads;
}

/** A test that does not come to rest fails rather than hanging. */
const PATIENCE_MS = 10_000;

async function until(clock: FakeClock, what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const began = performance.now();
  while (!(await holds())) {
    if (performance.now() - began > PATIENCE_MS) throw new Error(`Never came true: ${what}`);
    await setTimeout(1);
    await clock.advance(100);
  }
}

/** Over the network. */
function fetchStatus(
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
function shake(port: number, options: Readonly<Record<string, unknown>> = {}) {
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

const pod = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "i", ...("container" in spec ? (spec.container as object) : {}) }] },
});
const PODS = "/api/v1/namespaces/default/pods";

/** An agent that answers logs, and a pod of its node. */
async function withAgent(
  settings: Settings,
  look: (server: TestServer, seen: HttpRequest[]) => Promise<void>,
  answer: () => Promise<ReturnType<typeof text>> = async () => text(200, "line\n"),
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
  await server.ask("POST /api/v1/nodes", node);
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: agent.port } } };
  await server.ask(
    "PATCH /api/v1/nodes/n1/status",
    { status },
    {
      authorization: `Bearer ${server.running.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} })}`,
      "content-type": "application/merge-patch+json",
    },
  );
  const made = pod("web");
  await server.ask(`POST ${PODS}`, { ...made, spec: { ...made.spec, nodeName: "n1" } });
  await look(server, seen);
}

/** What a read and a write are answered while the store has another write that does not end. */
async function crowd(settings: Settings): Promise<{ reads: number; writes: number }> {
  const store: { create?: Store["create"] } = {};
  await using server = await serve({ "request-timeout": "3s", ...settings }, store);
  store.create = () => new Promise<never>(() => {});
  void server.ask(`POST ${PODS}`, pod("a"), {});
  await setTimeout(5);
  const reads = (await server.ask(`GET ${PODS}`, undefined, {})).status;
  let writes = 0;
  void server.ask(`POST ${PODS}`, pod("b"), {}).then(({ status }) => {
    writes = status;
  });
  await server.until("the write is answered", () => writes !== 0);
  return { reads, writes };
}

const external: Settings = { "svclet-preferred-address-types": "ExternalIP" };

const effects: Partial<Record<Name, Effect>> = {
  ...authenticationEffects(serve),
  ...serviceAccountEffects(serve),
  ...admissionEffects(serve),
  ...authorizationEffects(serve, file("tokens")),
  ...certificateEffects(serve),
  "bind-address": async (t) => {
    await using server = await serve({ "bind-address": "127.0.0.4" });
    t.equal(server.running.address.host, "127.0.0.4");
    t.equal((await fetchStatus(server.port, { host: "127.0.0.4" })).status, 200);
    await t.rejects(fetchStatus(server.port), { code: "ECONNREFUSED" });
  },
  "secure-port": async (t) => {
    const port = await freePort();
    await using server = await serve({ "secure-port": port });
    t.equal(String(server.port), port);
    t.equal((await fetchStatus(Number(port))).status, 200);
  },
  "advertise-address": async (t) => {
    await using server = await serve({ "advertise-address": "192.0.2.7" });
    const { json } = await server.ask("GET /api");
    t.equal(json.serverAddressByClientCIDRs[0].serverAddress, `192.0.2.7:${server.port}`);
  },
  "external-hostname": async (t) => {
    await using server = await serve({ "advertise-address": "192.0.2.7", "external-hostname": "api.example.com" });
    const { json } = await server.ask("GET /api");
    t.equal(json.serverAddressByClientCIDRs[0].serverAddress, `api.example.com:${server.port}`);
  },
  "cert-dir": async (t) => {
    const directory = join(t.testdir(), "made");
    await using _server = await serve({ "tls-cert-file": "", "tls-private-key-file": "", "cert-dir": directory });
    t.ok(existsSync(join(directory, "apiserver.crt")));
  },
  "tls-cert-file": async (t) => {
    await using server = await serve();
    t.equal((await shake(server.port)).fingerprint, new X509Certificate(pair.cert).fingerprint256);
  },
  "tls-private-key-file": async (t) => {
    await t.rejects(serve({ "tls-private-key-file": file("user.key") }), "the key must be that of the certificate");
  },
  "tls-min-version": async (t) => {
    await using server = await serve({ "tls-min-version": "VersionTLS13" });
    t.equal((await shake(server.port)).protocol, "TLSv1.3");
    await t.rejects(shake(server.port, { maxVersion: "TLSv1.2" }));
  },
  "tls-cipher-suites": async (t) => {
    await using server = await serve({ "tls-cipher-suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" });
    const old = { maxVersion: "TLSv1.2" };
    t.equal((await shake(server.port, old)).cipher, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
    await t.rejects(shake(server.port, { ...old, ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" }));
    const gone = serve({ "tls-cipher-suites": "TLS_RSA_WITH_RC4_128_SHA" });
    await t.rejects(gone, /--tls-cipher-suites: TLS_RSA_WITH_RC4_128_SHA is not offered any more/);
  },
  "strict-transport-security-directives": async (t) => {
    await using server = await serve({ "strict-transport-security-directives": "max-age=600,includeSubDomains" });
    const { headers } = await server.ask("GET /livez");
    t.equal(headers["strict-transport-security"], "max-age=600; includeSubDomains");
  },
  "cors-allowed-origins": async (t) => {
    await using server = await serve({ "cors-allowed-origins": "^https://ui\\.example\\.com$" });
    const from = (origin: string, method = "GET") => server.ask(`${method} /livez`, undefined, { origin });
    const allowed = "access-control-allow-origin";
    t.equal((await from("https://ui.example.com")).headers[allowed], "https://ui.example.com");
    t.match(await from("https://ui.example.com", "OPTIONS"), { status: 204, headers: { [allowed]: /ui/ } });
    t.equal((await from("https://other.example.com")).headers[allowed], undefined);
  },
  "disable-http2-serving": async (t) => {
    await using server = await serve({ "disable-http2-serving": "true" });
    t.equal((await shake(server.port, { ALPNProtocols: ["h2", "http/1.1"] })).alpn, "http/1.1");
  },
  "http2-max-streams-per-connection": async (t) => {
    await using server = await serve({ "http2-max-streams-per-connection": "7" });
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { rejectUnauthorized: false });
    const settings = await new Promise<{ maxConcurrentStreams?: number | undefined }>((resolve, reject) => {
      session.once("remoteSettings", resolve).once("error", reject);
    });
    t.equal(settings.maxConcurrentStreams, 7);
    session.destroy();
  },
  "permit-port-sharing": async (t) => {
    const shared = { "permit-port-sharing": "true", "secure-port": await freePort() };
    await using first = await serve(shared);
    await using second = await serve(shared);
    t.equal(first.port, second.port);
    await t.rejects(serve({ "secure-port": shared["secure-port"] }), { code: "EADDRINUSE" });
  },
  "tls-sni-cert-key": async (t) => {
    const made = (name: string) => makeCertificate({ subject: [{ CN: [name] }], names: [name] });
    const [first, second] = [await made("ui.example.com"), await made("next.example.com")];
    const directory = t.testdir({ "a.crt": first.cert, "a.key": first.key });
    const named = `${join(directory, "a.crt")},${join(directory, "a.key")}`;
    await using server = await serve({ "tls-sni-cert-key": named, "tls-min-version": "VersionTLS12" });
    const shows = async (servername: string) => (await shake(server.port, { servername })).fingerprint;
    const of = ({ cert }: { readonly cert: string }) => new X509Certificate(cert).fingerprint256;
    t.equal(await shows("ui.example.com"), of(first));
    t.equal(await shows("next.example.com"), of(pair));
    writeFileSync(join(directory, "a.key"), second.key);
    await server.clock.advance(200);
    t.equal(await shows("ui.example.com"), of(first), "half a pair changes nothing");
    writeFileSync(join(directory, "a.crt"), second.cert);
    await server.until("the new pair is shown", async () => (await shows("next.example.com")) === of(second));
  },
  "goaway-chance": async (t) => {
    await using server = await serve({ "goaway-chance": "0.02" });
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { rejectUnauthorized: false });
    let asked = 0;
    let told = false;
    session.on("goaway", () => {
      told = true;
    });
    while (!told && asked < 5000) {
      asked++;
      const stream = session.request({ ":path": "/livez" });
      await new Promise((resolve) => stream.on("error", resolve).on("close", resolve).resume());
    }
    t.ok(told, `asked ${asked} times`);
    session.destroy();
    t.throws(() => invoked({ "goaway-chance": "0.03" }), /--goaway-chance/);
  },
  "permit-address-sharing": async (t) => {
    const settings = { "permit-address-sharing": "true", "secure-port": await freePort() };
    {
      await using server = await serve(settings);
      await fetchStatus(server.port);
    }
    await using again = await serve(settings);
    t.equal((await fetchStatus(again.port)).status, 200, "sockets that have not quite ended are no hindrance");
  },
  "max-connection-bytes-per-sec": async (t) => {
    await using server = await serve({ "max-connection-bytes-per-sec": "500" });
    for (let index = 0; index < 3; index++) await server.ask(`POST ${PODS}`, pod(`p${index}`));
    let got = 0;
    const path = `${PODS}?watch=1&resourceVersion=0`;
    const sent = request({ host: "127.0.0.1", port: server.port, path, rejectUnauthorized: false }, (response) => {
      response.on("data", (piece: Buffer) => {
        got += piece.length;
      });
    });
    sent.on("error", () => {}).end();
    await server.until("the first part has come", () => got > 0);
    t.equal(got, 500);
    const began = server.clock.monotonic();
    await server.until("the rest has come", () => got > 2000);
    t.ok(server.clock.monotonic() - began >= 2900, "500 a second");
    sent.destroy();
  },
  "enable-priority-and-fairness": async (t) => {
    const crowded = { "max-mutating-requests-inflight": "1" };
    t.same(await crowd({ ...crowded, "enable-priority-and-fairness": "false" }), { reads: 200, writes: 429 });
    t.same(
      await crowd({ ...crowded, "max-requests-inflight": "0" }),
      { reads: 429, writes: 429 },
      "one limit for both",
    );
    const none = { "max-requests-inflight": "0", "max-mutating-requests-inflight": "0" };
    t.throws(() => invoked(none), /must be positive/);
  },
  "max-requests-inflight": async (t) => {
    const store: { list?: Store["list"] } = {};
    await using server = await serve({ "enable-priority-and-fairness": "false", "max-requests-inflight": "1" }, store);
    store.list = () => new Promise<never>(() => {});
    void server.ask("GET /readyz", undefined, {});
    await setTimeout(5);
    delete store.list;
    t.equal((await server.ask(`GET ${PODS}`, undefined, {})).status, 429);
    t.equal((await server.ask(`GET ${PODS}`)).status, 200, "masters get in");
  },
  "max-mutating-requests-inflight": async (t) => {
    const apart = { "enable-priority-and-fairness": "false" };
    const one = { ...apart, "max-mutating-requests-inflight": "1" };
    t.same(await crowd(one), { reads: 200, writes: 429 });
    const unlimited = { ...apart, "max-mutating-requests-inflight": "0" };
    t.same(await crowd(unlimited), { reads: 200, writes: 504 }, "both writes wait for the store");
  },
  "anonymous-auth": async (t) => {
    await using server = await serve({ "anonymous-auth": "false" });
    t.equal((await server.ask("GET /api", undefined, {})).status, 401);
  },
  "client-ca-file": async (t) => {
    await using server = await serve({ "client-ca-file": file("ca.crt"), "anonymous-auth": "false" });
    t.equal((await fetchStatus(server.port)).status, 401);
    t.equal((await fetchStatus(server.port, { cert: user.cert, key: user.key })).status, 200);
  },
  "token-auth-file": async (t) => {
    await using server = await serve({ "token-auth-file": file("tokens"), "anonymous-auth": "false" });
    t.equal((await server.ask("GET /api", undefined, { authorization: "Bearer sesame" })).status, 200);
    t.equal((await server.ask("GET /api", undefined, { authorization: "Bearer poppy" })).status, 401);
  },
  "authorization-mode": async (t) => {
    await using server = await serve({ "authorization-mode": "AlwaysDeny" });
    t.equal((await server.ask("GET /api/v1/pods", undefined, {})).status, 403);
    await using rbac = await serve({ "authorization-mode": "RBAC" });
    t.equal((await rbac.ask("GET /api/v1/pods", undefined, {})).status, 403);
    t.equal((await rbac.ask("GET /api/v1/pods")).status, 200);
    for (const mode of ["ABAC", "Webhook"]) {
      await t.rejects(serve({ "authorization-mode": mode }), new RegExp(mode), "it needs a file");
    }
  },
  "allow-privileged": async (t) => {
    const wanted = pod("root", { container: { securityContext: { privileged: true } } });
    await using strict = await serve();
    const { status, json } = await strict.ask(`POST ${PODS}`, wanted);
    t.equal(status, 422);
    t.match(
      json.message,
      /Pod "root" is invalid: spec.containers\[0\].securityContext.privileged: Forbidden: disallowed by cluster policy/,
    );
    await using lax = await serve({ "allow-privileged": "true" });
    t.equal((await lax.ask(`POST ${PODS}`, wanted)).status, 201);
  },
  "default-not-ready-toleration-seconds": async (t) => {
    await using server = await serve({ "default-not-ready-toleration-seconds": "7" });
    const { json } = await server.ask(`POST ${PODS}`, pod("web"));
    t.same(json.spec.tolerations, [
      { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 7 },
      { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
    ]);
  },
  "default-unreachable-toleration-seconds": async (t) => {
    await using server = await serve({ "default-unreachable-toleration-seconds": "8" });
    const own = { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" };
    const made = pod("web");
    const { json } = await server.ask(`POST ${PODS}`, { ...made, spec: { ...made.spec, tolerations: [own] } });
    t.match(json.spec.tolerations, [own, { key: "node.kubernetes.io/unreachable", tolerationSeconds: 8 }]);
    t.equal(json.spec.tolerations.length, 2);
  },
  "storage-media-type": async (t) => {
    await using server = await serve({ "storage-media-type": "application/json" });
    t.equal(String.fromCharCode(server.writes[0]!.value[0]!), "{");
    await using yaml = await serve({ "storage-media-type": "application/yaml" });
    t.match(Buffer.from(yaml.writes[0]!.value).toString(), /^(?!\{)[\s\S]*kind: Namespace/);
    await using binary = await serve();
    t.match(Buffer.from(binary.writes[0]!.value).toString("latin1"), /^(k8s|svc)\0/);
  },
  "storage-backend": async (t) => {
    await using server = await serve({ "storage-backend": "kvstore3" });
    t.ok(server.writes.length > 0);
    t.throws(() => invoked({ "storage-backend": "etcd2" }), /--storage-backend="etcd2": must be kvstore3/);
  },
  "storage-initialization-timeout": async (t) => {
    const never = () => new Promise<never>(() => {});
    const clock = new FakeClock();
    const { flags, gates, version } = invoked({
      ...base,
      "storage-initialization-timeout": "3s",
      "secure-port": await freePort(),
    });
    const deps = { clock, log: silentLogger };
    const config = apiServerOptions(flags, gates, version);
    const store = watched(createMemoryStore({ ...deps, ...config.storage }), [], { create: never });
    let failure: unknown;
    startApiServer(config, { ...deps, store }).catch((error: unknown) => {
      failure = error;
    });
    await until(clock, "the start has failed", () => failure !== undefined);
    t.match(failure, { message: "Cannot use the store memory://: it does not answer within 3000 ms" });
  },
  "kvstore-servers": async (t) => {
    const path = join(t.testdir(), "kept");
    {
      await using server = await serve({ "kvstore-servers": `level://${path}` });
      await server.ask(`POST ${PODS}`, pod("web"));
    }
    t.ok(existsSync(path));
    await using again = await serve({ "kvstore-servers": `level://${path}` });
    t.equal((await again.ask(`GET ${PODS}/web`)).status, 200);
    await t.rejects(serve({ "kvstore-servers": "http://127.0.0.1:2379" }), /level:\/\/\/path or memory:\/\//);
  },
  "kvstore-prefix": async (t) => {
    await using server = await serve({ "kvstore-prefix": "/edge" });
    t.same(
      server.writes.filter(({ key }) => !key.startsWith("/edge/")).map(({ key }) => key),
      [],
    );
  },
  "kvstore-compaction-interval": async (t) => {
    const stale = async (interval: string, wanted: number): Promise<number> => {
      const path = join(t.testdir(), `history-${interval}`);
      await using server = await serve({
        "kvstore-compaction-interval": interval,
        "kvstore-servers": `level://${path}`,
        // Which has a history of its own.
        "watch-cache": "false",
      });
      const { json } = await server.ask(`GET ${PODS}`);
      for (let count = 0; count < 3; count++) await server.ask(`POST ${PODS}`, pod(`p${count}`));
      await server.clock.advance(60 * 60_000);
      const query = `resourceVersion=${json.metadata.resourceVersion}&resourceVersionMatch=Exact&limit=1`;
      let status = 0;
      await server.until("it knows, or does not know, its history", async () => {
        ({ status } = await server.ask(`GET ${PODS}?${query}`));
        return status === wanted;
      });
      return status;
    };
    t.equal(await stale("0", 200), 200, "history is kept");
    t.equal(await stale("1m", 410), 410, "history is forgotten");
  },
  "kvstore-healthcheck-timeout": async (t) => {
    t.same(await silentStore({ "kvstore-healthcheck-timeout": "3s" }, "/livez"), { early: false, status: 500 });
  },
  "kvstore-readycheck-timeout": async (t) => {
    t.same(await silentStore({ "kvstore-readycheck-timeout": "3s" }, "/readyz"), { early: false, status: 500 });
  },
  "enable-garbage-collector": async (t) => {
    const after = async (setting: string): Promise<number> => {
      await using server = await serve({ "enable-garbage-collector": setting });
      await server.ask("POST /api/v1/namespaces/default/configmaps", { metadata: { name: "m" } });
      await server.ask("DELETE /api/v1/namespaces/default/configmaps/m?propagationPolicy=Orphan");
      return (await server.ask("GET /api/v1/namespaces/default/configmaps/m")).status;
    };
    t.equal(await after("true"), 200, "waits for the collector");
    t.equal(await after("false"), 404, "nobody to wait for");
  },
  "delete-collection-workers": async (t) => {
    const atOnce = async (workers: string): Promise<number> => {
      const gate = Promise.withResolvers<never>();
      const store: { delete?: Store["delete"] } = {};
      await using server = await serve({ "delete-collection-workers": workers }, store);
      const path = "/api/v1/namespaces/default/configmaps";
      for (const name of ["a", "b", "c", "d", "e"]) await server.ask(`POST ${path}`, { metadata: { name } });
      let deletions = 0;
      store.delete = () => {
        deletions++;
        return gate.promise;
      };
      const answer = server.ask(`DELETE ${path}`);
      await server.until("deletions are under way", () => deletions > 0);
      gate.reject(new Error("the store does not delete"));
      t.equal((await answer).status, 500, "the first failure ends it");
      return deletions;
    };
    t.equal(await atOnce("1"), 1);
    t.equal(await atOnce("3"), 3);
  },
  "service-cluster-ip-range": async (t) => {
    await using server = await serve({ "service-cluster-ip-range": "10.7.0.0/24,fd00:7::/112" });
    const spec = { ipFamilyPolicy: "RequireDualStack", ports: [{ port: 80 }] };
    const { json } = await server.ask("POST /api/v1/namespaces/default/services", { metadata: { name: "s" }, spec });
    t.match(json.spec, { ipFamilies: ["IPv4", "IPv6"], clusterIPs: [/^10\.7\.0\./, /^fd00:7::/] });
    const own = await server.ask("GET /api/v1/namespaces/default/services/kubernetes");
    t.equal(own.json.spec.clusterIP, "10.7.0.1", "the server's own service has the first address");
  },
  "service-node-port-range": async (t) => {
    await using server = await serve({ "service-node-port-range": "31000-31001" });
    const spec = { type: "NodePort", ports: [{ port: 80 }] };
    const post = async (name: string) =>
      await server.ask("POST /api/v1/namespaces/default/services", { metadata: { name }, spec });
    const ports = [await post("a"), await post("b")].map(({ json }) => json.spec.ports[0].nodePort);
    t.same(ports.sort(), [31000, 31001]);
    t.match(await post("c"), { status: 500, json: { message: /failed to allocate a nodePort: range is full/ } });
  },
  "svc-service-node-port": async (t) => {
    await using server = await serve({ "svc-service-node-port": "30443" });
    const { json } = await server.ask("GET /api/v1/namespaces/default/services/kubernetes");
    t.match(json.spec, { type: "NodePort", ports: [{ port: 443, nodePort: 30443, targetPort: server.port }] });
  },
  "endpoint-reconciler-type": async (t) => {
    const own = { "advertise-address": "192.0.2.7" };
    const path = "/api/v1/namespaces/default/endpoints/kubernetes";
    await using server = await serve({ ...own, "endpoint-reconciler-type": "lease" });
    const expected = [{ addresses: [{ ip: "192.0.2.7" }], ports: [{ port: server.port }] }];
    t.match((await server.ask(`GET ${path}`)).json.subsets, expected);
    await using other = await serve({ ...own, "endpoint-reconciler-type": "none" });
    t.equal((await other.ask(`GET ${path}`)).status, 404, "somebody else looks after them");
  },
  "event-ttl": async (t) => {
    await using server = await serve({ "event-ttl": "90s" });
    const involvedObject = { kind: "Pod", namespace: "default", name: "web" };
    await server.ask("POST /api/v1/namespaces/default/events", {
      metadata: { name: "e" },
      involvedObject,
      reason: "R",
    });
    t.equal(server.writes.find(({ key }) => key.includes("/events/"))?.options?.ttlSeconds, 90);
  },
  "lease-reuse-duration-seconds": async (t) => {
    const after = async (reuse: string, ...waits: readonly number[]): Promise<number[]> => {
      await using server = await serve({ "event-ttl": "1h", "lease-reuse-duration-seconds": reuse });
      const involvedObject = { kind: "Pod", namespace: "default", name: "web" };
      const path = "/api/v1/namespaces/default/events";
      await server.ask(`POST ${path}`, { metadata: { name: "e" }, involvedObject, reason: "R" });
      const found: number[] = [];
      for (const wait of waits) {
        await server.clock.advance(wait * 1000);
        found.push((await server.ask(`GET ${path}/e`)).status);
      }
      return found;
    };
    t.same(await after("1", 3600, 3), [200, 404], "an event lives as long as others may share its end");
    t.same(await after("100", 3695, 8), [200, 404]);
  },
  "watch-cache": async (t) => {
    t.ok((await readsOfStore({ "watch-cache": "true" }, PODS)) === 0, "the cache answers");
    t.ok((await readsOfStore({ "watch-cache": "false" }, PODS)) >= 3, "the store answers");
  },
  "watch-cache-sizes": async (t) => {
    const deployments = "/apis/apps/v1/namespaces/default/deployments";
    const sizes = { "watch-cache-sizes": "pods#0,deployments.apps#100,replicasets.apps#0" };
    t.ok((await readsOfStore(sizes, PODS)) >= 3);
    t.equal(await readsOfStore(sizes, deployments), 0, "a size other than 0 means nothing");
    t.ok((await readsOfStore(sizes, "/apis/apps/v1/namespaces/default/replicasets")) >= 3);
    t.equal(await readsOfStore(sizes, "/api/v1/namespaces/default/podtemplates"), 0);
  },
  "svclet-client-certificate": async (t) => {
    const own = { "svclet-client-certificate": file("user.crt"), "svclet-client-key": file("user.key") };
    await withAgent({ ...external, ...own }, async (server, seen) => {
      t.match(await server.ask(`GET ${PODS}/web/log`), { status: 200, json: "line\n" });
      t.same(seen[0]?.peer.certificates[0], Buffer.from(user.der));
    });
  },
  "svclet-client-key": async (t) => {
    const own = { "svclet-client-certificate": file("user.crt"), "svclet-client-key": file("server.key") };
    await t.rejects(
      withAgent({ ...external, ...own }, async () => {}),
      { message: /its key is not the one in/ },
    );
  },
  "svclet-certificate-authority": async (t) => {
    const stranger = await makeCertificate({ subject: [{ CN: ["other"] }], authority: {} });
    const directory = t.testdir({ "other.crt": stranger.cert });
    const trusting = { ...external, "svclet-certificate-authority": join(directory, "other.crt") };
    await withAgent(trusting, async (server) => {
      t.equal((await server.ask(`GET ${PODS}/web/log`)).status, 500, "signed by somebody else");
    });
  },
  "svclet-preferred-address-types": async (t) => {
    await withAgent({ "svclet-preferred-address-types": "ExternalIP,InternalIP" }, async (server) => {
      t.equal((await server.ask(`GET ${PODS}/web/log`)).status, 200);
    });
    await withAgent({ "svclet-preferred-address-types": "InternalIP,ExternalIP" }, async (server) => {
      t.equal((await server.ask(`GET ${PODS}/web/log`)).status, 500, "nobody is at the other address");
    });
  },
  "svclet-timeout": async (t) => {
    const silent = () => new Promise<never>(() => {});
    const settings = { ...external, "svclet-timeout": "20ms" };
    await withAgent(
      settings,
      async (server) => {
        t.match(await server.ask(`GET ${PODS}/web/log`), { status: 500, json: { message: /no answer within 20 ms/ } });
      },
      silent,
    );
  },
  "request-timeout": async (t) => {
    const store: { create?: Store["create"] } = {};
    await using server = await serve({ "request-timeout": "3s" }, store);
    store.create = () => new Promise<never>(() => {});
    let status = 0;
    void server.ask(`POST ${PODS}`, pod("web")).then((answer) => {
      status = answer.status;
    });
    await server.clock.advance(2900);
    t.equal(status, 0);
    await server.until("it gave up", () => status === 504);
    t.ok(server.clock.monotonic() < 60_000);
  },
  "min-request-timeout": async (t) => {
    await using server = await serve({ "min-request-timeout": "5" });
    let ended = false;
    void server.ask(`GET ${PODS}?watch=1`).then(() => {
      ended = true;
    });
    await server.clock.advance(4900);
    t.notOk(ended);
    await server.until("the watch has ended", () => ended);
    t.ok(server.clock.monotonic() <= 12_000);
  },
  "shutdown-delay-duration": async (t) => {
    await using server = await serve({ "shutdown-delay-duration": "3s" });
    let closed = false;
    void server.running.close().then(() => {
      closed = true;
    });
    await server.clock.advance(2900);
    t.notOk(closed);
    t.equal((await server.ask("GET /livez")).status, 200);
    t.equal((await server.ask("GET /readyz")).status, 500);
    await server.until("it stops", () => closed);
  },
  "livez-grace-period": async (t) => {
    const whileStarting = async (grace: string): Promise<readonly number[]> => {
      const clock = new FakeClock();
      const port = await freePort();
      const { flags, gates, version } = invoked({ ...base, "secure-port": port, "livez-grace-period": grace });
      const config = apiServerOptions(flags, gates, version);
      const deps = { clock, log: silentLogger };
      const store = watched(createMemoryStore({ ...deps, ...config.storage }), [], {
        create: () => new Promise<never>(() => {}),
      });
      const failed = startApiServer(config, { ...deps, store }).catch(() => {});
      const ask = async (path: string) => (await fetchStatus(Number(port), { path }).catch(() => undefined))?.status;
      await until(clock, "it listens", async () => (await ask("/livez")) !== undefined);
      const statuses: number[] = [];
      for (const path of ["/livez", "/healthz", "/readyz", "/api/v1/pods"]) statuses.push((await ask(path)) ?? 0);
      await clock.advance(20_000);
      statuses.push((await ask("/livez")) ?? 0);
      let over = false;
      void failed.then(() => {
        over = true;
      });
      await until(clock, "the start has failed", () => over);
      return statuses;
    };
    t.same(await whileStarting("0"), [500, 500, 500, 503, 500]);
    t.same(await whileStarting("15s"), [200, 500, 500, 503, 500]);
    t.same(await whileStarting("30s"), [200, 500, 500, 503, 200]);
  },
  "shutdown-send-retry-after": async (t) => {
    const store: { create?: Store["create"] } = {};
    await using server = await serve({ "shutdown-send-retry-after": "true" }, store);
    const release = Promise.withResolvers<never>();
    let begun = false;
    store.create = () => {
      begun = true;
      return release.promise;
    };
    const headers = { "content-type": "application/json" };
    const late = new Promise<number>((resolve) => {
      const options = { host: "127.0.0.1", port: server.port, path: PODS, method: "POST", headers };
      const sent = request({ ...options, rejectUnauthorized: false, agent: false }, (response) =>
        resolve(response.resume().statusCode ?? 0),
      );
      sent.end(JSON.stringify(pod("web")));
    });
    await server.until("the request is under way", () => begun);
    const closing = server.running.close();
    await setTimeout(5);
    const refused = await fetchStatus(server.port);
    t.equal(refused.status, 429);
    t.equal(refused.headers["retry-after"], "5");
    t.equal(refused.headers.connection, "close");
    release.reject(new Error("enough"));
    t.equal(await late, 500, "what had begun is answered");
    let closed = false;
    void closing.then(() => {
      closed = true;
    });
    await server.until("it stops", () => closed);
  },
  "shutdown-watch-termination-grace-period": async (t) => {
    await using server = await serve({ "shutdown-watch-termination-grace-period": "10s" });
    const ended: number[] = [];
    for (let index = 0; index < 20; index++) {
      const path = `${PODS}?watch=1`;
      const sent = request({ host: "127.0.0.1", port: server.port, path, rejectUnauthorized: false, agent: false });
      sent.on("error", () => {}).end();
      const response = await new Promise<IncomingMessage>((resolve) => sent.on("response", resolve));
      response.resume().on("end", () => ended.push(server.clock.monotonic()));
    }
    void server.running.close();
    await server.until("all have ended", () => ended.length === 20);
    t.ok(ended.at(-1)! - ended[0]! >= 50, "not all at once");
  },
  "debug-socket-path": async (t) => {
    // The path of a socket must be short.
    const directory = await mkdtemp(join(tmpdir(), "svc-debug-"));
    t.teardown(() => rm(directory, { recursive: true }));
    const path = join(directory, "debug.sock");
    {
      await using _server = await serve({ "debug-socket-path": path, profiling: "false" });
      t.equal(statSync(path).mode & 0o777, 0o600);
      const status = await new Promise((resolve, reject) => {
        const sent = requestPlain({ socketPath: path, path: "/debug/pprof/cmdline" }, (response) => {
          resolve(response.resume().statusCode);
        });
        sent.on("error", reject).end();
      });
      t.equal(status, 200);
    }
    t.notOk(existsSync(path), "gone with the server");
    await t.rejects(serve({ "debug-socket-path": join(path, "x") }), /--debug-socket-path=/);
  },
  profiling: async (t) => {
    await using server = await serve();
    t.match(await server.ask("GET /debug/pprof/"), { status: 200, json: /profile\?seconds=30/ });
    t.equal((await server.ask("DELETE /metrics")).status, 200);
    await using without = await serve({ profiling: "false" });
    t.equal((await without.ask("GET /debug/pprof/")).status, 404);
    t.notMatch((await without.ask("DELETE /metrics")).json, /metrics reset/);
  },
  "contention-profiling": async (t) => {
    await using server = await serve({ "contention-profiling": "true" });
    t.match(await server.ask("GET /debug/pprof/block"), { headers: { "content-type": "application/octet-stream" } });
    await using without = await serve();
    t.equal((await without.ask("GET /debug/pprof/block")).status, 404);
  },
  "kvstore-count-metric-poll-period": async (t) => {
    await using server = await serve({ "kvstore-count-metric-poll-period": "5s" });
    const namespaces = async () =>
      (await shown(server, "apiserver_storage_objects")).find((line) => /namespaces/.test(line));
    await server.until("they are counted", async () => (await namespaces()) !== undefined);
    const before = Number((await namespaces())?.split(" ")[1]);
    t.ok(before > 0);
    await server.ask("POST /api/v1/namespaces", { metadata: { name: "one-more" } });
    const after = async () => Number((await namespaces())?.split(" ")[1]);
    await server.until("they are counted again", async () => (await after()) === before + 1);
    await using without = await serve({ "kvstore-count-metric-poll-period": "0s" });
    await without.clock.advance(120_000);
    t.same(await shown(without, "apiserver_storage_objects"), []);
  },
  "kvstore-db-metric-poll-interval": async (t) => {
    const stored = { "kvstore-servers": `level://${join(t.testdir(), "db")}` };
    await using server = await serve({ ...stored, "kvstore-db-metric-poll-interval": "7s" });
    const size = () => shown(server, "apiserver_storage_size_bytes");
    await server.until("it is measured", async () => (await size()).length > 0);
    t.match(await size(), [/^apiserver_storage_size_bytes\{storage_cluster_id="storage-cluster-0"\} \d/]);
    await server.running.close();
    await using without = await serve({ ...stored, "kvstore-db-metric-poll-interval": "0s" });
    t.same(await shown(without, "apiserver_storage_size_bytes"), []);
  },
  "runtime-config": async (t) => {
    await using server = await serve({ "runtime-config": "batch/v1=false,api/beta=true,apps/v1/deployments=false" });
    const status = async (path: string) => (await server.ask(`GET ${path}`)).status;
    t.equal(await status("/apis/batch/v1/jobs"), 404);
    t.equal(await status("/apis/batch"), 404);
    t.equal(await status("/apis/apps/v1/deployments"), 404);
    t.equal(await status("/apis/apps/v1/statefulsets"), 200);
    for (const group of ["networking.svc.io", "networking.k8s.io"]) {
      t.match((await server.ask(`GET /apis/${group}/v1beta1/servicecidrs`)).json, { apiVersion: `${group}/v1beta1` });
    }
    await t.rejects(serve({ "runtime-config": "bakery.svc.io/v1=true" }), /no API group "bakery.svc.io"/);
  },
  "emulated-version": async (t) => {
    await using server = await serve({ "emulated-version": "1.32" });
    t.match((await server.ask("GET /version")).json, {
      minor: "33",
      emulationMinor: "32",
      minCompatibilityMinor: "31",
    });
    t.equal((await server.ask("GET /apis/networking.k8s.io/v1/servicecidrs")).status, 404, "came with 1.33");
    t.equal((await server.ask("GET /apis/networking.k8s.io/v1/ingresses")).status, 200);
    const features = await shown(server, "kubernetes_feature_enabled");
    t.ok(
      features.some((line) => /name="WatchList",stage="BETA"\} 1$/.test(line)),
      "as it was in 1.32",
    );
    t.notOk(
      features.some((line) => /ContainerStopSignals/.test(line)),
      "there was no such feature yet",
    );
  },
  "emulation-forward-compatible": async (t) => {
    const old = { "emulated-version": "1.32", "runtime-config": "networking.k8s.io/v1beta1=true" };
    const path = "GET /apis/networking.k8s.io/v1/servicecidrs";
    await using without = await serve(old);
    t.equal((await without.ask(path)).status, 404);
    await using server = await serve({ ...old, "emulation-forward-compatible": "true" });
    t.equal((await server.ask(path)).status, 200, "comes with its beta version");
  },
  "runtime-config-emulation-forward-compatible": async (t) => {
    const later = { "emulated-version": "1.32", "runtime-config": "networking.k8s.io/v1/servicecidrs=true" };
    await t.rejects(serve(later), /it came with 1.33/);
    await using server = await serve({ ...later, "runtime-config-emulation-forward-compatible": "true" });
    t.equal((await server.ask("GET /apis/networking.k8s.io/v1/servicecidrs")).status, 200);
  },
  "allow-metric-labels": async (t) => {
    await using server = await serve({ "allow-metric-labels": "apiserver_request_total,code='200,404'" });
    await server.ask("GET /api/v1/pods");
    await server.ask(`POST ${PODS}`, { metadata: { name: "UPPER" } });
    const codes = (await shown(server, "apiserver_request_total")).map((line) => /code="(\w+)"/.exec(line)?.[1]);
    t.same([...new Set(codes)].sort(), ["200", "unexpected"]);
  },
  "allow-metric-labels-manifest": async (t) => {
    const path = join(t.testdir({ "labels.yaml": "apiserver_request_total,code: '201,404'\n" }), "labels.yaml");
    const codesOf = async (settings: Settings) => {
      await using server = await serve({ "allow-metric-labels-manifest": path, ...settings });
      await server.ask("GET /api/v1/pods");
      return (await shown(server, "apiserver_request_total")).map((line) => /code="(\w+)"/.exec(line)?.[1]);
    };
    t.same(await codesOf({}), ["unexpected"]);
    t.same(await codesOf({ "allow-metric-labels": "apiserver_request_total,code=200" }), ["200"]);
    await t.rejects(serve({ "allow-metric-labels-manifest": file("tokens") }), /--allow-metric-labels-manifest=/);
  },
  "disabled-metrics": async (t) => {
    const some = { "disabled-metrics": "apiserver_request_total", "show-hidden-metrics-for-version": "1.32" };
    await using server = await serve(some);
    t.same(await shown(server, "apiserver_request_total"), []);
    t.match(await shown(server, "disabled_metrics_total"), [/ 1$/]);
  },
  "show-hidden-metrics-for-version": async (t) => {
    await using server = await serve({ "show-hidden-metrics-for-version": "1.32" });
    await server.ask("GET /api/v1/pods");
    t.not((await shown(server, "apiserver_request_slo_duration_seconds_count")).length, 0);
    await using without = await serve();
    await without.ask("GET /api/v1/pods");
    t.same(await shown(without, "apiserver_request_slo_duration_seconds_count"), []);
    t.throws(() => invoked({ "show-hidden-metrics-for-version": "1.31" }), /must be left out or 1.32/);
  },
  "embedded-controllers": async (t) => {
    await using server = await serve({ "embedded-controllers": "scheduler" });
    await server.ask(`POST ${PODS}`, pod("web"));
    await server.until("the scheduler has looked at the pod", async () => {
      const { json } = await server.ask(`GET ${PODS}/web`);
      return json.status.conditions?.some(({ type }: { type: string }) => type === "PodScheduled") === true;
    });
    await t.rejects(serve({ "embedded-controllers": "gardener" }), /gardener/);
  },
  "api-group-aliases": async (t) => {
    await using server = await serve({ "api-group-aliases": "" });
    t.equal((await server.ask("GET /apis/coordination.svc.io/v1/leases")).status, 200);
    t.equal((await server.ask("GET /apis/coordination.k8s.io/v1/leases")).status, 404);
  },
  v: async (t) => {
    t.match(logged({ v: "3" }).err, /three/);
  },
  vmodule: async (t) => {
    const { err } = logged({ vmodule: "store=5" });
    t.match(err, /five/);
    t.notMatch(err, /three/);
  },
  "logging-format": async (t) => {
    t.match(logged({ "logging-format": "text" }).err, /^I\d{4} .*\] "?hello/);
    t.throws(() => invoked({ "logging-format": "json" }), /--logging-format="json": must be text/);
  },
  "log-text-split-stream": async (t) => {
    t.match(logged(split), { out: /hello/, err: /oh/ });
  },
  "log-text-info-buffer-size": async (t) => {
    t.equal(logged({ ...split, "log-text-info-buffer-size": "4Ki" }).clock.pending, 1, "a flush is due");
    t.equal(logged(split).clock.pending, 0);
  },
  "log-flush-frequency": async (t) => {
    const log = logged({ ...split, "log-text-info-buffer-size": "4Ki", "log-flush-frequency": "2s" });
    await log.clock.advance(1999);
    t.equal(log.flushes(), 0);
    await log.clock.advance(1);
    t.ok(log.flushes() > 0);
  },
  version: async (t) => {
    await using server = await serve({ version: "v1.33.4-site.1" });
    t.equal((await server.ask("GET /version")).json.gitVersion, "v1.33.4-site.1");
    t.match(invoke(apiserverProgram, ["--version"], { version: "v1.33.0" }), { stdout: "apiserver v1.33.0\n" });
  },
  "feature-gates": async (t) => {
    await using server = await serve({ "feature-gates": "WatchList=false" });
    const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    t.not(
      (await server.ask(`GET ${PODS}?${query}&timeoutSeconds=1`)).status,
      200,
      "watches with initial events are off",
    );
  },
  help: async (t) => {
    t.match(invoke(apiserverProgram, ["--help"], { version: "v1.33.0" }), { code: 0, stdout: /Usage:/ });
  },
};

/** The lines of one metric. */
async function shown(server: TestServer, name: string): Promise<readonly string[]> {
  const { json } = await server.ask("GET /metrics");
  return (json as string).split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

const split: Settings = { "log-text-split-stream": "true", "feature-gates": "LoggingAlphaOptions=true" };

function logged(settings: Settings) {
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
async function silentStore(settings: Settings, path: string): Promise<{ early: boolean; status: number }> {
  const store: { list?: Store["list"] } = {};
  await using server = await serve(settings, store);
  store.list = () => new Promise<never>(() => {});
  let status = 0;
  void server.ask(`GET ${path}`).then((answer) => {
    status = answer.status;
  });
  await server.clock.advance(2900);
  const early = status !== 0;
  await server.until("it answers", () => status !== 0);
  return { early, status };
}

t.test("apiserverFlags: every flag that is marked effective has its test here", async (t) => {
  const marked = Object.entries(apiserverFlags).filter(([, row]) => row.effective);
  t.same(Object.keys(effects).sort(), marked.map(([name]) => name).sort());
});

for (const [name, shows] of Object.entries(effects)) {
  t.test(`apiserverFlags: --${name} has its effect`, async (t) => {
    await shows(t);
  });
}

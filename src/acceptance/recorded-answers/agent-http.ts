/** Replays requests to the agent and compares them with kubelet 1.33 (`shared/oracles/recorded-agent/http.json`). */
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CgroupTree } from "../../agent/cgroups/cgroup-tree.ts";
import { loadAgentConfig } from "../../agent/config/load.ts";
import { readMachine } from "../../agent/node/machine/machine.ts";
import { defaultAgentConfig } from "../../agent/options.ts";
import { startAgentServer } from "../../agent/server/agent-server.ts";
import { createCgroupReader } from "../../agent/stats/cgroup-reader.ts";
import { createFigures, type Figures } from "../../agent/stats/figures.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import type { Client } from "../../client/client.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock } from "../../std/time/clock.ts";
import { type Harness, podHarness } from "../../testing/agent/pod-harness.ts";
import { freePort } from "../../testing/std/free-port.ts";

export interface Exchange {
  readonly what: string;
  readonly as?: string;
  readonly method?: string;
  readonly path: string;
  readonly requestBody?: string;
  readonly requestHeaders?: Readonly<Record<string, string>>;
  readonly code?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly contentType?: string;
  readonly body?: unknown;
  readonly shape?: unknown;
  readonly error?: string;
}

interface Recording {
  readonly pod: Pod;
  readonly exchanges: readonly Exchange[];
}

interface AgentResponse {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

export const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../shared", import.meta.url));

/** Undefined when the recordings are not present. */
export function readRecording(): Recording | undefined {
  const file = `${shared}/oracles/recorded-agent/http.json`;
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Recording) : undefined;
}

/** Equal requests have the same name with a number. */
export function nameExchanges(exchanges: readonly Exchange[]): ReadonlyMap<string, Exchange> {
  const names = new Map<string, Exchange>();
  for (const exchange of exchanges) {
    const { what, as, method = "GET", path } = exchange;
    const base = `${as ?? what.replace(/ \(.*| \d.*/, "")}: ${method} ${path}`;
    let name = base;
    for (let count = 2; names.has(name); count++) name = `${base} (${count})`;
    names.set(name, exchange);
  }
  return names;
}

const ADMIN = "admin";
const TOKEN = "token-without-rights";
const ACCOUNT = "system:serviceaccount:default:default";

/** An agent that runs the recorded pod. */
export interface RecordedAgent extends AsyncDisposable {
  /** Sends the request; returns the difference from the recorded response, or undefined. */
  compare(exchange: Exchange): Promise<string | undefined>;
}

/** `statusPages`: with the gates ComponentFlagz and ComponentStatusz. */
export async function startRecordedAgent({ pod }: Recording, statusPages = false): Promise<RecordedAgent> {
  await using stack = new AsyncDisposableStack();
  const harness = stack.use(await podHarness());
  await runPod(harness, pod);
  const directory = harness.rootDir;
  const now = systemClock.now();
  const ca = await createCa("ca", 1, now);
  const caFile = join(directory, "ca.crt");
  await writeFile(caFile, ca.cert);
  const admin = await issueCertificate(
    ca,
    { commonName: ADMIN, alternativeNames: [], usages: ["client"], days: 1 },
    now,
  );
  const base = defaultAgentConfig("<node>");
  const [readOnlyPort, healthzPort] = await Promise.all([freePort(), freePort()]);
  const config = {
    ...base,
    rootDir: directory,
    certDir: directory,
    configz: loadAgentConfig([], {}).config,
    observability: statusPages ? { ...base.observability, flags: {}, statusPage: true } : base.observability,
    server: {
      ...base.server,
      address: "127.0.0.1",
      port: 0,
      readOnlyPort,
      healthzPort,
      clientCaFile: caFile,
      anonymousAuth: false,
      tokenCacheMs: 1000,
      authorization: { mode: "Webhook" as const, allowedMs: 1000, deniedMs: 1000, fineGrained: true },
    },
  };
  const server = stack.use(
    await startAgentServer({
      config,
      pods: harness.manager,
      client: reviewer as unknown as Client,
      clock: systemClock,
      log: silentLogger,
      ips: [],
      problems: () => [],
      figures: await openFigures(harness),
    }),
  );
  const port = server.address?.port ?? 0;
  const owned = stack.move();
  const send = (exchange: Exchange): Promise<AgentResponse> => {
    const { what, method = "GET", requestHeaders = {} } = exchange;
    const path = exchange.path.replace("<namespace>", "default").replace("<uid>", "uid-web").replace("<uuid>", "other");
    if (what.startsWith("plain http")) return sendBytes(port, path);
    const credentials = exchange.as === "client certificate" ? admin : {};
    const token = tokens[exchange.as ?? ""];
    const headers = { ...requestHeaders, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
    const options = { host: "127.0.0.1", method, path, headers, agent: false, ...credentials };
    const body = exchange.requestBody;
    if (what.startsWith("health port")) return receive(plainRequest({ ...options, port: healthzPort }));
    if (what.startsWith("read-only port")) return receive(plainRequest({ ...options, port: readOnlyPort }));
    return receive(secureRequest({ ...options, port, rejectUnauthorized: false }), body);
  };
  return {
    compare: async (exchange) => compareResponse(exchange, await send(exchange)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Of the agent's own machine, where the recorded pod has no cgroup. */
async function openFigures({ manager, services, fake, rootDir }: Harness): Promise<Figures> {
  const registry = new MetricRegistry();
  const { clock, volumes } = services;
  return createFigures(
    { registry, probes: new MetricRegistry() },
    {
      nodeName: "<node>",
      pods: () => manager.workers,
      settings: services.settings.cgroups,
      cgroups: createCgroupReader("/sys/fs/cgroup", await new CgroupTree("/sys/fs/cgroup").isUnified(), clock),
      machine: await readMachine(),
      runtime: fake.runtime,
      images: fake.images,
      volumes,
      volumeStatsMs: 60_000,
      rootDir,
      podLogsDir: rootDir,
      clock,
    },
  );
}

const tokens: Readonly<Record<string, string>> = { "token without rights": TOKEN, "unknown token": "unknown" };

/** Responds to reviews: user `ADMIN` is allowed everything, the service account nothing. */
const reviewer = {
  create: async (
    { kind }: { readonly kind: string },
    { spec }: { readonly spec: { readonly token?: string; readonly user?: string } },
  ) => {
    if (kind === "SubjectAccessReview") return { status: { allowed: spec.user === ADMIN } };
    return { status: spec.token === TOKEN ? { authenticated: true, user: { username: ACCOUNT } } : {} };
  },
};

/** Runs the pod on the fake runtime and writes the logs of its containers. */
async function runPod(harness: Harness, pod: Pod): Promise<void> {
  harness.fake.addImage("localhost/bb:1");
  harness.fake.execs.set("echo hi", { exitCode: 0, stdout: "hi\n" });
  harness.fake.programs.set("i", { exitAfterMs: 100, exitCode: 0 });
  harness.fake.programs.set("crash", { exitAfterMs: 100, exitCode: 1 });
  const names = { name: "web", namespace: "default", uid: "uid-web" };
  harness.manager.put({ ...pod, metadata: { ...pod.metadata, ...names, creationTimestamp: "2026-01-01T00:00:00Z" } });
  await harness.run(8);
  const lines = Array.from({ length: 10 }, (_, index) => `stdout F line ${index + 1}`);
  const logs: Readonly<Record<string, readonly string[]>> = {
    i: ["stdout F init"],
    c: [...lines, "stderr F err"],
    crash: ["stdout F crash"],
  };
  const runs = harness.manager.worker("uid-web")?.observation.containers ?? [];
  const latest = new Map(runs.toReversed().map((run) => [run.name, run]));
  const time = new Date().toISOString().replace("Z", "000000Z");
  for (const [name, { logPath }] of latest) {
    await mkdir(dirname(logPath), { recursive: true });
    await writeFile(logPath, (logs[name] ?? []).map((line) => `${time} ${line}\n`).join(""));
  }
}

export async function receive(request: ReturnType<typeof plainRequest>, sent = ""): Promise<AgentResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<AgentResponse>();
  request.on("response", (response) => {
    const chunks: Uint8Array[] = [];
    response.on("data", (chunk: Uint8Array) => chunks.push(chunk));
    response.on("error", reject);
    response.on("end", () =>
      resolve({ code: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks).toString() }),
    );
  });
  request.on("upgrade", ({ statusCode = 0, headers }, socket) => {
    socket.destroy();
    resolve({ code: statusCode, headers, body: "" });
  });
  request.on("error", reject);
  request.end(sent);
  return promise;
}

/** Plain HTTP to a TLS port. */
async function sendBytes(port: number, path: string): Promise<AgentResponse> {
  const { promise, resolve } = Promise.withResolvers<AgentResponse>();
  const socket = connect(port, "127.0.0.1", () => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`));
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString();
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    const [head = "", body = ""] = text.split("\r\n\r\n");
    resolve({ code: Number(/^HTTP\/1\.\d (\d+)/.exec(head)?.[1] ?? 0), headers: {}, body });
  });
  return promise;
}

const COMPARED_HEADERS = ["content-type", "allow", "location", "x-content-type-options"];

/** The difference from the recorded response; undefined without one. */
export function compareResponse(exchange: Exchange, response: AgentResponse): string | undefined {
  if (exchange.code !== response.code)
    return `${response.code} instead of ${exchange.code}: ${response.body.slice(0, 200)}`;
  const expected = { "content-type": exchange.contentType, ...exchange.headers } as Record<string, string | undefined>;
  for (const name of COMPARED_HEADERS) {
    const value = expected[name];
    if (value !== undefined && value !== response.headers[name])
      return `${name}: ${response.headers[name]}, not ${value}`;
  }
  if (exchange.shape !== undefined) return compareShape(exchange.shape, JSON.parse(response.body), "");
  if (exchange.body === undefined) return undefined;
  if (typeof exchange.body !== "string") return compareShape(shapeOf(exchange.body), JSON.parse(response.body), "");
  // The recording has only the first 80 characters of these bodies.
  const isCut = exchange.body.startsWith('{"kind"') || exchange.body.startsWith('{"kubeletconfig"');
  if (isCut) return response.body.startsWith(exchange.body) ? undefined : `body ${response.body.slice(0, 80)}`;
  const body = response.body.replace(/^\d{4}-\S+Z /gm, "<time> ").replace("_default", "_<namespace>");
  const pattern = exchange.body
    .split(/(<id-\d+>)/)
    .map((part, index) => (index % 2 === 1 ? ".*" : escapePattern(part).replace("containerd:", "\\w+:")));
  return new RegExp(`^${pattern.join("")}$`, "s").test(body) ? undefined : `body ${JSON.stringify(body.slice(0, 200))}`;
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Types of the leaves, in the recording's notation. */
function shapeOf(value: unknown): unknown {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== "object") return typeof value;
  return Object.fromEntries(Object.entries(value as object).map(([key, item]) => [key, shapeOf(item)]));
}

/** The first member of `value` that the recorded shape lacks or has with another type. */
function compareShape(shape: unknown, value: unknown, path: string): string | undefined {
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return `${path} is not a list`;
    for (const item of value) {
      const difference = compareShape(shape[0], item, `${path}[]`);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }
  if (typeof shape === "object" && shape !== null) {
    if (typeof value !== "object" || value === null) return `${path} is not an object`;
    for (const [key, item] of Object.entries(value)) {
      const recorded = (shape as Readonly<Record<string, unknown>>)[key];
      if (recorded === undefined) return `${path}.${key} is not in the recording`;
      const difference = compareShape(recorded, item, `${path}.${key}`);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }
  const type = value === null ? "null" : typeof value;
  const expected = shape === "time" ? "string" : shape;
  return type === expected ? undefined : `${path} is ${type}, not ${expected}`;
}

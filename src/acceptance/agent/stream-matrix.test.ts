/**
 * Variations of exec, attach and port-forward at the agent and through the API server, with a played runtime: each
 * combination of operation, method, protocol, streams, pod, container and of what the runtime does. `expectResult`
 * has the rules of kube-apiserver 1.33, kubelet 1.33 and client-go, by which each combination has one result. A sample
 * runs, of the size SVC_STREAM_VARIATIONS; SEED repeats one.
 */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import t, { type Test } from "tap";
import { RuntimeError } from "../../agent/runtime/runtime.ts";
import { createAgentHandler } from "../../agent/server/agent-handler.ts";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import type { Handler, HttpRequest, HttpResponse } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { listen } from "../../http/server/server.ts";
import { SpdyConnection, type SpdyStream } from "../../http/spdy/connection.ts";
import { pingFrame } from "../../http/spdy/frames.ts";
import { acceptHeaders, isWebSocketRequest, offeredProtocols } from "../../http/websocket/handshake.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { podHarness, testPod } from "../../testing/agent/pod-harness.ts";
import { readResponse, startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { playStreams } from "../../testing/http/played-streams.ts";

const SEED = Number(process.env.SEED ?? Date.now() % 1e9);
const VARIATIONS = Number(process.env.SVC_STREAM_VARIATIONS ?? 150);

const V4 = "v4.channel.k8s.io";
const V5 = "v5.channel.k8s.io";
const TUNNEL = "SPDY/3.1+portforward.k8s.io";
/** What the runtime's server speaks over WebSocket, as containerd. */
const CHANNEL_PROTOCOLS = ["", "channel.k8s.io", "base64.channel.k8s.io", V4, "v4.base64.channel.k8s.io"];
/** Of the offers, those that a played runtime negotiates: all but the last. */
const spdyOffers = [V4, "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io", `${V4}, channel.k8s.io`, "v9"];
const websocketOffers = [...CHANNEL_PROTOCOLS, V5, `${V4}, ${V5}`, `${V5}, ${V4}`, `x, ${V4}`, "x", TUNNEL];

const dimensions = {
  place: ["agent", "api"],
  operation: ["exec", "attach", "portforward"],
  method: ["GET", "POST", "GET", "POST", "GET", "POST", "PUT", "DELETE"],
  upgrade: ["spdy", "websocket", "spdy", "websocket", "spdy", "websocket", "none"],
  spdyOffer: spdyOffers,
  websocketOffer: websocketOffers,
  stdin: [true, false],
  stdout: [true, true, false],
  stderr: [true, false],
  tty: [true, false],
  word: [0, 1, 2, 3],
  pod: ["web", "web", "web", "web", "web", "many", "done", "absent", "unscheduled", "down"],
  container: ["c", "c", "c", "", "x"],
  port: ["80", "80", "80,81", "", "0", "x", "65536", undefined],
  runtime: ["exit 0", "exit 0", "exit 7", "failure", "broken", "refused", "NOT_FOUND", "RESOURCE_EXHAUSTED", "UNKNOWN"],
} as const;

type Dimensions = typeof dimensions;
type Variation = { readonly [Name in keyof Dimensions]: Dimensions[Name][number] };

function pick(seed: number): Variation {
  const random = seededRandom(seed);
  const choose = <Value>(values: readonly Value[]): Value => values[Math.floor(random.fraction() * values.length)]!;
  return Object.fromEntries(
    Object.entries(dimensions).map(([name, values]) => [name, choose<unknown>(values)]),
  ) as never;
}

/** Of a variation: what is sent, and what the rules below take from it. */
function describe(variation: Variation) {
  const { place, operation, method, upgrade, pod, tty, stdin, stdout, spdyOffer, websocketOffer } = variation;
  const isApi = place === "api";
  const isCommand = operation !== "portforward";
  const offers = upgrade === "websocket" ? websocketOffer.split(", ") : [];
  const isTranslated = isApi && isCommand && offers.includes(V5);
  const isTunnel = isApi && !isCommand && offers.includes(TUNNEL);
  // A path without a container has no route.
  const named = !isApi && variation.container === "" ? "c" : variation.container;
  const container = pod === "done" && named === "c" ? "ended" : named;
  const isSpdy = upgrade === "spdy" || isTranslated;
  const protocol = isTranslated ? V4 : spdyOffer.split(", ")[0]!;
  return {
    ...variation,
    isApi,
    isCommand,
    isTranslated,
    isTunnel,
    isAllowed: method === "GET" || method === "POST",
    container,
    protocol,
    stderr: variation.stderr && !tty,
    stderrRequested: variation.stderr,
    hasStreams: stdin || stdout || (variation.stderr && !tty),
    resize: tty && isSpdy && (protocol === V4 || protocol === "v3.channel.k8s.io"),
    chosen: offers.find((name) => CHANNEL_PROTOCOLS.includes(name)),
    // Of the API server only valid ones: it converts them itself.
    port: isApi && !/^80/.test(variation.port ?? "") ? undefined : variation.port,
  };
}

type Described = ReturnType<typeof describe>;

/** The text of the error stream in its protocol. */
function resultText({ runtime, protocol }: Described): string | undefined {
  const message = `command terminated with non-zero exit code: exit code 7`;
  const exit = { reason: "NonZeroExitCode", details: { causes: [{ reason: "ExitCode", message: "7" }] } };
  const write = (status: object): string => JSON.stringify({ metadata: {}, ...status });
  if (runtime === "broken") return undefined;
  if (runtime === "exit 7") return protocol === V4 ? write({ status: "Failure", message, ...exit }) : message;
  if (runtime === "failure") return protocol === V4 ? write({ status: "Failure", message: "boom" }) : "boom";
  return protocol === V4 ? write({ status: "Success" }) : "";
}

/** kubelet takes only `1` as true; kube-apiserver every word but `false` and `0`, the empty one too. */
const flagWords = {
  agent: { true: ["1"], false: ["0", undefined, "true", "yes", ""] },
  api: { true: ["1", "true", "", "yes"], false: ["0", "false", "FALSE", undefined] },
} as const;

const INPUT = "hi";
const SIZE = '{"Width":1,"Height":2}\n';
const CRI_ERRORS = { NOT_FOUND: 404, RESOURCE_EXHAUSTED: 429, UNKNOWN: 500 } as const;

/** The played command writes what it reads to each output. */
const expectOutput = ({ stdin, resize }: Described): string => `${stdin ? INPUT : ""}${resize ? SIZE : ""}`;

/** kubelet's refusal; undefined when the request reaches the runtime's server. */
function expectRefusal(v: Described): string | undefined {
  const { operation, pod, container, runtime, port } = v;
  // The API server sends POST with both translations.
  if (!v.isAllowed) return "405 405: Method Not Allowed";
  if (operation === "portforward" && v.upgrade === "websocket" && !v.isTunnel) {
    if (port === undefined) return '400 query parameter "port" is required';
    if (port === "") return '400 query parameter "port" cannot be empty';
    if (port === "0") return '400 port "0" must be > 0';
    const parse = (text: string, why: string) =>
      `400 unable to parse "${text}" as a port: strconv.ParseUint: parsing "${text}": ${why}`;
    if (port === "x") return parse(port, "invalid syntax");
    if (port === "65536") return parse(port, "value out of range");
  }
  if (v.isCommand && !v.hasStreams) return "400 you must specify at least 1 of stdin, stdout, stderr";
  if (pod === "absent" || pod === "unscheduled" || pod === "down") return "404 pod does not exist";
  if (v.isCommand && (pod !== "web" || container === "x")) {
    const missing = `container ${container} not found in pod ${pod}_default`;
    return operation === "exec" ? `500 container not found ("${container}")` : `500 ${missing}`;
  }
  if (pod === "done") return '500 pod not found ("done_default")';
  if (runtime in CRI_ERRORS) {
    const code = runtime as keyof typeof CRI_ERRORS;
    return `${CRI_ERRORS[code]} ${new RuntimeError(code, "x").message}`;
  }
  if (v.upgrade === "none") return "500 Upgrade request required";
  return runtime === "refused" ? "500 dial tcp 127.0.0.1:1: connect: connection refused" : undefined;
}

/** What the runtime's server makes of the forwarded request. */
function expectFromRuntime(v: Described): string {
  if (v.upgrade === "websocket" && !v.isTranslated && !v.isTunnel) {
    if (v.method !== "GET") return "405 bad method";
    return v.chosen === undefined ? "403 " : `101 ${v.chosen} ${INPUT}`;
  }
  if (v.isTunnel) return v.method === "GET" ? "101 ping" : "405 Method Not Allowed";
  if (!v.isCommand) return "101 ping";
  if (v.protocol === "v9") return "403 unable to upgrade: client supports [v9]";
  const output = expectOutput(v);
  const outputs = [...(v.stdout ? [`stdout=${output}`] : []), ...(v.stderr ? [`stderr=${output}`] : [])];
  const text = resultText(v);
  return `101 ${[...outputs, `error=${text ?? "none"}`].join(" ")}`;
}

/** client-go's reading of the error stream, as kube-apiserver sends it on. */
function expectTranslated(v: Described, refusal: string | undefined): string {
  const internal = (message: string): string => `Internal error occurred: ${message}`;
  const first = v.stdout ? 1 : v.stderrRequested ? 2 : 3;
  const channels: Record<number, string> = { [first]: "" };
  const unreachable = 'error sending request: Post "URL": dial tcp 127.0.0.1:1: connect: connection refused';
  if (v.pod === "down") channels[3] = internal(unreachable);
  else if (refusal !== undefined) channels[3] = internal(`unable to upgrade connection: ${refusal.slice(4)}`);
  else {
    const results: Partial<Record<typeof v.runtime, string>> = {
      "exit 0": "Success",
      "exit 7": "command terminated with non-zero exit code: command terminated with exit code 7",
      failure: internal("boom"),
      broken: internal("error reading from error stream: unexpected EOF"),
    };
    const output = expectOutput(v);
    if (v.stdout && output !== "") channels[1] = output;
    if (v.stderr && output !== "") channels[2] = output;
    channels[3] = results[v.runtime] ?? "";
  }
  return `101 ${Object.entries(channels)
    .map((entry) => entry.join("="))
    .join(" ")}`;
}

function expectResult(v: Described): string {
  if (!v.isApi) return expectRefusal(v) ?? expectFromRuntime(v);
  if (!v.isAllowed) return "405 the server does not allow this method on the requested resource";
  if (v.pod === "absent") return '404 pods "absent" not found';
  if (v.isCommand && v.pod === "many" && v.container === "") {
    return "400 a container name must be specified for pod many, choose one of: [a b]";
  }
  const isNamed = v.container === "" || (v.container !== "x" && v.pod !== "many");
  if (v.isCommand && !isNamed) return `400 container ${v.container} is not valid for pod ${v.pod}`;
  if (v.pod === "unscheduled") return "400 pod unscheduled does not have a host assigned";
  if (v.upgrade === "none") return "400 Upgrade request required";
  const only = v.pod === "done" ? "ended" : "c";
  const atAgent = { ...v, container: v.container === "" ? only : v.container };
  if (v.isTranslated && v.method !== "GET") return "405 bad method";
  if (v.isTranslated) return expectTranslated(v, expectRefusal(atAgent));
  if (v.pod === "down") return "500 error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused";
  return expectRefusal(atAgent) ?? expectFromRuntime(atAgent);
}

/** Echoes what a connection brings first. */
function echo({ body }: HttpRequest, headers: HttpResponse["headers"]): HttpResponse {
  const output = new PassThrough();
  const read = async (): Promise<void> => {
    for await (const chunk of body) {
      output.end(chunk);
      return;
    }
  };
  // The connection may end at any time.
  void read().catch(() => output.destroy());
  return { status: 101, headers, body: output };
}

function playRuntime(v: Described): Handler {
  const played = playStreams({
    expects: ["error", ...openStreams(v)],
    run: async ({ streams, read }) => {
      let text = "";
      if (v.stdin) for (let part = await read("stdin"); part !== undefined; part = await read("stdin")) text += part;
      if (v.resize) text += await read("resize");
      for (const output of ["stdout", "stderr"]) await streams.get(output)?.write(Buffer.from(text));
      return resultText(v);
    },
  });
  return async (request) => {
    if (!isWebSocketRequest(request)) {
      return v.isCommand
        ? await played(request)
        : echo(request, { upgrade: "SPDY/3.1", "x-stream-protocol-version": "portforward.k8s.io" });
    }
    if (request.method !== "GET") return textResponse(405, "bad method");
    const offers = offeredProtocols(request);
    const chosen = offers.find((name) => CHANNEL_PROTOCOLS.includes(name));
    if (offers.length > 0 && chosen === undefined) return { status: 403, headers: {}, body: Buffer.of() };
    return echo(request, acceptHeaders(request.headers["sec-websocket-key"] ?? "", chosen));
  };
}

const openStreams = (v: Described): readonly string[] =>
  (["stdin", "stdout", "stderr", "resize"] as const).filter((name) => v[name]);

/** Both servers, the pods, and a runtime that is played anew for each variation. */
async function start(t: Test) {
  const harness = await podHarness();
  t.teardown(() => harness[Symbol.asyncDispose]());
  const { fake, manager } = harness;
  fake.programs.set("ended", { exitAfterMs: 100, exitCode: 0 });
  const named = (...names: readonly string[]) => names.map((name) => ({ name, image: "busybox:1" }));
  const pods = [
    testPod("web"),
    testPod("many", { containers: named("a", "b") }),
    testPod("done", { restartPolicy: "Never", containers: named("ended") }),
  ];
  for (const pod of pods) manager.put(pod);
  await harness.run(4);
  const current: { handler: Handler } = { handler: async () => textResponse(500, "") };
  const options = { log: silentLogger, upgrades: true, host: "127.0.0.1" } as const;
  const runtime = await listen({ ...options, handler: (request) => current.handler(request) });
  const shared = { pods: manager, authenticate: undefined, problems: () => [], configz: {}, debugging: true };
  const agent = createAgentHandler({ ...shared, clock: systemClock });
  const now = systemClock.now();
  const ca = await createCa("test", 1, now);
  const names = { commonName: "n1", alternativeNames: ["127.0.0.1"], usages: ["server"] as const, days: 1 };
  const listener = await listen({ ...options, handler: agent, tls: await issueCertificate(ca, names, now) });
  const server = await startTestServer();
  t.teardown(async () => {
    await server[Symbol.asyncDispose]();
    await listener.close();
    await runtime.close();
  });
  const create = async (path: string, body: object): Promise<void> => {
    const { status, text } = await server.send(`POST ${path}`, { body });
    if (status !== 201) throw new Error(text);
  };
  for (const [name, Port] of [
    ["n1", listener.port],
    ["n2", 1],
  ] as const) {
    await create("/api/v1/nodes", { metadata: { name } });
    const status = {
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port } },
    };
    const headers = { "content-type": "application/merge-patch+json" };
    await server.send(`PATCH /api/v1/nodes/${name}/status`, { body: { status }, headers });
  }
  const path = "/api/v1/namespaces/default/pods";
  for (const { metadata, spec } of pods) {
    await create(path, { metadata: { name: metadata?.name }, spec: { ...spec, nodeName: "n1" } });
  }
  await create(path, { metadata: { name: "unscheduled" }, spec: { containers: named("c") } });
  await create(path, { metadata: { name: "down" }, spec: { nodeName: "n2", containers: named("c") } });
  const token = server.parts.server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const { exec, attach, portForward } = fake.runtime;
  return async (v: Described): Promise<string> => {
    current.handler = playRuntime(v);
    fake.streamingUrl = `http://127.0.0.1:${v.runtime === "refused" ? 1 : runtime.port}`;
    const fails = (): Promise<never> => Promise.reject(new RuntimeError(v.runtime as keyof typeof CRI_ERRORS, "x"));
    const failing = { exec: fails, attach: fails, portForward: fails };
    Object.assign(fake.runtime, v.runtime in CRI_ERRORS ? failing : { exec, attach, portForward });
    const body = new PassThrough();
    const stop = new AbortController();
    const request = { ...toRequest(v, token, stop.signal), body, upgradable: v.upgrade !== "none" };
    const response = await (v.isApi ? server.parts.server.handler : agent)(request);
    try {
      return await readResult(v, response, body);
    } finally {
      stop.abort();
      body.destroy();
    }
  };
}

function toRequest(v: Described, token: string, signal: AbortSignal): HttpRequest {
  const { isApi, isCommand, operation, pod, container, upgrade, method } = v;
  const flags = isApi ? ["stdin", "stdout", "stderr", "tty"] : ["input", "output", "error", "tty"];
  const values = [v.stdin, v.stdout, v.stderrRequested, v.tty];
  const query = new URLSearchParams();
  const words = flagWords[v.place];
  values.forEach((value, index) => {
    const all = value ? words.true : words.false;
    const word = all[(v.word + index) % all.length];
    if (isCommand && word !== undefined) query.set(flags[index]!, word);
  });
  if (isCommand && isApi && container !== "") query.set("container", container);
  if (operation === "exec") query.set("command", "a");
  if (!isCommand && v.port !== undefined) query.set(isApi ? "ports" : "port", v.port);
  const root = isCommand ? operation : "portForward";
  const path = isApi
    ? `/api/v1/namespaces/default/pods/${pod}/${operation}`
    : `/${root}/default/${pod}${isCommand ? `/${container}` : ""}`;
  const headers: Record<string, string> = isApi ? { authorization: `Bearer ${token}` } : {};
  if (upgrade !== "none") Object.assign(headers, { connection: "Upgrade", upgrade: "websocket" });
  if (upgrade === "spdy") Object.assign(headers, { upgrade: "SPDY/3.1", "x-stream-protocol-version": v.spdyOffer });
  if (upgrade === "websocket") {
    const handshake = { "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
    Object.assign(headers, handshake, v.websocketOffer === "" ? {} : { "sec-websocket-protocol": v.websocketOffer });
  }
  return makeRequest({ method, path, query: query.toString(), headers, signal });
}

/** In one line: status and text, or what came on each stream. */
async function readResult(v: Described, response: HttpResponse, body: PassThrough): Promise<string> {
  const { status, headers } = response;
  if (status !== 101) {
    const { text } = await readResponse(response);
    const found = text.startsWith('{"kind":"Status"') ? (JSON.parse(text) as { message: string }).message : text;
    return `${status} ${found.trim()}`.replace(/^(\d+) $/, "$1 ");
  }
  if (v.isTranslated) return await readChannels(v, response, body);
  if (v.upgrade === "spdy" && v.isCommand) return await readStreams(v, response, body);
  const ping = pingFrame(1);
  const sent = v.isCommand || !(v.isTunnel || v.upgrade === "spdy") ? Buffer.from(INPUT) : ping;
  body.write(v.isTunnel ? masked(sent) : sent);
  const [chunk] = (await once(response.body as PassThrough, "data")) as [Buffer];
  const received = v.isTunnel ? chunk.subarray(2) : chunk;
  if (received.equals(ping)) return "101 ping";
  return `101 ${String(headers["sec-websocket-protocol"] ?? "")} ${received.toString()}`;
}

async function readStreams(v: Described, response: HttpResponse, output: PassThrough): Promise<string> {
  const input = response.body as AsyncIterable<Uint8Array>;
  const connection = new SpdyConnection({ input, output, role: "client" });
  const received: Record<string, string> = {};
  const streams = new Map<string, SpdyStream>();
  for (const streamtype of ["error", ...openStreams(v)]) {
    const isOutput = streamtype === "stdout" || streamtype === "stderr" || streamtype === "error";
    if (isOutput) received[streamtype] = "";
    const data = (chunk: Buffer): void => {
      received[streamtype] += chunk.toString();
    };
    const end = (how: string): void => {
      if (streamtype === "error" && how === "closed") received.error = "none";
    };
    streams.set(streamtype, connection.open({ streamtype }, { data, end }));
  }
  const ended = connection.run().catch(() => {});
  await streams.get("stdin")?.write(Buffer.from(INPUT));
  await streams.get("stdin")?.end();
  await streams.get("resize")?.write(Buffer.from(SIZE));
  await ended;
  const found = ["stdout", "stderr", "error"].filter((name) => name in received);
  return `101 ${found.map((name) => `${name}=${received[name]}`).join(" ")}`;
}

function masked(payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(0x82, 0x80 | payload.length, 0, 0, 0, 0), payload]);
}

async function readChannels(v: Described, response: HttpResponse, body: PassThrough): Promise<string> {
  if (v.stdin) body.write(Buffer.concat([masked(Buffer.from(`\0${INPUT}`)), masked(Buffer.of(255, 0))]));
  if (v.tty) body.write(masked(Buffer.from(`\u0004${SIZE}`)));
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const channels: Record<number, string> = {};
  for (let start = 0; start < bytes.length; ) {
    const isLong = bytes[start + 1] === 126;
    const length = isLong ? bytes.readUInt16BE(start + 2) : bytes[start + 1]!;
    const payload = bytes.subarray(start + (isLong ? 4 : 2), start + (isLong ? 4 : 2) + length);
    if (bytes[start] === 0x82) channels[payload[0]!] = (channels[payload[0]!] ?? "") + payload.toString("utf8", 1);
    start += (isLong ? 4 : 2) + length;
  }
  const { status, message } = JSON.parse(channels[3] ?? "{}") as { status?: string; message?: string };
  channels[3] = (message ?? status ?? "").replace(/Post "[^"]*"/, 'Post "URL"');
  return `101 ${Object.entries(channels)
    .map((entry) => entry.join("="))
    .join(" ")}`;
}

t.test(
  `each of ${VARIATIONS} variations of streams has the result of Kubernetes' rules, seed ${SEED}`,
  { timeout: 600_000 },
  async (t) => {
    const respond = await start(t);
    const wrong: string[] = [];
    for (let index = 0; index < VARIATIONS; index++) {
      const variation = pick(SEED + index);
      const described = describe(variation);
      const expected = expectResult(described);
      const responded = new AbortController();
      const deadline = systemClock.sleep(5_000, responded.signal).then(
        () => "no result in time",
        () => "aborted",
      );
      const found = await Promise.race([respond(described), deadline]).finally(() => responded.abort());
      if (found !== expected) {
        wrong.push(`seed ${SEED + index} ${JSON.stringify(variation)}\n  is       ${found}\n  expected ${expected}`);
      }
      if (wrong.length > 20) break;
    }
    t.same(wrong, []);
  },
);

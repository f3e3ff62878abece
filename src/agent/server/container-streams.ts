/**
 * `/exec`, `/attach`, `/portForward` and `/run`. As kubelet, the agent requests a streaming URL from the runtime and
 * forwards the connection to it: the runtime's server speaks SPDY and WebSocket itself, so bytes pass unchanged, with
 * the back-pressure of the connections. An invalid SPDY frame of the client does not reach the runtime.
 */
import { Agent as HttpsAgent } from "node:https";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { bytesResponse, textResponse } from "../../http/respond.ts";
import { FrameFilter } from "../../http/spdy/frame-filter.ts";
import { UpgradeError } from "../../http/upgrade/connect-upgrade.ts";
import { forwardUpgrade, isUpgradeRequest, upgradeRequestHeaders } from "../../http/upgrade/forward-upgrade.ts";
import { isWebSocketRequest } from "../../http/websocket/handshake.ts";
import { allContainers } from "../pods/pod-fields.ts";
import type { PodManager } from "../pods/pod-manager.ts";
import type { PodWorker } from "../pods/worker/pod-worker.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { goErrorResponse } from "./go-responses.ts";

export interface ContainerStreamsOptions {
  readonly pods: PodManager;
  /** A stream without data in either direction ends after this; 0 or absent: never. */
  readonly streamIdleMs?: number | undefined;
}

type Params = Readonly<Record<string, string>>;

/** An error that the client gets as plain text. */
class StreamError extends Error {
  override readonly name = "StreamError";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

export async function serveExec(options: ContainerStreamsOptions, request: HttpRequest, params: Params) {
  return await respond(async () => {
    const query = new URLSearchParams(request.query);
    const streams = parseStreams(query);
    const worker = findPod(options.pods, params);
    const containerId = findRunningContainer(worker, params);
    const container = params.container ?? "";
    if (containerId === undefined) throw new StreamError(500, `container not found (${JSON.stringify(container)})`);
    const { url } = await options.pods.runtime.exec(
      { containerId, cmd: query.getAll("command"), ...streams },
      request.signal,
    );
    return await forwardToRuntime(options, request, url);
  });
}

export async function serveAttach(options: ContainerStreamsOptions, request: HttpRequest, params: Params) {
  return await respond(async () => {
    const streams = parseStreams(new URLSearchParams(request.query));
    const worker = findPod(options.pods, params);
    const containerId = findRunningContainer(worker, params);
    const { namespace, pod, container = "" } = params;
    const spec = allContainers(worker.pod).find((each) => each.spec.name === container)?.spec;
    const fullName = `${pod}_${namespace}`;
    if (containerId === undefined || spec === undefined) {
      throw new StreamError(500, `container ${container} not found in pod ${fullName}`);
    }
    if (hasOtherUid(worker, params)) throw new StreamError(500, `pod ${fullName} not found`);
    // The terminal is that of the container's process, whatever the client requests.
    const { url } = await options.pods.runtime.attach(
      { ...streams, containerId, tty: spec.tty ?? false },
      request.signal,
    );
    return await forwardToRuntime(options, request, url);
  });
}

export async function servePortForward(options: ContainerStreamsOptions, request: HttpRequest, params: Params) {
  return await respond(async () => {
    const port = isWebSocketRequest(request) ? parsePorts(new URLSearchParams(request.query)) : [];
    const worker = findPod(options.pods, params);
    const { namespace, pod } = params;
    if (hasOtherUid(worker, params)) throw new StreamError(404, "pod not found");
    const sandbox = worker.observation.sandboxes.find(({ ready }) => ready);
    if (sandbox === undefined) throw new StreamError(500, `pod not found (${JSON.stringify(`${pod}_${namespace}`)})`);
    const { url } = await options.pods.runtime.portForward({ podSandboxId: sandbox.id, port }, request.signal);
    return await forwardToRuntime(options, request, url);
  });
}

/** Runs a command without input and responds with its output, at most that of one CRI message. */
export async function serveRun(options: ContainerStreamsOptions, request: HttpRequest, params: Params) {
  return await respond(async () => {
    const worker = findPod(options.pods, params);
    const containerId = findRunningContainer(worker, params);
    const container = params.container ?? "";
    if (containerId === undefined) throw new StreamError(500, `container not found (${JSON.stringify(container)})`);
    const line = new URLSearchParams(request.query).get("cmd") ?? "";
    const cmd = line.split(" ");
    const {
      stdout,
      stderr,
      exitCode = 0,
    } = await options.pods.runtime
      .execSync({ containerId, cmd, timeout: 0n }, request.signal)
      .catch((error: unknown) => {
        // Of every error of the runtime, as kubelet.
        if (error instanceof RuntimeError) throw new StreamError(500, error.message);
        throw error;
      });
    const output = Buffer.concat([stdout ?? Buffer.alloc(0), stderr ?? Buffer.alloc(0)]);
    if (exitCode !== 0) throw new StreamError(500, `command '${line}' exited with ${exitCode}: ${output}`);
    // Without output kubelet has nothing to write, not even a media type.
    return output.length === 0
      ? { status: 200, headers: {}, body: output }
      : bytesResponse(200, "application/json", output);
  });
}

async function respond(serve: () => Promise<HttpResponse>): Promise<HttpResponse> {
  try {
    return await serve();
  } catch (error) {
    if (error instanceof StreamError) return textResponse(error.status, error.message, error.headers);
    if (error instanceof RuntimeError) return runtimeErrorResponse(error);
    if (error instanceof UpgradeError) return goErrorResponse(500, error.message);
    throw error;
  }
}

/** The runtime keeps a URL for this long, and refuses more when it has 1000. */
const RETRY_AFTER_SECONDS = 60;

function runtimeErrorResponse({ code, message }: RuntimeError): HttpResponse {
  if (code === "NOT_FOUND") return textResponse(404, message);
  if (code !== "RESOURCE_EXHAUSTED") return textResponse(500, message);
  return textResponse(429, message, { "retry-after": String(RETRY_AFTER_SECONDS) });
}

function findPod(pods: PodManager, { namespace = "", pod = "" }: Params): PodWorker {
  const worker = pods.find(namespace, pod);
  if (worker === undefined) throw new StreamError(404, "pod does not exist");
  return worker;
}

/** kubelet ignores the uid in the paths of exec and run. */
function hasOtherUid({ pod }: PodWorker, { uid = "" }: Params): boolean {
  return uid !== "" && pod.metadata?.uid !== uid;
}

function findRunningContainer({ observation }: PodWorker, { container }: Params): string | undefined {
  return observation.containers.find(({ name, state }) => name === container && state === "running")?.id;
}

interface RequestedStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

function parseStreams(query: URLSearchParams): RequestedStreams {
  const [tty, stdin, stdout, stderr] = ["tty", "input", "output", "error"].map((name) => query.get(name) === "1") as [
    boolean,
    boolean,
    boolean,
    boolean,
  ];
  // A terminal has one output.
  const streams = { tty, stdin, stdout, stderr: stderr && !tty };
  if (!stdin && !stdout && !streams.stderr) {
    throw new StreamError(400, "you must specify at least 1 of stdin, stdout, stderr");
  }
  return streams;
}

function parsePorts(query: URLSearchParams): readonly number[] {
  const texts = query.getAll("port");
  if (texts.length === 0) throw new StreamError(400, 'query parameter "port" is required');
  return texts.flatMap((text) => {
    if (text === "") throw new StreamError(400, 'query parameter "port" cannot be empty');
    return text.split(",").map((part) => {
      const problem = /^\d+$/.test(part)
        ? Number(part) > 65_535
          ? "value out of range"
          : undefined
        : "invalid syntax";
      if (problem !== undefined) {
        const [all, one] = [JSON.stringify(text), JSON.stringify(part)];
        throw new StreamError(400, `unable to parse ${all} as a port: strconv.ParseUint: parsing ${one}: ${problem}`);
      }
      if (Number(part) < 1) throw new StreamError(400, `port ${JSON.stringify(text)} must be > 0`);
      return Number(part);
    });
  });
}

/** How long a connection may last: kubelet's read and write timeouts. */
const CONNECTION_MS_MAX = 4 * 60 * 60 * 1000;
/** The runtime's streaming server has a certificate of its own, on this host. */
const unverified = new HttpsAgent({ rejectUnauthorized: false });

async function forwardToRuntime(
  { streamIdleMs }: ContainerStreamsOptions,
  request: HttpRequest,
  streamingUrl: string | undefined,
): Promise<HttpResponse> {
  if (!isUpgradeRequest(request)) return goErrorResponse(500, "Upgrade request required");
  const url = new URL(streamingUrl ?? "");
  const secure = url.protocol === "https:";
  const isSpdy = request.headers.upgrade?.toLowerCase() === "spdy/3.1";
  const to = {
    method: request.method,
    secure,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port) || (secure ? 443 : 80),
    path: `${url.pathname}${url.search}`,
    headers: { ...upgradeRequestHeaders(request), host: url.host },
    agent: secure ? unverified : undefined,
    signal: request.signal,
    idleMs: streamIdleMs,
    lifetimeMs: CONNECTION_MS_MAX,
  };
  return await forwardUpgrade(request, to, isSpdy ? new FrameFilter() : undefined);
}

/** The agent's HTTP endpoints. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Authenticator } from "../../auth/user.ts";
import { HttpError } from "../../http/http-error.ts";
import type { Handler, HttpRequest, HttpResponse } from "../../http/message.ts";
import { bytesResponse, errorResponse, jsonResponse, textResponse } from "../../http/respond.ts";
import { Router } from "../../http/router.ts";
import type { Clock } from "../../std/time/clock.ts";
import { allContainers } from "../pods/pod-fields.ts";
import type { PodManager } from "../pods/pod-manager.ts";
import type { PodWorker } from "../pods/worker/pod-worker.ts";
import type { ObservedContainer } from "../runtime/observation.ts";
import type { AgentAuthorization } from "./authorization.ts";
import { type LogOptions, readLog } from "./log-reader.ts";

export interface AgentHandlerOptions {
  readonly pods: PodManager;
  readonly clock: Clock;
  /** Undefined: no authentication, as on the read-only port. */
  readonly authenticate: Authenticator | undefined;
  /** Undefined: authenticated users may do everything. */
  readonly authorize?: AgentAuthorization | undefined;
  /** Empty when the agent is healthy. */
  readonly problems: () => readonly string[];
  readonly configz: unknown;
  /** Serve container logs. */
  readonly debugging: boolean;
}

type Route = (request: HttpRequest, params: Readonly<Record<string, string>>) => Promise<HttpResponse>;

export function createAgentHandler(options: AgentHandlerOptions): Handler {
  const router = new Router<Route>();
  router.add("GET", "/healthz", async () => createHealthResponse(options));
  router.add("GET", "/pods", async () => jsonResponse(200, toPodList(options.pods.pods)));
  router.add("GET", "/runningpods", async () => jsonResponse(200, toPodList(listRunningPods(options.pods))));
  router.add("GET", "/configz", async () => jsonResponse(200, { kubeletconfig: options.configz }));
  if (options.debugging) {
    router.add("GET", "/containerLogs/{namespace}/{pod}/{container}", (request, params) =>
      serveContainerLogs(options, request, params),
    );
  }
  return async (request) => {
    try {
      const path = request.path.length > 1 ? request.path.replace(/\/$/, "") : request.path;
      const match = router.match(request.method, path);
      if (match === undefined) return textResponse(404, "404 page not found\n");
      const denied = await checkAccess(options, request);
      if (denied !== undefined) return denied;
      if (!("value" in match)) return textResponse(405, "Method Not Allowed\n", { allow: match.allowed.join(", ") });
      return await match.value(request, match.params);
    } catch (error) {
      return errorResponse(error);
    }
  };
}

/** The handler of the health port: only `/healthz`, without authentication. */
export function createHealthHandler(problems: () => readonly string[]): Handler {
  return async (request) =>
    request.path === "/healthz" || request.path === "/healthz/"
      ? createHealthResponse({ problems })
      : textResponse(404, "404 page not found\n");
}

function createHealthResponse({ problems }: Pick<AgentHandlerOptions, "problems">): HttpResponse {
  const found = problems();
  return found.length === 0
    ? textResponse(200, "ok")
    : textResponse(500, `${found.map((each) => `[-]${each}`).join("\n")}\n`);
}

/** Authenticates and authorizes; undefined when the request is allowed. */
async function checkAccess(
  { authenticate, authorize }: AgentHandlerOptions,
  request: HttpRequest,
): Promise<HttpResponse | undefined> {
  if (authenticate === undefined) return undefined;
  try {
    const user = await authenticate({
      certificates: request.peer.certificates,
      authorization: request.headers.authorization,
      header: (name) => request.headers[name],
      path: request.path,
    });
    return user === undefined ? textResponse(401, "Unauthorized") : await authorize?.(user, request);
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 401) return textResponse(401, "Unauthorized");
    throw error;
  }
}

function toPodList(items: readonly Pod[]): unknown {
  return { kind: "PodList", apiVersion: "v1", metadata: {}, items };
}

/** Pods with running containers, as the runtime reports them. */
function listRunningPods(pods: PodManager): readonly Pod[] {
  return [...pods.workers].flatMap((worker) => {
    const running = worker.observation.containers.filter((each) => each.state === "running");
    if (running.length === 0) return [];
    const { name, namespace, uid } = worker.pod.metadata ?? {};
    const containers = running.map((each) => ({ name: each.name, image: each.image }));
    return [{ metadata: { name, namespace, uid }, spec: { containers } }];
  });
}

async function serveContainerLogs(
  options: AgentHandlerOptions,
  request: HttpRequest,
  params: Readonly<Record<string, string>>,
): Promise<HttpResponse> {
  const { namespace = "", pod = "", container = "" } = params;
  const query = new URLSearchParams(request.query);
  const worker = options.pods.find(namespace, pod);
  if (worker === undefined) throw new HttpError(404, "NotFound", `pod "${pod}" does not exist`);
  const previous = parseFlag(query, "previous");
  const found = findContainer(worker, container, previous);
  const source = {
    path: found.logPath,
    clock: options.clock,
    signal: request.signal,
    running: () => worker.observation.containers.some((each) => each.id === found.id && each.state === "running"),
  };
  return bytesResponse(200, "text/plain", readLog(source, parseLogOptions(query, options.clock)));
}

function findContainer(worker: PodWorker, name: string, previous: boolean): ObservedContainer {
  if (!allContainers(worker.pod).some(({ spec }) => spec.name === name)) {
    throw new HttpError(404, "NotFound", `container "${name}" not found in pod "${worker.pod.metadata?.name}"`);
  }
  const runs = worker.observation.containers.filter((each) => each.name === name && each.state !== "created");
  const found = previous ? (worker.findPreviousRun(name) ?? runs[1]) : runs[0];
  if (found !== undefined) return found;
  const reason = worker.getWaitingReason(name);
  throw new HttpError(
    400,
    "BadRequest",
    previous
      ? `previous terminated container "${name}" in pod "${worker.pod.metadata?.name}" not found`
      : `container "${name}" in pod "${worker.pod.metadata?.name}" is waiting to start: ${pullMessages[reason] ?? reason}`,
  );
}

/** kubelet's messages for these reasons. */
const pullMessages: Readonly<Record<string, string>> = {
  ErrImagePull: "image can't be pulled",
  ImagePullBackOff: "trying and failing to pull image",
};

function parseLogOptions(query: URLSearchParams, clock: Clock): LogOptions {
  const sinceSeconds = parseCount(query, "sinceSeconds");
  const sinceTime = query.get("sinceTime");
  const at = sinceTime === null || sinceTime === "" ? undefined : Date.parse(sinceTime);
  if (at !== undefined && Number.isNaN(at)) {
    throw new HttpError(400, "BadRequest", `sinceTime "${sinceTime}" is not an RFC 3339 time`);
  }
  const tail =
    query.get("tailLines") === "-1" ? undefined : (parseCount(query, "tailLines") ?? parseCount(query, "tail"));
  return {
    follow: parseFlag(query, "follow"),
    timestamps: parseFlag(query, "timestamps"),
    tailLines: tail,
    since: sinceSeconds === undefined ? at : clock.now() - sinceSeconds * 1000,
    limitBytes: parseCount(query, "limitBytes"),
  };
}

function parseFlag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value === "" || value === "true" || value === "1";
}

function parseCount(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null || value === "") return undefined;
  if (!/^\d{1,15}$/.test(value)) throw new HttpError(400, "BadRequest", `${name} "${value}" is not a whole number`);
  return Number(value);
}

/** `/containerLogs/{namespace}/{pod}/{container}`, with Kubernetes' options and errors. */
import { decodeLogQuery, type LogQuery, OptionError, validateLogQuery } from "../../api/core/pod/log-options.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { LogChanges } from "../logs/log-changes.ts";
import { type LogOptions, type LogSource, readLog } from "../logs/log-reader.ts";
import type { RemovedLogs } from "../logs/removed-logs.ts";
import { allContainers } from "../pods/pod-fields.ts";
import type { PodManager } from "../pods/pod-manager.ts";
import type { PodWorker } from "../pods/worker/pod-worker.ts";
import type { ObservedContainer } from "../runtime/observation.ts";

export interface ContainerLogsOptions {
  readonly pods: PodManager;
  readonly clock: Clock;
  readonly logChanges: LogChanges;
  readonly removedLogs: RemovedLogs;
  /** The gate PodLogsQuerySplitStreams. */
  readonly splitLogs: boolean;
}

/** An error that the client gets as plain text. */
class LogError extends Error {
  override readonly name = "LogError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function serveContainerLogs(
  { pods, clock, logChanges: changes, removedLogs: removed, splitLogs }: ContainerLogsOptions,
  request: HttpRequest,
  params: Readonly<Record<string, string>>,
): Promise<HttpResponse> {
  const { namespace = "", pod = "", container = "" } = params;
  try {
    const query = parseQuery(request.query, splitLogs);
    const options = toLogOptions(query, clock);
    const worker = pods.find(namespace, pod);
    if (worker === undefined) throw new LogError(404, `pod ${JSON.stringify(pod)} does not exist`);
    const found = findContainer(worker, container, query.previous);
    const source = {
      path: found.logPath,
      clock,
      changes,
      removed,
      signal: request.signal,
      running: () => worker.observation.containers.some((each) => each.id === found.id && each.state === "running"),
    };
    // As kubelet's, without a media type.
    return { status: 200, headers: {}, body: readExistingLog(source, options, `${pods.runtimeName}://${found.id}`) };
  } catch (error) {
    if (error instanceof LogError) return textResponse(error.status, error.message);
    throw error;
  }
}

/** How long a request may take: kubelet's write timeout. */
const REQUEST_MS = 4 * 60 * 60 * 1_000;

/** The log, for at most `REQUEST_MS`; Kubernetes' sentence when the runtime has removed it. */
async function* readExistingLog(
  source: LogSource,
  options: LogOptions,
  containerId: string,
): AsyncGenerator<Uint8Array> {
  // Not `AbortSignal.any`: a follower adds and removes a listener with each line, which is slow there.
  const ended = new AbortController();
  const end = (): void => ended.abort(source.signal.reason);
  source.signal.addEventListener("abort", end, { once: true });
  if (source.signal.aborted) end();
  const timer = source.clock.timer(REQUEST_MS, () => ended.abort(new Error("the request took too long")));
  try {
    yield* readLog({ ...source, signal: ended.signal }, options);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    yield Buffer.from(`unable to retrieve container logs for ${containerId}`);
  } finally {
    timer.cancel();
    source.signal.removeEventListener("abort", end);
  }
}

function findContainer(worker: PodWorker, name: string, previous: boolean): ObservedContainer {
  const pod = JSON.stringify(worker.pod.metadata?.name);
  const container = JSON.stringify(name);
  if (!allContainers(worker.pod).some(({ spec }) => spec.name === name)) {
    throw new LogError(404, `container ${container} not found in pod ${pod}`);
  }
  const runs = worker.observation.containers.filter((each) => each.name === name && each.state !== "created");
  const found = previous ? (worker.findPreviousRun(name) ?? runs[1]) : runs[0];
  if (found !== undefined) return found;
  if (previous) throw new LogError(400, `previous terminated container ${container} in pod ${pod} not found`);
  const reason = worker.getWaitingReason(name);
  throw new LogError(
    400,
    `container ${container} in pod ${pod} is waiting to start: ${pullMessages[reason] ?? reason}`,
  );
}

/** kubelet's messages for these reasons. */
const pullMessages: Readonly<Record<string, string>> = {
  ErrImagePull: "image can't be pulled",
  ImagePullBackOff: "trying and failing to pull image",
};

const STREAMS: Readonly<Record<string, LogOptions["stream"]>> = { All: undefined, Stdout: "stdout", Stderr: "stderr" };

/** Throws Kubernetes' 400 for values that cannot be decoded, and its 422 for those that are out of range. */
function parseQuery(text: string, splitLogs: boolean): LogQuery {
  const query = decodeQuery(renameTail(new URLSearchParams(text)));
  if (validateLogQuery(query).length > 0) throw new LogError(422, '{"message": "Invalid request."}');
  const { stream = "All" } = query;
  if (stream !== "All" && !splitLogs) {
    throw new LogError(
      400,
      `unable to return the given log stream: ${JSON.stringify(stream)}. ` +
        "Please enable PodLogsQuerySplitStreams feature gate in kubelet",
    );
  }
  return query;
}

function decodeQuery(query: URLSearchParams): LogQuery {
  try {
    return decodeLogQuery(query);
  } catch (error) {
    if (error instanceof OptionError) throw new LogError(400, '{"message": "Unable to decode query."}');
    throw error;
  }
}

/** `tail` is an older name that wins over `tailLines`; `tail=all` sets no limit. */
function renameTail(query: URLSearchParams): URLSearchParams {
  const tail = query.get("tail") ?? "";
  if (tail === "all") query.delete("tailLines");
  else if (tail !== "") query.set("tailLines", tail);
  return query;
}

function toLogOptions(query: LogQuery, clock: Clock): LogOptions {
  const { follow, timestamps, stream = "All", tailLines, limitBytes, sinceSeconds, sinceTime } = query;
  const sinceMs = sinceTime === undefined ? undefined : sinceTime.seconds * 1000 + sinceTime.nanos / 1e6;
  return {
    follow,
    timestamps,
    stream: STREAMS[stream],
    tailLines: toNumber(tailLines),
    since: sinceSeconds === undefined ? sinceMs : clock.now() - toMilliseconds(sinceSeconds),
    limitBytes: toNumber(limitBytes),
  };
}

/** As Go's `time.Duration`, whose 64 bits of nanoseconds wrap. */
function toMilliseconds(seconds: bigint): number {
  return Number(BigInt.asIntN(64, seconds * 1_000_000_000n)) / 1e6;
}

function toNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

/** `/logs/?query=kubelet`: the journal of systemd services, or their log files, with Kubernetes' parameters. */
import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { bytesResponse } from "../../../http/respond.ts";
import { goErrorResponse } from "../go-responses.ts";
import { serveNodeLogs } from "./node-logs.ts";

export interface NodeLogQuery {
  /** Names of systemd units. */
  readonly services: readonly string[];
  /** Paths below the log directory. */
  readonly files: readonly string[];
  readonly sinceTime: string | undefined;
  readonly untilTime: string | undefined;
  readonly tailLines: string | undefined;
  /** A regular expression that lines match. */
  readonly pattern: string | undefined;
  /** 0: since the last start of the machine, -1: the start before, and so on. */
  readonly boot: string | undefined;
}

/** Names of units have at most 256 bytes. */
const UNITS_BYTES_MAX = 4 * 2 ** 20;

export interface NodeLogQueryOptions {
  readonly root: string;
  /** Streams the output of a program; see `runProgram`. */
  readonly run: (program: string, args: readonly string[], signal: AbortSignal) => AsyncIterable<Uint8Array>;
}

const SERVICES_MAX = 4;
const TAIL_LINES_MAX = 100_000;
const PATTERN_LENGTH_MAX = 1_000;
/** The characters of systemd's unit names; none begins an option. */
const SERVICE_NAME = /^[A-Za-z0-9@_.:][-A-Za-z0-9@_.:]{0,255}$/;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** Undefined: the request is for a file or directory. */
export function parseNodeLogQuery(query: string): NodeLogQuery | { readonly problem: string } | undefined {
  const parameters = new URLSearchParams(query);
  const text = (name: string): string | undefined => parameters.get(name) || undefined;
  const queries = parameters.getAll("query");
  const services = queries.filter((each) => each.trim() !== "" && !/[/\\]/.test(each));
  const files = queries.filter((each) => /[/\\]/.test(each));
  const [sinceTime, untilTime] = [text("sinceTime"), text("untilTime")];
  const [tailLines, boot, pattern] = [text("tailLines"), text("boot"), text("pattern")];
  const problems: readonly (false | string)[] = [
    queries.length > 0 && services.length + files.length === 0 && "query: Invalid value: must not be empty",
    services.length > 0 && files.length > 0 && "query: Invalid value: must not have a file and a service",
    files.length > 1 && "query: Invalid value: must not have more than one file",
    services.length > SERVICES_MAX && `query: Invalid value: must not have more than ${SERVICES_MAX} services`,
    services.some((name) => !SERVICE_NAME.test(name)) && "query: Invalid value: must be the name of a service",
    sinceTime !== undefined && !RFC_3339.test(sinceTime) && "sinceTime: Invalid value: must be a time of RFC 3339",
    untilTime !== undefined && !RFC_3339.test(untilTime) && "untilTime: Invalid value: must be a time of RFC 3339",
    Date.parse(untilTime ?? "") < Date.parse(sinceTime ?? "") && "untilTime: Invalid value: must be after sinceTime",
    tailLines !== undefined &&
      !(/^\d{1,6}$/.test(tailLines) && Number(tailLines) <= TAIL_LINES_MAX) &&
      `tailLines: Invalid value: must be from 0 to ${TAIL_LINES_MAX}`,
    boot !== undefined && !/^(?:0|-\d{1,4})$/.test(boot) && "boot: Invalid value: must be 0 or negative",
    (pattern?.length ?? 0) > PATTERN_LENGTH_MAX &&
      `pattern: Invalid value: must have at most ${PATTERN_LENGTH_MAX} characters`,
  ];
  const found = problems.filter((each) => each !== false);
  if (found.length > 0) return { problem: found.join("; ") };
  if (services.length === 0 && files.length === 0) return undefined;
  return { services, files, sinceTime, untilTime, tailLines, pattern, boot };
}

export async function serveNodeLogQuery(options: NodeLogQueryOptions, request: HttpRequest): Promise<HttpResponse> {
  const query = parseNodeLogQuery(request.query);
  if (query === undefined) return await serveNodeLogs(options.root, request);
  if ("problem" in query) return goErrorResponse(400, query.problem);
  if (request.path !== "/logs/") return goErrorResponse(406, "path not allowed in query mode");
  const [file] = query.files;
  if (file !== undefined) {
    const path = `/logs/${encodeURIComponent(file.replaceAll("\\", "/").replace(/^\/+/, ""))}`;
    return await serveNodeLogs(options.root, { ...request, path });
  }
  return bytesResponse(200, "text/plain;charset=UTF-8", readServices(options, query, request.signal));
}

async function* readServices(
  { root, run }: NodeLogQueryOptions,
  query: NodeLogQuery,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const units = await listJournalUnits(run, signal);
  for (const service of query.services) {
    if (!units.has(`${service}.service`)) {
      yield* readLogFile(root, service);
      continue;
    }
    try {
      yield* run("journalctl", toJournalArguments(service, query), signal);
    } catch {
      // Its status is 1 when no line matches.
      signal.throwIfAborted();
    }
  }
}

/** Units with a line in the journal; none on a machine without systemd, which has log files only. */
async function listJournalUnits(run: NodeLogQueryOptions["run"], signal: AbortSignal): Promise<ReadonlySet<string>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of run("journalctl", ["--field", "_SYSTEMD_UNIT"], signal)) {
      bytes += chunk.length;
      if (bytes > UNITS_BYTES_MAX) break;
      chunks.push(chunk);
    }
  } catch {
    signal.throwIfAborted();
    return new Set();
  }
  return new Set(Buffer.concat(chunks).toString().split("\n"));
}

function toJournalArguments(service: string, query: NodeLogQuery): readonly string[] {
  const { sinceTime, untilTime, tailLines, pattern, boot } = query;
  // journalctl reads times without a zone; the option `--utc` is about what it prints.
  const toTime = (text: string): string => `@${Math.floor(Date.parse(text) / 1000)}`;
  return [
    "--utc",
    "--no-pager",
    "--output=short-precise",
    ...(sinceTime === undefined ? [] : [`--since=${toTime(sinceTime)}`]),
    ...(untilTime === undefined ? [] : [`--until=${toTime(untilTime)}`]),
    ...(tailLines === undefined ? [] : [`--lines=${tailLines}`]),
    ...(pattern === undefined ? [] : [`--grep=${pattern}`]),
    ...(boot === undefined ? [] : [`--boot=${boot}`]),
    `--unit=${service}`,
  ];
}

/** The first of the files where a service's log usually is; a sentence when there is none. */
async function* readLogFile(root: string, service: string): AsyncGenerator<Uint8Array> {
  for (const name of [`${service}.log`, `${service}/${service}.log`, service]) {
    const path = join(root, name);
    const isFile = await open(path).then(
      async (handle) => {
        await using file = handle;
        return (await file.stat()).isFile();
      },
      () => false,
    );
    if (!isFile) continue;
    yield* createReadStream(path);
    return;
  }
  yield Buffer.from(`log not found for ${service}\n`);
}

/** Rejects when the program does not exist, or fails. */
export async function* runProgram(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"], signal });
  const exited = new Promise<number | null>((resolve, reject) => child.on("close", resolve).on("error", reject));
  exited.catch(() => undefined);
  try {
    yield* child.stdout;
    const code = await exited;
    if (code !== 0) throw new Error(`${program} ended with status ${code}`);
  } finally {
    child.kill("SIGKILL");
  }
}

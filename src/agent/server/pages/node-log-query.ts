/** `/logs/?query=kubelet`: the journal of systemd services, or their log files, with Kubernetes' parameters. */
import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { bytesResponse, compressResponses } from "../../../http/respond.ts";
import {
  type BadValue,
  type FieldError,
  invalidField,
  renderFieldError,
  requiredField,
  tooMany,
  unquoted,
  unquotedTime,
} from "../../../schema/validation/field-error.ts";
import { compilePattern, PatternError } from "../../../schema/validation/pattern.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { goErrorResponse } from "../go-responses.ts";
import { serveNodeLogs } from "./node-logs.ts";

/** What selects lines of the journal; log files are served whole. */
interface LineOptions {
  /** RFC 3339. */
  readonly sinceTime: string | undefined;
  readonly untilTime: string | undefined;
  readonly tailLines: number | undefined;
  /** A regular expression that lines match. */
  readonly pattern: string | undefined;
  /** 0: since the last start of the machine, -1: the start before, and so on. */
  readonly boot: number | undefined;
}

export interface NodeLogQuery extends LineOptions {
  /** Names of systemd units. */
  readonly services: readonly string[];
  /** Paths below the log directory. */
  readonly files: readonly string[];
}

/** Names of units have at most 256 bytes. */
const UNITS_BYTES_MAX = 4 * 2 ** 20;

export interface NodeLogQueryOptions {
  readonly root: string;
  /** Streams the output of a program; see `runProgram`. */
  readonly run: (program: string, args: readonly string[], signal: AbortSignal) => AsyncIterable<Uint8Array>;
}

const SERVICES_MAX = 4;
const SERVICE_LENGTH_MAX = 256;
const TAIL_LINES_MAX = 100_000;
/** How long the journal of one request is read, as in kubelet. */
const READ_MS_MAX = 30_000;
const SERVICE_NAME = /^[a-zA-Z0-9_@-]*$/;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** Undefined: the request has no parameter of a query. */
export function parseNodeLogQuery(
  text: string,
): { readonly query: NodeLogQuery | undefined } | { readonly errors: readonly FieldError[] } {
  const parameters = new URLSearchParams(text);
  const errors: FieldError[] = [];
  const queries = parameters.getAll("query");
  const files = queries.filter((each) => /[/\\]/.test(each));
  const services = queries.filter((each) => each.trim() !== "" && !files.includes(each));
  if (queries.length > 0 && services.length + files.length === 0) {
    errors.push(invalidField("query", queries, "query cannot be empty"));
  }
  const parseTime = (name: string): string | undefined => {
    const time = parameters.get(name) || undefined;
    if (time === undefined || (RFC_3339.test(time) && !Number.isNaN(Date.parse(time)))) return time;
    errors.push(invalidField(name, time, "invalid time format"));
    return undefined;
  };
  const parseInteger = (name: string): number | undefined => {
    const value = parameters.get(name) || undefined;
    if (value === undefined) return undefined;
    const problem = /^[-+]?\d+$/.test(value) ? "value out of range" : "invalid syntax";
    if (problem === "value out of range" && Math.abs(Number(value)) < 2 ** 63) return Number(value);
    errors.push(invalidField(name, value, `strconv.Atoi: parsing ${goQuote(value)}: ${problem}`));
    return undefined;
  };
  const [sinceTime, untilTime] = [parseTime("sinceTime"), parseTime("untilTime")];
  const [boot, tailLines] = [parseInteger("boot"), parseInteger("tailLines")];
  const options = { sinceTime, untilTime, tailLines, pattern: parameters.get("pattern") || undefined, boot };
  if (errors.length > 0) return { errors };
  const isEmpty = services.length + files.length === 0 && !hasOptions(options);
  return { query: isEmpty ? undefined : { services, files, ...options } };
}

function hasOptions({ sinceTime, untilTime, tailLines, pattern, boot }: LineOptions): boolean {
  return [sinceTime, untilTime, tailLines, pattern, boot].some((each) => each !== undefined);
}

/** Kubernetes' errors of a query that could be parsed, but for that of a file that does not exist. */
export function validateNodeLogQuery(query: NodeLogQuery): readonly FieldError[] {
  const { services, files, sinceTime, untilTime, tailLines, pattern, boot } = query;
  const errors: FieldError[] = [];
  for (const name of services) {
    if (Buffer.byteLength(name) > SERVICE_LENGTH_MAX) {
      // Kubernetes' text; the limit is another.
      errors.push(invalidField("query", name, "length must be less than 100"));
    } else if (!SERVICE_NAME.test(name)) {
      errors.push(invalidField("query", name, "input contains unsupported characters"));
    }
  }
  if (services.length > SERVICES_MAX) errors.push(tooMany("query", services.length, SERVICES_MAX));
  if (files.length + services.length === 0) errors.push(requiredField("query", "cannot be empty with options"));
  else if (files.length > 0 && services.length > 0) {
    const both = `[${files.join(" ")}], [${services.join(" ")}]`;
    errors.push(invalidField("query", both, "cannot specify a file and service"));
  } else if (files.length > 1) errors.push(invalidField("query", files, "cannot specify more than one file"));
  else if (files.length === 1 && hasOptions(query)) {
    errors.push(invalidField("query", files, "cannot specify file with options"));
  }
  if (sinceTime !== undefined && untilTime !== undefined && Date.parse(sinceTime) > Date.parse(untilTime)) {
    errors.push(invalidField("untilTime", formatTime(untilTime), "must be after `sinceTime`"));
  }
  if (boot !== undefined && boot > 0) errors.push(invalidField("boot", boot, "must be less than 1"));
  if (tailLines !== undefined && (tailLines < 0 || tailLines > TAIL_LINES_MAX)) {
    errors.push(invalidField("tailLines", tailLines, `must be between 0 and ${TAIL_LINES_MAX}, inclusive`));
  }
  const problem = pattern === undefined ? undefined : findPatternProblem(pattern);
  if (problem !== undefined) errors.push(invalidField("pattern", pattern, problem));
  return errors;
}

/** As Go formats it, for a time in UTC. */
function formatTime(time: string): BadValue {
  return time.endsWith("Z") ? unquotedTime(time) : unquoted(time);
}

function findPatternProblem(pattern: string): string | undefined {
  try {
    compilePattern(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof PatternError) return error.message;
    throw error;
  }
}

export async function serveNodeLogQuery(options: NodeLogQueryOptions, request: HttpRequest): Promise<HttpResponse> {
  const parsed = parseNodeLogQuery(request.query);
  if ("errors" in parsed) return errorsResponse(400, parsed.errors);
  const { query } = parsed;
  if (query === undefined) return await serveNodeLogs(options.root, request);
  if (request.path !== "/logs/") return goErrorResponse(406, "path not allowed in query mode");
  const [file] = query.files;
  const path = (file ?? "").replaceAll("\\", "/").replace(/^\/+/, "");
  const errors = [...validateNodeLogQuery(query)];
  if (errors.length === 0 && file !== undefined) errors.push(...(await findFileErrors(options.root, file, path)));
  if (errors.length > 0) return errorsResponse(406, errors);
  if (file !== undefined) {
    return await serveNodeLogs(options.root, { ...request, path: `/logs/${encodeURIComponent(path)}` });
  }
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(READ_MS_MAX)]);
  const body = readServices(options, query, signal);
  const response = { ...bytesResponse(200, "text/plain;charset=UTF-8", body), finite: true } as const;
  return await compressResponses()(async () => response)(request);
}

function errorsResponse(status: number, errors: readonly FieldError[]): HttpResponse {
  const messages = [...new Set(errors.map((error) => `${error.field}: ${renderFieldError(error)}`))];
  return goErrorResponse(status, messages.length === 1 ? (messages[0] ?? "") : `[${messages.join(", ")}]`);
}

async function findFileErrors(root: string, file: string, path: string): Promise<readonly FieldError[]> {
  // Paths do not leave the directory: `..` in its root is the root.
  const full = join(root, join("/", path));
  try {
    await stat(full);
    return [];
  } catch {
    return [invalidField("query", [file], `stat ${full}: no such file or directory`)];
  }
}

/** The lines of the services of the journal, in their common order; then the log files of the others. */
async function* readServices(
  { root, run }: NodeLogQueryOptions,
  query: NodeLogQuery,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const units = await listJournalUnits(run, signal);
  const inJournal = query.services.filter((service) => units.has(`${service}.service`));
  const others = query.services.filter((service) => !inJournal.includes(service));
  if (inJournal.length > 0) {
    try {
      yield* run("journalctl", toJournalArguments(inJournal, query), signal);
    } catch {
      // Its status is 1 when no line matches; its errors are in the output.
      signal.throwIfAborted();
    }
  }
  if (others.length > 0 && hasOptions(query)) {
    const names = `[${others.join(" ")}]`;
    yield Buffer.from(
      `\noptions present and query resolved to log files for ${names}\ntry without specifying options\n`,
    );
    return;
  }
  for (const service of others) yield* readLogFile(root, service);
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

function toJournalArguments(services: readonly string[], query: NodeLogQuery): readonly string[] {
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
    ...services.map((service) => `--unit=${service}`),
    ...(pattern === undefined ? [] : [`--grep=${pattern}`]),
    ...(boot === undefined ? [] : [`--boot=${boot}`]),
  ];
}

/** The first of the files where a service's log usually is; a sentence when there is none. */
async function* readLogFile(root: string, service: string): AsyncGenerator<Uint8Array> {
  for (const name of [service, `${service}.log`, `${service}/${service}.log`]) {
    const path = join(root, name);
    const isFile = await stat(path).then(
      (stats) => stats.isFile(),
      () => false,
    );
    if (!isFile) continue;
    yield* createReadStream(path);
    return;
  }
  yield Buffer.from(`\nlog not found for ${service}\n`);
}

/** Streams both outputs. Rejects when the program does not exist, or fails. */
export async function* runProgram(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  // The shell joins the outputs to one pipe; the program replaces it.
  const child = spawn("/bin/sh", ["-c", 'exec "$0" "$@" 2>&1', program, ...args], {
    stdio: ["ignore", "pipe", "ignore"],
    signal,
  });
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

/** Compares a played connection with its recording. */
import { isDeepStrictEqual } from "node:util";
import type { Received, Response } from "./connection.ts";
import { type Entry, type Payload, payloadBytes, type RecordedCase, readCases } from "./recording.ts";

/** After these words the text is the runtime's. */
const RUNTIME_TEXT = /rpc error:|OCI runtime|failed to exec in container|error forwarding port|missing upgrade headers/;
/** Placeholders of recorded texts. */
const PLACEHOLDER = /<[a-z.-]+>/g;

/** The values of placeholders in this cluster. */
export type Replace = (text: string) => string;

/** What must have arrived after some server entries, before the client goes on. */
export class Expectation {
  readonly #entries: Entry[] = [];

  add(entry: Entry): void {
    this.#entries.push(entry);
  }

  isMet(received: Received): boolean {
    const wanted = new Map<string, number>();
    let closes = 0;
    for (const entry of this.#entries) {
      const { op, frame, ch, stream = "" } = entry;
      if (frame === "syn_reply" && !received.replies.has(stream)) return false;
      if (frame === "rst_stream" && !received.resets.has(stream)) return false;
      if (frame === "data" && entry.fin === true && !received.fins.has(stream)) return false;
      if (frame === "ping" && !received.pings.includes(entry.id ?? 0)) return false;
      if (frame === "goaway" && received.goaway === undefined) return false;
      if (op === "close") closes++;
      if (op === "pong" && !received.pongs.includes(entry.text ?? "")) return false;
      const name = frame === "data" ? stream : String(ch);
      if (entry.port !== undefined && !received.ports.has(name)) return false;
      const isData = frame === "data" || op === "binary" || op === "text";
      if (isData && entry.port === undefined && ch === undefined && frame === undefined) continue;
      if (isData && entry.port === undefined) wanted.set(name, (wanted.get(name) ?? 0) + minimumLength(entry));
    }
    if (received.closes.length < closes) return false;
    return [...wanted].every(([name, length]) => (received.data.get(name)?.length ?? -1) >= length);
  }
}

function minimumLength(entry: Entry): number {
  const text = entry.text ?? (entry.status === undefined ? "" : JSON.stringify(entry.status));
  const runtime = text.search(RUNTIME_TEXT);
  if (runtime >= 0) return runtime;
  return entry.status === undefined ? payloadBytes(entry).length : 1;
}

/** The difference of a response from the recorded one; undefined without one. */
export function compareResponse(one: RecordedCase, response: Response, replace: Replace): string | undefined {
  const wanted = one.response;
  if (wanted === undefined) return response.status === 0 ? undefined : `answered ${response.status}`;
  const text = response.body.toString("utf8");
  if (wanted.status !== response.status) return `status ${response.status} instead of ${wanted.status}: ${text}`;
  for (const [name, value] of wanted.headers ?? []) {
    if (name === "sec-websocket-accept" || name === "connection" || name === "transfer-encoding") continue;
    if (name === "upgrade" || value.includes("<") || name === "cache-control" || name === "etag") continue;
    if (name === "process-start-time-unix") continue;
    const actual = response.headers.filter(([each]) => each === name).map(([, each]) => each);
    if (!actual.includes(value))
      return `header ${name} is ${JSON.stringify(actual)} instead of ${JSON.stringify(value)}`;
  }
  const hasCacheControl = ({ headers }: Pick<Response, "headers">): boolean =>
    headers.some(([name]) => name === "cache-control");
  if (hasCacheControl({ headers: wanted.headers ?? [] }) !== hasCacheControl(response)) return "header cache-control";
  if (wanted.status === 101) return undefined;
  if (wanted.json !== undefined) {
    const expected = JSON.parse(replace(JSON.stringify(wanted.json))) as unknown;
    return sameStatus(expected as object, JSON.parse(text) as object)
      ? undefined
      : `body ${text} instead of ${JSON.stringify(expected)}`;
  }
  if (wanted.text !== undefined && !matches(replace(wanted.text), text))
    return `body ${text} instead of ${wanted.text}`;
  return wanted.bytes !== undefined && wanted.bytes !== "<n>" && wanted.bytes !== response.body.length
    ? `${response.body.length} bytes`
    : undefined;
}

/** The difference of what was received from the recording; undefined without one. */
export function compareReceived(one: RecordedCase, received: Received, replace: Replace): string | undefined {
  // What arrives while the client closes depends on time.
  const closing = isClosedByClient(one);
  const names = new Set([...Object.keys(one.received ?? {}), ...received.data.keys()]);
  for (const name of names) {
    const actual = received.data.get(name) ?? Buffer.alloc(0);
    const wanted = one.received?.[name];
    const bytes = payloadBytes(wanted ?? {});
    if (closing && wanted !== undefined && actual.subarray(0, bytes.length).equals(bytes)) continue;
    if (closing && wanted === undefined && isStartOf(actual, findWhole(one)?.received?.[name])) continue;
    const problem = comparePayload(wanted ?? { text: "" }, actual, replace);
    if (problem !== undefined) return `channel ${name}: ${problem}`;
  }
  const entries = (one.transcript ?? []).filter(({ from }) => from === "server");
  if (one.proto === "spdy" || one.proto === "tunnel") {
    const fins = entries.filter(({ frame, fin }) => frame === "data" && fin === true).map(({ stream }) => stream);
    const resets = entries.filter(({ frame }) => frame === "rst_stream").map(({ stream, code }) => `${stream} ${code}`);
    const seenResets = [...received.resets].map(([stream, code]) => `${stream} ${code}`);
    if (!sameSet(fins, [...received.fins])) return `fin of ${[...received.fins]} instead of ${fins}`;
    if (!sameSet(resets, seenResets)) return `rst_stream of ${seenResets} instead of ${resets}`;
  }
  const closes = entries.filter(({ op }) => op === "close").map(({ code }) => code);
  return isDeepStrictEqual(closes, received.closes) ? undefined : `close ${received.closes} instead of ${closes}`;
}

function isClosedByClient({ transcript = [] }: RecordedCase): boolean {
  return transcript.some(
    ({ from, op, frame }) => from === "client" && (op === "close" || op === "tcp close" || frame === "goaway"),
  );
}

/** The case with the same request whose client does not close: a client that closes receives a part of its data. */
function findWhole({ area, to, proto, request }: RecordedCase): RecordedCase | undefined {
  return readCases(area).find(
    (each) => each.to === to && each.proto === proto && each.request.path === request.path && !isClosedByClient(each),
  );
}

function isStartOf(actual: Buffer, whole: Payload | undefined): boolean {
  return whole !== undefined && payloadBytes(whole).subarray(0, actual.length).equals(actual);
}

function comparePayload(wanted: Payload, actual: Buffer, replace: Replace): string | undefined {
  if (wanted.text === undefined) {
    return payloadBytes(wanted).equals(actual) ? undefined : `${actual.length} bytes that differ`;
  }
  const [expected, text] = [replace(wanted.text), actual.toString("utf8")];
  if (matches(expected, text)) return undefined;
  try {
    const [left, right] = [JSON.parse(expected), JSON.parse(text)] as [object, object];
    if (isDeepStrictEqual(left, right) || sameStatus(left, right)) return undefined;
  } catch {
    // Not JSON.
  }
  return `${JSON.stringify(text)} instead of ${JSON.stringify(expected)}`;
}

/** Statuses whose texts end with the runtime's. */
function sameStatus(left: object, right: object): boolean {
  const [a, b] = [Object.entries(flatten(left)), flatten(right)];
  return a.length === Object.keys(b).length && a.every(([key, value]) => matches(value, b[key] ?? ""));
}

function flatten(value: unknown, path = ""): Record<string, string> {
  if (typeof value !== "object" || value === null) return { [path]: String(value) };
  return Object.assign({}, ...Object.entries(value).map(([key, each]) => flatten(each, `${path}.${key}`))) as Record<
    string,
    string
  >;
}

function matches(expected: string, actual: string): boolean {
  if (expected === actual) return true;
  const at = expected.search(RUNTIME_TEXT);
  const prefix = at < 0 ? expected : expected.slice(0, at);
  const pattern = prefix.split(PLACEHOLDER).map(escapeRegExp).join(".+?");
  return new RegExp(`^${pattern}${at < 0 ? "$" : ""}`, "s").test(actual);
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function sameSet(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((each) => b.includes(each));
}

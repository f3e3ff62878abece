/**
 * Replays requests to a server in memory and compares the responses with those recorded of a Kubernetes 1.33 server
 * (`shared/oracles/recorded-validation`).
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { deepEqual } from "../../schema/value/equal.ts";
import { isEstablished, waitForResponse } from "../../testing/apiserver/extensions-fixture.ts";
import { startTestServer, type TestResponse, type TestServer } from "../../testing/apiserver/server-fixture.ts";

interface Cause {
  readonly reason: string;
  readonly field: string;
  readonly message?: string;
}

interface Change {
  readonly path: string;
  readonly from?: unknown;
  readonly to?: unknown;
}

interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly contentType?: string;
  readonly body?: unknown;
}

export interface RecordedCase extends RecordedRequest {
  readonly id: string;
  readonly kind: string;
  readonly setup?: string;
  readonly expect: {
    readonly code: number;
    readonly reason?: string;
    readonly message?: string;
    readonly causes?: readonly Cause[];
    readonly warnings?: readonly string[];
    readonly object?: Readonly<Record<string, unknown>>;
    readonly diff?: readonly Change[];
  };
}

interface Setup {
  readonly alone?: boolean;
  readonly requests: readonly RecordedRequest[];
  /** Path of the object that the cases change. */
  readonly target: string;
}

/** The differences between a response and the recorded one. */
export interface Outcome {
  readonly case: RecordedCase;
  readonly differences: readonly string[];
  /** How the message of an error, and all its causes in their order, differ. */
  readonly textDifference?: string | undefined;
}

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../shared", import.meta.url));
const folder = `${shared}/oracles/recorded-validation/`;
const FILES = ["defaulting.jsonl", "create-1.jsonl", "create-2.jsonl", "update-1.jsonl", "update-2.jsonl"];

/** Undefined when the recordings are not present. */
export function recordedCases(): readonly RecordedCase[] | undefined {
  if (!existsSync(folder)) return undefined;
  const lines = FILES.flatMap((file) => readFileSync(`${folder}${file}`, "utf8").split("\n"));
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as RecordedCase);
}

/** Setups that affect other cases (`alone`) get their own server. */
export async function replay(cases: readonly RecordedCase[]): Promise<readonly Outcome[]> {
  const setups = JSON.parse(readFileSync(`${folder}setups.json`, "utf8")) as Readonly<Record<string, Setup>>;
  const together: RecordedCase[] = [];
  const alone = new Map<string, RecordedCase[]>();
  for (const recorded of cases) {
    if (recorded.setup === undefined || setups[recorded.setup]?.alone !== true) together.push(recorded);
    else alone.set(recorded.setup, [...(alone.get(recorded.setup) ?? []), recorded]);
  }
  const outcomes: Outcome[] = [];
  for (const group of [together, ...alone.values()]) {
    await using server = await startTestServer({ authorizationModes: ["Node", "RBAC"] });
    const player = new Player(server, setups);
    for (const recorded of group) outcomes.push(await player.play(recorded));
  }
  return outcomes;
}

type Json = Readonly<Record<string, unknown>>;

class Player {
  readonly #server: TestServer;
  readonly #setups: Readonly<Record<string, Setup>>;
  /** The object of each setup as it was created, or the error message of its creation. */
  readonly #targets = new Map<string, Json | string>();

  constructor(server: TestServer, setups: Readonly<Record<string, Setup>>) {
    this.#server = server;
    this.#setups = setups;
  }

  async play(recorded: RecordedCase): Promise<Outcome> {
    const before = recorded.setup === undefined ? undefined : await this.#target(recorded.setup);
    if (typeof before === "string") return { case: recorded, differences: [before] };
    const response = await this.#send(recorded, before);
    const textDifference = describeTextDifference(recorded, response);
    return { case: recorded, differences: differences(recorded, response, before), textDifference };
  }

  async #target(name: string): Promise<Json | string> {
    let target = this.#targets.get(name);
    if (target === undefined) {
      target = await this.#setUp(this.#setups[name]!);
      this.#targets.set(name, target);
    }
    return target;
  }

  async #setUp({ requests, target }: Setup): Promise<Json | string> {
    for (const request of requests) {
      const live = await this.#server.send(`GET ${target}`);
      const response = await this.#send(request, live.status === 200 ? live.json : undefined);
      if (response.status >= 300)
        return `setup: ${request.method} ${request.path}: ${response.status} ${response.text.trim()}`;
    }
    const line = `GET ${target}`;
    // The server writes the status of a definition after its creation, which changes the resourceVersion.
    const actual = target.includes("/customresourcedefinitions/")
      ? await waitForResponse(this.#server, line, ({ json }) => isEstablished(json))
      : await this.#server.send(line);
    return actual.status === 200 ? (actual.json as Json) : `setup: GET ${target}: ${actual.status}`;
  }

  async #send(
    { method, path, query = "", contentType, body }: RecordedRequest,
    live: Json | undefined,
  ): Promise<TestResponse> {
    const { uid = "", resourceVersion = "", creationTimestamp = "" } = (live?.metadata ?? {}) as Record<string, string>;
    const text = (typeof body === "string" ? body : JSON.stringify(body))
      ?.replaceAll("<rv>", resourceVersion)
      // The recorder sent `<uid>` within a longer text as it is.
      .replaceAll('"<uid>"', JSON.stringify(uid))
      .replaceAll("<time>", creationTimestamp);
    return await this.#server.send(`${method} ${path}${query === "" ? "" : `?${query}`}`, {
      ...(text === undefined ? {} : { body: Buffer.from(text) }),
      headers: { "user-agent": "recorder", ...(contentType === undefined ? {} : { "content-type": contentType }) },
    });
  }
}

/** Kinds whose status controllers wrote during the recording, which therefore omits it. */
const STATUS_OMITTED: ReadonlySet<string> = new Set([
  "APIService",
  "CustomResourceDefinition",
  "FlowSchema",
  "Namespace",
  "PriorityLevelConfiguration",
  "ServiceCIDR",
  "ValidatingAdmissionPolicy",
]);

function differences(
  { kind, expect }: RecordedCase,
  response: TestResponse,
  before: Json | undefined,
): readonly string[] {
  if (response.status !== expect.code) {
    const wanted = (expect.causes ?? []).map(({ reason, field }) => `${reason} ${field}`).join(", ");
    const found = response.status >= 400 ? `: ${response.text.slice(0, 400)}` : "";
    return [`code ${response.status}, not ${expect.code}${wanted === "" ? "" : ` (${wanted})`}${found}`];
  }
  const found: string[] = [];
  const sent = jsonOf(response);
  if (expect.reason !== undefined && sent?.reason !== expect.reason) {
    found.push(`reason ${String(sent?.reason)}, not ${expect.reason}`);
  }
  if (expect.causes !== undefined) found.push(...causeDifferences(expect.causes, sent));
  const warnings = warningsOf(response);
  if (expect.code < 300 && !deepEqual(warnings, expect.warnings ?? [])) {
    found.push(`warnings ${JSON.stringify(warnings)}, not ${JSON.stringify(expect.warnings ?? [])}`);
  }
  if (expect.object !== undefined) {
    found.push(...changes(withoutVolatile(expect.object), withoutVolatile(sent ?? {})));
    // Most recorded objects have no managedFields.
    const managedFields = managedFieldsOf(expect.object);
    if (managedFields.managedFields !== undefined) found.push(...changes(managedFields, managedFieldsOf(sent)));
  }
  if (expect.diff !== undefined && before !== undefined && sent !== undefined) {
    const all = changesBetween(withoutVolatile(before), withoutVolatile(sent), "");
    const actual = STATUS_OMITTED.has(kind) ? all.filter(({ path }) => !/^\/status(?:\/|$)/.test(path)) : all;
    const wanted = expect.diff.map((change) => mask(change) as Change);
    const missing = wanted.filter((change) => !actual.some((recorded) => sameChange(recorded, change)));
    const unexpected = actual.filter((change) => !wanted.some((recorded) => sameChange(change, recorded)));
    found.push(...missing.map((change) => `lacks ${JSON.stringify(change)}`));
    found.push(...unexpected.map((change) => `has also ${JSON.stringify(change)}`));
  }
  return found;
}

function describeTextDifference({ expect }: RecordedCase, response: TestResponse): string | undefined {
  if (expect.code < 400 || response.status !== expect.code) return undefined;
  const sent = jsonOf(response);
  const { causes = [] } = (sent?.details ?? {}) as { readonly causes?: readonly Cause[] };
  const [wanted, found] = [expect, { message: sent?.message, causes }].map(({ message, causes = [] }) => [
    String(message),
    ...causes.map((cause) => `${cause.reason} ${cause.field}: ${cause.message}`),
  ]) as [string[], string[]];
  const index = wanted.findIndex((text, index) => !matches(text, found[index]));
  if (index === -1 && wanted.length === found.length) return undefined;
  return `${found[index] ?? found.length}, not ${wanted[index] ?? wanted.length}`;
}

const PLACEHOLDER = /<(?:value|diff|object|ptr|uid|time|rv|clusterIP|nodePort|token|random)>/;

/** A placeholder stands for any text. */
function matches(wanted: string, found: string | undefined): boolean {
  if (found === undefined || !PLACEHOLDER.test(wanted)) return wanted === found;
  const [first = "", ...others] = wanted.split(PLACEHOLDER);
  if (!found.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const index = found.indexOf(part, at);
    if (index === -1) return false;
    at = index + part.length;
  }
  return others.at(-1) === "" || found.endsWith(others.at(-1) ?? first);
}

/** Undefined for responses that are no JSON objects. */
function jsonOf(response: TestResponse): Json | undefined {
  try {
    return response.json as Json;
  } catch {
    return undefined;
  }
}

function causeDifferences(expected: readonly Cause[], sent: Json | undefined): readonly string[] {
  const { causes = [] } = (sent?.details ?? {}) as { readonly causes?: readonly Cause[] };
  const textOf = ({ reason, field }: Cause): string => `${reason} ${field}`;
  const wanted = new Set(expected.map(textOf));
  const found = new Set(causes.map(textOf));
  return [
    ...[...wanted].filter((cause) => !found.has(cause)).map((cause) => `lacks cause ${cause}`),
    ...[...found].filter((cause) => !wanted.has(cause)).map((cause) => `has also cause ${cause}`),
  ];
}

/** Without the warnings for objects that have no effect in this build, which Kubernetes does not have. */
function warningsOf(response: TestResponse): readonly string[] {
  const header = response.headers.warning;
  const lines = header === undefined ? [] : [header].flat();
  return lines
    .flatMap((line) =>
      [...String(line).matchAll(/299 - ("(?:[^"\\]|\\.)*")/g)].map(([, text]) => JSON.parse(text!) as string),
    )
    .filter((text) => !text.includes(" is not enforced: "));
}

/** managedFields with masked times. */
function managedFieldsOf(object: Json | undefined): Json {
  const { managedFields } = (object?.metadata ?? {}) as Json;
  return { managedFields: mask(managedFields) };
}

/** Masks members whose values differ between any two servers. */
function withoutVolatile(object: Json): Json {
  const { resourceVersion: _, managedFields: __, ...metadata } = (object.metadata ?? {}) as Json;
  return mask({ ...object, metadata }) as Json;
}

const VOLATILE: readonly (readonly [RegExp, string])[] = [
  [/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, "<uid>"],
  [/^20(?!21)\d\d-\d\d-\d\dT[\d:.]+Z$/, "<time>"],
];

function mask(value: unknown): unknown {
  if (typeof value === "string") return VOLATILE.find(([form]) => form.test(value))?.[1] ?? value;
  if (Array.isArray(value)) return value.map(mask);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, mask(member)]));
}

/** A placeholder of the recording matches any value. */
const WILDCARD = /^<(?:clusterIP|nodePort|value|token|rv)>$/;

const GENERATED_PREFIX_MAX = 58;

function same(wanted: unknown, found: unknown): boolean {
  if (typeof wanted === "string" && WILDCARD.test(wanted)) return found !== undefined;
  if (typeof wanted === "string" && typeof found === "string" && wanted.includes("<random>")) {
    // Names are shortened before the random part is added.
    return found.startsWith(wanted.slice(0, Math.min(wanted.indexOf("<random>"), GENERATED_PREFIX_MAX)));
  }
  if (Array.isArray(wanted) && Array.isArray(found)) {
    return wanted.length === found.length && wanted.every((item, index) => same(item, found[index]));
  }
  return deepEqual(wanted, found);
}

function sameChange(found: Change, wanted: Change): boolean {
  return found.path === wanted.path && same(wanted.from, found.from) && same(wanted.to, found.to);
}

function changes(wanted: Json, found: Json): readonly string[] {
  return changesBetween(wanted, found, "")
    .filter(({ from, to }) => !same(from, to))
    .map(({ path, from, to }) => `${path} ${JSON.stringify(to)}, not ${JSON.stringify(from)}`);
}

/** As in the recording: member by member; lists of the same length item by item, others as a whole. */
function changesBetween(from: unknown, to: unknown, path: string): readonly Change[] {
  if (deepEqual(from, to)) return [];
  if (Array.isArray(from) && Array.isArray(to) && from.length === to.length) {
    return from.flatMap((item, index) => changesBetween(item, to[index], `${path}/${index}`));
  }
  if (isObject(from) && isObject(to)) {
    const names = [...new Set([...Object.keys(from), ...Object.keys(to)])];
    return names.flatMap((name) => {
      const pointer = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      return changesBetween(from[name], to[name], pointer);
    });
  }
  return [{ path, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }];
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

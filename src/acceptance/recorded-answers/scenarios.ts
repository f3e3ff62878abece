/**
 * Replays sequences of requests to a server in memory and compares the responses with those recorded of a Kubernetes
 * 1.33 server (`shared/oracles/recorded-http`).
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import type { ApiServerDeps } from "../../apiserver/assembly/server-base.ts";
import type { ApiServerConfig } from "../../apiserver/config/config.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import type { HttpResponse } from "../../http/message.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { systemClock } from "../../std/time/clock.ts";
import {
  readResponse,
  startTestServer,
  type TestResponse,
  type TestServer,
} from "../../testing/apiserver/server-fixture.ts";
import type { Expected, Scenario, SentRequest, Step } from "./scenario.ts";

export interface ScenarioOutcome {
  readonly scenario: Scenario;
  /** The first difference; undefined when there is none. */
  readonly difference: string | undefined;
}

/** The users of the recorded requests. */
const TOKENS = `admin-token,admin,uid-admin,"system:masters"
alice-token,alice,uid-alice,"team-a,team-b"
bob-token,bob,uid-bob,"team-b"
carol-token,carol,uid-carol
node-n1-token,system:node:n1,uid-n1,"system:nodes"
node-n2-token,system:node:n2,uid-n2,"system:nodes"
sched-token,system:kube-scheduler,uid-sched
kcm-token,system:kube-controller-manager,uid-kcm
`;

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../shared", import.meta.url));

/** Undefined when the recordings are not present. */
export function recordedScenarios(area: string, recording = "recorded-http"): readonly Scenario[] | undefined {
  const file = `${shared}/oracles/${recording}/${area}.jsonl`;
  if (!existsSync(file)) return undefined;
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Scenario);
}

/** Runs all on one server, as they were recorded: each uses its own names. */
export async function playTogether(
  scenarios: readonly Scenario[],
  more: Partial<ApiServerConfig> = {},
): Promise<readonly ScenarioOutcome[]> {
  const watchList = scenarios.some(({ serverFlags = [] }) => serverFlags.some((flag) => flag.includes("WatchList")));
  await using server = await startRecordedServer({ watchList, ...more });
  const outcomes: ScenarioOutcome[] = [];
  for (const scenario of scenarios) {
    outcomes.push({ scenario, difference: await new Player(server).play(scenario) });
  }
  return outcomes;
}

/** A server as the recorded one, with its users. */
export async function startRecordedServer(
  more: Partial<ApiServerConfig>,
  address = "192.0.2.2:27443",
  deps: Partial<ApiServerDeps> = {},
): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), "recorded-"));
  const tokenFile = join(folder, "tokens.csv");
  writeFileSync(tokenFile, TOKENS);
  const config = {
    authentication: { ...defaultConfig.authentication, tokenFile },
    authorizationModes: ["Node", "RBAC"],
    garbageCollector: true,
    gitVersion: "v1.33.13",
    ...more,
  } as const;
  try {
    return await startTestServer(config, deps, address);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export class Player {
  readonly #server: TestServer;
  readonly #streams = new Map<string, WatchCollector>();
  readonly #captured = new Map<string, string>();
  readonly #placeholders = new Map<string, unknown>();
  /** By audit id. */
  readonly #annotations = new Map<string, Readonly<Record<string, string>>>();
  /** Headers of the last response. */
  lastHeaders: HttpResponse["headers"] = {};

  constructor(server: TestServer) {
    this.#server = server;
  }

  async play({ setup = [], steps }: Scenario): Promise<string | undefined> {
    for (const request of setup) {
      const response = await this.#send(request, request.capture);
      if (response.status >= 300) return `setup ${lineOf(request)}: ${response.status} ${response.text.slice(0, 300)}`;
    }
    try {
      for (const [place, step] of steps.entries()) {
        const difference = await this.#step(step);
        if (difference === undefined) continue;
        return `step ${place}, ${step.request === undefined ? step.action : lineOf(step.request)}: ${difference}`;
      }
    } finally {
      for (const stream of this.#streams.values()) stream.end();
    }
    return undefined;
  }

  async #step(step: Step): Promise<string | undefined> {
    const { action, request, expect, mode, capture } = step;
    if (action === "sleep") return void (await this.#server.clock.advance(step.ms ?? 0));
    if (action === "compact") {
      return void (await this.#server.compact(Number(this.#captured.get(step.revision ?? ""))));
    }
    if (action === "poll") return void (await this.#poll(step));
    if (action === "annotations" && expect !== undefined) {
      return this.#unlike(expect.annotations, Object.fromEntries(this.#annotations), "annotations");
    }
    if (action === "start" && request !== undefined) {
      this.#streams.set(step.stream ?? "", await this.#watch(request));
      return undefined;
    }
    if (expect === undefined) return `${action} is not played`;
    const stream = this.#streams.get(step.stream ?? "");
    if (action === "finish" && stream !== undefined) {
      await stream.untilCount(step.events ?? 0);
      stream.end();
      return this.#unlikeEvents(step, expect, stream.events());
    }
    if (request === undefined) return `${action} is not played`;
    if (mode !== "events") {
      return this.#difference(expect, await this.#send(request, { ...request.capture, ...capture }), mode);
    }
    const watch = await this.#watch(request);
    const seconds = Number(/timeoutSeconds=(\d+)/.exec(request.query ?? "")?.[1] ?? 1);
    if (watch.status === 200) await this.#server.clock.advance(1000 * seconds);
    const response = await watch.response();
    this.lastHeaders = response.headers;
    if (response.status !== 200) return this.#difference(expect, response, "body");
    return this.#unlikeEvents(step, expect, watch.events()) ?? this.#unlikeHeaders(expect, response);
  }

  /** The recorded server needs time for what has an effect here at once. */
  async #poll({ request, until = {} }: Step): Promise<void> {
    for (let attempt = 0; request !== undefined && attempt < POLLS_MAX; attempt++) {
      const response = await this.#send(request);
      const { code = response.status, text = "", pointer, value } = until;
      const found = pointer === undefined ? undefined : valueAt(response, pointer);
      const isFound = pointer === undefined || (value === undefined ? found !== "undefined" : found === String(value));
      if (response.status === code && response.text.includes(text) && isFound) return;
      await this.#server.clock.advance(100);
    }
  }

  async #watch(request: SentRequest): Promise<WatchCollector> {
    const stop = new AbortController();
    const watch = new WatchCollector(await this.#open(request, stop.signal), stop);
    await watch.untilSettled();
    return watch;
  }

  /** The first difference of any value; placeholders keep their values from the responses. */
  compare(wanted: unknown, found: unknown, what: string): string | undefined {
    return this.#unlike(normalize(wanted), normalize(found), what);
  }

  #unlikeEvents({ eventsAs, skipBookmarks }: Step, { events }: Expected, found: readonly unknown[]) {
    const shown = skipBookmarks === true ? found.filter((event) => !isBookmark(event)) : found;
    return this.#unlike(normalize(events), normalize(eventsAs === "set" ? sortBy(shown, eventText) : shown), "events");
  }

  async #send(request: SentRequest, capture: Readonly<Record<string, string>> = {}): Promise<TestResponse> {
    const id = request.headers?.["audit-id"];
    const whole = await this.#recordAnnotations(id ?? undefined, () =>
      this.#advanceUntil(this.#open(request).then(readResponse)),
    );
    // The connection omits the body of a response to HEAD.
    const response = request.method === "HEAD" ? await readResponse(headOf(whole)) : whole;
    this.lastHeaders = response.headers;
    for (const [name, pointer] of Object.entries(capture)) {
      this.#captured.set(
        name,
        pointer.startsWith("@") ? headerOf(response, pointer.slice(1)) : valueAt(response, pointer),
      );
    }
    return response;
  }

  /** Records the annotations that the audit event of the request would have. */
  async #recordAnnotations<R>(id: string | undefined, send: () => Promise<R>): Promise<R> {
    if (id === undefined) return await send();
    const { add } = AuditAnnotations.prototype;
    const recorded: Record<string, string> = {};
    AuditAnnotations.prototype.add = function (key, value) {
      if (!/^(?:authorization|pod-security)\.kubernetes|^authorization\.k8s/.test(key)) recorded[key] ??= value;
      add.call(this, key, value);
    };
    try {
      return await send();
    } finally {
      AuditAnnotations.prototype.add = add;
      if (Object.keys(recorded).length > 0) this.#annotations.set(id, recorded);
    }
  }

  /** Advances the fake clock until a delayed response arrives. */
  async #advanceUntil<R>(response: Promise<R>): Promise<R> {
    let left = PATIENCE_S;
    const stop = (): void => {
      left = 0;
    };
    response.then(stop, stop);
    for (; left > 0; left--) {
      await runEventLoop(50);
      // Keys are generated by a thread pool, in real time.
      if (left > 0) await systemClock.sleep(100);
      if (left > 0) await this.#server.clock.advance(1000);
    }
    return await response;
  }

  async #open(request: SentRequest, signal?: AbortSignal): Promise<HttpResponse> {
    const { method, path, query = "", headers = {}, user = "admin" } = this.#filled(request);
    const body = bodyOf(this.#filled(request));
    const sent: Record<string, string> = { accept: "application/json", "user-agent": "rec/1.0" };
    if (user !== "none") sent.authorization = `Bearer ${user}-token`;
    for (const [name, value] of Object.entries(headers)) {
      if (value === null) delete sent[name];
      else sent[name] = value;
    }
    return await this.#server.open(`${method} ${path}${query === "" ? "" : `?${query}`}`, {
      headers: sent,
      user: "",
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  #filled<T>(value: T): T {
    const text = JSON.stringify(value).replace(/\{\{(\w+)(?::(\w+))?\}\}/g, (_, name: string, ago?: string) => {
      if (ago !== undefined) return this.#timeAgo(name, ago);
      return JSON.stringify(this.#captured.get(name) ?? "").slice(1, -1);
    });
    return JSON.parse(text) as T;
  }

  /** `10d1h` before now, in whole seconds or in microseconds. */
  #timeAgo(form: string, text: string): string {
    const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
    let ago = 0;
    for (const [, count, unit = ""] of text.matchAll(/(\d+)([smhd])/g)) ago += Number(count) * (seconds[unit] ?? 0);
    const time = new Date(this.#server.clock.now() - ago * 1000).toISOString();
    return time.replace(/\.\d+Z$/, form === "ago" ? "Z" : ".000000Z");
  }

  #difference(expect: Expected, response: TestResponse, mode = "body"): string | undefined {
    if (response.status !== expect.code) {
      const wanted = JSON.stringify(expect.body)?.slice(0, 300);
      return `code ${response.status}, not ${expect.code}: ${response.text.slice(0, 400)}; wanted ${wanted}`;
    }
    return this.#unlikeHeaders(expect, response) ?? this.#unlikeBody(expect, response, mode);
  }

  #unlikeHeaders({ headers = {} }: Expected, response: TestResponse): string | undefined {
    for (const name of HEADERS) {
      const wanted = [headers[name] ?? []].flat().join(", ");
      const difference = this.#unlike(wanted, headerOf(response, name), name);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }

  #unlikeBody(expect: Expected, response: TestResponse, mode: string): string | undefined {
    if (mode === "headers") return undefined;
    if (expect.empty === true) return this.#unlike("", response.text, "text");
    if (expect.prefixHex !== undefined) {
      return this.#unlike(expect.prefixHex, response.bytes.subarray(0, 4).toString("hex"), "prefix");
    }
    if (expect.text !== undefined) return this.#unlike(expect.text, response.text, "text");
    const found = jsonOf(response);
    if (expect.keys !== undefined) return this.#unlike(expect.keys, Object.keys(found as object).sort(), "keys");
    return this.#unlike(normalize(expect.body), normalize(found), "");
  }

  /** The first difference. Equal placeholders must match equal values. */
  #unlike(wanted: unknown, found: unknown, path: string): string | undefined {
    if (typeof wanted === "string" && wanted.includes("<")) return this.#unlikePlaceholder(wanted, found, path);
    if (Array.isArray(wanted) && Array.isArray(found) && wanted.length === found.length) {
      for (const [place, item] of wanted.entries()) {
        const difference = this.#unlike(item, found[place], `${path}[${place}]`);
        if (difference !== undefined) return difference;
      }
      return undefined;
    }
    if (isPlainObject(wanted) && isPlainObject(found)) {
      for (const name of new Set([...Object.keys(wanted), ...Object.keys(found)])) {
        const difference = this.#unlike(wanted[name], found[name], `${path}.${name}`);
        if (difference !== undefined) return difference;
      }
      return undefined;
    }
    if (wanted === found) return undefined;
    return `${path}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`;
  }

  #unlikePlaceholder(wanted: string, found: unknown, path: string): string | undefined {
    const different = `${path}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`;
    if (found === undefined || found === null) return different;
    const pattern = wanted.split(
      /(<(?:uid|rv|gen|ip|port|etag|continue|time|microtime|jwt|hash|age|reason|ptr|gotime|prefix|seconds)(?::\d+)?>)/,
    );
    const names = pattern.filter((_, place) => place % 2 === 1);
    const form = pattern.map((part, place) =>
      place % 2 === 1 ? "(.+?)" : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
    );
    const match = new RegExp(`^${form.join("")}$`, "s").exec(String(found));
    if (match === null) return different;
    for (const [place, name] of names.entries()) {
      if (!name.includes(":")) continue;
      const known = this.#placeholders.get(name);
      if (known !== undefined && known !== match[place + 1]) return `${different} (${name} is ${String(known)})`;
      this.#placeholders.set(name, match[place + 1]);
    }
    return undefined;
  }
}

function headOf({ status, headers }: TestResponse): HttpResponse {
  return { status, headers, body: Buffer.alloc(0) };
}

function lineOf({ method, path, query }: SentRequest): string {
  return `${method} ${path}${query ? `?${query}` : ""}`;
}

function bodyOf({ body, text, base64, repeat }: SentRequest): string | Buffer | undefined {
  if (body !== undefined) return JSON.stringify(body);
  if (base64 !== undefined) return Buffer.from(base64, "base64");
  if (repeat !== undefined) return repeat.pre + repeat.unit.repeat(repeat.count) + repeat.post;
  return text;
}

function headerOf({ headers }: TestResponse, name: string): string {
  const values = [headers[name] ?? []].flat();
  if (name !== "warning") return values.join(", ");
  // Without those for objects that have no effect in this build or no controller, which Kubernetes does not have.
  const texts = values.flatMap((value) => String(value).match(/299 - "(?:[^"\\]|\\.)*"/g) ?? []);
  return texts.filter((text) => !text.includes(" is not enforced: ")).join(", ");
}

/** The recorded headers that do not depend on the connection. */
const HEADERS = ["content-type", "warning", "retry-after", "allow", "www-authenticate", "location", "etag"];

const POLLS_MAX = 20;

/** Longer than the longest request. */
const PATIENCE_S = 70;

/** A watch that collects its events. */
class WatchCollector {
  readonly #response: HttpResponse;
  readonly #stop: AbortController;
  readonly #pieces: Uint8Array[] = [];
  readonly #read: Promise<void>;

  constructor(response: HttpResponse, stop: AbortController) {
    this.#response = response;
    this.#stop = stop;
    this.#read = this.#collect();
    this.#read.catch(() => {});
  }

  get status(): number {
    return this.#response.status;
  }

  /** Resolves when the pending events have arrived. */
  async untilSettled(): Promise<void> {
    await runEventLoop(10);
  }

  async untilCount(count: number): Promise<void> {
    for (let attempt = 0; attempt < 1000 && this.events().length < count; attempt++) await this.untilSettled();
  }

  end(): void {
    this.#stop.abort();
  }

  events(): readonly unknown[] {
    const lines = Buffer.concat(this.#pieces).toString().split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as unknown);
  }

  /** The whole response, after its end. */
  async response(): Promise<TestResponse> {
    await this.#read;
    return await readResponse({ ...this.#response, body: Buffer.concat(this.#pieces) });
  }

  async #collect(): Promise<void> {
    const { body } = this.#response;
    if (body instanceof Uint8Array) this.#pieces.push(body);
    else for await (const chunk of body) this.#pieces.push(chunk);
  }
}

async function runEventLoop(count: number): Promise<void> {
  for (let attempt = 0; attempt < count; attempt++) await new Promise((resolve) => setImmediate(resolve));
}

function isBookmark(event: unknown): boolean {
  return (event as { readonly type?: unknown }).type === "BOOKMARK";
}

function eventText(event: unknown): string {
  const { type, object } = event as { readonly type: string; readonly object?: { readonly metadata?: Metadata } };
  return type + (object?.metadata?.name ?? "");
}

interface Metadata {
  readonly name?: string;
}

/** Undefined for responses that are not JSON. */
function jsonOf(response: TestResponse): unknown {
  try {
    return response.json;
  } catch {
    return undefined;
  }
}

function valueAt(response: TestResponse, pointer: string): string {
  let value: unknown = response.json;
  for (const step of pointer.split("/").slice(1)) value = (value as Record<string, unknown> | undefined)?.[step];
  return String(value);
}

/** Sorts lists without a defined order, and collapses blanks in messages. */
function normalize(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normalize);
  if (!isPlainObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => {
    if (name === "managedFields" && Array.isArray(member)) return [name, sortBy(member, managerText)] as const;
    // Descriptions of table columns are our own texts.
    if (name === "columnDefinitions" && Array.isArray(member)) {
      return [name, member.map((column) => normalize({ ...(column as object), description: "" }))] as const;
    }
    if ((name === "resourceRules" || name === "nonResourceRules") && Array.isArray(member)) {
      return [name, sortBy(member, JSON.stringify)] as const;
    }
    if (name === "details" && value.code === 409 && isPlainObject(member) && Array.isArray(member.causes)) {
      return [name, { ...member, causes: sortBy(member.causes, JSON.stringify) }] as const;
    }
    if (name === "message" && typeof member === "string" && member.includes("\n")) {
      return [name, member.replace(/ +/g, " ")] as const;
    }
    return [name, normalize(member)] as const;
  });
  return Object.fromEntries(members);
}

function sortBy(list: readonly unknown[], textOf: (item: unknown) => string): readonly unknown[] {
  return [...list].sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
}

function managerText(entry: unknown): string {
  const { manager, operation, subresource, apiVersion } = entry as Readonly<Record<string, string | undefined>>;
  return [manager, operation, subresource, apiVersion].map((text = "") => text).join("\0");
}

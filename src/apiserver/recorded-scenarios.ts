/**
 * For tests: what a Kubernetes 1.33 server answered to requests in a row (`shared/oracles/recorded-http`), sent again
 * to a server in memory, and compared.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isPlainObject } from "../schema/plain.ts";
import { type Answer, type TestServer, testServer } from "./fixture.ts";

interface SentRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly user?: string;
  readonly body?: unknown;
  readonly text?: string;
  readonly base64?: string;
  readonly repeat?: { readonly pre: string; readonly unit: string; readonly count: number; readonly post: string };
  readonly capture?: Readonly<Record<string, string>>;
}

interface Step {
  readonly action?: string;
  readonly request?: SentRequest;
  readonly mode?: string;
  readonly capture?: Readonly<Record<string, string>>;
  readonly expect?: {
    readonly code: number;
    readonly headers?: Readonly<Record<string, string | readonly string[]>>;
    readonly body?: unknown;
    readonly text?: string;
  };
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  readonly serverFlags?: readonly string[];
  readonly setup?: readonly SentRequest[];
  readonly steps: readonly Step[];
}

export interface ScenarioOutcome {
  readonly scenario: Scenario;
  /** The first difference; undefined when there is none. */
  readonly difference: string | undefined;
}

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../shared", import.meta.url));
const folder = `${shared}/oracles/recorded-http/`;

/** Undefined where the recordings are not present. */
export function recordedScenarios(...areas: readonly string[]): readonly Scenario[] | undefined {
  if (!existsSync(folder)) return undefined;
  return areas.flatMap((area) =>
    readFileSync(`${folder}${area}.jsonl`, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Scenario),
  );
}

/** `book` compares codes and managers of fields alone; `all` the whole answers. */
export async function play(scenario: Scenario, compared: "all" | "book"): Promise<ScenarioOutcome> {
  await using server = await testServer({ garbageCollector: true });
  return { scenario, difference: await new Player(server, compared).play(scenario) };
}

class Player {
  readonly #server: TestServer;
  readonly #compared: "all" | "book";
  readonly #captured = new Map<string, string>();
  readonly #placeholders = new Map<string, unknown>();

  constructor(server: TestServer, compared: "all" | "book") {
    this.#server = server;
    this.#compared = compared;
  }

  async play({ setup = [], steps }: Scenario): Promise<string | undefined> {
    for (const request of setup) {
      const answer = await this.#send(request, request.capture);
      if (answer.status >= 300) return `setup ${lineOf(request)}: ${answer.status} ${answer.text.slice(0, 300)}`;
    }
    for (const [place, { action, request, expect, mode, capture }] of steps.entries()) {
      if (action === "sleep") continue;
      if (request === undefined || expect === undefined) return `step ${place}: ${action} is not played`;
      const answer = await this.#send(request, { ...request.capture, ...capture });
      const difference = this.#difference(expect, answer, mode);
      if (difference !== undefined) return `step ${place}, ${lineOf(request)}: ${difference}`;
    }
    return undefined;
  }

  async #send(request: SentRequest, capture: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const { method, path, query = "", headers = {}, user = "admin" } = this.#filled(request);
    const body = bodyOf(this.#filled(request));
    const sent: Record<string, string> = { accept: "application/json", "user-agent": "rec/1.0" };
    for (const [name, value] of Object.entries(headers)) {
      if (value === null) delete sent[name];
      else sent[name] = value;
    }
    const answer = await this.#server.ask(`${method} ${path}${query === "" ? "" : `?${query}`}`, {
      headers: sent,
      user: user === "none" ? "" : user,
      ...(body === undefined ? {} : { body }),
    });
    for (const [name, pointer] of Object.entries(capture)) {
      this.#captured.set(name, pointer.startsWith("@") ? headerOf(answer, pointer.slice(1)) : pointed(answer, pointer));
    }
    return answer;
  }

  #filled<T>(value: T): T {
    const text = JSON.stringify(value).replace(/\{\{(\w+)\}\}/g, (_, name: string) => this.#captured.get(name) ?? "");
    return JSON.parse(text) as T;
  }

  #difference(expect: NonNullable<Step["expect"]>, answer: Answer, mode = "body"): string | undefined {
    if (answer.status !== expect.code) {
      const wanted = JSON.stringify(expect.body)?.slice(0, 300);
      return `code ${answer.status}, not ${expect.code}: ${answer.text.slice(0, 400)}; wanted ${wanted}`;
    }
    if (this.#compared === "book")
      return this.#unlike(ordered(bookOf(expect.body)), ordered(bookOf(jsonOf(answer))), "");
    const wanted = [expect.headers?.warning ?? []].flat().join(", ");
    const warned = headerOf(answer, "warning");
    if (wanted !== warned) return `warning ${warned}, not ${wanted}`;
    if (mode === "text") return this.#unlike(expect.text, answer.text, "text");
    if (mode !== "body" || expect.body === undefined) return undefined;
    return this.#unlike(ordered(expect.body), ordered(answer.json), "");
  }

  /** The first difference. Equal placeholders stand for equal values. */
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
      /(<(?:uid|rv|gen|ip|port|etag|continue|time|microtime|jwt|hash|age|reason|ptr|gotime)(?::\d+)?>)/,
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

function lineOf({ method, path, query }: SentRequest): string {
  return `${method} ${path}${query ? `?${query}` : ""}`;
}

function bodyOf({ body, text, base64, repeat }: SentRequest): string | Buffer | undefined {
  if (body !== undefined) return JSON.stringify(body);
  if (base64 !== undefined) return Buffer.from(base64, "base64");
  if (repeat !== undefined) return repeat.pre + repeat.unit.repeat(repeat.count) + repeat.post;
  return text;
}

function headerOf({ headers }: Answer, name: string): string {
  const value = headers[name];
  return value === undefined ? "" : [value].flat().join(", ");
}

/** Undefined for answers that are no JSON. */
function jsonOf(answer: Answer): unknown {
  try {
    return answer.json;
  } catch {
    return undefined;
  }
}

function bookOf(body: unknown): unknown {
  const { metadata } = isPlainObject(body) ? body : {};
  return isPlainObject(metadata) ? { managedFields: metadata.managedFields } : {};
}

function pointed(answer: Answer, pointer: string): string {
  let value: unknown = answer.json;
  for (const step of pointer.split("/").slice(1)) value = (value as Record<string, unknown> | undefined)?.[step];
  return String(value);
}

/** Lists whose order no two servers share are sorted; blanks in messages squeezed. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isPlainObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => {
    if (name === "managedFields" && Array.isArray(member)) return [name, sortedBy(member, managerText)] as const;
    if (name === "causes" && Array.isArray(member)) return [name, sortedBy(member, JSON.stringify)] as const;
    if (name === "message" && typeof member === "string" && member.includes("\n")) {
      return [name, member.replace(/ +/g, " ")] as const;
    }
    return [name, ordered(member)] as const;
  });
  return Object.fromEntries(members);
}

function sortedBy(list: readonly unknown[], textOf: (item: unknown) => string): readonly unknown[] {
  return [...list].sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
}

function managerText(entry: unknown): string {
  const { manager, operation, subresource, apiVersion } = entry as Readonly<Record<string, string | undefined>>;
  return [manager, operation, subresource, apiVersion].map((text = "") => text).join("\0");
}

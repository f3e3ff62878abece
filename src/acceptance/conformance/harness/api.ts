/** A small client of the API server for the conformance behaviours: JSON, watches, and errors with their Status. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import type { Socket } from "node:net";
import { parseYaml } from "../../../schema/yaml/yaml.ts";
import { until } from "../../../testing/std/until.ts";

// biome-ignore lint/suspicious/noExplicitAny: the behaviours read objects of every kind
export type Json = any;

/** A deadline, for machines that are busy with other tests too. */
export const WAIT_MS = 180_000;

export interface ApiResponse {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  readonly json: Json;
}

export interface SendOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The error of a request with another status than 2xx. */
export class ApiError extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(line: string, { status, text }: ApiResponse) {
    const { message = text, reason = "" } = text.startsWith("{") ? JSON.parse(text) : {};
    super(`${line}: ${status} ${message}`);
    this.status = status;
    this.reason = reason;
  }
}

const patchTypes = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
};

export interface WatchEvent {
  readonly type: string;
  readonly object: Json;
}

/** The events of a watch so far. */
export class Watch implements Disposable {
  readonly events: WatchEvent[] = [];
  readonly #end: () => void;

  constructor(response: IncomingMessage) {
    let text = "";
    response.setEncoding("utf8");
    response.on("error", () => undefined);
    response.on("data", (chunk: string) => {
      text += chunk;
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines.filter((line) => line !== "")) this.events.push(JSON.parse(line));
    });
    this.#end = () => response.destroy();
  }

  /** Resolves with the first event of the type that `matches` accepts. */
  async wait(type: string, matches: (object: Json) => boolean = () => true, timeoutMs = WAIT_MS): Promise<Json> {
    const types = (): string => this.events.map((event) => event.type).join(", ");
    const find = (): WatchEvent | undefined =>
      this.events.find((event) => event.type === type && matches(event.object));
    const event = await until(() => `an event ${type}; received: ${types()}`, find, { timeoutMs });
    return event.object;
  }

  [Symbol.dispose](): void {
    this.#end();
  }
}

export interface Credentials {
  readonly server: string;
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

export function readCredentials(kubeconfig: string): Credentials {
  const [document] = parseYaml(readFileSync(kubeconfig, "utf8"));
  const { clusters, users }: Json = document?.value ?? {};
  const decode = (text: string | undefined): string => Buffer.from(text ?? "", "base64").toString();
  const [{ cluster }, { user }] = [clusters[0], users[0]];
  return {
    server: cluster.server,
    ca: decode(cluster["certificate-authority-data"]),
    ...(user.token === undefined
      ? { cert: decode(user["client-certificate-data"]), key: decode(user["client-key-data"]) }
      : { token: user.token }),
  };
}

const [TEXT, BINARY, CLOSE] = [1, 2, 8];

interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** The whole frames of a server, which does not mask them (RFC 6455, 5.2). */
function parseFrames(bytes: Buffer): readonly Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at + 2 <= bytes.length; ) {
    const short = (bytes[at + 1] ?? 0) & 0x7f;
    const extra = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (at + 2 + extra > bytes.length) break;
    const length =
      extra === 2 ? bytes.readUInt16BE(at + 2) : extra === 8 ? Number(bytes.readBigUInt64BE(at + 2)) : short;
    const start = at + 2 + extra;
    if (start + length > bytes.length) break;
    frames.push({ opcode: (bytes[at] ?? 0) & 0x0f, payload: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return frames;
}

export class Api implements Disposable {
  readonly credentials: Credentials;
  readonly #agent: Agent;

  constructor(credentials: Credentials) {
    this.credentials = credentials;
    const { ca, cert, key } = credentials;
    this.#agent = new Agent({ keepAlive: true, ca, ...(cert === undefined ? {} : { cert, key }) });
  }

  #open(line: string, { body, headers }: SendOptions): Promise<IncomingMessage> {
    const [method = "GET", path = "/"] = line.split(" ");
    const { server, token } = this.credentials;
    const sent = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) => {
      const options = {
        method,
        agent: this.#agent,
        headers: {
          "content-type": "application/json",
          // Node.js sends none for DELETE.
          ...(sent === undefined ? {} : { "content-length": Buffer.byteLength(sent) }),
          ...authorization,
          ...headers,
        },
      };
      request(new URL(path, server), options, resolve).on("error", reject).end(sent);
    });
  }

  /** Sends a request such as `GET /api/v1/pods?limit=1`. */
  async send(line: string, options: SendOptions = {}): Promise<ApiResponse> {
    const response = await this.#open(line, options);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text,
      get json() {
        return JSON.parse(text);
      },
    };
  }

  async #read(line: string, options: SendOptions = {}): Promise<Json> {
    const response = await this.send(line, options);
    if (response.status < 200 || response.status > 299) throw new ApiError(line, response);
    return response.text === "" ? undefined : response.json;
  }

  get(path: string): Promise<Json> {
    return this.#read(`GET ${path}`);
  }

  /** The items of a list. */
  async list(path: string): Promise<readonly Json[]> {
    return (await this.get(path)).items;
  }

  post(path: string, body: object): Promise<Json> {
    return this.#read(`POST ${path}`, { body });
  }

  put(path: string, body: object): Promise<Json> {
    return this.#read(`PUT ${path}`, { body });
  }

  patch(path: string, body: object, type: keyof typeof patchTypes = "merge"): Promise<Json> {
    return this.#read(`PATCH ${path}`, { body, headers: { "content-type": patchTypes[type] } });
  }

  delete(path: string, body?: object): Promise<Json> {
    return this.#read(`DELETE ${path}`, body === undefined ? {} : { body });
  }

  /** Reads, changes and replaces the object until no other writer comes between. */
  async update(path: string, change: (object: Json) => void): Promise<Json> {
    return await until(`an update of ${path}`, async () => {
      const object = await this.get(path);
      change(object);
      const response = await this.send(`PUT ${path}`, { body: object });
      if (response.status === 409) return undefined;
      if (response.status !== 200) throw new ApiError(`PUT ${path}`, response);
      return response.json;
    });
  }

  /** `path` may have a query. */
  async watch(path: string): Promise<Watch> {
    const response = await this.#open(`GET ${path}${path.includes("?") ? "&" : "?"}watch=1`, {});
    if (response.statusCode !== 200) throw new Error(`Failed to watch ${path}: ${response.statusCode}`);
    return new Watch(response);
  }

  /** Resolves when the object is gone. */
  async waitGone(path: string, timeoutMs = WAIT_MS): Promise<void> {
    const isGone = async (): Promise<boolean> => (await this.send(`GET ${path}`)).status === 404;
    await until(`the end of ${path}`, isGone, { timeoutMs });
  }

  /** The payloads of a WebSocket's binary and text frames, until the server closes it. */
  async readSocket(path: string, protocol: string): Promise<readonly Buffer[]> {
    const { server, ca, cert, key } = this.credentials;
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": randomBytes(16).toString("base64"),
      "sec-websocket-protocol": protocol,
    };
    const sent = request(new URL(path, server), { agent: false, ca, cert, key, headers });
    const upgraded = new Promise<Socket>((resolve, reject) => {
      sent.on("upgrade", (_, socket, head) => {
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      sent.on("response", ({ statusCode }) => reject(new Error(`${path} was not upgraded: ${statusCode}`)));
      sent.on("error", reject);
    });
    sent.end();
    const socket = await upgraded;
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of socket) {
        chunks.push(chunk as Buffer);
        const frames = parseFrames(Buffer.concat(chunks));
        if (frames.some(({ opcode }) => opcode === CLOSE)) break;
      }
    } finally {
      socket.destroy();
    }
    return parseFrames(Buffer.concat(chunks))
      .filter(({ opcode }) => opcode === TEXT || opcode === BINARY)
      .map(({ payload }) => payload);
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

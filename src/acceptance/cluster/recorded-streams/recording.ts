/** Recorded streams of Kubernetes 1.33 (`shared/oracles/recorded-streams`): types and reading. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Bytes of a channel, stream or message; `bytes` and `sha256` stand for a repeated pattern. */
export interface Payload {
  readonly text?: string;
  readonly base64?: string;
  readonly status?: object;
  /** "<n>" for a body whose length varies. */
  readonly bytes?: number | "<n>";
  readonly sha256?: string;
}

/** What one side did after a 101. */
export interface Entry extends Payload {
  readonly from?: "client" | "server";
  readonly note?: string;
  /** WebSocket: `binary`, `text`, `ping`, `pong`, `close`, `frame` (as it is), or `tcp close`. */
  readonly op?: string;
  readonly ch?: number;
  readonly closes?: number;
  readonly code?: number;
  readonly opcode?: number;
  readonly fin?: boolean;
  readonly masked?: boolean;
  /** The payload has no channel. */
  readonly raw?: boolean;
  readonly frame?: "syn_stream" | "syn_reply" | "data" | "rst_stream" | "goaway" | "ping";
  readonly stream?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly id?: number;
  readonly port?: number;
}

export interface RecordedCase {
  readonly id: string;
  /** The name of its file. */
  readonly area: string;
  readonly to: "agent" | "api" | "read-only";
  readonly as?: string;
  readonly proto: "http" | "websocket" | "spdy" | "tunnel";
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers?: readonly (readonly [string, string])[];
  };
  /** The template of the pod `$POD`. */
  readonly pod?: string;
  readonly response?: Payload & {
    readonly status: number;
    readonly headers?: readonly (readonly [string, string])[];
    readonly json?: unknown;
    readonly empty?: boolean;
    /** How the body has ended: `still open` if it has not. */
    readonly ended?: string;
  };
  readonly transcript?: readonly Entry[];
  readonly received?: Readonly<Record<string, Payload>>;
  readonly end?: string;
}

/** What cases are played against. */
export interface ReplayTarget {
  readonly address: (one: RecordedCase) => { readonly host: string; readonly port: number };
  readonly identity: (one: RecordedCase) => Identity;
  /** Fills in the placeholders of the path. */
  readonly path: (one: RecordedCase, pod: string) => string;
  /** Replaces recorded names. */
  readonly replace: (text: string) => string;
  /** Creates the pod of a template; resolves when its container runs or has ended. */
  readonly createPod: (template: string, name: string) => Promise<void>;
  readonly deletePod: (name: string) => Promise<void>;
}

export interface Identity {
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

interface PodTemplate {
  readonly metadata: { readonly name: string };
}

interface RecordedPods {
  readonly standing: readonly PodTemplate[];
  readonly templates: Readonly<Record<string, PodTemplate>>;
  readonly ephemeral: { readonly web: object };
}

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../../shared", import.meta.url));
const directory = `${shared}/oracles/recorded-streams`;

export function hasRecording(): boolean {
  return existsSync(directory);
}

export function readCases(area: string): readonly RecordedCase[] {
  const lines = readFileSync(`${directory}/${area}.jsonl`, "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as RecordedCase);
}

/** Pods for one node; `$POD` stays. */
export function readPods(node: string): RecordedPods {
  const text = readFileSync(`${directory}/pods.json`, "utf8").replaceAll("$NODE", node);
  return JSON.parse(text) as RecordedPods;
}

/** Bytes of a payload. Those that are recorded by their hash are lines of `abcdefg`. */
export function payloadBytes({ text, base64, bytes, status }: Payload): Buffer {
  if (text !== undefined) return Buffer.from(text);
  if (base64 !== undefined) return Buffer.from(base64, "base64");
  if (status !== undefined) return Buffer.from(JSON.stringify(status));
  return Buffer.alloc(Number(bytes ?? 0) || 0, "abcdefg\n");
}

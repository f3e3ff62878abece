/** What a real Kubernetes 1.33 node agent did with pods (`shared/oracles/recorded-agent`), as data. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export type Json = Readonly<Record<string, unknown>>;

/** All members must hold. */
export interface Condition {
  readonly phase?: string;
  readonly ready?: boolean;
  readonly cond?: readonly [type: string, status: string];
  readonly running?: string;
  readonly started?: string;
  readonly terminated?: string;
  readonly lastTerminated?: string;
  readonly waiting?: readonly [container: string, reason: string];
  readonly restarts?: readonly [container: string, least: number];
  readonly reason?: string;
  readonly event?: string | readonly [reason: string, least: number];
  readonly log?: readonly [container: string, text: string];
  readonly present?: boolean;
  readonly gone?: boolean;
  /** Seconds since the case began. */
  readonly s?: number;
}

export type Conditions = Condition | readonly Condition[];

export interface Step {
  readonly after?: Conditions;
  readonly waitSeconds?: number;
  readonly op: "delete" | "patch" | "create" | "deleteObject" | "exec" | "host";
  readonly grace?: number;
  readonly kind?: string;
  readonly name?: string;
  readonly sub?: string;
  readonly type?: string;
  readonly body?: unknown;
  readonly object?: ApiJson;
  readonly do?: string;
  readonly file?: string;
  readonly manifest?: unknown;
  /** In place of a manifest: what is no JSON. */
  readonly text?: string;
  readonly container?: string;
  readonly signal?: NodeJS.Signals;
  readonly downSeconds?: number;
  /** An act on the machine that so many cases waited for together. */
  readonly of?: number;
  readonly result?: unknown;
}

export interface ApiJson extends Json {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string } & Json;
}

/** A state of the pod's object that differs from the one before. */
export interface Snapshot {
  readonly status: PodStatusJson;
  readonly deletionTimestamp?: string;
  readonly gone?: boolean;
}

export interface PodStatusJson {
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly conditions?: readonly ConditionJson[];
  readonly initContainerStatuses?: readonly ContainerJson[];
  readonly containerStatuses?: readonly ContainerJson[];
  readonly ephemeralContainerStatuses?: readonly ContainerJson[];
}

export interface ConditionJson {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

export interface ContainerJson {
  readonly containerID?: string;
  readonly name: string;
  readonly state: StateJson;
  readonly lastState: StateJson;
  readonly ready: boolean;
  readonly started?: boolean;
  readonly restartCount: number;
}

export interface StateJson {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: Json;
  readonly terminated?: {
    readonly exitCode: number;
    readonly signal?: number;
    readonly reason?: string;
    readonly message?: string;
  };
}

export interface EventJson {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly fieldPath?: string;
  readonly count: number;
}

export interface RunLog {
  readonly restart: number;
  /** Milliseconds, `o` or `e`, the line. */
  readonly lines: readonly (readonly [number, string, string])[];
}

/** The three streams that a pod leaves behind. */
export interface PodRecord {
  readonly snapshots: readonly Snapshot[];
  readonly events: readonly EventJson[];
  readonly logs: Readonly<Record<string, readonly RunLog[]>>;
}

export interface Case extends PodRecord {
  readonly id: string;
  readonly area: string;
  readonly about: string;
  readonly objects?: readonly ApiJson[];
  /** Absent where the pod is static: then a step writes its manifest. */
  readonly pod?: ApiJson;
  readonly steps?: readonly Step[];
  /** What the API server answered to the pod that it did not take. */
  readonly rejected?: { readonly code: number; readonly message: string };
  readonly until: Conditions;
}

export const areas = [
  "lifecycle",
  "probes",
  "env",
  "volumes",
  "security",
  "network",
  "resources",
  "admission",
  "static",
  "restart",
] as const;

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../../shared", import.meta.url));
const folder = `${shared}/oracles/recorded-agent`;

/** Undefined where the recordings are not present. */
export function recordedCases(area: string): readonly Case[] | undefined {
  if (!existsSync(folder)) return undefined;
  return readFileSync(`${folder}/${area}.jsonl`, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Case);
}

/** The recordings of pods run by kubelet 1.33 (`shared/oracles/recorded-agent`). */
import { existsSync, readdirSync, readFileSync } from "node:fs";
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
  /** Seconds since the start of the case. */
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
  /** Instead of a manifest: text that is not JSON. */
  readonly text?: string;
  readonly container?: string;
  /** Of `exec`. */
  readonly command?: readonly string[];
  readonly signal?: NodeJS.Signals;
  readonly downSeconds?: number;
  /** The number of cases that wait together for the action on the machine. */
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

/** The recorded streams of a pod: statuses, events, logs. */
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
  /** Absent for a static pod, whose manifest a step writes. */
  readonly pod?: ApiJson;
  readonly steps?: readonly Step[];
  /** The API server's response when it rejected the pod. */
  readonly rejected?: { readonly code: number; readonly message: string };
  readonly until: Conditions;
}

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../../shared", import.meta.url));
const folder = `${shared}/oracles/recorded-agent`;

/** The areas of the recordings; empty when they are not present. */
export function recordedAreas(): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => (name.endsWith(".jsonl") ? [name.slice(0, -".jsonl".length)] : []));
}

export function recordedCases(area: string): readonly Case[] {
  return readFileSync(`${folder}/${area}.jsonl`, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Case);
}

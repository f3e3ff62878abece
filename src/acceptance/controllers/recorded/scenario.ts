/** The format of recorded scenarios of controllers. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../../shared", import.meta.url));
const folder = `${shared}/oracles/recorded-controllers/`;

export type Json = Readonly<Record<string, unknown>>;

export type Reference =
  | string
  | {
      readonly kind: string;
      readonly labels?: Readonly<Record<string, string>>;
      readonly nth?: number;
      readonly live?: boolean;
      readonly ready?: boolean;
      readonly nameEndsWith?: string;
    };

export interface Step {
  readonly op: string;
  readonly ref?: Reference;
  readonly objects?: readonly Json[];
  readonly type?: "merge" | "strategic" | "json";
  readonly sub?: string;
  readonly patch?: unknown;
  readonly replicas?: number;
  readonly options?: Json;
  readonly set?: PodChange;
  readonly pods?: readonly PodRule[];
  readonly path?: string;
  readonly equals?: unknown;
  readonly gone?: boolean;
  readonly count?: number;
  readonly revision?: string;
  readonly ms?: number;
  readonly quiet?: number;
  readonly max?: number;
  readonly name?: string;
  readonly beat?: boolean;
  readonly minutes?: number;
  readonly reason?: string;
  readonly condition?: Json;
}

export interface PodChange {
  readonly phase?: string;
  readonly ready?: boolean;
  readonly reason?: string;
  readonly code?: number;
  readonly restarts?: number;
  readonly conditions?: readonly Json[];
}

export interface PodRule {
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly image?: string;
  readonly index?: number | readonly number[];
  readonly first?: number;
  readonly ready?: number | null;
  readonly succeed?: number;
  readonly fail?: number;
  readonly after?: number;
  readonly reason?: string;
  readonly conditions?: readonly Json[];
  readonly deleteMs?: number;
  readonly stuck?: boolean;
  readonly exitOnDelete?: number;
  readonly unscheduled?: boolean;
}

export interface Transition {
  readonly verb: "created" | "changed" | "deleted";
  readonly kind: string;
  readonly name: string;
  readonly set?: Json;
  /** The resourceVersion of the object; absent in recordings, which are sorted by it. */
  readonly revision?: number;
}

export interface RecordedEvent {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly kind: string;
  readonly name: string;
  readonly component: string;
  readonly count: number;
}

export interface Scenario {
  readonly id: string;
  readonly area: string;
  readonly title: string;
  readonly nodes: "shared" | readonly Json[];
  readonly podBehaviour: readonly PodRule[];
  readonly steps: readonly Step[];
  /** By step: the answer if it was not a plain success. */
  readonly results?: Readonly<Record<string, { readonly code: number; readonly message?: string }>>;
  readonly expect: {
    readonly transitions: readonly { readonly item?: Transition; readonly set?: readonly Transition[] }[];
    readonly final: readonly Json[];
    readonly events: readonly RecordedEvent[];
  };
  readonly stable: {
    readonly final?: true | readonly string[];
    readonly events?: "all" | "withoutCounts" | "differ";
    readonly eventsDiffer?: readonly string[];
    readonly transitions?: string;
  };
}

/** Empty without recordings. */
export function readScenarios(area: string): readonly Scenario[] {
  if (!existsSync(folder)) return [];
  const lines = readFileSync(`${folder}${area}.jsonl`, "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Scenario);
}

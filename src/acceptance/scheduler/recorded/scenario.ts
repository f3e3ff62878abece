/** The format of recorded scenarios of the scheduler. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../../shared", import.meta.url));
const folder = `${shared}/oracles/recorded-scheduler/`;

export type Json = Readonly<Record<string, unknown>>;

export interface ScenarioRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: Json;
  readonly sleep?: number;
}

export interface ScenarioStep extends Partial<ScenarioRequest> {
  readonly requests?: readonly ScenarioRequest[];
  readonly wait?: number;
}

export interface ExpectedPod {
  readonly node?: string | null;
  readonly any?: readonly string[];
  readonly condition?: { readonly status: string; readonly reason?: string; readonly message?: string } | null;
  readonly nominatedNodeName?: string;
  readonly terminating?: boolean;
  readonly disruptionTarget?: Json;
  readonly deleted?: boolean;
}

export interface ExpectedPhase {
  readonly after: string;
  readonly pods: Readonly<Record<string, ExpectedPod>>;
  readonly claims?: Json;
  readonly volumes?: Json;
  readonly tally?: Readonly<Record<string, number>>;
}

export interface RecordedEvent {
  readonly reason: string;
  readonly action: string;
  readonly note: string;
  readonly type: string;
  readonly reportingController: string;
  readonly related?: string;
  readonly pod: string;
}

export interface Scenario {
  readonly id: string;
  readonly area: string;
  readonly title: string;
  readonly config?: Json;
  readonly featureGates?: Readonly<Record<string, boolean>>;
  readonly objects?: readonly Json[];
  readonly nodes: readonly Json[];
  readonly existing?: readonly Json[];
  readonly pods?: readonly Json[];
  readonly steps?: readonly ScenarioStep[];
  readonly settleMs?: number;
  readonly hang?: number;
  readonly kubelet?: boolean;
  readonly wait?: number;
  readonly waitPods?: number;
  readonly together?: boolean;
  readonly tally?: string;
  readonly quirk?: boolean;
  readonly expect: {
    readonly phases: readonly ExpectedPhase[];
    readonly order?: readonly string[];
    readonly extenderCalls?: readonly string[];
    readonly events: readonly RecordedEvent[];
    readonly moreEvents?: boolean;
  };
}

/** By area; empty without recordings. */
export function readScenarios(): ReadonlyMap<string, readonly Scenario[]> {
  if (!existsSync(folder)) return new Map();
  const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  return new Map(
    files.map((name) => {
      const lines = readFileSync(`${folder}${name}`, "utf8").trim().split("\n");
      return [name.replace(".jsonl", ""), lines.map((line) => JSON.parse(line) as Scenario)];
    }),
  );
}

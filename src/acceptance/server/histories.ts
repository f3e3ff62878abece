/** Histories of concurrent clients of one or several API servers, and the check that they are linearizable. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Test } from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import type { Answer } from "../../testing/apiserver/server-process.ts";
import { type HistoryEntry, isLinearizable, type SequentialModel } from "../../testing/storage/linearizability.ts";

export const ROUNDS = Number(process.env.SVC_HISTORY_ROUNDS ?? 1);
/** After a status from 500 on, as Kubernetes' clients wait before they try again. */
const RETRY_MS = 200;
/** Of one deletion whose response is lost. */
const DELETIONS_MAX = 5;
const CLIENTS = Number(process.env.SVC_HISTORY_CLIENTS ?? 8);
export const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

export const MAPS = "/api/v1/namespaces/default/configmaps";
const NAMES = ["a", "b", "c"];

type Input =
  | { readonly verb: "get" | "list" | "delete" }
  | { readonly verb: "create" | "replace" | "merge"; readonly value: string }
  /** Only when the object still has the value `from`: by resourceVersion, or by a JSON patch that tests it. */
  | { readonly verb: "update" | "test"; readonly from: string; readonly value: string };

interface Output {
  readonly status: number;
  /** Empty when there is no object. */
  readonly value: string;
}

const ABSENT = "";

/** The object's value. Each write has a value of its own, so that values identify resourceVersions. */
const configMap: SequentialModel<Input, Output> = {
  initial: ABSENT,
  step(state, input, output) {
    const { status, next } = respond(state, input);
    if (output === undefined) return next;
    const isRead = input.verb === "get" || input.verb === "list";
    return status === output.status && (!isRead || output.value === state) ? next : undefined;
  },
};

function respond(state: string, input: Input): { readonly status: number; readonly next: string } {
  const isAbsent = state === ABSENT;
  switch (input.verb) {
    case "list":
      return { status: 200, next: state };
    case "create":
      return isAbsent ? { status: 201, next: input.value } : { status: 409, next: state };
    case "get":
      return { status: isAbsent ? 404 : 200, next: state };
    case "delete":
      return { status: isAbsent ? 404 : 200, next: ABSENT };
    case "replace":
    case "merge":
      return isAbsent ? { status: 404, next: state } : { status: 200, next: input.value };
    case "update":
    case "test":
      if (isAbsent) return { status: 404, next: state };
      if (state !== input.from) return { status: input.verb === "update" ? 409 : 422, next: state };
      return { status: 200, next: input.value };
    default:
      return input satisfies never;
  }
}

export type Send = (method: string, path: string, body?: unknown, contentType?: string) => Promise<Answer>;

const versions = new Map<string, string>();

async function request(send: Send, name: string, input: Input): Promise<Output> {
  const path = `${MAPS}/${name}`;
  const object = (value: string, resourceVersion?: string) => ({
    metadata: { name, resourceVersion },
    data: { value },
  });
  const call = (): Promise<Answer> => {
    switch (input.verb) {
      case "get":
        return send("GET", path);
      case "list":
        return send("GET", `${MAPS}?fieldSelector=metadata.name%3D${name}`);
      case "delete":
        return send("DELETE", path);
      case "create":
        return send("POST", MAPS, object(input.value));
      case "replace":
        return send("PUT", path, object(input.value));
      case "merge":
        return send("PATCH", path, { data: { value: input.value } }, "application/merge-patch+json");
      case "update":
        return send("PUT", path, object(input.value, versions.get(input.from)));
      case "test": {
        const operations = [
          { op: "test", path: "/data/value", value: input.from },
          { op: "replace", path: "/data/value", value: input.value },
        ];
        return send("PATCH", path, operations, "application/json-patch+json");
      }
      default:
        return input satisfies never;
    }
  };
  const { status, json } = await call();
  const found = json.items === undefined ? json : json.items[0];
  const value: string = found?.data?.value ?? ABSENT;
  if (status < 300 && value !== ABSENT) versions.set(value, found.metadata.resourceVersion);
  return { status, value };
}

/** The server did not accept the connection, so that the request had no effect. */
const wasNotSent = (error: unknown): boolean => error instanceof Error && /ECONNREFUSED/.test(String(error));

export class Histories {
  readonly byName: ReadonlyMap<string, HistoryEntry<Input, Output>[]>;
  readonly #names: readonly string[];
  readonly #pick: (count: number) => number;
  readonly #prefix: string;
  /** The values that clients have seen, which conditional writes expect. */
  readonly #seen = new Map<string, string>();
  #writes = 0;

  constructor(seed: number, names: readonly string[] = NAMES) {
    const random = seededRandom(seed);
    this.#pick = (count) => Math.floor(random.fraction() * count);
    this.#names = names;
    this.#prefix = String(seed);
    this.byName = new Map(names.map((name) => [name, []]));
  }

  /** Sends `count` requests of random clients. Rejects for a response that the server must not give. */
  async run(send: Send, count: number): Promise<void> {
    let sent = 0;
    const client = async (): Promise<void> => {
      while (sent++ < count) if (!(await this.#send(send))) return;
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
  }

  /** Sends requests until `isOver`. A client whose request fails is followed by another one. */
  async runThroughFaults(send: Send, isOver: () => boolean): Promise<void> {
    const client = async (): Promise<void> => {
      while (!isOver()) {
        await this.#send(send, true);
        await sleep(this.#pick(20));
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
  }

  /**
   * Resolves with whether a response arrived. With faults a status from 500 on and 429 leave the effect open; a
   * deletion is then sent again, as by Kubernetes' clients, and gets 404 if the first one had its effect.
   */
  async #send(send: Send, isFaulty = false): Promise<boolean> {
    const name = this.#names[this.#pick(this.#names.length)]!;
    const input = this.#choose(name);
    for (let attempt = 1; ; attempt++) {
      const isAnswered = await this.#sendOnce(send, name, input, isFaulty);
      if (isAnswered || !isFaulty) return isAnswered;
      await sleep(RETRY_MS);
      if (input.verb !== "delete" || attempt === DELETIONS_MAX) return false;
    }
  }

  async #sendOnce(send: Send, name: string, input: Input, isFaulty: boolean): Promise<boolean> {
    const called = performance.now();
    let output: Output | undefined;
    try {
      output = await request(send, name, input);
    } catch (error) {
      if (wasNotSent(error)) return false;
    }
    if (isFaulty && output !== undefined && (output.status >= 500 || output.status === 429)) output = undefined;
    this.byName.get(name)!.push({ input, output, called, returned: performance.now() });
    if (output !== undefined && output.value !== ABSENT) this.#seen.set(name, output.value);
    return output !== undefined;
  }

  #choose(name: string): Input {
    const value = `v${this.#prefix}-${++this.#writes}`;
    const from = this.#seen.get(name);
    const verbs = ["get", "list", "create", "replace", "merge", "update", "update", "test", "test", "delete"] as const;
    const verb = verbs[this.#pick(verbs.length)]!;
    if (verb === "get" || verb === "list" || verb === "delete") return { verb };
    if (verb === "update" || verb === "test") return from === undefined ? { verb: "get" } : { verb, from, value };
    return { verb, value };
  }

  isLinearizable(): boolean {
    return [...this.byName.values()].every((history) => isLinearizable(withoutUnseen(history), configMap));
  }

  check(t: Test, seed: number): void {
    for (const [name, history] of this.byName) {
      const counts = Object.entries(Object.groupBy(history, ({ output }) => String(output?.status)));
      const statuses = counts.map(([status, found]) => `${found?.length} of ${status}`).join(", ");
      t.ok(
        isLinearizable(withoutUnseen(history), configMap),
        `the history of ${name} is linearizable (${statuses}, seed ${seed})`,
      );
    }
  }
}

const UNSEEN = "unseen";

/** The values of unanswered writes that no client has seen are all the same to the checker, which is faster then. */
function withoutUnseen(history: readonly HistoryEntry<Input, Output>[]): readonly HistoryEntry<Input, Output>[] {
  const seen = new Set(history.map(({ output }) => output?.value));
  return history.map((entry) => {
    const { input, output } = entry;
    if (output !== undefined || !("value" in input) || seen.has(input.value)) return entry;
    return { ...entry, input: { ...input, value: UNSEEN } };
  });
}

/** Runs `ROUNDS` histories of objects of their own, checks them, and prints the number of responses by status. */
export async function checkRounds(
  t: Test,
  offset: number,
  run: (histories: Histories, round: number) => Promise<void>,
): Promise<void> {
  t.comment(`SEED=${seed}`);
  const totals: Record<string, number> = {};
  for (let round = 0; round < ROUNDS; round++) {
    const roundSeed = seed + offset + 10 * round;
    const histories = new Histories(
      roundSeed,
      NAMES.map((name) => `${name}${round}`),
    );
    await run(histories, round);
    histories.check(t, roundSeed);
    for (const { output } of [...histories.byName.values()].flat()) {
      const status = String(output?.status ?? "none");
      totals[status] = (totals[status] ?? 0) + 1;
    }
  }
  t.comment(`${ROUNDS} histories, responses by status: ${JSON.stringify(totals)}`);
}

/** Plays recorded cases on machines of their own, each with the settings that its cases were recorded with. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Case, Step } from "./cases.ts";
import { followerOf, isFollower } from "./companions.ts";
import { differences } from "./compare.ts";
import { containersOf } from "./conditions.ts";
import { deliberate } from "./deliberate.ts";
import { isPlayable, Machine, settingsOf } from "./machine.ts";
import { type HostActs, play } from "./player.ts";

/** What is told of a case. */
export interface Outcome {
  readonly one: Case;
  readonly differences: readonly string[];
  /** Of differences that are meant; empty when there are none. */
  readonly why: string;
}

export interface RunOptions {
  readonly atOnce: number;
  /** Called as cases end. */
  readonly report: (outcome: Outcome) => void;
}

/** Cases whose settings this machine cannot have are left out. */
export async function playCases(selected: readonly Case[], { atOnce, report }: RunOptions): Promise<void> {
  for (const [kind, cases] of Map.groupBy(selected, ({ id }) => settingsOf(id))) {
    if (!isPlayable(kind)) continue;
    await using machine = await Machine.create(kind);
    const batches = Map.groupBy(cases, sharedAct);
    const alone = batches.get(undefined) ?? [];
    batches.delete(undefined);
    await playAll(machine, alone, { atOnce, report });
    // Those that wait for the same act have to be there together.
    for (const [, together] of batches) await playAll(machine, together, { atOnce: together.length, report });
  }
}

async function playAll(machine: Machine, cases: readonly Case[], { atOnce, report }: RunOptions): Promise<void> {
  const acts = actsOf(machine, cases.length);
  const queue = cases.filter((one) => !isFollower(one));
  const workers = Array.from({ length: Math.min(atOnce, cases.length) }, async () => {
    for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
      report(await tried(machine, one, acts, report, followerOf(one, cases)));
    }
  });
  await Promise.all(workers);
}

/** What is done to the machine once for all cases that wait for it: `killAgent`, `killRuntime`. */
function sharedAct({ steps = [] }: Case): string | undefined {
  return steps.find((step) => step.op === "host" && step.of !== undefined)?.do;
}

async function tried(
  machine: Machine,
  one: Case,
  acts: HostActs,
  report: RunOptions["report"],
  follower?: Case,
): Promise<Outcome> {
  try {
    const played = await play(machine, one, acts, async () => {
      if (follower !== undefined) report(await tried(machine, follower, acts, report));
    });
    const found = [...played.problems, ...differences(one, played)];
    const meant = deliberate[one.id];
    const others = found.filter((line) => meant?.differences.includes(line) !== true);
    return { one, differences: others, why: others.length < found.length ? (meant?.why ?? "") : "" };
  } catch (error) {
    const problem = `cannot be played: ${error instanceof Error ? error.stack : String(error)}`;
    return { one, differences: [problem], why: "" };
  }
}

/** Acts with a number of cases (`of`) are done once all that are played together have come to them. */
function actsOf(machine: Machine, players: number): HostActs {
  const arrived = new Map<string, { count: number; readonly done: PromiseWithResolvers<void> }>();
  const once = async (step: Step): Promise<void> => {
    const name = step.do ?? "";
    const entry = arrived.get(name) ?? { count: 0, done: Promise.withResolvers<void>() };
    arrived.set(name, entry);
    entry.count += 1;
    if (entry.count === players) actOn(machine, step).then(entry.done.resolve, entry.done.reject);
    await entry.done.promise;
  };
  return {
    async act(step: Step, seen) {
      if (step.of !== undefined) return await once(step);
      if (step.do !== "killContainer") return await actOn(machine, step);
      const found = containersOf(seen.status).find(({ name }) => name === step.container);
      await machine.killContainer(found?.containerID?.replace(/^.*:\/\//, "") ?? "");
    },
  };
}

async function actOn(machine: Machine, step: Step): Promise<void> {
  switch (step.do) {
    case "killAgent":
      return await machine.killAgent(step.signal ?? "SIGKILL");
    case "startAgent":
      await sleep((step.downSeconds ?? 0) * 1000);
      return await machine.startAgent();
    case "killRuntime":
      return await machine.containerd.kill();
    case "startRuntime":
      await sleep((step.downSeconds ?? 0) * 1000);
      return await machine.containerd.start();
    default:
      throw new Error(`${step.do} is not known`);
  }
}

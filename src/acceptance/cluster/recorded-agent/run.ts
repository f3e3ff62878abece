/** Replays recorded cases, on one node for each configuration. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Case, Step } from "./cases.ts";
import { followerOf, isFollower } from "./companions.ts";
import { differences } from "./compare.ts";
import { containersOf } from "./conditions.ts";
import { designDifferences } from "./design-differences.ts";
import { type HostActions, play } from "./player.ts";
import { isPlayable, ReplayNode, settingsOf } from "./replay-node.ts";

/** The result of a case. */
export interface Outcome {
  readonly one: Case;
  readonly differences: readonly string[];
  /** The reason of differences by design; empty without such. */
  readonly why: string;
}

export interface RunOptions {
  readonly atOnce: number;
  /** Called at the end of each case. */
  readonly report: (outcome: Outcome) => void;
}

/** Skips cases whose configuration this machine does not support. */
export async function playCases(selected: readonly Case[], { atOnce, report }: RunOptions): Promise<void> {
  for (const [kind, cases] of Map.groupBy(selected, ({ id }) => settingsOf(id))) {
    if (!isPlayable(kind)) continue;
    await using node = await ReplayNode.create(kind);
    const batches = Map.groupBy(cases, sharedHostAction);
    const alone = batches.get(undefined) ?? [];
    batches.delete(undefined);
    await playAll(node, alone, { atOnce, report });
    // Cases that wait for the same action run together.
    for (const [, together] of batches) await playAll(node, together, { atOnce: together.length, report });
  }
}

async function playAll(node: ReplayNode, cases: readonly Case[], { atOnce, report }: RunOptions): Promise<void> {
  const actions = createHostActions(node, cases.length);
  const queue = cases.filter((one) => !isFollower(one));
  const workers = Array.from({ length: Math.min(atOnce, cases.length) }, async () => {
    for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
      report(await playCase(node, one, actions, report, followerOf(one, cases)));
    }
  });
  await Promise.all(workers);
}

/** The action on the node that cases share: `killAgent`, `killRuntime`. */
function sharedHostAction({ steps = [] }: Case): string | undefined {
  return steps.find((step) => step.op === "host" && step.of !== undefined)?.do;
}

async function playCase(
  node: ReplayNode,
  one: Case,
  actions: HostActions,
  report: RunOptions["report"],
  follower?: Case,
): Promise<Outcome> {
  try {
    const played = await play(node, one, actions, async () => {
      if (follower !== undefined) report(await playCase(node, follower, actions, report));
    });
    const found = [...played.problems, ...differences(one, played)];
    const byDesign = designDifferences[one.id];
    const others = found.filter((line) => byDesign?.differences.includes(line) !== true);
    return { one, differences: others, why: others.length < found.length ? (byDesign?.why ?? "") : "" };
  } catch (error) {
    const problem = `cannot be replayed: ${error instanceof Error ? error.stack : String(error)}`;
    return { one, differences: [problem], why: "" };
  }
}

/** Actions with a number of cases (`of`) run once all of these cases have reached them. */
function createHostActions(node: ReplayNode, players: number): HostActions {
  const arrived = new Map<string, { count: number; readonly done: PromiseWithResolvers<void> }>();
  const once = async (step: Step): Promise<void> => {
    const name = step.do ?? "";
    const entry = arrived.get(name) ?? { count: 0, done: Promise.withResolvers<void>() };
    arrived.set(name, entry);
    entry.count += 1;
    if (entry.count === players) runHostAction(node, step).then(entry.done.resolve, entry.done.reject);
    await entry.done.promise;
  };
  return {
    async act(step: Step, seen) {
      if (step.of !== undefined) return await once(step);
      if (step.do !== "killContainer") return await runHostAction(node, step);
      const found = containersOf(seen.status).find(({ name }) => name === step.container);
      await node.killContainer(found?.containerID?.replace(/^.*:\/\//, "") ?? "");
    },
  };
}

async function runHostAction(node: ReplayNode, step: Step): Promise<void> {
  switch (step.do) {
    case "killAgent":
      return await node.killAgent(step.signal ?? "SIGKILL");
    case "startAgent":
      await sleep((step.downSeconds ?? 0) * 1000);
      return await node.startAgent();
    case "killRuntime":
      return await node.containerd.kill();
    case "startRuntime":
      await sleep((step.downSeconds ?? 0) * 1000);
      return await node.containerd.start();
    default:
      throw new Error(`unknown action ${step.do}`);
  }
}

/** Replays recorded cases, on one node for each configuration. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Case, Step } from "./cases.ts";
import { followerOf, isFollower } from "./companions.ts";
import { containersOf } from "./conditions.ts";
import { explainDifferences } from "./design-differences.ts";
import { type HostActions, play } from "./player.ts";
import { ReplayNode } from "./replay-node.ts";
import { isPlayable, needsNode, settingsOf } from "./settings.ts";

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

/** Skips cases whose configuration the agent does not support. */
export async function playCases(selected: readonly Case[], { atOnce, report }: RunOptions): Promise<void> {
  for (const [kind, cases] of Map.groupBy(selected, settingsOf)) {
    if (!isPlayable(kind)) continue;
    await using node = await ReplayNode.create(kind);
    for (const [way, batch] of Map.groupBy(cases, (one) => wayOf(one, cases))) {
      const players = way === "beside" ? atOnce : way === "alone" ? 1 : batch.length;
      await playAll(node, batch, cases, { atOnce: players, report });
    }
  }
}

/** Cases that wait for the same action on the node run together; others run alone if they could disturb each other. */
function wayOf(one: Case, cases: readonly Case[]): string {
  const acts = (one.steps ?? []).filter(
    ({ op, do: act = "" }) => op === "host" && /^(kill|start)(Agent|Runtime)$/.test(act),
  );
  const shared = acts.find((step) => step.of !== undefined)?.do;
  if (shared !== undefined) return shared;
  const follower = followerOf(one, cases);
  const isAlone = acts.length > 0 || needsNode(one) || (follower !== undefined && needsNode(follower));
  return isAlone ? "alone" : "beside";
}

async function playAll(
  node: ReplayNode,
  batch: readonly Case[],
  cases: readonly Case[],
  { atOnce, report }: RunOptions,
): Promise<void> {
  const actions = createHostActions(node, batch.length);
  const queue = batch.filter((one) => !isFollower(one, cases));
  const workers = Array.from({ length: Math.min(atOnce, queue.length) }, async () => {
    for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
      report(await playCase(node, one, actions, report, followerOf(one, cases)));
    }
  });
  await Promise.all(workers);
}

async function playCase(
  node: ReplayNode,
  one: Case,
  actions: HostActions,
  report: RunOptions["report"],
  follower?: Case,
): Promise<Outcome> {
  try {
    const follow = follower && (async () => report(await playCase(node, follower, actions, report)));
    const played = await play(node, one, actions, follow);
    const found = [...played.problems, ...played.differences];
    return { one, ...explainDifferences(one, found) };
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

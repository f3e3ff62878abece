/**
 * The TTL controller: writes to each node how long its agent may cache secrets and config maps. In larger clusters the
 * time is longer, so that agents send fewer requests.
 */

import { nodeKind } from "../../api/core/node/kind.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";

const TTL_ANNOTATION = "node.alpha.kubernetes.io/ttl";

/** The ranges overlap, so that a cluster at a boundary does not change all the time. */
const STEPS = [
  { min: 0, max: 100, seconds: 0 },
  { min: 90, max: 500, seconds: 15 },
  { min: 450, max: 1000, seconds: 30 },
  { min: 900, max: 2000, seconds: 60 },
  { min: 1800, max: 10_000, seconds: 300 },
  { min: 9000, max: Infinity, seconds: 600 },
] as const;

/** The step for the number of nodes, coming from the current step. */
export function nextStep(current: number, nodes: number): number {
  let step = current;
  while (nodes > (STEPS[step]?.max ?? Infinity)) step++;
  while (nodes < (STEPS[step]?.min ?? 0)) step--;
  return step;
}

export async function runTtlController(deps: ControllerDeps): Promise<void> {
  const { client, log, signal, informers } = deps;
  const nodes = informers.of(nodeKind);
  let step = 0;
  await using queue = createControllerQueue(deps, {
    name: "ttlcontroller",
    workers: 5,
    sync: async (name, stopping) => {
      const node = nodes.get(name);
      const ttl = String(STEPS[step]?.seconds);
      if (node === undefined || node.metadata?.annotations?.[TTL_ANNOTATION] === ttl) return;
      const patch = { metadata: { annotations: { [TTL_ANNOTATION]: ttl } } };
      try {
        await client.patch(nodeKind, { name }, "strategic", patch, { signal: stopping });
      } catch (error) {
        if (!isNotFoundOrConflict(error)) throw error;
      }
    },
    onError: (node, error) => log.error("Failed to set the TTL of a node, will retry", error, { node }),
  });
  const updateStep = (): void => {
    const next = nextStep(step, nodes.size);
    if (next === step) return;
    step = next;
    for (const { metadata } of nodes.list()) queue.add(metadata?.name ?? "");
  };
  await waitForCacheSync([nodes], signal);
  updateStep();
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    nodes.subscribe({
      put: ({ metadata }) => {
        updateStep();
        queue.add(metadata?.name ?? "");
      },
      delete: updateStep,
    }),
  );
  await waitForAbort(signal);
}

/** The eviction of a real container that allocates memory fast. */
import t from "tap";
import { evictGreedyPod } from "../../testing/agent/memory-eviction.ts";
import { findMissing } from "../../testing/agent/private-containerd.ts";

const missing = await findMissing();
const skip = missing.length > 0 && `needs ${missing.join(", ")}`;

t.test(
  "a pod that allocates memory fast is evicted within a second, and no other",
  { skip, timeout: 120_000 },
  async (t) => {
    const { tookMs = Number.POSITIVE_INFINITY, event, greedy, quiet } = await evictGreedyPod();
    t.ok(tookMs < 1000, `${Math.round(tookMs)} ms from the threshold to the event`);
    t.match(greedy, {
      reason: "Evicted",
      message: /^The node was low on resource: memory. Threshold quantity: \w+, available: \w+. Container c was/,
    });
    const disruption = greedy.conditions?.find(({ type }) => type === "DisruptionTarget");
    t.match(disruption, { status: "True", reason: "TerminationByKubelet" });
    t.match(event?.metadata, { annotations: { offending_containers: "c", starved_resource: "memory" } });
    t.equal(quiet.phase, "Running");
  },
);

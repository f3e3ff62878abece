import { podState } from "./pod-state.ts";

const RECHECK_MS = 300_000;

/** The pod needs a feature that this agent does not support. It stays Pending, with an event; nothing of it runs. */
export const refused = podState({
  name: "refused",
  successors: ["admitting"],
  async next(pod, { message }) {
    pod.services.events.recordPodEvent(pod.pod, "Warning", "Unsupported", `Pod cannot be started: ${message}`);
    await pod.wait(RECHECK_MS);
    pod.memory.waitingReasons.clear();
    return { to: "admitting" };
  },
});

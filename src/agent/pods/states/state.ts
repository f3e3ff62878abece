/**
 * The stages of a pod's life, and which may follow which:
 *
 *     admitting ─┬─> mounting ──> running <──> pulling ──> starting ──> running
 *                ├─> refused ──> admitting     running <──> backoff
 *                └─> terminating               running ──> terminating ──> terminated ──> (gone)
 *
 * A worker that is told to end its pod goes to terminating from wherever it is.
 */
import type { PodState, Transition } from "../pod-context.ts";
import { admitting } from "./admitting.ts";
import { backoff } from "./backoff.ts";
import { mounting } from "./mounting.ts";
import { pulling } from "./pulling.ts";
import { refused } from "./refused.ts";
import { running } from "./running.ts";
import { starting } from "./starting.ts";
import { terminated } from "./terminated.ts";
import { terminating } from "./terminating.ts";

export function stateOf(transition: Transition): PodState {
  switch (transition.to) {
    case "admitting":
      return admitting;
    case "refused":
      return refused(transition.message);
    case "mounting":
      return mounting;
    case "running":
      return running;
    case "pulling":
      return pulling(transition.start, transition.sandbox);
    case "starting":
      return starting(transition.start, transition.sandbox, transition.image);
    case "backoff":
      return backoff(transition.waits);
    case "terminating":
      return terminating;
    case "terminated":
      return terminated;
  }
}

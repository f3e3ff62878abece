/**
 * The states of a pod's worker. A diagram in `docs/` shows their transitions. A worker whose pod is to
 * end enters `terminating` from any state.
 */
import { admitting } from "./admitting.ts";
import { backoff } from "./backoff.ts";
import { mounting } from "./mounting.ts";
import type { PodState, StateName } from "./pod-state.ts";
import { pulling } from "./pulling.ts";
import { refused } from "./refused.ts";
import { running } from "./running.ts";
import { starting } from "./starting.ts";
import { terminated } from "./terminated.ts";
import { terminating } from "./terminating.ts";

export const podStates: Readonly<Record<StateName, PodState>> = {
  admitting,
  refused,
  mounting,
  running,
  pulling,
  starting,
  backoff,
  terminating,
  terminated,
};

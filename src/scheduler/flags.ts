/** Every flag of `svc scheduler`, in the order of its help. */
import {
  connectionFlags,
  leaderElectionFlags,
  loggingFlags,
  metricsFlags,
  otherFlags,
  servingFlags,
  validateLeaderElection,
} from "../component/flags.ts";
import { flag, section } from "../flags/flag.ts";
import { schedulerGates } from "../flags/gate-tables/scheduler.ts";
import { validateLogging } from "../flags/log-options.ts";
import type { Program } from "../flags/program.ts";
import { duration } from "../flags/types/duration.ts";
import { gateSettings } from "../flags/types/gate-settings.ts";
import { float, int32 } from "../flags/types/number.ts";
import { file } from "../flags/types/text.ts";

export const schedulerFlags = {
  ...connectionFlags,
  ...section("API server", {
    // Kubernetes' limit of 50 requests would also limit it to 50 pods a second.
    "kube-api-qps": flag(
      float({}),
      1000,
      "Requests a second to the API server, on average; no limit if not positive. Each pod takes one.",
    ),
    "kube-api-burst": flag(int32({ min: 0 }), 2000, "Requests to the API server at once, after a pause."),
  }),
  ...section("Scheduling", {
    config: flag(
      file,
      "",
      "KubeSchedulerConfiguration file: profiles, extenders, leader election. Flags that are given take precedence.",
      { defaultNote: "one profile with Kubernetes' defaults" },
    ),
  }),
  ...section("Scheduling", {
    "pod-max-in-unschedulable-pods-duration": flag(
      duration({ min: 1 }),
      300_000,
      "How long a pod that no event concerns stays unschedulable before it is tried again.",
      { deprecated: "this flag is deprecated and will be removed in a future version" },
    ),
  }),
  ...leaderElectionFlags("kube-scheduler"),
  ...servingFlags(10259),
  ...metricsFlags,
  ...loggingFlags,
  ...section("Other", {
    "feature-gates": flag(gateSettings("Gate=true,..."), {}, "Enables and disables feature gates."),
  }),
  ...otherFlags,
};

export const schedulerProgram: Program<typeof schedulerFlags> = {
  name: "svc scheduler",
  summary: "The scheduler assigns pods to nodes. It works with any API server of Kubernetes.",
  flags: schedulerFlags,
  gates: schedulerGates,
  check: (flags) => [...validateLeaderElection(flags), ...validateLogging(flags)],
};

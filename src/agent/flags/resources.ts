import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { strings } from "../../flags/types/list.ts";
import { gracePeriods, minimumReclaim, qosReserved, reserved, thresholds } from "../../flags/types/map.ts";
import { cgroupPath } from "../../flags/types/node.ts";
import { int, int32 } from "../../flags/types/number.ts";
import { bool } from "../../flags/types/text.ts";
import { inFile } from "./deprecation.ts";

export const resourcesFlags = section("Resources, eviction and node allocatable", {
  "max-pods": flag(int32({ min: 0 }), 110, "Pods allowed on this agent.", { config: "maxPods", deprecated: inFile }),
  "pods-per-core": flag(
    int32({ min: 0 }),
    0,
    "Pods per core; total still capped by --max-pods; 0 disables this limit.",
    { config: "podsPerCore", deprecated: inFile },
  ),
  "pod-max-pids": flag(int({ min: -1 }), -1, "Max processes per pod; -1 uses node allocatable PID capacity.", {
    config: "podPidsLimit",
    deprecated: inFile,
  }),
  "enforce-node-allocatable": flag(
    strings({ choices: ["none", "pods", "system-reserved", "svc-reserved"], sample: "pods,system-reserved" }),
    ["pods"],
    "Which limits are enforced: none, or any of pods, system-reserved and svc-reserved. The latter two need " +
      "their cgroup flags.",
    { config: "enforceNodeAllocatable", deprecated: inFile },
  ),
  "svc-reserved": flag(
    reserved("strings"),
    {},
    "<resource>=<quantity> pairs for service components: cpu, memory, ephemeral-storage (pid also shown in " +
      "the example).",
    { config: "svcReserved", deprecated: inFile },
  ),
  "svc-reserved-cgroup": flag(cgroupPath, "", "Absolute top-level cgroup managing those components.", {
    config: "svcReservedCgroup",
    deprecated: inFile,
  }),
  "system-reserved": flag(
    reserved("string"),
    {},
    "Same pair format for non-service components; cpu, memory, ephemeral-storage.",
    { config: "systemReserved", deprecated: inFile },
  ),
  "system-reserved-cgroup": flag(cgroupPath, "", "Absolute top-level cgroup for them.", {
    config: "systemReservedCgroup",
    deprecated: inFile,
  }),
  "qos-reserved": flag(qosReserved, {}, "Alpha. Memory set apart per quality-of-service class, as memory=percentage.", {
    config: "qosReserved",
    gate: "QOSReserved",
    deprecated: inFile,
  }),
  "experimental-allocatable-ignore-eviction": flag(
    bool,
    false,
    "Ignore hard eviction thresholds when node allocatable is computed.",
    { deprecated: "it will be removed in 1.25 or later." },
  ),
  "eviction-hard": flag(
    thresholds,
    {
      "imagefs.available": "15%",
      "memory.available": "100Mi",
      "nodefs.available": "10%",
      "nodefs.inodesFree": "5%",
    },
    "Thresholds that trigger eviction.",
    { config: "evictionHard", deprecated: inFile },
  ),
  "eviction-soft": flag(thresholds, {}, "Thresholds that trigger eviction after their grace period.", {
    config: "evictionSoft",
    deprecated: inFile,
  }),
  "eviction-soft-grace-period": flag(gracePeriods, {}, "<signal>=<duration> grace periods for soft thresholds.", {
    config: "evictionSoftGracePeriod",
    deprecated: inFile,
  }),
  "eviction-max-pod-grace-period": flag(
    int32(),
    0,
    "Max grace seconds for pod termination on soft eviction; negative defers to the pod's value.",
    { config: "evictionMaxPodGracePeriod", deprecated: inFile },
  ),
  "eviction-minimum-reclaim": flag(minimumReclaim, {}, "<signal>=<quantity> minimum reclaim per eviction.", {
    config: "evictionMinimumReclaim",
    deprecated: inFile,
  }),
  "eviction-pressure-transition-period": flag(
    duration({ min: 0 }),
    300_000,
    "Wait before leaving a pressure condition.",
    { config: "evictionPressureTransitionPeriod", deprecated: inFile },
  ),
  "kernel-memcg-notification": flag(
    bool,
    false,
    "Use kernel memcg notification for memory thresholds instead of polling.",
    { config: "kernelMemcgNotification", deprecated: inFile },
  ),
});

import type { Texts } from "./texts.ts";

const measured = {
  timestamp: "The end of the time over which the usage was measured.",
  window: "The length of that time.",
};
const usage = "CPU in cores, on average of the window, and the memory of the working set.";

export const metricsTexts: Texts = {
  "metrics/v1beta1.NodeMetrics": { "": "The CPU and memory that a node uses.", ...measured, usage },
  "metrics/v1beta1.PodMetrics": {
    "": "The CPU and memory that the containers of a running pod use.",
    ...measured,
    containers: "The usage of each container.",
  },
  "metrics/v1beta1.ContainerMetrics": {
    "": "The CPU and memory that a container uses.",
    name: "The name of the container in the pod.",
    usage,
  },
};

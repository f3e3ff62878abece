/** All behaviours that are shown on a running cluster, and the sample that runs with the tests of clusters. */
import { customResources } from "./api-machinery/custom-resources.ts";
import { compactedList, policies } from "./api-machinery/policies.ts";
import { publishedSchemas } from "./api-machinery/published-schemas.ts";
import { quotas } from "./api-machinery/quotas.ts";
import { webhooks } from "./api-machinery/webhooks.ts";
import { jobs } from "./apps/jobs.ts";
import { workloads } from "./apps/workloads.ts";
import { access } from "./auth/access.ts";
import { kubectl } from "./cli/kubectl.ts";
import type { Behaviours } from "./harness/behaviour.ts";
import { services } from "./network/services.ts";
import { traffic } from "./network/traffic.ts";
import { containers } from "./node/containers.ts";
import { pods } from "./node/pods.ts";
import { probes } from "./node/probes.ts";
import { builtInResources } from "./resources/built-in.ts";
import { events } from "./resources/events.ts";
import { schedulingOfNodes } from "./scheduling/nodes.ts";
import { downwardVolumes } from "./storage/downward-volumes.ts";
import { emptyDirs } from "./storage/empty-dirs.ts";
import { fileVolumes } from "./storage/file-volumes.ts";

/** They last long without work, and run beside all others. */
export const waiting: Behaviours = compactedList;

/** They affect their own namespace only, or what they have made. */
export const concurrent: Behaviours = {
  ...builtInResources,
  ...quotas,
  ...policies,
  ...webhooks,
  ...customResources,
  ...publishedSchemas,
  ...fileVolumes,
  ...downwardVolumes,
  ...emptyDirs,
  ...pods,
  ...containers,
  ...probes,
  ...workloads,
  ...jobs,
  ...access,
  ...events,
  ...services,
  ...traffic,
  ...kubectl,
};

/** They affect others, or measure. */
export const alone: Behaviours = schedulingOfNodes;

/** Of most sigs and topics; together less than a minute. */
export const sample: readonly string[] = [
  "AdmissionWebhook should be able to deny pod and configmap creation",
  "CronJob should support CronJob API operations",
  "CustomResourceDefinition resources custom resource defaulting for requests and from storage works",
  "Ephemeral Containers should update the ephemeral containers in an existing pod",
  "Job with successPolicy should succeeded when all indexes succeeded",
  "Kubectl client Kubectl expose should create services for rc",
  "LimitRange should create a LimitRange with defaults and ensure pod has those defaults applied.",
  "Projected combined should project all components that make up the projection API",
  "Projected secret should be consumable from pods in volume as non-root with defaultMode and fsGroup set",
  "ReplicaSet should adopt matching pods on creation and release no longer matching pods",
  "ServiceAccounts should mount an API token into pods",
];

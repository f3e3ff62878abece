/** All behaviours that are shown on a running cluster, and the sample that runs with the tests of clusters. */
import { aggregation } from "./api-machinery/aggregation.ts";
import { customResources } from "./api-machinery/custom-resources.ts";
import { garbageCollection } from "./api-machinery/garbage-collection.ts";
import { compactedList, policies } from "./api-machinery/policies.ts";
import { publishedSchemas } from "./api-machinery/published-schemas.ts";
import { quotas } from "./api-machinery/quotas.ts";
import { watches } from "./api-machinery/watches.ts";
import { webhooks } from "./api-machinery/webhooks.ts";
import { cronJobs, indexedJobs } from "./apps/indexed-jobs.ts";
import { jobs } from "./apps/jobs.ts";
import { rollouts } from "./apps/rollouts.ts";
import { statefulSets } from "./apps/stateful-sets.ts";
import { workloads } from "./apps/workloads.ts";
import { access } from "./auth/access.ts";
import { commands } from "./cli/commands.ts";
import { kubectl } from "./cli/kubectl.ts";
import type { Behaviours } from "./harness/behaviour.ts";
import { endpoints } from "./network/endpoints.ts";
import { services } from "./network/services.ts";
import { traffic } from "./network/traffic.ts";
import { containers } from "./node/containers.ts";
import { life, taints } from "./node/life.ts";
import { pods } from "./node/pods.ts";
import { probes } from "./node/probes.ts";
import { variables } from "./node/variables.ts";
import { builtInResources } from "./resources/built-in.ts";
import { events } from "./resources/events.ts";
import { schedulingOfNodes } from "./scheduling/nodes.ts";
import { predicates } from "./scheduling/predicates.ts";
import { downwardVolumes } from "./storage/downward-volumes.ts";
import { emptyDirs } from "./storage/empty-dirs.ts";
import { fileVolumes } from "./storage/file-volumes.ts";

/** They last long without work, and run beside all others. */
export const waiting: Behaviours = { ...compactedList, ...cronJobs };

/** They affect their own namespace only, or what they have made. */
export const concurrent: Behaviours = {
  ...builtInResources,
  ...quotas,
  ...policies,
  ...webhooks,
  ...aggregation,
  ...watches,
  ...garbageCollection,
  ...customResources,
  ...publishedSchemas,
  ...fileVolumes,
  ...downwardVolumes,
  ...emptyDirs,
  ...pods,
  ...containers,
  ...probes,
  ...variables,
  ...life,
  ...workloads,
  ...jobs,
  ...indexedJobs,
  ...rollouts,
  ...statefulSets,
  ...predicates,
  ...access,
  ...events,
  ...services,
  ...traffic,
  ...kubectl,
  ...commands,
  ...endpoints,
};

/** They affect others, or measure. */
export const alone: Behaviours = { ...taints, ...schedulingOfNodes };

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

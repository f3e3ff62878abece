import type { Strategy } from "../../kind.ts";
import { keepStatus, replaceStatus } from "../../strategy.ts";
import type { Node } from "./schema.ts";
import { validateNode, validateNodeUpdate } from "./validation.ts";
import { nodeWarnings } from "./warnings.ts";

export const nodeStrategy: Strategy<Node> = {
  setDefaults: (object) => setAllocatable(syncPodCidrs(object)),
  prepareForCreate: dropConfigSource,
  prepareForUpdate: (next, previous) => keepStatus(dropConfigSource(next), previous),
  validate: validateNode,
  validateUpdate: validateNodeUpdate,
  warnings: nodeWarnings,
};

/** Keeps `podCIDR` equal to the first of `podCIDRs`; `podCIDR` wins where they differ. */
function syncPodCidrs(object: Node): Node {
  const { podCIDR = "", podCIDRs = [] } = object.spec ?? {};
  const [first = ""] = podCIDRs;
  if (podCIDR === first) return object;
  return { ...object, spec: { ...object.spec, ...(podCIDR === "" ? { podCIDR: first } : { podCIDRs: [podCIDR] }) } };
}

function setAllocatable(object: Node): Node {
  const { status } = object;
  if (status?.capacity === undefined || status.allocatable !== undefined) return object;
  return { ...object, status: { ...status, allocatable: status.capacity } };
}

/** Dynamic kubelet configuration was removed from Kubernetes. */
function dropConfigSource(object: Node): Node {
  if (object.spec?.configSource === undefined) return object;
  const { configSource: _, ...spec } = object.spec;
  return { ...object, spec };
}

function dropConfigStatus(object: Node): Node {
  if (object.status?.config === undefined) return object;
  const { config: _, ...status } = object.status;
  return { ...object, status };
}

export const nodeStatusStrategy = {
  prepareForUpdate: (next: Node, previous: Node): Node => dropConfigStatus(replaceStatus(next, previous)),
  validateUpdate: validateNodeUpdate,
};

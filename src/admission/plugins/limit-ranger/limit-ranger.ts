/** LimitRanger: validates pods and claims against the limit ranges of their namespace, and sets default resources. */

import type { Container } from "../../../api/core/container/schema.ts";
import { limitRangeKind } from "../../../api/core/limit-range/kind.ts";
import type { LimitRange, LimitRangeItem } from "../../../api/core/limit-range/schema.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { podLimits, podRequests } from "../../../api/core/pod-spec/resources.ts";
import { parseResourceList, type ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import type { ResourceList } from "../../../api/core/resources/schema.ts";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import { type AdmissionRequest, matchesResource, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, ObjectReader } from "../../chain/plugin.ts";
import { checkMaximum, checkMinimum, checkRatio, checkRequestMaximum } from "./constraints.ts";

const ANNOTATION = "kubernetes.io/limit-ranger";

export function limitRanger({ reader }: { readonly reader: ObjectReader }): AdmissionPlugin {
  const rangesFor = (request: AdmissionRequest): MaybePromise<readonly LimitRange[]> => {
    if (metadataOf(request.oldObject).deletionTimestamp !== undefined) return [];
    return reader.list(limitRangeKind, request.namespace, request);
  };
  return {
    name: "LimitRanger",
    // Containers of an existing pod change their resources only through the resize subresource.
    handles: (attributes) =>
      matchesResource(attributes, podKind, ["CREATE"]) ||
      matchesResource(attributes, podKind, ["UPDATE"], "resize") ||
      matchesResource(attributes, persistentVolumeClaimKind, ["CREATE", "UPDATE"]),
    mutate(request) {
      if (request.kind.plural !== podKind.plural) return undefined;
      return andThen(rangesFor(request), (ranges) => {
        return ranges.length === 0 ? undefined : ranges.reduce(applyDefaults, request.object as Pod);
      });
    },
    validate: (request) => andThen(rangesFor(request), (ranges) => validate(request, ranges)),
  };
}

function validate(request: AdmissionRequest, ranges: readonly LimitRange[]): void {
  const isPod = request.kind.plural === podKind.plural;
  for (const range of ranges) {
    const errors = isPod
      ? validatePod(range, request.object as Pod)
      : validateClaim(range, request.object as PersistentVolumeClaim);
    const texts = [...new Set(errors)];
    if (texts.length > 0) throw newForbidden(request, texts.length === 1 ? texts[0]! : `[${texts.join(", ")}]`);
  }
}

function applyDefaults(pod: Pod, { spec }: LimitRange): Pod {
  const items = (spec?.limits ?? []).filter(({ type }) => type === "Container");
  const limits: ResourceList = Object.assign({}, ...items.map((item) => item.default));
  const requests: ResourceList = Object.assign({}, ...items.map((item) => item.defaultRequest));
  if (pod.spec === undefined) return pod;
  const messages: string[] = [];
  const setDefaults = (container: Container, what: string): Container => {
    const { resources } = container;
    const missing = {
      requests: missingNames(requests, resources?.requests),
      limits: missingNames(limits, resources?.limits),
    };
    for (const [list, names] of [
      ["request", missing.requests],
      ["limit", missing.limits],
    ] as const) {
      if (names.length > 0) messages.push(`${names.join(", ")} ${list} for ${what} ${container.name}`);
    }
    if (missing.requests.length + missing.limits.length === 0) return container;
    return {
      ...container,
      resources: {
        ...resources,
        ...(missing.limits.length === 0 ? {} : { limits: { ...limits, ...resources?.limits } }),
        ...(missing.requests.length === 0 ? {} : { requests: { ...requests, ...resources?.requests } }),
      },
    };
  };
  const containers = pod.spec.containers.map((container) => setDefaults(container, "container"));
  const initContainers = pod.spec.initContainers?.map((container) => setDefaults(container, "init container"));
  if (messages.length === 0) return pod;
  const metadata = metadataOf(pod);
  const annotations = { ...metadata.annotations, [ANNOTATION]: `LimitRanger plugin set: ${messages.join("; ")}` };
  const updated = initContainers === undefined ? { containers } : { containers, initContainers };
  return { ...pod, metadata: { ...metadata, annotations }, spec: { ...pod.spec, ...updated } };
}

/** The names of the defaults that `given` lacks, sorted. */
function missingNames(defaults: ResourceList, given: ResourceList = {}): readonly string[] {
  return Object.keys(defaults)
    .filter((name) => given[name] === undefined)
    .sort();
}

function validatePod({ spec }: LimitRange, pod: Pod): readonly string[] {
  const { containers = [], initContainers = [] } = pod.spec ?? {};
  return (spec?.limits ?? []).flatMap((item) => {
    if (item.type === "Pod") return validateItem(item, podRequests(pod), podLimits(pod));
    if (item.type !== "Container") return [];
    return [...containers, ...initContainers].flatMap(({ resources }) =>
      validateItem(item, parseResourceList(resources?.requests), parseResourceList(resources?.limits)),
    );
  });
}

function validateItem(
  item: LimitRangeItem,
  requests: ResourceQuantities,
  limits: ResourceQuantities,
): readonly string[] {
  const input = (constraint: readonly [string, string]) => ({ type: item.type, constraint, requests, limits });
  return [
    ...sortedConstraints(item.min).map((constraint) => checkMinimum(input(constraint))),
    ...sortedConstraints(item.max).map((constraint) => checkMaximum(input(constraint))),
    ...sortedConstraints(item.maxLimitRequestRatio).map((constraint) => checkRatio(input(constraint))),
  ].filter((problem) => problem !== undefined);
}

/** Limits of claims are ignored, as in Kubernetes. */
function validateClaim({ spec }: LimitRange, claim: PersistentVolumeClaim): readonly string[] {
  const requests = parseResourceList(claim.spec?.resources?.requests);
  const limits: ResourceQuantities = new Map();
  return (spec?.limits ?? [])
    .filter(({ type }) => type === "PersistentVolumeClaim")
    .flatMap(({ type, min, max }) => [
      ...sortedConstraints(min).map((constraint) => checkMinimum({ type, constraint, requests, limits })),
      ...sortedConstraints(max).map((constraint) => checkRequestMaximum({ type, constraint, requests, limits })),
    ])
    .filter((problem) => problem !== undefined);
}

/** Sorted by resource name, so that messages are stable. */
function sortedConstraints(list: ResourceList | undefined): readonly (readonly [string, string])[] {
  return Object.entries(list ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Keeps pods and claims within the limit ranges of their namespace, and fills in what those say of defaults. */

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
import { matchesResource, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, AdmissionRequest, ObjectReader } from "../../chain/plugin.ts";
import { maximumOf, minimumOf, ratioOf, requestMaximumOf } from "./constraints.ts";

const ANNOTATION = "kubernetes.io/limit-ranger";

export function limitRanger({ reader }: { readonly reader: ObjectReader }): AdmissionPlugin {
  const rangesFor = (request: AdmissionRequest): MaybePromise<readonly LimitRange[]> => {
    if (metadataOf(request.oldObject).deletionTimestamp !== undefined) return [];
    return reader.list(limitRangeKind, request.namespace, request);
  };
  return {
    name: "LimitRanger",
    // The containers of a pod that is there do not change, but for their resources.
    handles: (attributes) =>
      matchesResource(attributes, podKind, ["CREATE"]) ||
      matchesResource(attributes, podKind, ["UPDATE"], "resize") ||
      matchesResource(attributes, persistentVolumeClaimKind, ["CREATE", "UPDATE"]),
    mutate(request) {
      if (request.kind.plural !== podKind.plural) return undefined;
      return andThen(rangesFor(request), (ranges) => {
        return ranges.length === 0 ? undefined : ranges.reduce(withDefaults, request.object as Pod);
      });
    },
    validate: (request) => andThen(rangesFor(request), (ranges) => check(request, ranges)),
  };
}

function check(request: AdmissionRequest, ranges: readonly LimitRange[]): void {
  const isPod = request.kind.plural === podKind.plural;
  for (const range of ranges) {
    const problems = isPod
      ? podProblems(range, request.object as Pod)
      : claimProblems(range, request.object as PersistentVolumeClaim);
    const texts = [...new Set(problems)];
    if (texts.length > 0) throw newForbidden(request, texts.length === 1 ? texts[0]! : `[${texts.join(", ")}]`);
  }
}

function withDefaults(pod: Pod, { spec }: LimitRange): Pod {
  const items = (spec?.limits ?? []).filter(({ type }) => type === "Container");
  const limits: ResourceList = Object.assign({}, ...items.map((item) => item.default));
  const requests: ResourceList = Object.assign({}, ...items.map((item) => item.defaultRequest));
  if (pod.spec === undefined) return pod;
  const told: string[] = [];
  const filled = (container: Container, what: string): Container => {
    const { resources } = container;
    const missing = { requests: absent(requests, resources?.requests), limits: absent(limits, resources?.limits) };
    for (const [list, names] of [
      ["request", missing.requests],
      ["limit", missing.limits],
    ] as const) {
      if (names.length > 0) told.push(`${names.join(", ")} ${list} for ${what} ${container.name}`);
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
  const containers = pod.spec.containers.map((container) => filled(container, "container"));
  const initContainers = pod.spec.initContainers?.map((container) => filled(container, "init container"));
  if (told.length === 0) return pod;
  const metadata = metadataOf(pod);
  const annotations = { ...metadata.annotations, [ANNOTATION]: `LimitRanger plugin set: ${told.join("; ")}` };
  const filledIn = initContainers === undefined ? { containers } : { containers, initContainers };
  return { ...pod, metadata: { ...metadata, annotations }, spec: { ...pod.spec, ...filledIn } };
}

/** The names of the defaults that are not given, sorted. */
function absent(defaults: ResourceList, given: ResourceList = {}): readonly string[] {
  return Object.keys(defaults)
    .filter((name) => given[name] === undefined)
    .sort();
}

function podProblems({ spec }: LimitRange, pod: Pod): readonly string[] {
  const { containers = [], initContainers = [] } = pod.spec ?? {};
  return (spec?.limits ?? []).flatMap((item) => {
    if (item.type === "Pod") return problemsOf(item, podRequests(pod), podLimits(pod));
    if (item.type !== "Container") return [];
    return [...containers, ...initContainers].flatMap(({ resources }) =>
      problemsOf(item, parseResourceList(resources?.requests), parseResourceList(resources?.limits)),
    );
  });
}

function problemsOf(item: LimitRangeItem, requests: ResourceQuantities, limits: ResourceQuantities): readonly string[] {
  const at = (bound: readonly [string, string]) => ({ type: item.type, bound, requests, limits });
  return [
    ...boundsOf(item.min).map((bound) => minimumOf(at(bound))),
    ...boundsOf(item.max).map((bound) => maximumOf(at(bound))),
    ...boundsOf(item.maxLimitRequestRatio).map((bound) => ratioOf(at(bound))),
  ].filter((problem) => problem !== undefined);
}

/** Nobody asks what limits a claim says for itself. */
function claimProblems({ spec }: LimitRange, claim: PersistentVolumeClaim): readonly string[] {
  const requests = parseResourceList(claim.spec?.resources?.requests);
  const limits: ResourceQuantities = new Map();
  return (spec?.limits ?? [])
    .filter(({ type }) => type === "PersistentVolumeClaim")
    .flatMap(({ type, min, max }) => [
      ...boundsOf(min).map((bound) => minimumOf({ type, bound, requests, limits })),
      ...boundsOf(max).map((bound) => requestMaximumOf({ type, bound, requests, limits })),
    ])
    .filter((problem) => problem !== undefined);
}

/** In the order of their names, so that an answer is always the same. */
function boundsOf(list: ResourceList | undefined): readonly (readonly [string, string])[] {
  return Object.entries(list ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}

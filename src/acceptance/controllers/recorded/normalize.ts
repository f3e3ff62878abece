/** Objects and events in the trimmed form of recordings, with random names, identifiers and times masked. */
import type { Event } from "../../../api/core/event/schema.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Json, RecordedEvent, Transition } from "./scenario.ts";

const POD_SPEC_FIELDS = [
  "nodeName",
  "hostname",
  "subdomain",
  "restartPolicy",
  "tolerations",
  "nodeSelector",
  "affinity",
  "schedulingGates",
  "topologySpreadConstraints",
  "activeDeadlineSeconds",
];
/** Fields at the top of objects that recordings keep. */
const TOP_FIELDS = [
  "rules",
  "aggregationRule",
  "data",
  "revision",
  "addressType",
  "endpoints",
  "ports",
  "subsets",
  "provisioner",
  "reclaimPolicy",
  "allowVolumeExpansion",
  "volumeBindingMode",
  "type",
];
/** Counters that are written when they are 0. */
const REQUIRED_COUNTERS = new Set([
  "replicas",
  "ready",
  "terminating",
  "disruptionsAllowed",
  "currentHealthy",
  "desiredHealthy",
  "expectedPods",
  "desiredReplicas",
  "currentNumberScheduled",
  "numberMisscheduled",
  "desiredNumberScheduled",
  "numberReady",
  "collisionCount",
]);

/** Masks names, addresses and times. */
export class Mask {
  readonly #namespace: string;
  /** Generated names with their prefixes. */
  readonly #generated = new Map<string, string>();

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  observe({ metadata }: ApiObject): void {
    const { name = "", generateName } = metadata ?? {};
    if (generateName !== undefined && name.startsWith(generateName)) {
      this.#generated.set(name, `${this.text(generateName)}<gen>`);
    }
  }

  text(text: string): string {
    return text
      .replaceAll(this.#namespace, "<ns>")
      .replace(/[a-z0-9][-a-z0-9.]*/g, (word) => this.#generated.get(word) ?? word)
      .replace(/<(uid|gen|ip|minute|attachment):[^>]+>/g, "<$1>")
      .replace(/<podip (?:[^<>]|<[^>]+>)+>/g, "<podip>")
      .replace(/\b10\.200\.(?!0\.1\b)\d+\.\d+\b/g, "<podip>")
      .replace(/-\d{8}\b/g, "-<minute>")
      .replace(/\bcsi-[0-9a-f]{64}\b/g, "<attachment>")
      .replace(/"resourceVersion":"\d+"/g, '"resourceVersion":"<rv>"')
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<uid>")
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>");
  }

  json(value: unknown): string {
    return this.text(
      JSON.stringify(sortKeys(value))
        .replace(/"resourceVersion":"[^"]*"/g, '"resourceVersion":"<rv>"')
        .replace(/"-----BEGIN [^"]*"/g, '"<pem>"')
        .replace(/"request":"LS0t[^"]*"/g, '"request":"<csr>"')
        // The recorded client had a UID.
        .replaceAll('"uid":"uid-admin",', ""),
    );
  }
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined && member !== null && !isEmptyObject(member))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sortKeys(member)])
      .filter(([, member]) => !isEmptyObject(member)),
  );
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

export function trim(object: ApiObject): Json {
  const { kind, metadata } = object;
  const { spec, status, ...others } = withoutSecrets(object as Json) as {
    readonly spec?: Json;
    readonly status?: Json;
  } & Json;
  const { name, generateName, uid, generation, labels, annotations, ownerReferences, finalizers } = metadata ?? {};
  const kept = { name, generateName, uid, generation, labels, annotations, ownerReferences, finalizers };
  const { deletionGracePeriodSeconds } = metadata ?? {};
  const terminating =
    metadata?.deletionTimestamp === undefined ? {} : { deletionTimestamp: "<time>", deletionGracePeriodSeconds };
  return {
    kind,
    metadata: withoutEmpty({ ...kept, ...terminating }),
    ...Object.fromEntries(TOP_FIELDS.filter((field) => field in others).map((field) => [field, others[field]])),
    spec: kind === "Pod" ? trimPodSpec(spec ?? {}) : trimOwnerSpec(spec ?? {}),
    status: trimStatus(status ?? {}, kind),
  };
}

function withoutSecrets(object: Json): Json {
  if (object.kind !== "Secret") return object;
  const names = Object.keys((object.data as Json | undefined) ?? {});
  return { ...object, data: Object.fromEntries(names.map((name) => [name, "<secret>"])) };
}

function withoutEmpty(value: Json): Json {
  return Object.fromEntries(
    Object.entries(value).filter(([, member]) => member !== undefined && !isEmptyObject(member)),
  );
}

function trimPodSpec(spec: Json): Json {
  const fields = Object.fromEntries(POD_SPEC_FIELDS.map((name) => [name, spec[name]]));
  const containers = ((spec.containers ?? []) as readonly Json[]).map(({ name, image, env, ports }) =>
    withoutEmpty({ name, image, env, ports }),
  );
  const volumes = ((spec.volumes ?? []) as readonly Json[]).filter(
    ({ name }) => !String(name).startsWith("kube-api-access-"),
  );
  return withoutEmpty({ ...fields, containers, volumes });
}

function trimOwnerSpec(spec: Json): Json {
  const template = spec.template as { readonly metadata?: Json; readonly spec?: Json } | undefined;
  if (template === undefined) return spec;
  const { labels, annotations } = template.metadata ?? {};
  const minReadySeconds = spec.minReadySeconds === 0 ? undefined : spec.minReadySeconds;
  const trimmed = { metadata: withoutEmpty({ labels, annotations }), spec: trimPodSpec(template.spec ?? {}) };
  return { ...spec, minReadySeconds, template: trimmed };
}

/** Conditions that every node agent and scheduler sets. */
const USUAL_POD_CONDITIONS = new Set(["PodScheduled", "Initialized", "ContainersReady", "PodReadyToStartContainers"]);

function trimStatus(status: Json, kind: string | undefined): Json {
  const isPod = kind === "Pod";
  const conditions = ((status.conditions ?? []) as readonly Json[])
    .filter(({ type }) => !isPod || !USUAL_POD_CONDITIONS.has(String(type)))
    .map(({ lastTransitionTime: _1, lastProbeTime: _2, lastUpdateTime: _3, lastHeartbeatTime: _4, ...rest }) =>
      withoutEmpty(rest),
    );
  if (isPod) {
    return withoutEmpty({ phase: status.phase, reason: status.reason, message: status.message, conditions });
  }
  if (kind === "Node") return { conditions };
  const isRequired = (name: string): boolean =>
    REQUIRED_COUNTERS.has(name) || (kind === "StatefulSet" && name === "availableReplicas");
  const counters = Object.entries(status).filter(([name, value]) => value !== 0 || isRequired(name));
  return withoutEmpty({ ...Object.fromEntries(counters), conditions });
}

export function trimEvent(event: Event): RecordedEvent {
  const { type = "", reason = "", message = "", involvedObject, source, count = 1 } = event;
  const { kind = "", name = "" } = involvedObject;
  return { type, reason, message, kind, name, component: source?.component ?? "", count };
}

/** Conditions between the first and the last one depend on how many changes of pods a sync sees. */
const INTERMEDIATE =
  /"(?:MinimumReplicasUnavailable|MinimumReplicasAvailable|ReplicaSetUpdated|NewReplicaSetAvailable)"/;

/** Paths that are milestones, with their new values. */
const MILESTONES = [
  /^spec\.(?!nodeName)/,
  /^status\.conditions\[(?!Ready\])/,
  /^metadata\.(?:ownerReferences|finalizers|deletionTimestamp)/,
  /^metadata\.annotations\[deployment\.kubernetes\.io\/revision\]/,
];

export function milestonesOf(
  { verb, kind, name, set = {} }: Transition,
  onlyLifetimes: boolean,
  mask: Mask,
): readonly string[] {
  const subject = `${kind}/${mask.text(name)}`;
  if (verb !== "changed") return [`${verb} ${subject}`];
  if (onlyLifetimes) return [];
  return Object.entries(set)
    .filter(([path]) => MILESTONES.some((milestone) => milestone.test(path)))
    .map(([path, value]) => `${subject} ${path} ${mask.json(value)}`)
    .filter((text) => !INTERMEDIATE.test(text));
}

/**
 * The whole transition; undefined if nothing is left of it. Counters depend on how many changes of pods a sync sees,
 * and shared nodes are assigned in turn.
 */
export function textOf({ verb, kind, name, set = {} }: Transition, mask: Mask): string | undefined {
  const isCounter = (path: string, value: unknown): boolean =>
    path.startsWith("status.") && path !== "status.observedGeneration" && (value === null || typeof value === "number");
  const changes = Object.entries(set)
    .filter(([path, value]) => !isCounter(path, value) && !isEmptyObject(value))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, value]) => ` ${path}=${path === "spec.nodeName" ? "*" : mask.json(value)}`);
  if (verb === "changed" && changes.length === 0) return undefined;
  return `${verb} ${kind}/${mask.text(name)}${changes.join("")}`;
}

/** The changed members in the notation of recordings: conditions by type, labels and annotations by name. */
export function changesOf(before: Json, after: Json): Json {
  const [old, next] = [flatten(before), flatten(after)];
  const names = new Set([...Object.keys(old), ...Object.keys(next)]);
  return Object.fromEntries(
    [...names].filter((name) => !deepEqual(old[name], next[name])).map((name) => [name, next[name] ?? null]),
  );
}

function flatten({ metadata, spec, status, kind: _, ...others }: Json): Json {
  const { conditions = [], ...counters } = status as { readonly conditions?: readonly Json[] };
  const {
    annotations = {},
    labels = {},
    ...rest
  } = metadata as { readonly annotations?: Json; readonly labels?: Json };
  return {
    ...others,
    ...prefix("metadata.", rest),
    ...byName("metadata.annotations", annotations),
    ...byName("metadata.labels", labels),
    ...prefix("spec.", spec as Json),
    ...prefix("status.", counters),
    ...Object.fromEntries(conditions.map(({ type, ...condition }) => [`status.conditions[${type}]`, condition])),
  };
}

function prefix(start: string, members: Json): Json {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [`${start}${name}`, value]));
}

function byName(path: string, members: Json): Json {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [`${path}[${name}]`, value]));
}

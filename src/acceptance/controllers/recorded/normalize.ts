/** Objects and events in the trimmed form of recordings, with random names and identifiers masked. */
import type { Event } from "../../../api/core/event/schema.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Json, RecordedEvent, Transition } from "./scenario.ts";

const SPEC_FIELDS = ["nodeName", "restartPolicy", "tolerations"];

/** Names of pods by their random endings. */
export function maskText(text: string): string {
  return text
    .replace(/<(uid|gen):[^>]+>/g, "<$1>")
    .replace(/\b([a-z0-9]+(?:-[a-z0-9]{8,10})?)-[bcdfghjklmnpqrstvwxz2456789]{5}\b(?![-a-z0-9])/g, (all, prefix) =>
      /^(web|rs|rc|rs2|rc2|stray|web2)(-|$)/.test(prefix) ? `${prefix}-<gen>` : all,
    );
}

export function maskJson(value: unknown): string {
  return maskText(
    JSON.stringify(sortKeys(value)).replace(
      /"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"/g,
      '"<uid>"',
    ),
  );
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sortKeys(member)]),
  );
}

export function trim(object: ApiObject): Json {
  const { kind, metadata } = object;
  const { spec, status } = object as { readonly spec?: Json; readonly status?: Json };
  const { name, generateName, uid, generation, labels, annotations, ownerReferences, finalizers } = metadata ?? {};
  const kept = { name, generateName, uid, generation, labels, annotations, ownerReferences, finalizers };
  const { deletionGracePeriodSeconds } = metadata ?? {};
  const terminating =
    metadata?.deletionTimestamp === undefined ? {} : { deletionTimestamp: "<time>", deletionGracePeriodSeconds };
  return {
    kind,
    metadata: withoutEmpty({ ...kept, ...terminating }),
    spec: kind === "Pod" ? trimPodSpec(spec ?? {}) : trimOwnerSpec(spec ?? {}),
    status: trimStatus(status ?? {}, kind === "Pod"),
  };
}

function withoutEmpty(value: Json): Json {
  const isEmpty = (member: unknown): boolean =>
    member === undefined || (typeof member === "object" && member !== null && Object.keys(member).length === 0);
  return Object.fromEntries(Object.entries(value).filter(([, member]) => !isEmpty(member)));
}

function trimPodSpec(spec: Json): Json {
  const fields = Object.fromEntries(SPEC_FIELDS.map((name) => [name, spec[name]]));
  const containers = ((spec.containers ?? []) as readonly Json[]).map(({ name, image, env, ports }) =>
    withoutEmpty({ name, image, env, ports }),
  );
  return withoutEmpty({ ...fields, containers });
}

function trimOwnerSpec(spec: Json): Json {
  const template = spec.template as { readonly metadata?: Json; readonly spec?: Json } | undefined;
  if (template === undefined) return spec;
  const { labels, annotations } = template.metadata ?? {};
  const minReadySeconds = spec.minReadySeconds === 0 ? undefined : spec.minReadySeconds;
  const trimmed = { metadata: withoutEmpty({ labels, annotations }), spec: trimPodSpec(template.spec ?? {}) };
  return { ...spec, minReadySeconds, template: trimmed };
}

function trimStatus(status: Json, isPod: boolean): Json {
  const conditions = ((status.conditions ?? []) as readonly Json[])
    .filter(({ type }) => !isPod || type === "Ready")
    .map(({ type, status: value, reason, message }) =>
      withoutEmpty({
        type,
        status: value,
        reason,
        message,
      }),
    );
  if (isPod) return withoutEmpty({ phase: status.phase, reason: status.reason, conditions });
  const counters = Object.entries(status).filter(([name, value]) => value !== 0 || name === "replicas");
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

export function milestonesOf({ verb, kind, name, set = {} }: Transition, onlyLifetimes: boolean): readonly string[] {
  const subject = `${kind}/${maskText(name)}`;
  if (verb !== "changed") return [`${verb} ${subject}`];
  if (onlyLifetimes) return [];
  return Object.entries(set)
    .filter(([path]) => MILESTONES.some((milestone) => milestone.test(path)))
    .map(([path, value]) => `${subject} ${path} ${maskJson(value)}`)
    .filter((text) => !INTERMEDIATE.test(text));
}

/** The changed members in the notation of recordings: conditions by type, annotations by name. */
export function changesOf(before: Json, after: Json): Json {
  const [old, next] = [flatten(before), flatten(after)];
  const names = new Set([...Object.keys(old), ...Object.keys(next)]);
  return Object.fromEntries(
    [...names].filter((name) => !deepEqual(old[name], next[name])).map((name) => [name, next[name] ?? null]),
  );
}

function flatten(object: Json): Json {
  const { metadata, spec, status } = object as { metadata: Json; spec: Json; status: Json };
  const { conditions = [], ...counters } = status as { readonly conditions?: readonly Json[] };
  const { annotations = {}, ...rest } = metadata as { readonly annotations?: Json };
  return {
    ...prefix("metadata.", rest),
    ...Object.fromEntries(Object.entries(annotations).map(([name, value]) => [`metadata.annotations[${name}]`, value])),
    ...flattenSpec(spec),
    ...prefix("status.", counters),
    ...Object.fromEntries(conditions.map(({ type, ...condition }) => [`status.conditions[${type}]`, condition])),
  };
}

/** Templates are changed by the steps, not by controllers: their notation is not compared. */
function flattenSpec(spec: Json): Json {
  const { template: _template, strategy: _strategy, ...rest } = spec;
  return prefix("spec.", rest);
}

function prefix(start: string, members: Json): Json {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [`${start}${name}`, value]));
}

/**
 * Revisions of daemon sets and stateful sets: ControllerRevisions with a strategic merge patch that restores the pod
 * template. `kubectl rollout undo` applies that patch.
 */
import type { ControllerRevision } from "../../api/apps/controller-revision/schema.ts";
import { type PodTemplateSpec, podTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { canonicalJson } from "../../schema/json/canonical-json.ts";
import { stringify } from "../../schema/json/encode.ts";
import { compareCreation } from "./object-keys.ts";
import { safeEncode } from "./pod-template-hash.ts";

/** The maximum length of a revision's name without its hash. */
const PREFIX_MAX = 223;

interface TemplatePatch {
  readonly spec: { readonly template: PodTemplateSpec };
}

/** Templates do not change, and each sync compares them with all revisions. */
const patches = new WeakMap<PodTemplateSpec, { readonly patch: TemplatePatch; readonly text: string }>();
const texts = new WeakMap<ControllerRevision, string>();

function patchOf(template: PodTemplateSpec): { readonly patch: TemplatePatch; readonly text: string } {
  const known = patches.get(template);
  if (known !== undefined) return known;
  const members = JSON.parse(stringify(podTemplateSpec, template)) as PodTemplateSpec;
  // In alphabetical order, as the bytes that Kubernetes stores and hashes.
  const text = canonicalJson({ spec: { template: { ...members, $patch: "replace" } } });
  const created = { patch: JSON.parse(text) as TemplatePatch, text };
  patches.set(template, created);
  return created;
}

/** The data of a revision with the template. */
export function revisionData(template: PodTemplateSpec): object {
  return patchOf(template).patch;
}

export function matchesTemplate(revision: ControllerRevision, template: PodTemplateSpec): boolean {
  let text = texts.get(revision);
  if (text === undefined) {
    text = canonicalJson(revision.data);
    texts.set(revision, text);
  }
  return text === patchOf(template).text;
}

export function templateOf({ data }: ControllerRevision): PodTemplateSpec {
  const { $patch: _, ...template } = (data as TemplatePatch).spec.template as PodTemplateSpec & { $patch?: string };
  return template;
}

/** FNV-1, 32 bits, of the data and the digits of the collision count. */
export function hashTemplate(template: PodTemplateSpec, collisionCount: number): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${patchOf(template).text}${collisionCount}`))
    hash = Math.imul(hash, 0x01000193) ^ byte;
  return safeEncode(hash >>> 0);
}

export function revisionName(owner: string, hash: string): string {
  return `${owner.slice(0, PREFIX_MAX)}-${hash}`;
}

/** By revision, then by age. */
export function compareRevisions(a: ControllerRevision, b: ControllerRevision): number {
  return Number(a.revision) - Number(b.revision) || compareCreation(a, b);
}

/**
 * The records of image pulls, in the format of kubelet's files: `ImagePullIntent` while a pull runs, and
 * `ImagePulledRecord` with the credentials that have pulled an image.
 */
import { createHash } from "node:crypto";
import * as z from "zod/mini";
import { escapeHtml } from "../../../schema/json/html-escape.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { AuthConfig } from "../../runtime/cri/image.ts";

/** A Secret with which an image was pulled. */
export interface PullSecret {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** SHA-256 of the credential in the Secret, in hexadecimal digits; empty: unknown. */
  readonly credentialHash: string;
}

export interface PullCredentials {
  readonly secrets: readonly PullSecret[];
  /** Pulled without credentials, or with those of the node: all pods may use the image. */
  readonly isForAllPods: boolean;
}

export interface PulledRecord {
  /** Milliseconds since 1970, in whole seconds. */
  readonly updatedAt: number;
  /** The runtime's id of the image. */
  readonly imageRef: string;
  /** By repository, without tag and digest. */
  readonly credentials: ReadonlyMap<string, PullCredentials>;
}

const API_VERSION = "kubelet.config.k8s.io/v1alpha1";
const INTENT = "ImagePullIntent";
const PULLED = "ImagePulledRecord";

const text = z.pipe(
  z.optional(z.string()),
  z.transform((value) => value ?? ""),
);
const secret = z.strictObject({ uid: text, namespace: text, name: text, credentialHash: text });
const credentials = z.strictObject({
  kubernetesSecrets: z.optional(z.nullable(z.array(secret))),
  nodePodsAccessible: z.optional(z.boolean()),
});
const header = { kind: z.string(), apiVersion: z.literal(API_VERSION) };
const intent = z.strictObject({ ...header, kind: z.literal(INTENT), image: z.string() });
const pulled = z.strictObject({
  ...header,
  kind: z.literal(PULLED),
  lastUpdatedTime: z.nullable(z.iso.datetime({ offset: true })),
  imageRef: z.string(),
  credentialMapping: z.optional(z.nullable(z.record(z.string(), credentials))),
});

export function formatIntent(image: string): string {
  return `${toJson({ kind: INTENT, apiVersion: API_VERSION, image })}\n`;
}

/** The image of the record. Throws when it is damaged or has unknown fields. */
export function parseIntent(json: string): string {
  return intent.parse(JSON.parse(json)).image;
}

export function formatPulledRecord({ updatedAt, imageRef, credentials: byRepository }: PulledRecord): string {
  const entries = [...byRepository]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([repository, { secrets, isForAllPods }]) => [
      repository,
      // Kubernetes writes an empty list as null.
      { kubernetesSecrets: secrets.length === 0 ? null : secrets, ...(isForAllPods && { nodePodsAccessible: true }) },
    ]);
  const mapping = entries.length === 0 ? {} : { credentialMapping: Object.fromEntries(entries) };
  const record = { kind: PULLED, apiVersion: API_VERSION, lastUpdatedTime: formatTime(updatedAt), imageRef };
  return `${toJson({ ...record, ...mapping })}\n`;
}

/** Throws when it is damaged or has unknown fields. */
export function parsePulledRecord(json: string): PulledRecord {
  const { lastUpdatedTime, imageRef, credentialMapping } = pulled.parse(JSON.parse(json));
  const entries = Object.entries(credentialMapping ?? {}).map(
    ([repository, { kubernetesSecrets, nodePodsAccessible = false }]) =>
      [repository, { secrets: kubernetesSecrets ?? [], isForAllPods: nodePodsAccessible }] as const,
  );
  const updatedAt = lastUpdatedTime === null ? 0 : Date.parse(lastUpdatedTime);
  return { updatedAt, imageRef, credentials: new Map(entries) };
}

/** As Kubernetes hashes a credential: SHA-256 of its JSON without empty members. */
export function hashCredential({ username, password, identityToken, registryToken }: AuthConfig): string {
  const members = { username, password, identitytoken: identityToken, registrytoken: registryToken };
  const filled = Object.entries(members).filter(([, value]) => (value ?? "") !== "");
  return createHash("sha256")
    .update(toJson(Object.fromEntries(filled)))
    .digest("hex");
}

/** Adds credentials for a repository. Undefined when the record has them already. */
export function addCredentials(
  record: PulledRecord,
  repository: string,
  added: PullCredentials,
  now: number,
): PulledRecord | undefined {
  const before = record.credentials.get(repository);
  const after = before === undefined ? added : merge(before, added);
  if (after === undefined || (!added.isForAllPods && added.secrets.length === 0)) return undefined;
  return { ...record, updatedAt: now, credentials: new Map([...record.credentials, [repository, after]]) };
}

function merge(before: PullCredentials, added: PullCredentials): PullCredentials | undefined {
  if (before.isForAllPods) return undefined;
  if (added.isForAllPods) return { secrets: [], isForAllPods: true };
  const known = new Map(before.secrets.map((each) => [secretKey(each), each]));
  const isNew = added.secrets.some((each) => known.get(secretKey(each))?.credentialHash !== each.credentialHash);
  if (!isNew) return undefined;
  for (const each of added.secrets) known.set(secretKey(each), each);
  const secrets = [...known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
  return { secrets, isForAllPods: false };
}

/** Sorts by namespace, name, uid. */
export function secretKey({ namespace, name, uid }: PullSecret): string {
  return [namespace, name, uid].join("\0");
}

/** As Go's encoder writes it. */
function toJson(value: object): string {
  return escapeHtml(JSON.stringify(value));
}

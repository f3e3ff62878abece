/** The transformer of each resource, from an EncryptionConfiguration. */
import { svcGroup } from "../../api/scheme.ts";
import { aesCbc, aesGcm, secretbox } from "./ciphers.ts";
import type { EncryptionConfiguration, KeysConfiguration, ProviderConfiguration } from "./configuration-schema.ts";
import { type Cipher, identity, joinTransformers, type Transformer, withKeys } from "./transformer.ts";

/** `deployments` of `deployments.apps`. */
export function resourceOf(name: string): string {
  const dot = name.indexOf(".");
  return dot < 0 ? name : name.slice(0, dot);
}

/** `apps` of `deployments.apps`; empty for the core group. */
export function groupOf(name: string): string {
  const dot = name.indexOf(".");
  return dot < 0 ? "" : name.slice(dot + 1);
}

export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

/** Returns the transformer of a resource; undefined: it is stored as plain text. */
export type FindTransformer = (resource: GroupResource) => Transformer | undefined;

/** Throws one sentence for rules that have no effect, and for providers that this build does not have. */
export function createTransformers({ resources = [] }: EncryptionConfiguration): FindTransformer {
  const byName = new Map<string, Transformer[]>();
  for (const { resources: names = [], providers = [] } of resources) {
    const transformers = providers.map(createTransformer);
    for (const name of names) {
      const masking = [nameOf("*", groupOf(name)), EVERYTHING].find((each) => byName.has(each));
      if (masking !== undefined) {
        const [own, earlier] = [name, masking].map((each) => shownName(each));
        throw new Error(`error while building transformers: resource "${own}" is masked by earlier rule "${earlier}"`);
      }
      const key = nameOf(resourceOf(name), groupOf(name));
      byName.set(key, [...(byName.get(key) ?? []), ...transformers]);
    }
  }
  const joined = new Map([...byName].map(([name, transformers]) => [name, joinTransformers(transformers)]));
  return ({ group, resource }) =>
    joined.get(nameOf(resource, group)) ?? joined.get(nameOf("*", group)) ?? joined.get(EVERYTHING);
}

const EVERYTHING = "*.*";

function nameOf(resource: string, group: string): string {
  return `${resource}.${group === "*" ? group : svcGroup(group)}`;
}

/** As in the configuration: `secrets`, `*.`, `*.apps`. */
function shownName(name: string): string {
  return name.endsWith(".") && !name.startsWith("*") ? name.slice(0, -1) : name;
}

const KMS_V1 =
  "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  " +
  "Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.";

function createTransformer({ aesgcm, aescbc, secretbox: box, kms }: ProviderConfiguration): Transformer {
  const aes = "no matching key was found for the provided AES transformer";
  if (aesgcm) return withKeys("k8s:enc:aesgcm:v1:", ciphersOf(aesgcm, aesGcm), aes);
  if (aescbc) return withKeys("k8s:enc:aescbc:v1:", ciphersOf(aescbc, aesCbc), aes);
  if (box) {
    const missing = "no matching key was found for the provided Secretbox transformer";
    return withKeys("k8s:enc:secretbox:v1:", ciphersOf(box, secretbox), missing);
  }
  if (kms && kms.apiVersion !== "v2") throw new Error(`error while building transformers: ${KMS_V1}`);
  if (kms) {
    throw new Error(
      `error while building transformers: the provider kms (${kms.name}) is not supported by this build; ` +
        "supported are secretbox, aesgcm, aescbc and identity",
    );
  }
  return identity;
}

function ciphersOf({ keys = [] }: KeysConfiguration, create: (secret: Buffer) => Cipher) {
  return keys.map(({ name = "", secret = "" }) => ({ name, cipher: create(Buffer.from(secret, "base64")) }));
}

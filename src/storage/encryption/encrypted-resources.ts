/** The transformer of each resource, from an EncryptionConfiguration. */
import { svcGroup } from "../../api/scheme.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { aesCbc, aesGcm, secretbox } from "./ciphers.ts";
import type {
  EncryptionConfiguration,
  KeysConfiguration,
  KmsConfiguration,
  ProviderConfiguration,
} from "./configuration-schema.ts";
import type { EncryptionMetrics, ObserveTransformation } from "./encryption-metrics.ts";
import type { KmsProvider } from "./kms/kms-provider.ts";
import {
  type Cipher,
  cipherTransformer,
  identity,
  joinTransformers,
  type PrefixedTransformer,
  type Transformer,
} from "./transformer.ts";

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

/** The transformers of one configuration. Disposing disconnects from its plugins. */
export interface ResourceTransformers extends Disposable {
  /** Undefined: no rule is for the resource. `observe` records the transformations of its values. */
  find(resource: GroupResource, observe?: ObserveTransformation): Transformer | undefined;
  /** In the order of the configuration. */
  readonly plugins: readonly KmsProvider[];
  /** Whether all plugins are of KMS v2. */
  readonly isV2Only: boolean;
}

export interface ProviderDeps {
  /** The gate `KMSv1`. */
  readonly kmsV1: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: EncryptionMetrics | undefined;
}

/** A transformer with keys that need nothing but the resource's metrics. */
type CreateTransformer = (observe: ObserveTransformation | undefined) => PrefixedTransformer;

/** Connects to plugins. Rejects with one sentence for rules that have no effect, and for providers that are off. */
export async function createTransformers(
  { resources = [] }: EncryptionConfiguration,
  deps: ProviderDeps,
): Promise<ResourceTransformers> {
  using opened = new DisposableStack();
  const plugins: KmsProvider[] = [];
  const byName = new Map<string, CreateTransformer[]>();
  let isV2Only = true;
  for (const { resources: names = [], providers = [] } of resources) {
    const transformers: CreateTransformer[] = [];
    for (const provider of providers) {
      if (!provider.kms) {
        transformers.push(createLocal(provider));
        continue;
      }
      const plugin = opened.use(await openPlugin(provider.kms, deps));
      plugins.push(plugin);
      isV2Only &&= provider.kms.apiVersion === "v2";
      transformers.push(() => plugin.prefixed);
    }
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
  const owned = opened.move();
  return {
    plugins,
    isV2Only,
    find({ group, resource }, observe) {
      const creators = byName.get(nameOf(resource, group)) ?? byName.get(nameOf("*", group)) ?? byName.get(EVERYTHING);
      if (creators === undefined) return undefined;
      const created = creators.map((create) => create(observe));
      return joinTransformers(created, "no matching prefix found", observe);
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

const EVERYTHING = "*.*";

function nameOf(resource: string, group: string): string {
  return `${resource}.${group === "*" ? group : svcGroup(group)}`;
}

/** As in the configuration: `secrets`, `*.`, `*.apps`. */
function shownName(name: string): string {
  return name.endsWith(".") && !name.startsWith("*") ? name.slice(0, -1) : name;
}

const KMS_V1 = "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.";
const KMS_V1_OFF = `${KMS_V1}  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.`;

async function openPlugin(kms: KmsConfiguration, { kmsV1, ...deps }: ProviderDeps): Promise<KmsProvider> {
  const shared = { ...deps, metrics: deps.metrics };
  if (kms.apiVersion === "v2") {
    const { KmsV2Provider } = await import("./kms/kms-v2.ts");
    return await KmsV2Provider.open(kms, shared);
  }
  if (!kmsV1) throw new Error(`error while building transformers: ${KMS_V1_OFF}`);
  deps.log.info(KMS_V1);
  const { KmsV1Provider } = await import("./kms/kms-v1.ts");
  return new KmsV1Provider(kms, shared);
}

const NO_KEY = "no matching key was found for the provided";

function createLocal({ aesgcm, aescbc, secretbox: box }: ProviderConfiguration): CreateTransformer {
  if (aesgcm) return withKeys("k8s:enc:aesgcm:v1:", ciphersOf(aesgcm, aesGcm), `${NO_KEY} AES transformer`);
  if (aescbc) return withKeys("k8s:enc:aescbc:v1:", ciphersOf(aescbc, aesCbc), `${NO_KEY} AES transformer`);
  if (box) return withKeys("k8s:enc:secretbox:v1:", ciphersOf(box, secretbox), `${NO_KEY} Secretbox transformer`);
  return () => identity;
}

/** A provider with several keys: the first one encrypts. `missing`: the error for a key that is not among them. */
function withKeys(prefix: string, keys: readonly PrefixedTransformer[], missing: string): CreateTransformer {
  return (observe) => ({ prefix, transformer: joinTransformers(keys, missing, observe) });
}

function ciphersOf(
  { keys = [] }: KeysConfiguration,
  create: (secret: Buffer) => Cipher,
): readonly PrefixedTransformer[] {
  return keys.map(({ name = "", secret = "" }) => ({
    prefix: `${name}:`,
    transformer: cipherTransformer(create(Buffer.from(secret, "base64"))),
  }));
}

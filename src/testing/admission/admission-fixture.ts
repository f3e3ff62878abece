/** For tests of this room: requests, and a cluster that is a list of objects. */

import { type AdmissionContext, AdmissionChain } from "../../admission/chain/chain.ts";
import type { PluginDeps } from "../../admission/chain/factory.ts";
import type { AdmissionPlugin, ObjectWriter, ObjectReader, Operation } from "../../admission/chain/plugin.ts";
import { builtinScheme } from "../../api/builtin.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Authorizer, UserInfo } from "../../auth/user.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { FakeClock } from "../std/fake-clock.ts";

export const alice: UserInfo = { name: "alice", uid: "", groups: ["team"], extra: {} };

/** `[kind, object]`: what there is. */
export type Present = readonly (readonly [unknown, ApiObject])[];

export function lookupOf(present: Present): ObjectReader {
  const find = (kind: unknown, namespace: string, name: string): ApiObject | undefined =>
    present.find(
      ([of, { metadata }]) => of === kind && metadata?.name === name && (metadata.namespace ?? "") === namespace,
    )?.[1];
  return {
    get: async (kind, namespace, name) => find(kind, namespace, name) as never,
    list: async (kind, namespace) =>
      present
        .filter(([of, { metadata }]) => of === kind && (namespace === "" || metadata?.namespace === namespace))
        .map(([, object]) => object) as never,
    peek: (kind, namespace, name) => find(kind, namespace, name) as never,
  };
}

const noEffects: ObjectWriter = {
  create: async () => {
    throw new Error("this test lets nobody write");
  },
  update: async () => {
    throw new Error("this test lets nobody write");
  },
};

/** Allows what the function says yes to: `approve signers a.b/c`. */
export function authorizerOf(allows: (verb: string, resource: string, name: string) => boolean): Authorizer {
  return {
    async authorize({ verb, resource, subresource, name }) {
      const what = subresource === "" ? resource : `${resource}/${subresource}`;
      return { decision: allows(verb, what, name) ? "allow" : "no-opinion", reason: "" };
    },
  };
}

export function pluginDeps(present: Present = [], more: Partial<PluginDeps> = {}): PluginDeps {
  return {
    reader: lookupOf(present),
    writer: noEffects,
    authorizer: authorizerOf(() => false),
    scheme: builtinScheme(),
    clock: new FakeClock(),
    random: seededRandom(1),
    log: silentLogger,
    metrics: new MetricRegistry(),
    isFeatureEnabled: () => true,
    tolerationSeconds: { notReady: 300, unreachable: 300 },
    resolveEndpoints: false,
    clientCertificate: () => undefined,
    configuration: undefined,
    stopping: new AbortController().signal,
    ...more,
  };
}

export interface Asked {
  readonly operation?: Operation;
  readonly subresource?: string;
  readonly previous?: ApiObject;
  readonly user?: UserInfo;
  readonly dryRun?: boolean;
}

export interface Verdict<T> {
  /** What is to be written. */
  readonly object: T;
  readonly warnings: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
}

/** Asks one plugin as a server does: to change the object, then to check it. Throws what it refuses with. */
export async function ask<T extends ApiObject>(
  plugin: AdmissionPlugin,
  kind: Kind<T>,
  object: T | undefined,
  asked: Asked = {},
): Promise<Verdict<T>> {
  const { operation = asked.previous === undefined ? "CREATE" : "UPDATE", previous } = asked;
  const warnings: string[] = [];
  const annotations: Record<string, string> = {};
  const named = object?.metadata ?? previous?.metadata;
  const about: AdmissionContext = {
    kind: kind as unknown as Kind,
    group: kind.group,
    subresource: asked.subresource ?? "",
    objectKind: { group: kind.group, version: kind.version, kind: kind.kind, schema: kind.schema },
    namespace: kind.namespaced ? (named?.namespace ?? "default") : "",
    name: operation === "CREATE" ? "" : (named?.name ?? ""),
    dryRun: asked.dryRun ?? false,
    user: asked.user ?? alice,
    signal: new AbortController().signal,
    warn: (text) => void warnings.push(text),
    annotate: (key, value) => void Object.assign(annotations, { [key]: value }),
    optionsFor: () => undefined,
  };
  const chain = new AdmissionChain([plugin]);
  const next =
    operation === "DELETE"
      ? await chain.mutate(about, operation, undefined, previous as ApiObject)
      : await chain.mutate(about, operation, object as ApiObject, previous);
  await chain.validate(about, operation, next, previous);
  return { object: next as T, warnings, annotations };
}

/** The message with which it is refused; "" where it is not. */
export async function refused(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "";
  } catch (error) {
    if (error instanceof StatusError) return error.status.message ?? "";
    throw error;
  }
}

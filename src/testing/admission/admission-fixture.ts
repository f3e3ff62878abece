/** Fixture for tests of admission plugins: requests, and a cluster that consists of a list of objects. */

import type { Operation } from "../../admission/chain/attributes.ts";
import { AdmissionChain, type AdmissionContext } from "../../admission/chain/chain.ts";
import type { PluginDeps } from "../../admission/chain/factory.ts";
import type { AdmissionPlugin, ObjectReader, ObjectWriter } from "../../admission/chain/plugin.ts";
import { builtinScheme } from "../../api/builtin.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Authorizer, UserInfo } from "../../auth/user.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { FakeClock } from "../std/fake-clock.ts";

export const alice: UserInfo = { name: "alice", uid: "", groups: ["team"], extra: {} };

/** The objects of the cluster: `[kind, object]`. */
export type ClusterObjects = readonly (readonly [unknown, ApiObject])[];

export function readerOf(present: ClusterObjects): ObjectReader {
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
    changes: () => present.length,
    peek: (kind, namespace, name) => find(kind, namespace, name) as never,
  };
}

const noWrites: ObjectWriter = {
  create: async () => {
    throw new Error("unexpected write");
  },
  update: async () => {
    throw new Error("unexpected write");
  },
};

/** Allows the requests for which `allows` returns true: `approve signers a.b/c`. */
export function authorizerOf(allows: (verb: string, resource: string, name: string) => boolean): Authorizer {
  return {
    async authorize({ verb, resource, subresource, name }) {
      const what = subresource === "" ? resource : `${resource}/${subresource}`;
      return { decision: allows(verb, what, name) ? "allow" : "no-opinion", reason: "" };
    },
  };
}

export function pluginDeps(present: ClusterObjects = [], more: Partial<PluginDeps> = {}): PluginDeps {
  return {
    reader: readerOf(present),
    writer: noWrites,
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

export interface RequestFields {
  readonly operation?: Operation;
  readonly subresource?: string;
  readonly oldObject?: ApiObject;
  readonly user?: UserInfo;
  readonly dryRun?: boolean;
}

export interface AdmissionResult<T> {
  /** The object that would be stored. */
  readonly object: T;
  readonly warnings: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
}

/** Runs one plugin as the server does: mutate, then validate. Throws the error of a rejected request. */
export async function runPlugin<T extends ApiObject>(
  plugin: AdmissionPlugin,
  kind: Kind<T>,
  object: T | undefined,
  fields: RequestFields = {},
): Promise<AdmissionResult<T>> {
  const { operation = fields.oldObject === undefined ? "CREATE" : "UPDATE", oldObject } = fields;
  const warnings: string[] = [];
  const annotations: Record<string, string> = {};
  const metadata = object?.metadata ?? oldObject?.metadata;
  const context: AdmissionContext = {
    kind: kind as unknown as Kind,
    group: kind.group,
    subresource: fields.subresource ?? "",
    objectKind: { group: kind.group, version: kind.version, kind: kind.kind, schema: kind.schema },
    namespace: kind.namespaced ? (metadata?.namespace ?? "default") : "",
    name: operation === "CREATE" ? "" : (metadata?.name ?? ""),
    dryRun: fields.dryRun ?? false,
    user: fields.user ?? alice,
    signal: new AbortController().signal,
    warn: (text) => void warnings.push(text),
    annotate: (key, value) => void Object.assign(annotations, { [key]: value }),
    optionsFor: () => undefined,
  };
  const chain = new AdmissionChain([plugin]);
  const next =
    operation === "DELETE"
      ? await chain.mutate(context, operation, undefined, oldObject as ApiObject)
      : await chain.mutate(context, operation, object as ApiObject, oldObject);
  await chain.validate(context, operation, next, oldObject);
  return { object: next as T, warnings, annotations };
}

/** The message of the error that rejects the request; "" if it is admitted. */
export async function rejectionOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "";
  } catch (error) {
    if (error instanceof StatusError) return error.status.message ?? "";
    throw error;
  }
}

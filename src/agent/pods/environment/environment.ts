/**
 * The environment of a container: envFrom, then env in order, where a value may refer to the ones before it. Variables
 * of services have the lowest precedence.
 */
import type { Container, EnvVar } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Service } from "../../../api/core/service/schema.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { podNamespace } from "../pod-fields.ts";
import { type NodeInfo, resolveFieldRef, resolveResourceFieldRef } from "./downward-api.ts";
import { expand, TextBudget } from "./expansion.ts";
import { makeServiceVariables } from "./service-links.ts";

/** ConfigMaps and Secrets as key → text; undefined when there is no such object. */
export interface EnvironmentSources {
  configMap(namespace: string, name: string): Promise<Readonly<Record<string, string>> | undefined>;
  secret(namespace: string, name: string): Promise<Readonly<Record<string, string>> | undefined>;
  /** Of all namespaces. */
  services(): Promise<Iterable<Service>>;
}

export interface EnvironmentInput {
  readonly pod: Pod;
  readonly container: Container;
  readonly node: NodeInfo;
  readonly podIps: readonly string[];
  readonly sources: EnvironmentSources;
}

/** Rejects when a required object or key is missing, with Kubernetes' text, and when the values are too long. */
export async function makeEnvironment(input: EnvironmentInput): Promise<ReadonlyMap<string, string>> {
  const environment = new Map<string, string>();
  const budget = new TextBudget("the environment");
  const set = (name: string, value: string): void => {
    budget.add(value);
    budget.remove(environment.get(name) ?? "");
    environment.set(name, value);
  };
  for (const from of input.container.envFrom ?? []) {
    for (const [key, value] of Object.entries(await readEnvFrom(input, from))) {
      set(`${from.prefix ?? ""}${key}`, value);
    }
  }
  const services = makeServiceVariables(input.pod, await input.sources.services());
  const lookup = (name: string): string | undefined => environment.get(name) ?? services.get(name);
  for (const variable of input.container.env ?? []) {
    const value = await resolveValue(input, variable, lookup);
    if (value !== undefined) set(variable.name, value);
  }
  for (const [name, value] of services) if (!environment.has(name)) set(name, value);
  return environment;
}

type EnvFrom = NonNullable<Container["envFrom"]>[number];

async function readEnvFrom(input: EnvironmentInput, from: EnvFrom): Promise<Readonly<Record<string, string>>> {
  const namespace = podNamespace(input.pod);
  const reference = from.configMapRef ?? from.secretRef;
  if (reference === undefined) return {};
  const kind = from.configMapRef === undefined ? "secret" : "configMap";
  const found = await input.sources[kind](namespace, reference.name ?? "");
  if (found !== undefined) return found;
  if (reference.optional === true) return {};
  throw new Error(`${kind === "secret" ? "secret" : "configmap"} "${reference.name}" not found`);
}

async function resolveValue(
  input: EnvironmentInput,
  variable: EnvVar,
  lookup: (name: string) => string | undefined,
): Promise<string | undefined> {
  const from = variable.valueFrom;
  if (from === undefined) return expand(variable.value ?? "", lookup);
  if (from.fieldRef !== undefined) return resolveFieldRef(input.pod, from.fieldRef.fieldPath, input.node, input.podIps);
  if (from.resourceFieldRef !== undefined) {
    return resolveResourceFieldRef(input.pod, input.container, from.resourceFieldRef, input.node);
  }
  const namespace = podNamespace(input.pod);
  const selector = from.configMapKeyRef ?? from.secretKeyRef;
  if (selector === undefined) return undefined;
  const [kind, label] =
    from.configMapKeyRef === undefined ? (["secret", "Secret"] as const) : (["configMap", "ConfigMap"] as const);
  const found = await input.sources[kind](namespace, selector.name ?? "");
  const value = getMember(found, selector.key);
  if (value !== undefined || selector.optional === true) return value;
  if (found === undefined) throw new Error(`${label.toLowerCase()} "${selector.name}" not found`);
  throw new Error(`couldn't find key ${selector.key} in ${label} ${namespace}/${selector.name}`);
}

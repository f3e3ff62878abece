/** Accounts that name the secrets which their pods may use, and all others not. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { ServiceAccount } from "../../../api/core/service-account/schema.ts";

const ENFORCED = "kubernetes.io/enforce-mountable-secrets";

export function mustNameItsSecrets({ metadata }: ServiceAccount): boolean {
  const value = metadata?.annotations?.[ENFORCED];
  return value !== undefined && ["1", "t", "T", "true", "TRUE", "True"].includes(value);
}

/** A sentence about the first secret that the account does not name. `ephemeral`: what came to the pod later. */
export function unnamedSecret(spec: PodSpec, account: ServiceAccount, ephemeral: boolean): string | undefined {
  const { metadata, secrets = [], imagePullSecrets = [] } = account;
  const named = new Set(secrets.map(({ name }) => name));
  const pullable = new Set(imagePullSecrets.map(({ name }) => name));
  const tail = (what: string) =>
    `is not allowed because service account ${metadata?.name} does not reference that ${what}`;
  const inContainers = (containers: readonly Container[], sort: string): string | undefined => {
    for (const { name, env = [], envFrom = [] } of containers) {
      for (const { name: variable, valueFrom } of env) {
        const secret = valueFrom?.secretKeyRef?.name;
        if (secret === undefined || named.has(secret)) continue;
        const what = `with envVar ${variable} referencing secret.secretName=${JSON.stringify(secret)}`;
        return `${sort} ${name} ${what} ${tail("secret")}`;
      }
      for (const { secretRef } of envFrom) {
        const secret = secretRef?.name;
        if (secret === undefined || named.has(secret)) continue;
        return `${sort} ${name} with envFrom referencing secret.secretName=${JSON.stringify(secret)} ${tail("secret")}`;
      }
    }
    return undefined;
  };
  if (ephemeral) return inContainers(spec.ephemeralContainers ?? [], "ephemeral container");
  for (const { secret } of spec.volumes ?? []) {
    if (secret === undefined || named.has(secret.secretName ?? "")) continue;
    return `volume with secret.secretName=${JSON.stringify(secret.secretName ?? "")} ${tail("secret")}`;
  }
  const inEnvironment =
    inContainers(spec.initContainers ?? [], "init container") ?? inContainers(spec.containers, "container");
  if (inEnvironment !== undefined) return inEnvironment;
  const index = (spec.imagePullSecrets ?? []).findIndex(({ name }) => !pullable.has(name));
  if (index < 0) return undefined;
  const name = JSON.stringify(spec.imagePullSecrets?.[index]?.name);
  return `imagePullSecrets[${index}].name=${name} ${tail("imagePullSecret")}`;
}

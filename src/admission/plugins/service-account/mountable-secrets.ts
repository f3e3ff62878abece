/** Enforces the list of mountable secrets of a service account, if its annotation requires that. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { ServiceAccount } from "../../../api/core/service-account/schema.ts";

const ENFORCED = "kubernetes.io/enforce-mountable-secrets";

export function enforcesMountableSecrets({ metadata }: ServiceAccount): boolean {
  const value = metadata?.annotations?.[ENFORCED];
  return value !== undefined && ["1", "t", "T", "true", "TRUE", "True"].includes(value);
}

/**
 * Kubernetes' message about the first secret that the account does not reference. `ephemeral`: only checks ephemeral
 * containers.
 */
export function findForbiddenSecret(spec: PodSpec, account: ServiceAccount, ephemeral: boolean): string | undefined {
  const { metadata, secrets = [], imagePullSecrets = [] } = account;
  const mountable = new Set(secrets.map(({ name }) => name));
  const pullable = new Set(imagePullSecrets.map(({ name }) => name));
  const notReferenced = (what: string) =>
    `is not allowed because service account ${metadata?.name} does not reference that ${what}`;
  const inContainers = (containers: readonly Container[], containerType: string): string | undefined => {
    for (const { name, env = [], envFrom = [] } of containers) {
      for (const { name: variable, valueFrom } of env) {
        const secret = valueFrom?.secretKeyRef?.name;
        if (secret === undefined || mountable.has(secret)) continue;
        const what = `with envVar ${variable} referencing secret.secretName=${JSON.stringify(secret)}`;
        return `${containerType} ${name} ${what} ${notReferenced("secret")}`;
      }
      for (const { secretRef } of envFrom) {
        const secret = secretRef?.name;
        if (secret === undefined || mountable.has(secret)) continue;
        return `${containerType} ${name} with envFrom referencing secret.secretName=${JSON.stringify(secret)} ${notReferenced("secret")}`;
      }
    }
    return undefined;
  };
  if (ephemeral) return inContainers(spec.ephemeralContainers ?? [], "ephemeral container");
  for (const { secret } of spec.volumes ?? []) {
    if (secret === undefined || mountable.has(secret.secretName ?? "")) continue;
    return `volume with secret.secretName=${JSON.stringify(secret.secretName ?? "")} ${notReferenced("secret")}`;
  }
  const inEnvironment =
    inContainers(spec.initContainers ?? [], "init container") ?? inContainers(spec.containers, "container");
  if (inEnvironment !== undefined) return inEnvironment;
  const index = (spec.imagePullSecrets ?? []).findIndex(({ name }) => !pullable.has(name));
  if (index < 0) return undefined;
  const name = JSON.stringify(spec.imagePullSecrets?.[index]?.name);
  return `imagePullSecrets[${index}].name=${name} ${notReferenced("imagePullSecret")}`;
}

import { key } from "../../../schema/value/field-path.ts";
import type { Strategy } from "../../kind.ts";
import type { ServiceAccount } from "./schema.ts";

const ENFORCE = "kubernetes.io/enforce-mountable-secrets";

export const serviceAccountStrategy: Strategy<ServiceAccount> = {
  prepareForCreate: keepSecretNamesOnly,
  prepareForUpdate: keepSecretNamesOnly,
  warnings: ({ metadata }, previous) => {
    const wasSet = previous?.metadata?.annotations?.[ENFORCE] !== undefined;
    if (metadata?.annotations?.[ENFORCE] === undefined || wasSet) return [];
    const instead = "prefer separate namespaces to isolate access to mounted secrets";
    return [`${key("metadata.annotations", ENFORCE)}: deprecated in v1.32+; ${instead}`];
  },
};

/** Secrets are in the account's namespace: keeps only their names. */
function keepSecretNamesOnly(object: ServiceAccount): ServiceAccount {
  if (object.secrets === undefined) return object;
  return { ...object, secrets: object.secrets.map(({ name }) => (name === undefined ? {} : { name })) };
}

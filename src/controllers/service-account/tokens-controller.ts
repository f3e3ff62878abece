/**
 * The service account token controller: fills secrets of the type service-account-token, deletes those of deleted
 * service accounts, and removes references to deleted secrets from service accounts.
 */

import { secretKind } from "../../api/core/secret/kind.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict, statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";

/** The type in Kubernetes' and in the project's group. */
export const TOKEN_TYPES = ["kubernetes.io/service-account-token", "svc.io/service-account-token"] as const;
const ACCOUNT_NAME = "kubernetes.io/service-account.name";
const ACCOUNT_UID = "kubernetes.io/service-account.uid";

type SignToken = NonNullable<ControllerDeps["signLegacyToken"]>;

export async function runServiceAccountTokenController(deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, random, log, signal, signLegacyToken } = deps;
  if (signLegacyToken === undefined) {
    log.info("Not creating token secrets: tokens are signed externally");
    await waitForAbort(signal);
    return;
  }
  const shared = { client: observer, clock, random, log };
  await using owned = new AsyncDisposableStack();
  const secrets = TOKEN_TYPES.map((type) => {
    const query = { fieldSelector: `type=${type}` };
    return owned.use(startInformer({ ...shared, kind: secretKind, query }, signal));
  });
  await using accounts = startInformer({ ...shared, kind: serviceAccountKind }, signal);
  await Promise.all([...secrets, accounts].map(({ synced }) => synced)).catch(() => {});
  await using queue = createControllerQueue(deps, {
    name: "serviceaccount_tokens_service",
    workers: 2,
    sync: syncSecret,
    onError: (key, error) => log.error("Failed to sync token secret, will retry", error, { secret: key }),
  });

  async function syncSecret(key: string, stopping: AbortSignal): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    const secret = secrets.map((each) => each.get(name, namespace)).find((each) => each !== undefined);
    if (secret?.metadata === undefined) return await removeReference(name, namespace, stopping);
    if (secret.metadata.deletionTimestamp !== undefined) return;
    const account = accounts.get(serviceAccountNameOf(secret), namespace);
    try {
      if (account === undefined || !belongsTo(secret, account)) await deleteSecret(deps, secret, stopping);
      else await fillSecret(deps, signLegacyToken!, { secret, account }, stopping);
    } catch (error) {
      if (!isNotFoundOrConflict(error)) throw error;
    }
  }

  async function removeReference(name: string, namespace: string, stopping: AbortSignal): Promise<void> {
    for (const account of accounts.list()) {
      if (account.metadata?.namespace !== namespace) continue;
      const { secrets: listed = [] } = account;
      const left = listed.filter((each) => each.name !== name);
      if (left.length < listed.length) {
        await client.update(serviceAccountKind, { ...account, secrets: left }, stopping);
      }
    }
  }

  const enqueueSecret = ({ metadata }: Secret): void =>
    queue.add(`${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`);
  for (const each of secrets) each.subscribe({ put: enqueueSecret, delete: enqueueSecret });
  const enqueueSecretsOfAccount = ({ metadata }: ServiceAccount): void => {
    for (const secret of secrets.flatMap((each) => [...each.list()])) {
      if (secret.metadata?.namespace === metadata?.namespace && serviceAccountNameOf(secret) === metadata?.name)
        enqueueSecret(secret);
    }
  };
  accounts.subscribe({ put: enqueueSecretsOfAccount, delete: enqueueSecretsOfAccount });
  await waitForAbort(signal);
}

/** Deletes a secret without service account, after a read from the server, since the informer may be stale. */
async function deleteSecret({ client, log }: ControllerDeps, { metadata }: Secret, signal: AbortSignal): Promise<void> {
  const { name = "", namespace, uid, resourceVersion } = metadata ?? {};
  const found = await client
    .get(serviceAccountKind, { name: metadata?.annotations?.[ACCOUNT_NAME] ?? "", namespace }, signal)
    .catch((error: unknown) => {
      if (statusCodeOf(error) === 404) return undefined;
      throw error;
    });
  if (found !== undefined && belongsTo({ metadata }, found)) throw new Error("the service account was just created");
  await client.delete(secretKind, { name, namespace }, { preconditions: { uid, resourceVersion } }, signal);
  log.info("Deleted token secret of deleted service account", { namespace, name });
}

/** Sets the token, CA and namespace of a secret. Existing values of the token and namespace stay. */
async function fillSecret(
  { client, clusterCa }: ControllerDeps,
  signToken: SignToken,
  { secret, account }: { readonly secret: Secret; readonly account: ServiceAccount },
  signal: AbortSignal,
): Promise<void> {
  const { name = "", namespace = "" } = secret.metadata ?? {};
  const { name: accountName = "", uid = "" } = account.metadata ?? {};
  const claims = { namespace, secret: { name }, account: { name: accountName, uid } };
  const existing = secret.data ?? {};
  const data = {
    ...existing,
    namespace: existing.namespace || encodeBase64(namespace),
    ...(clusterCa === undefined ? {} : { "ca.crt": encodeBase64(clusterCa) }),
    token: existing.token || encodeBase64(await signToken(claims)),
  };
  const annotations = { ...secret.metadata?.annotations, [ACCOUNT_UID]: uid };
  const isDone = Object.entries(data).every(([member, value]) => existing[member] === value);
  if (isDone && secret.metadata?.annotations?.[ACCOUNT_UID] === uid) return;
  await client.update(secretKind, { ...secret, metadata: { ...secret.metadata, annotations }, data }, signal);
}

/** The name of the secret's service account. */
export function serviceAccountNameOf({ metadata }: Pick<Secret, "metadata">): string {
  return metadata?.annotations?.[ACCOUNT_NAME] ?? "";
}

/** A secret without a uid belongs to any account of that name. */
export function belongsTo({ metadata }: Pick<Secret, "metadata">, account: ServiceAccount): boolean {
  const { annotations } = metadata ?? {};
  const uid = annotations?.[ACCOUNT_UID] ?? "";
  return annotations?.[ACCOUNT_NAME] === account.metadata?.name && (uid === "" || uid === account.metadata?.uid);
}

function encodeBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/**
 * Fills in the tokens of secrets that ask for one, and deletes those whose account is gone. Accounts that list a secret
 * which is deleted list it no more.
 */

import { secretKind } from "../../api/core/secret/kind.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import { StatusError } from "../../api/status.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";

/** In both spellings. */
export const TOKEN_TYPES = ["kubernetes.io/service-account-token", "svc.io/service-account-token"] as const;
const ACCOUNT_NAME = "kubernetes.io/service-account.name";
const ACCOUNT_UID = "kubernetes.io/service-account.uid";

export async function runTokenSecrets(deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, random, log, signal, signLegacy } = deps;
  if (signLegacy === undefined) {
    log.info("Makes no tokens in secrets: somebody else signs tokens");
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
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 2,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: (key, stopping) => settle(key, stopping),
    onError: (key, error) => log.error("Cannot keep the token of an account; trying again", error, { secret: key }),
  });

  async function settle(key: string, stopping: AbortSignal): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    const secret = secrets.map((each) => each.get(name, namespace)).find((each) => each !== undefined);
    if (secret?.metadata === undefined) return await unlist(name, namespace, stopping);
    if (secret.metadata.deletionTimestamp !== undefined) return;
    const account = accounts.get(accountOf(secret), namespace);
    try {
      if (account === undefined || !isFor(secret, account)) await discard(secret, stopping);
      else await fill(secret, account, stopping);
    } catch (error) {
      // Somebody else was quicker: the informers will tell.
      if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
    }
  }

  async function discard({ metadata }: Secret, stopping: AbortSignal): Promise<void> {
    const { name = "", namespace, uid, resourceVersion } = metadata ?? {};
    // What the informer has not heard of yet may be there.
    const found = await client
      .get(serviceAccountKind, { name: metadata?.annotations?.[ACCOUNT_NAME] ?? "", namespace }, stopping)
      .catch((error: unknown) => {
        if (error instanceof StatusError && error.status.code === 404) return undefined;
        throw error;
      });
    if (found !== undefined && isFor({ metadata }, found)) throw new Error("the account has just been made");
    await client.delete(secretKind, { name, namespace }, { preconditions: { uid, resourceVersion } }, stopping);
    log.info("Deleted the token of an account that is gone", { namespace, name });
  }

  async function fill(secret: Secret, account: ServiceAccount, stopping: AbortSignal): Promise<void> {
    const { name = "", namespace = "" } = secret.metadata ?? {};
    const { name: accountName = "", uid = "" } = account.metadata ?? {};
    const claims = { namespace, secret: { name }, account: { name: accountName, uid } };
    const known = secret.data ?? {};
    const data = {
      ...known,
      namespace: known.namespace || encoded(namespace),
      ...(deps.clusterCa === undefined ? {} : { "ca.crt": encoded(deps.clusterCa) }),
      token: known.token || encoded(await signLegacy!(claims)),
    };
    const annotations = { ...secret.metadata?.annotations, [ACCOUNT_UID]: uid };
    const isDone = Object.entries(data).every(([member, value]) => known[member] === value);
    if (isDone && secret.metadata?.annotations?.[ACCOUNT_UID] === uid) return;
    await client.update(secretKind, { ...secret, metadata: { ...secret.metadata, annotations }, data }, stopping);
  }

  async function unlist(name: string, namespace: string, stopping: AbortSignal): Promise<void> {
    for (const account of accounts.list()) {
      if (account.metadata?.namespace !== namespace) continue;
      const { secrets: listed = [] } = account;
      const left = listed.filter((each) => each.name !== name);
      if (left.length < listed.length) {
        await client.update(serviceAccountKind, { ...account, secrets: left }, stopping);
      }
    }
  }

  const changed = ({ metadata }: Secret): void => queue.add(`${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`);
  for (const each of secrets) each.subscribe({ put: changed, delete: changed });
  const ofAccount = ({ metadata }: ServiceAccount): void => {
    for (const secret of secrets.flatMap((each) => [...each.list()])) {
      if (secret.metadata?.namespace === metadata?.namespace && accountOf(secret) === metadata?.name) changed(secret);
    }
  };
  accounts.subscribe({ put: ofAccount, delete: ofAccount });
  await waitForAbort(signal);
}

/** The name of the account that the secret is for. */
export function accountOf({ metadata }: Pick<Secret, "metadata">): string {
  return metadata?.annotations?.[ACCOUNT_NAME] ?? "";
}

/** A secret that names no uid yet is for whoever has the name. */
export function isFor({ metadata }: Pick<Secret, "metadata">, account: ServiceAccount): boolean {
  const { annotations } = metadata ?? {};
  const uid = annotations?.[ACCOUNT_UID] ?? "";
  return annotations?.[ACCOUNT_NAME] === account.metadata?.name && (uid === "" || uid === account.metadata?.uid);
}

function encoded(text: string): string {
  return Buffer.from(text).toString("base64");
}

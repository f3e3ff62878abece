/**
 * Takes away the tokens that controllers once put into secrets for every account, where nobody uses them: after a year
 * without use a token is marked invalid, and after one more year its secret is deleted. Looks once a day.
 */
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { podReferences } from "../../auth/authz/node/node-graph.ts";
import {
  DAY_MS,
  dayOf,
  INVALID_SINCE_LABEL,
  LAST_USED_LABEL,
  LEGACY_TRACKING,
  startOfDay,
  TRACKED_SINCE,
} from "../../auth/service-account/legacy-tokens.ts";
import type { Client, ListQuery } from "../../client/client.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import type { ControllerDeps } from "../controller.ts";
import { accountOf, isFor, TOKEN_TYPES } from "./tokens-controller.ts";

/** Kubernetes' default. */
const UNUSED_MS = 365 * DAY_MS;
/** Objects asked for at a time. */
const PAGE = 500;

type Bare = Pick<Secret, "metadata">;

export async function runLegacyTokenCleaner(deps: ControllerDeps): Promise<void> {
  const { clock, log, signal } = deps;
  while (!signal.aborted) {
    try {
      await sweep(deps);
    } catch (error) {
      if (signal.aborted) return;
      log.error("Cannot clean up tokens in secrets; trying again in a day", error);
    }
    await clock.sleep(DAY_MS, signal).catch(() => {});
  }
}

async function sweep(deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, log, signal } = deps;
  const tracked = await client.get(configMapKind, LEGACY_TRACKING, signal).catch(unlessMissing);
  const since = startOfDay(tracked?.data?.[TRACKED_SINCE]);
  const now = clock.now();
  // Of the first day only a part was tracked.
  if (since === undefined || now < since + DAY_MS + UNUSED_MS) return;
  const used = new UsedSecrets(observer, signal);
  for (const type of TOKEN_TYPES) {
    for await (const secret of objectsOf(observer, metadataOnly(secretKind), `type=${type}`, signal)) {
      const fate = fateOf(secret, now);
      if (fate === "keep" || !(await isAutomatic(secret, observer, signal))) continue;
      const { namespace = "", name = "" } = secret.metadata ?? {};
      if (await used.has(namespace, name)) continue;
      try {
        await (fate === "delete" ? remove(secret, client, signal) : mark(secret, client, now, signal));
        const done = fate === "delete" ? "Deleted" : "Marked as invalid";
        log.info(`${done}: a token that nobody uses`, { namespace, secret: name });
      } catch (error) {
        // Of the others some may be dealt with all the same.
        if (signal.aborted) throw error;
        log.error("Cannot take away a token that nobody uses; trying again in a day", error, {
          namespace,
          secret: name,
        });
      }
    }
  }
}

/** What is to be done with the secret, if a controller made it and no pod names it. */
export function fateOf({ metadata }: Bare, now: number): "keep" | "mark" | "delete" {
  const { creationTimestamp = "", deletionTimestamp, labels } = metadata ?? {};
  const limit = now - UNUSED_MS;
  if (deletionTimestamp !== undefined || !(Date.parse(creationTimestamp) < limit)) return "keep";
  const lastUsed = labels?.[LAST_USED_LABEL];
  // Of a label that is no day nothing can be said.
  if (lastUsed !== undefined && (startOfDay(lastUsed) === undefined || lastUsed >= dayOf(limit))) return "keep";
  const invalidSince = labels?.[INVALID_SINCE_LABEL];
  if (startOfDay(invalidSince) === undefined) return "mark";
  return invalidSince! < dayOf(limit) ? "delete" : "keep";
}

/** Whether a controller made the secret: then the account lists it. Those that people made are theirs to delete. */
async function isAutomatic(secret: Bare, observer: Client, signal: AbortSignal): Promise<boolean> {
  const { namespace, name } = secret.metadata ?? {};
  const of = { name: accountOf(secret), namespace };
  if (of.name === "") return false;
  const account: ServiceAccount | undefined = await observer.get(serviceAccountKind, of, signal).catch(unlessMissing);
  return account !== undefined && isFor(secret, account) && (account.secrets ?? []).some((each) => each.name === name);
}

async function mark({ metadata }: Bare, client: Client, now: number, signal: AbortSignal): Promise<void> {
  const { name = "", namespace, uid } = metadata ?? {};
  const patch = { metadata: { uid, labels: { [INVALID_SINCE_LABEL]: dayOf(now) } } };
  await client.patch(metadataOnly(secretKind), { name, namespace }, "merge", patch, { signal }).catch(unlessMissing);
}

/** One that has been used in the meantime, or whose mark was taken away, stays. */
async function remove({ metadata }: Bare, client: Client, signal: AbortSignal): Promise<void> {
  const { name = "", namespace, resourceVersion } = metadata ?? {};
  await client
    .delete(secretKind, { name, namespace }, { preconditions: { resourceVersion } }, signal)
    .catch(unlessMissing);
}

/** What pods name of the secrets of their namespace; each namespace is looked at once. */
class UsedSecrets {
  readonly #observer: Client;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, ReadonlySet<string>>();

  constructor(observer: Client, signal: AbortSignal) {
    this.#observer = observer;
    this.#signal = signal;
  }

  async has(namespace: string, name: string): Promise<boolean> {
    let used = this.#known.get(namespace);
    if (used === undefined) {
      const found = new Set<string>();
      for await (const pod of objectsOf(this.#observer, podKind, undefined, this.#signal, namespace)) {
        for (const reference of podReferences(pod)) if (reference.startsWith("secrets/")) found.add(reference);
      }
      used = found;
      this.#known.set(namespace, used);
    }
    return used.has(`secrets/${namespace}/${name}`);
  }
}

async function* objectsOf<T extends ApiObject>(
  observer: Client,
  kind: Kind<T>,
  fieldSelector: string | undefined,
  signal: AbortSignal,
  namespace?: string,
): AsyncGenerator<T> {
  const query: ListQuery = { namespace, fieldSelector, limit: PAGE };
  let next: string | undefined;
  do {
    const page = await observer.list(kind, { ...query, continue: next }, signal);
    yield* page.items;
    next = page.continue || undefined;
  } while (next !== undefined);
}

/** Gone, or changed by somebody who was quicker: the next turn sees what has become. */
function unlessMissing(error: unknown): undefined {
  if (error instanceof StatusError && (error.status.code === 404 || error.status.code === 409)) return undefined;
  throw error;
}

/** Adoption and release of objects by the label selector of their controller. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { matchesLabels, type Requirement } from "../../api/meta/selectors/selector.ts";
import type { Client } from "../../client/client.ts";
import { statusCodeOf } from "../api-errors.ts";
import { controllerOf, controllerReference } from "./object-keys.ts";

export interface ClaimOptions<O extends ApiObject, T extends ApiObject> {
  readonly client: Client;
  readonly ownerKind: Kind<O>;
  readonly owner: O;
  readonly kind: Kind<T>;
  readonly selector: readonly Requirement[];
  /** Objects that do not pass it are treated as those that the selector does not match. */
  readonly filter?: ((object: T) => boolean) | undefined;
  /** Finalizers that an adopted object gets. */
  readonly finalizers?: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

/** Returns the objects that the owner controls after adoption and release. Rejects if one of the requests failed. */
export async function claimObjects<O extends ApiObject, T extends ApiObject>(
  objects: readonly T[],
  options: ClaimOptions<O, T>,
): Promise<readonly T[]> {
  const { owner, selector, filter = () => true } = options;
  const uid = owner.metadata?.uid ?? "";
  const isTerminating = owner.metadata?.deletionTimestamp !== undefined;
  let adoptable: Promise<void> | undefined;
  const errors: unknown[] = [];
  const claim = async (object: T): Promise<boolean> => {
    const matches = matchesLabels(selector, object.metadata?.labels) && filter(object);
    const controller = controllerOf(object);
    if (controller !== undefined) {
      if (controller.uid !== uid) return false;
      if (matches) return true;
      if (!isTerminating) await release(object, options);
      return false;
    }
    if (isTerminating || !matches || object.metadata?.deletionTimestamp !== undefined) return false;
    // Once for all objects.
    adoptable ??= verifyOwnerLives(options, object);
    await adoptable;
    return await adopt(object, options);
  };
  const claimed: T[] = [];
  for (const object of objects) {
    try {
      if (await claim(object)) claimed.push(object);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
  return claimed;
}

/** The informer may not have the deletion of the owner yet; an adopted object would be deleted with it. */
async function verifyOwnerLives<O extends ApiObject, T extends ApiObject>(
  { client, ownerKind, owner, kind, signal }: ClaimOptions<O, T>,
  object: T,
): Promise<void> {
  const { name = "", namespace, uid = "" } = owner.metadata ?? {};
  const fresh = await client.get(ownerKind, { name, namespace }, signal);
  const { metadata } = fresh;
  const refusal = (reason: string): Error =>
    new Error(`can't adopt ${kind.kind} ${namespace}/${object.metadata?.name} (${object.metadata?.uid}): ${reason}`);
  if (metadata?.uid !== uid) {
    throw refusal(`original ${ownerKind.kind} ${namespace}/${name} is gone: got uid ${metadata?.uid}, wanted ${uid}`);
  }
  if (metadata.deletionTimestamp !== undefined) {
    throw refusal(`${namespace}/${name} has just been deleted at ${metadata.deletionTimestamp}`);
  }
}

async function adopt<O extends ApiObject, T extends ApiObject>(
  object: T,
  { client, owner, kind, finalizers, signal }: ClaimOptions<O, T>,
): Promise<boolean> {
  const { name = "", namespace, uid } = object.metadata ?? {};
  const patch = { metadata: { ownerReferences: [controllerReference(owner)], uid, finalizers } };
  try {
    await client.patch(kind, { name, namespace }, "strategic", patch, { signal });
    return true;
  } catch (error) {
    if (statusCodeOf(error) === 404) return false;
    throw error;
  }
}

async function release<O extends ApiObject, T extends ApiObject>(
  object: T,
  { client, owner, kind, signal }: ClaimOptions<O, T>,
): Promise<void> {
  const { name = "", namespace, uid } = object.metadata ?? {};
  const patch = { metadata: { ownerReferences: [{ $patch: "delete", uid: owner.metadata?.uid }], uid } };
  try {
    await client.patch(kind, { name, namespace }, "strategic", patch, { signal });
  } catch (error) {
    // The object or the reference is gone, or the name belongs to a new object.
    const code = statusCodeOf(error);
    if (code !== 404 && code !== 422) throw error;
  }
}

import type { ApiObject } from "../../api/kind.ts";
import { areLong, checkStoredValues } from "../../schema/value/check-values.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { trackManagedFields } from "../managed-fields/track-managed-fields.ts";
import { runMutatingAdmission, runValidatingAdmission } from "./admission.ts";
import { applyDefaults } from "./apply-defaults.ts";
import { setNamespace } from "./name-and-namespace.ts";
import { AFTER_ADMISSION, dedupOwnerReferences } from "./owner-references.ts";
import { prepareForCreate, prepareForUpdate } from "./prepare.ts";
import type { WriteRequest } from "./request.ts";
import type { StoreStep } from "./store.ts";
import { setSystemMetadata } from "./system-metadata.ts";
import { keepUnchangedTimes } from "./unchanged-times.ts";
import { validate } from "./validate.ts";

/** Runs the steps for one state of the stored object; `previous` is undefined for a create. */
export type Attempt<T> = (previous: T | undefined, store: StoreStep<T>) => Promise<T>;

/**
 * The steps of every write, in the order of Kubernetes' API server; a create has no previous object. Update, patch and
 * apply run the attempt inside `guaranteedUpdate`, once for each state of the stored object. A create with
 * `generateName` runs the steps inside `store` once for each name, so plugins run once and see no generated name.
 */
export function pipeline<T extends ApiObject>(request: WriteRequest<T>, sent: T): Attempt<T> {
  let desired: T | undefined;
  return async (previous, store) => {
    const { scope, options } = request;
    // The steps of a small object take less time than reading the clock between them.
    let slice = areLong(sent, previous) ? new TimeSlice() : undefined;
    if (slice !== undefined) await slice.end();
    desired ??= dedupOwnerReferences(request, applyDefaults(request, sent, previous));
    if (slice?.isOver) await slice.end();
    const tracking = trackManagedFields(request, desired, previous);
    const tracked = tracking instanceof Promise ? await tracking : tracking;
    if (slice?.isOver) await slice.end();
    const mutating = runMutatingAdmission(request, tracked, previous);
    const mutated = mutating instanceof Promise ? await mutating : mutating;
    // A webhook or policy may have made it long.
    if (slice === undefined && mutated !== tracked && areLong(mutated)) slice = new TimeSlice();
    const placed = mutated === tracked ? mutated : setNamespace(request, mutated);
    const admitted = dedupOwnerReferences(request, placed, AFTER_ADMISSION);
    if (slice?.isOver) await slice.end();
    if (options.checkEscalation !== undefined) await options.checkEscalation(scope, admitted, previous);
    return await store(admitted, async (allocate) => {
      const identified = setSystemMetadata(request, admitted, previous);
      // Before the strategy, as in Kubernetes (BeginCreate, BeginUpdate).
      const allocating = allocate(identified, previous);
      const allocated = allocating instanceof Promise ? await allocating : allocating;
      const prepared =
        previous === undefined ? prepareForCreate(request, allocated) : prepareForUpdate(request, allocated, previous);
      if (slice?.isOver) await slice.end();
      const validating = validate(request, prepared, previous, slice !== undefined);
      if (validating instanceof Promise) await validating;
      if (slice?.isOver) await slice.end();
      if (previous === undefined) await options.authorizeCreate?.();
      const admitting = runValidatingAdmission(request, prepared, previous);
      if (admitting instanceof Promise) await admitting;
      if (slice?.isOver) await slice.end();
      checkStoredValues(prepared, previous);
      if (slice?.isOver) await slice.end();
      const stored = previous === undefined ? prepared : keepUnchangedTimes(prepared, previous);
      if (slice?.isOver) await slice.end();
      return stored;
    });
  };
}

/** Quota usage of persistent volume claims: their number and storage requests, in total and by storage class. */

import { storageClassNameOf } from "../../../api/core/persistent-volume/storage-class-name.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { ScopedResourceSelectorRequirement } from "../../../api/core/resource-quota/schema.ts";
import { ONE_UNIT, type ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import { parseQuantity, type Quantity } from "../../../api/meta/quantity.ts";
import type { Evaluator } from "./evaluator.ts";
import { matchesScopeValue } from "./scopes.ts";

const RESOURCES = ["count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage"];
/** `gold.storageclass.storage.k8s.io/requests.storage` */
const CLASS_INFIXES = [".storageclass.storage.k8s.io/", ".storageclass.storage.svc.io/"];

export const claimEvaluator: Evaluator<PersistentVolumeClaim> = {
  handles: (operation, subresource) => (operation === "CREATE" || operation === "UPDATE") && subresource === "",
  isUniform: false,
  counts: (resource) =>
    RESOURCES.includes(resource) ||
    CLASS_INFIXES.some((infix) => RESOURCES.some((own) => resource.endsWith(`${infix}${own}`))),
  usage(claim) {
    const storage = storageOf(claim);
    const own: [string, Quantity][] = [["persistentvolumeclaims", ONE_UNIT]];
    if (storage !== undefined) own.push(["requests.storage", storage]);
    const name = storageClassNameOf(claim);
    const classPrefixes = name === "" ? [] : CLASS_INFIXES.map((infix) => `${name}${infix}`);
    const amounts: ResourceQuantities = new Map([
      ["count/persistentvolumeclaims", ONE_UNIT],
      ...own,
      ...classPrefixes.flatMap((prefix) => own.map(([resource, amount]) => [`${prefix}${resource}`, amount] as const)),
    ]);
    return amounts;
  },
  matchesScope: (scope, claim) => scope.scopeName === "VolumeAttributesClass" && matchesAttributesClass(scope, claim),
};

/** The requested or the allocated storage, whichever is larger, rounded up to bytes. */
function storageOf({ spec, status }: PersistentVolumeClaim): Quantity | undefined {
  const requested = roundUp(spec?.resources?.requests?.storage);
  const allocated = roundUp(status?.allocatedResources?.storage);
  if (requested === undefined || allocated === undefined) return requested;
  return allocated.nanos > requested.nanos ? allocated : requested;
}

function roundUp(text: string | undefined): Quantity | undefined {
  const amount = text === undefined ? undefined : parseQuantity(text);
  if (amount === undefined) return undefined;
  const rest = amount.nanos % ONE_UNIT.nanos;
  return rest === 0n ? amount : { ...amount, nanos: amount.nanos - rest + ONE_UNIT.nanos };
}

/** During a change of the class, the claim counts for both classes. */
function matchesAttributesClass(
  scope: ScopedResourceSelectorRequirement,
  { spec, status }: PersistentVolumeClaim,
): boolean {
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ].filter((name) => name !== undefined && name !== "");
  return names.length === 0
    ? matchesScopeValue(scope, undefined)
    : names.some((name) => matchesScopeValue(scope, name));
}

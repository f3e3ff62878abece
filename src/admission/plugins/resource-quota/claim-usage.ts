/** Claims are counted, and the storage they ask for; both once more for their storage class. */

import { storageClassNameOf } from "../../../api/core/persistent-volume/storage-class-name.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { ScopedResourceSelectorRequirement } from "../../../api/core/resource-quota/schema.ts";
import { ONE_UNIT, type ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import { parseQuantity, type Quantity } from "../../../api/meta/quantity.ts";
import type { Evaluator } from "./evaluator.ts";
import { meetsScope } from "./scopes.ts";

const RESOURCES = ["count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage"];
/** `gold.storageclass.storage.k8s.io/requests.storage` */
const OF_CLASS = [".storageclass.storage.k8s.io/", ".storageclass.storage.svc.io/"];

export const claimEvaluator: Evaluator<PersistentVolumeClaim> = {
  handles: (operation, subresource) => (operation === "CREATE" || operation === "UPDATE") && subresource === "",
  isUniform: false,
  counts: (resource) =>
    RESOURCES.includes(resource) ||
    OF_CLASS.some((infix) => RESOURCES.some((own) => resource.endsWith(`${infix}${own}`))),
  usage(claim) {
    const storage = storageOf(claim);
    const own: [string, Quantity][] = [["persistentvolumeclaims", ONE_UNIT]];
    if (storage !== undefined) own.push(["requests.storage", storage]);
    const name = storageClassNameOf(claim);
    const ofClass = name === "" ? [] : OF_CLASS.map((infix) => `${name}${infix}`);
    const amounts: ResourceQuantities = new Map([
      ["count/persistentvolumeclaims", ONE_UNIT],
      ...own,
      ...ofClass.flatMap((prefix) => own.map(([resource, amount]) => [`${prefix}${resource}`, amount] as const)),
    ]);
    return amounts;
  },
  isWithin: (scope, claim) => scope.scopeName === "VolumeAttributesClass" && isOfAttributes(scope, claim),
};

/** What is asked for, or was given, whichever is more; in whole bytes. */
function storageOf({ spec, status }: PersistentVolumeClaim): Quantity | undefined {
  const requested = wholeOf(spec?.resources?.requests?.storage);
  const allocated = wholeOf(status?.allocatedResources?.storage);
  if (requested === undefined || allocated === undefined) return requested;
  return allocated.nanos > requested.nanos ? allocated : requested;
}

function wholeOf(text: string | undefined): Quantity | undefined {
  const amount = text === undefined ? undefined : parseQuantity(text);
  if (amount === undefined) return undefined;
  const rest = amount.nanos % ONE_UNIT.nanos;
  return rest === 0n ? amount : { ...amount, nanos: amount.nanos - rest + ONE_UNIT.nanos };
}

/** While a claim changes its class it is of both. */
function isOfAttributes(scope: ScopedResourceSelectorRequirement, { spec, status }: PersistentVolumeClaim): boolean {
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ].filter((name) => name !== undefined && name !== "");
  return names.length === 0 ? meetsScope(scope, undefined) : names.some((name) => meetsScope(scope, name));
}

import type { ApiObject } from "../../api/kind.ts";
import type { OwnerReference } from "../../api/meta/object-meta.ts";

export function keyOf({ metadata }: ApiObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

export function splitKey(key: string): { readonly namespace: string; readonly name: string } {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}

/** The reference to the controller that manages the object. */
export function controllerOf({ metadata }: ApiObject): OwnerReference | undefined {
  return metadata?.ownerReferences?.find(({ controller }) => controller === true);
}

export function controllerReference(owner: ApiObject): OwnerReference {
  const { apiVersion = "", kind = "", metadata } = owner;
  const { name = "", uid = "" } = metadata ?? {};
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

export function objectReference({ apiVersion, kind, metadata }: ApiObject) {
  const { name, namespace, uid, resourceVersion } = metadata ?? {};
  return { apiVersion, kind, name, namespace, uid, resourceVersion };
}

export function compareCreation(a: ApiObject, b: ApiObject): number {
  const [timeA = "", timeB = ""] = [a.metadata?.creationTimestamp, b.metadata?.creationTimestamp];
  const [nameA = "", nameB = ""] = [a.metadata?.name, b.metadata?.name];
  if (timeA !== timeB) return timeA < timeB ? -1 : 1;
  return nameA < nameB ? -1 : nameA > nameB ? 1 : 0;
}

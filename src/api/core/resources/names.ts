/** Which names stand for resources, and what sort each is: `cpu`, `hugepages-2Mi`, `example.com/gpu`. */
import { type FieldError, invalidUnquoted } from "../../../schema/validation/field-error.ts";
import { parseQuantity } from "../../meta/quantity.ts";
import { qualifiedName } from "../../meta/validation/names.ts";

const CONTAINER_RESOURCES = new Set(["cpu", "memory", "ephemeral-storage"]);

/** What quotas count in whole objects. */
const OBJECT_COUNTS = [
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
];

const STANDARD_RESOURCES = new Set([
  ...CONTAINER_RESOURCES,
  ...OBJECT_COUNTS,
  "requests.cpu",
  "requests.memory",
  "requests.ephemeral-storage",
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
  "storage",
  "requests.storage",
]);

const HUGE_PAGES = "hugepages-";

export function isHugePages(name: string): boolean {
  return name.startsWith(HUGE_PAGES);
}

/** Names of Kubernetes itself: without a domain, or with its own. */
export function isKubernetesResource(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

/** Names of others, which quotas must be able to count as `requests.NAME`. */
export function isExtendedResource(name: string): boolean {
  return !isKubernetesResource(name) && !name.startsWith("requests.") && qualifiedName(`requests.${name}`).length === 0;
}

export function isStandardResource(name: string): boolean {
  return STANDARD_RESOURCES.has(name) || isHugePages(name) || name.startsWith(`requests.${HUGE_PAGES}`);
}

/** What containers may ask for, among the names without a domain. */
export function isStandardContainerResource(name: string): boolean {
  return CONTAINER_RESOURCES.has(name) || isHugePages(name);
}

/** Devices and counted objects cannot be divided. */
export function isIntegerResource(name: string): boolean {
  return OBJECT_COUNTS.includes(name) || isExtendedResource(name);
}

/** Only of these may the limits of all together exceed what there is. */
export function isOvercommitAllowed(name: string): boolean {
  return isKubernetesResource(name) && !isHugePages(name);
}

/** Whether an amount is a number of whole pages of the size that the name says. */
export function isMultipleOfPageSize(name: string, amount: string): boolean {
  const size = parseQuantity(name.slice(HUGE_PAGES.length))?.nanos ?? 0n;
  return size > 0n && size % 1_000_000_000n === 0n && (parseQuantity(amount)?.nanos ?? 0n) % size === 0n;
}

/** A qualified name; one without a domain must be known. */
export function validateResourceName(name: string, path: string): readonly FieldError[] {
  const problems = qualifiedName(name).map((problem) => invalidUnquoted(path, name, problem));
  if (problems.length > 0 || name.includes("/") || isStandardResource(name)) return problems;
  return [invalidUnquoted(path, name, "must be a standard resource type or fully qualified")];
}

/** The name of a resource that a container asks for. */
export function validateContainerResourceName(name: string, path: string): readonly FieldError[] {
  const problems = validateResourceName(name, path);
  if (!name.includes("/")) {
    if (isStandardContainerResource(name)) return problems;
    return [...problems, invalidUnquoted(path, name, "must be a standard resource for containers")];
  }
  if (isKubernetesResource(name) || isExtendedResource(name)) return problems;
  return [...problems, invalidUnquoted(path, name, "doesn't follow extended resource name standard")];
}
